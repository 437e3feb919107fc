"""What a study is about: named in its file, found and read before anything is computed; what holds where it says nothing."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from topox_core.economics.networks import NETWORKS
from topox_core.errors import (
    InputError,
    check_known,
    errors_at,
    look_up,
    printable,
    refuse_if,
    shown,
)
from topox_core.io.cluster_file import dump_cluster, load_cluster
from topox_core.io.content import digest_of, read
from topox_core.io.resource_limits import limited_reading
from topox_core.io.sample_folder import named_sample
from topox_core.io.task_graph_file import check_fits, dump_graph_json, load_graph
from topox_core.library.run_library import KeptInput
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph
from topox_core.rails.presets import check_on_rail, preset, settings_of
from topox_core.studies.keys import (
    BILL,
    FABRIC,
    KEYS_OF,
    RAIL,
    ROUND,
    Key,
    Value,
    by_name,
)
from topox_core.traces.importing import import_kineto
from topox_core.traces.source import KINETO, ImportSettings, Source, format_of_all, sources_of
from topox_core.training.job import Job, load_job
from topox_core.workloads.catalogue import generate, workload_of
from topox_core.workloads.samples import SAMPLES, load_sample
from topox_core.workloads.workload import TRAINING_JOBS, Workload, as_workload, job_of

# Keys of a subject by its kind; those in the second tuple may be left out.
KINDS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "sample": (("name",), ()),
    "workload": (("generator",), ("parameters",)),
    "job": ((), ("name", "file", "digest", "parameters")),
    "files": (("graph", "cluster"), ("digests",)),
    "recorded": (("file",), ("digest", "options")),
    "rails": ((), ("preset", "name", "parameters")),
    "tdm": ((), ()),
    "network": ((), ("network", "against")),
}
# What one point computes.
RUN_KIND = {"rails": RAIL, "tdm": ROUND, "network": BILL}
MINE, AGAINST = "photonic_rails", "rail_optimized"

# Returns the content of a file by its digest, None if it is not kept.
Kept = Callable[[str], "bytes | None"]
Values = Mapping[str, Value]
# In place of a folder: no file of this machine is read, whatever a study names. Who visits a page may name none.
NOWHERE = Path("nowhere")
NOT_HERE = (
    "names a file of the machine that it was made on, which is not here; open the file on Home, and choose "
    '"the loaded job" as the subject'
)
# Whoever sets one of them describes a fat-tree that does not cost the same.
FAT_TREE_SHAPE = ("oversubscription", "servers_per_rack")


@dataclass(frozen=True)
class Subject:
    """A subject as a study file names it.

    Attributes
    ----------
    kind
        One of :data:`KINDS`.
    values
        Its other keys.
    """

    kind: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def as_record(self) -> dict[str, Any]:
        """Return it as the file has it."""
        return {"kind": self.kind, **self.values}

    @property
    def runs(self) -> str:
        """What one point of it is: ``fabric``, ``rail``, ``round`` or ``bill``."""
        return RUN_KIND.get(self.kind, FABRIC)

    @property
    def digest(self) -> str:
        """SHA-256 of how the file names it."""
        return digest_of(self.as_record())

    @property
    def job(self) -> Job | None:
        """The training job that its task graph is of; None of another one's."""
        if self.kind == "sample":
            made = named_sample(SAMPLES, str(self.values["name"])).made_by
            return job_of(made["workload"], made["set"]) if made else None
        workload = self.workload
        return None if workload is None else job_of(workload.name, self.parameters)

    @property
    def workload(self) -> Workload | None:
        """The generator whose parameters its keys may name; None of what is no generated job."""
        if self.kind == "workload":
            return workload_of(str(self.values["generator"]))
        if self.kind == "job":
            return TRAINING_JOBS[str(self.values["name"])]
        return None

    @property
    def parameters(self) -> dict[str, object]:
        """The parameters of its generator that it changes itself."""
        return dict(self.values.get("parameters", {}))

    @cached_property
    def keys(self) -> Mapping[str, Key]:
        """What a study about it may vary or fix, by name."""
        workload = self.workload
        parameters = workload.parameters if workload else ()
        own = (Key(f"{self.kind}.{one.name}", one) for one in parameters)
        return by_name((*KEYS_OF[self.runs], *own))


