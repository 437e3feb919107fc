"""Jobs that share a fabric, from and to files (``*.jobs.json``, format ``topox-jobs`` version 1), and the samples among them."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from topox_core.errors import InputError, printable, refuse_if, shown
from topox_core.io.content import FileFormat, entries_of, named, read_object
from topox_core.io.limits import JOBS, check_text
from topox_core.io.sample_folder import SAMPLE_FOLDER, named_sample, samples_of
from topox_core.schema.records import from_values, wrong_fields
from topox_core.tdm.model.jobs import MAX_NAME, MAX_PODS, MAX_S, Job, Jobs, PodNetwork

FORMAT = "topox-jobs"
VERSION = 1
MAX_JOBS = JOBS.entries
_FORM = FileFormat(FORMAT, VERSION, ("name", "network", "jobs"), JOBS)


def load_jobs(data: bytes, file: str) -> Jobs:
    """Read a network and its jobs, gunzipping if needed.

    Raises
    ------
    InputError
        If the file cannot be used; one line names file, job and field.
    """
    file = printable(file, MAX_NAME) if file else "jobs"
    record = read_object(data, file, _FORM)
    jobs = [
        from_values(Job, entry, file, named(entry, "id", "job", number))
        for number, entry in enumerate(entries_of(record, "jobs", "jobs", _FORM, file), 1)
    ]
    got = f"got {shown(record['network'])}" if "network" in record else "is missing"
    refuse_if(
        (not isinstance(record.get("network"), dict), f"must be an object in braces ({got})"),
        file=file,
        field="network",
    )
    network = from_values(PodNetwork, record["network"], file, "network")
    return validated(record.get("name", ""), network, jobs, file)


def dump_jobs(jobs: Jobs) -> bytes:
    """Write a network and its jobs, one job a line; reading it back gives equal jobs."""
    head = {
        "format": FORMAT,
        "version": VERSION,
        "name": jobs.name,
        "network": asdict(jobs.network),
    }
    # What only a parameter server has is not written of others.
    records = [
        {k: v for k, v in asdict(job).items() if v is not None and (v or k != "aggregate_s")}
        for job in jobs.jobs
    ]
    lines = ["  " + json.dumps(record, ensure_ascii=False) for record in records]
    text = (
        json.dumps(head, ensure_ascii=False)[:-1] + ',\n "jobs": [\n' + ",\n".join(lines) + "]}\n"
    )
    return text.encode()


def validated(name: str, network: PodNetwork, jobs: Sequence[Job], file: str) -> Jobs:
    """Return jobs on their network after checking every value.

    Raises
    ------
    InputError
        If a value is out of range, an id is used twice, units or a parameter server lie outside the
        pods of the job's group, or there are no jobs or too many.
    """
    check_text(name, MAX_NAME, file=file, field="name")
    refuse_if(
        (not jobs, "must hold at least one job"),
        (
            len(jobs) > MAX_JOBS,
            f"holds {len(jobs):,} jobs, more than the {MAX_JOBS:,} that can share a fabric here",
        ),
        file=file,
        field="jobs",
    )
    check_network(network, file)
    seen: set[str] = set()
    for at, job in enumerate(jobs):
        item = f"job {printable(job.id)}" if job.id.strip() else f"job {at + 1}"
        refuse_if(
            (job.id in seen, "is used by an earlier job as well"), file=file, item=item, field="id"
        )
        seen.add(job.id)
        for key, problem in _problems(job, network):
            raise InputError(problem, file=file, item=item, field=key)
    return Jobs(name, network, tuple(jobs))


def check_network(network: PodNetwork, file: str) -> None:
    """Check the sizes and speeds of a network, before anything is as large as it says.

    Raises
    ------
    InputError
        If one is out of range, or there are too many pods.
    """
    for key, problem in wrong_fields(network):
        raise InputError(problem, file=file, item="network", field=key)
    pods = network.pod_groups * network.pods_per_group
    refuse_if(
        (pods > MAX_PODS, f"makes {pods:,} pods, more than the {MAX_PODS:,} there may be"),
        file=file,
        item="network",
        field="pod_groups",
    )


def _problems(job: Job, network: PodNetwork) -> Iterator[tuple[str, str]]:
    """Yield field and words for what is wrong with a job; what follows the first may follow from it."""
    yield from wrong_fields(job)
    last = network.pod_groups - 1
    if not 0 <= job.pod_group <= last:
        yield "pod_group", f"must be from 0 to {last} (got {shown(job.pod_group)})"
    pods = network.pods_per_group
    if len(job.units_per_pod) != pods:
        yield (
            "units_per_pod",
            f"must have one entry for each of the {pods} pods of a group (got {len(job.units_per_pod):,})",
        )
    if not any(job.units_per_pod):
        yield "units_per_pod", "must place at least one unit (got none)"
    yield from _server_problems(job, pods)
    # Traffic that takes for ever: its times would swallow those of others.
    gbit, slowest_gbps = job.total_gbit, min(network.port_gbps, network.tor_gbps)
    if gbit > MAX_S * slowest_gbps:
        yield (
            "volume_gbit",
            f"makes {gbit:g} Gbit in all, more than {MAX_S:g} s at {slowest_gbps:g} Gbit/s carry",
        )


def _server_problems(job: Job, pods: int) -> Iterator[tuple[str, str]]:
    if job.collective == "parameter_server":
        if job.server_pod is None:
            yield "server_pod", "is missing: a parameter server has a pod"
        elif not 0 <= job.server_pod < pods:
            yield (
                "server_pod",
                f"must be a pod of the job's own group, 0 to {pods - 1} (got {shown(job.server_pod)})",
            )
        return
    for key, value in (("server_pod", job.server_pod), ("aggregate_s", job.aggregate_s or None)):
        if value is not None:
            problem = "belongs to a parameter server only"
            yield key, f"{problem} (got {shown(value)} on {job.collective})"


@dataclass(frozen=True)
class JobSample:
    """One job mix as ``sample_data/index.json`` describes it.

    Attributes
    ----------
    name, title, see
        Its key, a heading, and one line on what to see in it.
    jobs, pods
        How many there are.
    file
        File name within :data:`SAMPLE_FOLDER`.
    non_tdm_s, hill_climbing_s
        Round without time division, and as Algorithm 1 leaves it.
    optimum_s
        The shortest round of two groups in four phases over all groupings and rings where it is
        known, and ``proof`` says in a line why it holds; else None.
    made_by
        Keywords of :class:`topox_core.tdm.mixes.deployment.SetUp` that made it; empty if written by hand.
    """

    name: str
    title: str
    see: str
    jobs: int
    pods: int
    file: str
    non_tdm_s: float
    hill_climbing_s: float
    optimum_s: float | None = None
    proof: str = ""
    made_by: dict[str, Any] = field(default_factory=dict)


JOB_SAMPLES = samples_of("job_mixes", JobSample)


def load_job_sample(name: str) -> Jobs:
    """Return a sample's network and jobs.

    Raises
    ------
    InputError
        If there is no sample of that name.
    """
    sample = named_sample(JOB_SAMPLES, name)
    return load_jobs((SAMPLE_FOLDER / sample.file).read_bytes(), sample.file)
