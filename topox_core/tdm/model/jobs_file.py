"""Jobs that share a fabric, from and to files: ``*.jobs.json``, format ``topox-jobs`` version 1."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, FailFast, Field

from topox_core.errors import InputError, printable, shown
from topox_core.io.json import FileFormat, count_of, named, read_object, read_record
from topox_core.io.limits import JOBS
from topox_core.io.ranges import check_text
from topox_core.tdm.model.jobs import COLLECTIVES, Job, Jobs, PodNetwork

FORMAT = "topox-jobs"
VERSION = 1
# Limits are named before memory or hours are spent.
MAX_JOBS = JOBS.entries
MAX_PODS = 16_384
MAX_PODS_PER_GROUP = 64
MAX_PORTS = 1_024
MAX_UNITS = 1_000_000
# Beyond this a sum of squares could overflow; nothing real comes near.
_LARGEST = 1e15
# Some thirty years: rounds of such jobs still show a millisecond.
MAX_S = 1e9
_MAX_NAME = 200
_FORM = FileFormat(FORMAT, VERSION, ("name", "network", "jobs"), JOBS)
_Number = Annotated[float, Field(allow_inf_nan=False)]


class NetworkRecord(BaseModel):
    """The network as the file has it: types only."""

    model_config = ConfigDict(extra="forbid", strict=True)

    pod_groups: int
    pods_per_group: int
    ports_per_pod: int
    port_gbps: _Number
    tor_gbps: _Number
    reconfiguration_ms: _Number = 0.5


class JobRecord(BaseModel):
    """A job as the file has it: types only."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: str
    collective: str
    pod_group: int
    units_per_pod: Annotated[list[int], FailFast(), Field(max_length=MAX_PODS_PER_GROUP)]
    volume_gbit: _Number
    train_s: _Number
    server_pod: int | None = None
    aggregate_s: _Number = 0.0


def load_jobs(data: bytes, file: str) -> Jobs:
    """Read a network and its jobs, gunzipping if needed.

    Raises
    ------
    InputError
        If the file cannot be used; one line names file, job and field.
    """
    file = printable(file, _MAX_NAME) if file else "jobs"
    jobs: list[Job] = []

    def take(number: int, entry: Any) -> None:
        values = read_record(JobRecord, entry, file, named(entry, "id", "job", number)).model_dump()
        jobs.append(Job(**{**values, "units_per_pod": tuple(values["units_per_pod"])}))

    record = read_object(data, file, _FORM, {"jobs": take})
    if not isinstance(record.get("network"), dict):
        got = f"got {shown(record['network'])}" if "network" in record else "is missing"
        raise InputError(f"must be an object in braces ({got})", file=file, field="network")
    count_of(record, "jobs", "jobs", file)
    network = read_record(NetworkRecord, record["network"], file, "network")
    return validated(record.get("name", ""), PodNetwork(**network.model_dump()), jobs, file)


def dump_jobs(jobs: Jobs) -> bytes:
    """Write a network and its jobs, one job a line; reading it back gives equal jobs."""
    head = {
        "format": FORMAT,
        "version": VERSION,
        "name": jobs.name,
        "network": asdict(jobs.network),
    }
    lines = []
    for job in jobs.jobs:
        values = asdict(job)
        if job.server_pod is None:
            del values["server_pod"]
        if not job.aggregate_s:
            del values["aggregate_s"]
        lines.append("  " + json.dumps(values, ensure_ascii=False))
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
    check_text(name, _MAX_NAME, file=file, field="name")
    _check_count(len(jobs), file)
    check_network(network, file)
    seen: set[str] = set()
    for at, job in enumerate(jobs):
        item = f"job {printable(job.id)}" if job.id.strip() else f"job {at + 1}"
        check_text(job.id, _MAX_NAME, 1, file=file, item=item, field="id")
        if job.id in seen:
            raise InputError("is used by an earlier job as well", file=file, item=item, field="id")
        seen.add(job.id)
        problem = _problem(job, network)
        if problem:
            raise InputError(problem[1], file=file, item=item, field=problem[0])
    return Jobs(name, network, tuple(jobs))


def _check_count(count: int, file: str) -> None:
    if count < 1:
        raise InputError("must hold at least one job", file=file, field="jobs")
    if count > MAX_JOBS:
        problem = f"holds {count:,} jobs, more than the {MAX_JOBS:,} that can share a fabric here"
        raise InputError(problem, file=file, field="jobs")