@dataclass(frozen=True)
class Resolved:
    """A subject with what it names; plain enough to be sent to another process.

    Attributes
    ----------
    title
        Its name for people.
    digest
        SHA-256 of what it is, wherever it was read from.
    graph, cluster
        Of task graphs; those of a generator are its own before any key changes a parameter.
    job
        Of rails.
    files
        What it was read from, to be kept with its runs.
    """

    subject: Subject
    title: str
    digest: str
    graph: TaskGraph | None = None
    cluster: Cluster | None = None
    job: Job | None = None
    files: tuple[KeptInput, ...] = ()

    @property
    def gpus_per_server(self) -> int:
        """GPUs of a server: of a training job its machine's, of another task graph the devices that it names."""
        job = self.subject.job
        if job is not None:
            return job.machine.gpus_per_server
        return 1 if self.cluster is None else self.cluster.devices_per_server


def subject_of(entry: Any, folder: Path | None = None, kept: Kept = lambda _: None) -> Subject:
    """Return the subject of a record; of the files that it may name only that of a job is read.

    Raises
    ------
    InputError
        If it cannot be one; the field is named.
    """
    refuse_if(
        (not isinstance(entry, dict), f"must be an object in braces (got {shown(entry)})"),
        field="subject",
    )
    refuse_if(("kind" not in entry, "is missing"), field="subject.kind")
    kind = entry["kind"]
    needed, others = look_up(kind, KINDS, "kind", field="subject.kind")
    values = {key: value for key, value in entry.items() if key != "kind"}
    for key, value in values.items():
        place = f"subject.{printable(str(key))}"
        refuse_if((not needed and not others, "has no further key"), field=place)
        check_known(key, (*needed, *others), field=place)
        mapping = key in ("parameters", "digests", "options")
        kind_of, expected = (dict, "an object in braces") if mapping else (str, "text in quotes")
        problem = f"must be {expected} (got {shown(value)})"
        refuse_if((not isinstance(value, kind_of), problem), field=f"subject.{key}")
    refuse_if(*((key not in values, "is missing", f"subject.{key}") for key in needed))
    either = kind != "rails" or ("preset" in values) != ("name" in values)
    refuse_if(
        (not either, "must have either a preset or the name of a job"),
        ("preset" in values and "parameters" in values, "must have no parameters of a preset"),
        field="subject",
    )
    if kind == "job":
        values = _job_values(values, folder, kept)
    subject = Subject(kind, values)
    _check_names(subject)
    return subject


def _job_values(values: dict[str, Any], folder: Path | None, kept: Kept) -> dict[str, Any]:
    """Return a job by the name of a known one and what differs, read from its file if it names one."""
    refuse_if(
        (("name" in values) == ("file" in values), "must have either a name or a file"),
        field="subject",
    )
    if "file" not in values:
        check_known(values["name"], TRAINING_JOBS, "job", field="subject.name")
        return values
    name = values["file"]
    content = _content("file", name, values.get("digest"), folder, kept)
    base, changes = as_workload(load_job(content, Path(name).name))
    return {"name": base, "parameters": {**dict(changes), **values.get("parameters", {})}}


# By kind the key whose names are known, and what looks one up.
_KNOWN: Mapping[str, tuple[str, Callable[[str], object]]] = {
    "sample": ("name", lambda name: named_sample(SAMPLES, name)),
    "workload": ("generator", workload_of),
    "rails": ("preset", preset),
}


def _check_names(subject: Subject) -> None:
    values = subject.values
    if subject.kind == "rails" and "name" in values:
        check_known(values["name"], TRAINING_JOBS, "job", field="subject.name")
    elif subject.kind in _KNOWN:
        key, look_up = _KNOWN[subject.kind]
        with errors_at(field=f"subject.{key}"):
            look_up(values[key])
    for key in ("network", "against") if subject.kind == "network" else ():
        check_known(values.get(key, MINE), NETWORKS, "network", field=f"subject.{key}")
    if subject.workload is not None:
        subject.workload.chosen(subject.parameters, "subject.parameters.")


def resolve(subject: Subject, folder: Path | None = None, kept: Kept = lambda _: None) -> Resolved:
    """Find and read what a subject names.

    Parameters
    ----------
    folder
        Where paths begin; the working directory, if None; :data:`NOWHERE`, where none may be read.
    kept
        Files by their digest: those that the run library keeps.

    Raises
    ------
    InputError
        If a file is gone or was changed since, or what is named does not go together.
    """
    return _FOUND[subject.kind](subject, folder, kept)


def resolved_of(subject: Subject | None, graph: TaskGraph, cluster: Cluster) -> Resolved:
    """Return what is loaded already as a subject: the one that it was read from, or else its own files.

    Parameters
    ----------
    subject
        A sample or a generated workload; None of a graph and a cluster of the user's own.
    """
    if subject is not None:
        return _of_graph(subject, graph, cluster)
    name = graph.name or "own"
    made = (
        ("graph", f"{name}.taskgraph.json", dump_graph_json(graph)),
        ("cluster", f"{name}.cluster.json", dump_cluster(cluster)),
    )
    files = tuple(KeptInput(sha256(content), kind, file, content) for kind, file, content in made)
    named = {one.kind: one.name for one in files}
    digests = {one.kind: one.digest for one in files}
    return _of_graph(Subject("files", {**named, "digests": digests}), graph, cluster, files)


def _of_graph(
    subject: Subject, graph: TaskGraph, cluster: Cluster, files: tuple[KeptInput, ...] = ()
) -> Resolved:
    # A parameter that changes nothing by itself, a seed without skew, counts once a point has skew.
    workload = subject.workload
    made_by = workload is not None and [workload.name, workload.chosen(subject.parameters)]
    what = digest_of([made_by, graph.digest, cluster.digest])
    return Resolved(subject, graph.name, what, graph, cluster, files=files)


def _generated(subject: Subject, *_: object) -> Resolved:
    assert subject.workload is not None
    return _of_graph(subject, *generate(subject.workload.name, subject.parameters))


def _on_rails(subject: Subject, *_: object) -> Resolved:
    values = subject.values
    job = (
        preset(values["preset"])
        if "preset" in values
        else job_of(values["name"], subject.parameters)
    )
    assert job is not None, "a subject names a known job"
    if "name" in values:
        check_on_rail(job)
    return Resolved(subject, job.heading, subject.digest, job=job)


def _from_files(subject: Subject, folder: Path | None, kept: Kept) -> Resolved:
    digests = subject.values.get("digests", {})
    files = []
    for part in ("graph", "cluster"):
        name = str(subject.values[part])
        content = _content(part, name, digests.get(part), folder, kept)
        files.append(KeptInput(sha256(content), part, Path(name).name, content))
    graph = load_graph(files[0].content, files[0].name)
    cluster = load_cluster(files[1].content, files[1].name)
    check_fits(graph, cluster, files[0].name)
    found = {**subject.values, "digests": {one.kind: one.digest for one in files}}
    return _of_graph(Subject("files", found), graph, cluster, tuple(files))