def check_network(network: PodNetwork, file: str) -> None:
    """Check the sizes and speeds of a network, before anything is as large as it says.

    Raises
    ------
    InputError
        If one is out of range, or there are too many pods.
    """
    wrong = _network_problem(network)
    if wrong:
        raise InputError(wrong[1], file=file, item="network", field=wrong[0])


def _network_problem(network: PodNetwork) -> tuple[str, str] | None:
    """Return field and words for the first thing wrong with a network, or None."""
    for field, most in (
        ("pod_groups", MAX_PODS),
        ("pods_per_group", MAX_PODS_PER_GROUP),
        ("ports_per_pod", MAX_PORTS),
    ):
        value = getattr(network, field)
        if not 1 <= value <= most:
            return field, f"must be from 1 to {most:,} (got {shown(value)})"
    pods = network.pod_groups * network.pods_per_group
    if pods > MAX_PODS:
        return "pod_groups", f"makes {pods:,} pods, more than the {MAX_PODS:,} there may be"
    for field in ("port_gbps", "tor_gbps", "reconfiguration_ms"):
        zero = field == "reconfiguration_ms"
        problem = _number(getattr(network, field), zero, MAX_S * 1000 if zero else _LARGEST)
        if problem:
            return field, problem
    return None


def _number(value: float, zero: bool, most: float) -> str:
    """Return what is wrong with a number, or nothing."""
    if math.isfinite(value) and (value > 0 or (zero and value == 0)) and value <= most:
        return ""
    return f"must be {'at least' if zero else 'greater than'} 0 and at most {most:g} (got {shown(value)})"


def _problem(job: Job, network: PodNetwork) -> tuple[str, str] | None:
    """Return field and words for the first thing wrong with a job, or None."""
    if job.collective not in COLLECTIVES:
        known = ", ".join(COLLECTIVES)
        return "collective", f"must be one of {known} (got {shown(job.collective)})"
    if not 0 <= job.pod_group < network.pod_groups:
        last = network.pod_groups - 1
        return "pod_group", f"must be from 0 to {last} (got {shown(job.pod_group)})"
    pods = network.pods_per_group
    if len(job.units_per_pod) != pods:
        return (
            "units_per_pod",
            f"must have one entry for each of the {pods} pods of a group (got {len(job.units_per_pod):,})",
        )
    for pod, units in enumerate(job.units_per_pod):
        if not 0 <= units <= MAX_UNITS:
            return f"units_per_pod[{pod}]", f"must be from 0 to {MAX_UNITS:,} (got {shown(units)})"
    if not any(job.units_per_pod):
        return "units_per_pod", "must place at least one unit (got none)"
    for field, zero, most in (
        ("volume_gbit", False, _LARGEST),
        ("train_s", True, MAX_S),
        ("aggregate_s", True, MAX_S),
    ):
        problem = _number(getattr(job, field), zero, most)
        if problem:
            return field, problem
    return _server_problem(job, pods) or _duration_problem(job, network)


def _duration_problem(job: Job, network: PodNetwork) -> tuple[str, str] | None:
    """Return field and words if a job's traffic takes for ever: its times would swallow those of others."""
    gbit = job.total_gbit
    slowest_gbps = min(network.port_gbps, network.tor_gbps)
    if gbit > MAX_S * slowest_gbps:
        return (
            "volume_gbit",
            f"makes {gbit:g} Gbit in all, more than {MAX_S:g} s at {slowest_gbps:g} Gbit/s carry",
        )
    return None


def _server_problem(job: Job, pods: int) -> tuple[str, str] | None:
    if job.collective == "parameter_server":
        if job.server_pod is None:
            return "server_pod", "is missing: a parameter server has a pod"
        if not 0 <= job.server_pod < pods:
            return (
                "server_pod",
                f"must be a pod of the job's own group, 0 to {pods - 1} (got {shown(job.server_pod)})",
            )
        return None
    for field, value in (("server_pod", job.server_pod), ("aggregate_s", job.aggregate_s or None)):
        if value is not None:
            problem = "belongs to a parameter server only"
            return field, f"{problem} (got {shown(value)} on {job.collective})"
    return None