def _recorded(subject: Subject, folder: Path | None, _: Kept) -> Resolved:
    """Read a profiler's files; what is kept with the runs are the task graph and the cluster made of them."""
    name, digest = str(subject.values["file"]), subject.values.get("digest")
    path = _there("recorded run", name, digest, folder, "subject.file")
    options = subject.values.get("options", {})
    # No regular expression comes from a file that somebody else may have written: it may never end.
    known = [one.name for one in fields(ImportSettings) if one.name != "communication"]
    for key in options:
        check_known(key, known, "option", field=f"subject.options.{printable(str(key))}")
    try:
        settings = ImportSettings(**options)
    except (InputError, TypeError) as error:
        raise InputError(str(error), field="subject.options") from None
    form, files = format_of_all(sources_of([str(path)]))
    refuse_if(
        (
            form != KINETO,
            f"must be a profiler's files (got {form}); turn it into a task graph with trace import",
        ),
        field="subject.file",
    )
    if isinstance(digest, str):
        _check_unchanged(_digest_of_sources(files), digest, "subject.digest")
    title = path.name.partition(".")[0] or "recorded run"
    with limited_reading(str(path), sum(Path(one.name).stat().st_size for one in files)):
        made = import_kineto(files, settings, name=title)
    return resolved_of(None, made.graph, made.cluster)


def _digest_of_sources(sources: Iterable[Source]) -> str:
    """Return SHA-256 over the files of a recorded run, in order of their names."""
    whole = hashlib.sha256()
    for source in sources:
        with source.open() as stream:
            while piece := stream.read(1 << 20):
                whole.update(piece)
    return whole.hexdigest()


def _content(part: str, name: str, digest: object, folder: Path | None, kept: Kept) -> bytes:
    """Return the bytes of a file, from the library if it keeps that digest, else from its path."""
    content = kept(digest) if isinstance(digest, str) else None
    if content is None:
        content = read(_there("file", name, digest, folder, f"subject.{part}"))
    if isinstance(digest, str):
        _check_unchanged(sha256(content), digest, f"subject.{part} digest")
    return content


def _there(what: str, name: str, digest: object, folder: Path | None, place: str) -> Path:
    """Return the path of a file; raises InputError where there is none."""
    refuse_if((folder is NOWHERE, NOT_HERE), field="subject")
    path = (folder or Path()) / name
    words = f" (digest {digest[:8]}...)" if isinstance(digest, str) else ""
    refuse_if((not path.exists(), f"{what} {printable(name)} is gone{words}"), field=place)
    return path


def _check_unchanged(now: str, digest: str, place: str) -> None:
    """Refuse a file that was changed since its digest was taken."""
    refuse_if(
        (
            now != digest,
            f"the file was changed since (digest {now[:8]}..., the study says {digest[:8]}...)",
        ),
        field=place,
    )


_FOUND: Mapping[str, Callable[[Subject, "Path | None", Kept], Resolved]] = {
    "sample": lambda one, *_: _of_graph(one, *load_sample(one.values["name"])),
    "workload": _generated,
    "job": _generated,
    "files": _from_files,
    "recorded": _recorded,
    "rails": _on_rails,
    "tdm": lambda one, *_: Resolved(one, "Jobs that share a fabric", one.digest),
    "network": lambda one, *_: Resolved(one, NETWORKS[one.values.get("network", MINE)], one.digest),
}


def sha256(content: bytes) -> str:
    """Return the digest of a file's bytes."""
    return hashlib.sha256(content).hexdigest()


def own_values(resolved: Resolved) -> dict[str, Value]:
    """Return what holds where a study says nothing, by key."""
    subject, workload = resolved.subject, resolved.subject.workload
    own = {name: key.own for name, key in subject.keys.items() if key.own is not None}
    if resolved.cluster is not None:
        values = asdict(resolved.cluster).items()
        own |= {f"cluster.{name}": value for name, value in values if name != "name"}
    if resolved.job is not None:
        settings = {f"rails.{name}": one for name, one in settings_of(resolved.job).items()}
        own |= {name: one for name, one in settings.items() if name in subject.keys}
    chosen = {} if workload is None else workload.chosen(subject.parameters)
    return own | {f"{subject.kind}.{key}": value for key, value in chosen.items()}
