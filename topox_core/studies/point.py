"""One point computed, the call that a worker makes, whatever the subject; and what was computed elsewhere, as such a point."""

import platform
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from topox_core.economics.price_sets import Catalogue
from topox_core.errors import InputError, refuse_if
from topox_core.fabrics.fluid.simulator import Stopped
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.planning.scheduled import planned_run
from topox_core.fabrics.registry import ENTRIES
from topox_core.fabrics.run import FabricRun, JobRequest
from topox_core.io.content import digest_of, record_of
from topox_core.library.rows import FAILED, RunRecord
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph
from topox_core.runs.identity import code_version
from topox_core.runs.run import AfterSeconds, Stop, never
from topox_core.schedule.results.result import Result
from topox_core.schedule.settings import Settings
from topox_core.studies.keys import (
    FABRIC,
    FABRIC_FIELDS,
    LABEL,
    SEED,
    SETTINGS,
    Value,
)
from topox_core.studies.outcomes import (
    OUTCOMES,
    Outcome,
    deflated,
    measures_of_run,
    point_job,
    priced_at,
    run_of_point,
)
from topox_core.studies.subject import (
    FAT_TREE_SHAPE,
    Kept,
    Resolved,
    Values,
    own_values,
    resolve,
    subject_of,
)

# What a call computes: what is set at a point, in order of the keys. It says all that a result hangs
# on besides the subject.
Cell = tuple[tuple[str, Value], ...]


@dataclass(frozen=True)
class StudyJob:
    """What every call of a study shares, shipped to a worker once.

    Attributes
    ----------
    seconds_per_point
        After which a point fails; None never.
    """

    resolved: Resolved
    seconds_per_point: float | None = None

    @cached_property
    def own(self) -> dict[str, Value]:
        """What holds where a study says nothing, by key."""
        return own_values(self.resolved)

    def cell(self, values: Values) -> Cell:
        """Return the call of a point: what differs from the subject's own values, without labels.

        Where a parameter of a generator is set, its cluster is another one: what is said of the
        cluster then counts even if the subject's own had it. So does what is said of the lowering,
        whose meaning depends on the model.
        """
        subject = self.resolved.subject
        prefix = f"{subject.kind}."
        changed = subject.workload is not None and any(
            name.startswith(prefix) and self.own.get(name) != value
            for name, value in values.items()
        )
        kept = []
        for name in sorted(values):
            always = name.startswith("lowering.") or (changed and name.startswith("cluster."))
            if name != LABEL and (always or self.own.get(name) != values[name]):
                kept.append((name, values[name]))
        return tuple(kept)

    def key(self, cell: Cell) -> str:
        """Return the key of a call in the library: SHA-256 of the subject's digest and of what is set."""
        return digest_of([self.resolved.subject.runs, self.resolved.digest, dict(cell)])

    def all(self, values: Values, cluster: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return everything that holds at a point, the subject first, as the library keeps it."""
        held: dict[str, Any] = {**self.own, **dict(self.cell(values))}
        if cluster is not None:
            held |= {f"cluster.{k}": v for k, v in cluster.items() if k != "name"}
            held.pop("cluster.degree", None)
        return {"subject": self.resolved.subject.as_record(), **held}


def run_cell(job: StudyJob, cell: Cell) -> RunRecord:
    """Compute one point; what cannot be run is a record too, of a failed run with its one line."""
    values, began = dict(cell), time.time()
    began_s = time.perf_counter()
    limit = job.seconds_per_point
    stop: Stop = never if limit is None else AfterSeconds(limit)
    try:
        outcome = OUTCOMES[job.resolved.subject.runs](job.resolved, values, stop)
    except InputError as error:
        outcome = {"status": FAILED, "message": str(error)}
    except Stopped:
        why = f"took longer than {limit:g} s"
        outcome = {"status": FAILED, "stopped_by": "time_limit", "message": why}
    resolved = job.resolved
    usual: Outcome = {"status": "simulated", "stopped_by": "", "graph": resolved.digest}
    return RunRecord(
        key=job.key(cell),
        version=code_version(),
        kind=resolved.subject.runs,
        subject=resolved.title,
        settings=job.all(values, outcome.pop("held", None)),
        seed=int(values.get(SEED, 0)),
        host=platform.node(),
        started=began,
        wall_s=time.perf_counter() - began_s,
        **usual | {"cluster": "", "measures": {}} | outcome,
    )


def point_of(settings: Mapping[str, Any], kept: Kept = lambda _: None) -> tuple[StudyJob, Cell]:
    """Return the point of a run that the library keeps.

    Raises
    ------
    InputError
        If its subject is gone or cannot be read.
    """
    subject = subject_of(settings["subject"], kept=kept)
    job = StudyJob(resolve(subject, kept=kept))
    values = {
        name: value for name, value in settings.items() if name in subject.keys and name != LABEL
    }
    return job, job.cell(values)


def fabric_run_of(settings: Mapping[str, Any], kept: Kept = lambda _: None) -> FabricRun:
    """Run a kept point of a task graph again, for its times and circuits.

    Raises
    ------
    InputError
        If its subject is gone, or it is no run of a task graph.
    """
    job, cell = point_of(settings, kept)
    refuse_if(
        (job.resolved.subject.runs != FABRIC, "is no run of a task graph: it has no times to draw"),
        file="run",
    )
    return run_of_point(job.resolved, dict(cell), never)


# -- what a page or a command has computed already -------------------------------------------------

SCHEDULE = "schedule"
NOT_AGAIN = "It depends on a choice that no study can name, so that it cannot be computed again."


@dataclass(frozen=True)
class KeptRun:
    """What a run that is there belongs to.

    Attributes
    ----------
    resolved
        The subject, with the graph and the cluster as their files have them.
    cluster, settings, options
        What was run: the cluster with all what-ifs.
    catalogue, prices
        At whose prices its network is counted, and the name of the price set that they are, or begin with.
    link, name
        Query string of the page state that shows it; given by the user.
    """

    resolved: Resolved
    cluster: Cluster
    settings: Settings
    options: FabricOptions
    catalogue: Catalogue
    prices: str
    link: str = ""
    name: str = ""

    @property
    def graph(self) -> TaskGraph:
        """The task graph that was run."""
        assert self.resolved.graph is not None
        return self.resolved.graph

    @property
    def job(self) -> JobRequest:
        """What was run, as a point has it."""
        return JobRequest(self.graph, self.cluster, self.settings, self.options)

    def values(self, fabric: str) -> dict[str, Value]:
        """Return what holds, by the keys of a study of its subject."""
        known = self.resolved.subject.keys
        held: dict[str, Any] = {f"cluster.{k}": v for k, v in asdict(self.cluster).items()}
        held |= {f"settings.{name}": getattr(self.settings, name) for name in SETTINGS}
        lowering, free = self.settings.lowering, self.settings.free
        held["settings.effort"] = self.settings.effort
        # What a study says of the lowering counts even where it says what holds anyway.
        if "rings" not in free:
            held["lowering.rings"] = lowering.rings
        if not lowering.all_reduce_on_network:
            held["lowering.all_reduce_on_network"] = False
        held |= {f"lowering.{kind}": name for kind, name in lowering.algorithm}
        held |= {"fabric": fabric, "prices": self.prices, SEED: self.settings.seed}
        held |= _read_options(fabric, self.options)
        return {name: value for name, value in held.items() if name in known}

    def record(
        self, seconds: float, kind: str, key: str, values: Mapping[str, Any], **came: Any
    ) -> RunRecord:
        """Return the run as the library has it; ``came``: what came of it, by field."""
        return RunRecord(
            key=key,
            version=code_version(),
            kind=kind,
            subject=self.resolved.title,
            graph=self.graph.digest,
            cluster=self.cluster.digest,
            settings={**StudyJob(self.resolved).all(values, asdict(self.cluster)), **values},
            seed=self.settings.seed,
            host=platform.node(),
            started=seconds or time.time(),
            **record_of(self, "name link"),
            **came,
        )


def _read_options(fabric: str, options: FabricOptions) -> dict[str, Value]:
    """Return the options that a fabric reads, by their keys."""
    read: dict[str, Value] = {"fabric.topology_variant": options.topology_variant}
    names = [name for name in ENTRIES[fabric].options if name in FABRIC_FIELDS]
    shape = {name: getattr(options, name) for name in FAT_TREE_SHAPE}
    if shape == {name: getattr(FabricOptions(), name) for name in FAT_TREE_SHAPE}:
        names = [name for name in names if name not in FAT_TREE_SHAPE]
        if fabric == "fat_tree" and options.equivalent_gbps is None:
            read["fabric.fat_tree"] = "full"
    return read | {f"fabric.{name}": getattr(options, name) for name in names}


def record_of_solve(result: Result, kept: KeptRun, seconds: float = 0.0) -> RunRecord:
    """Return a solve with its result file, which can be drawn again as it is.

    What a time limit decided is part of what was computed: a better schedule of the same setting is
    another run.

    Parameters
    ----------
    seconds
        When it was computed, since the epoch; 0 is now.

    Raises
    ------
    InputError
        If there is no schedule in it, or the network cannot be priced.
    """
    if result.execution is None:
        raise InputError(f"has no schedule to keep (status {result.status})", file="result")
    made = result.settings.as_record()
    of = kept.graph.digest, kept.cluster.digest, made, kept.graph.name, kept.catalogue.digest
    what: list[object] = [SCHEDULE, *of]
    if result.engine != "list":
        what += [result.makespan_ms, result.bound_ms]
    values = kept.values("scheduled")
    measures = measures_of_run(planned_run(result), kept.job, kept.catalogue, values)
    shown = {
        "settings.effort": result.settings.effort,
        "settings.engine": made["engine"],
        "settings.tick": made["tick"],
    }
    return kept.record(
        seconds,
        SCHEDULE,
        digest_of(what),
        values | shown,
        measures=measures | record_of(result, "bound_ms gap"),
        result=deflated(result),
        **record_of(result, "status stopped_by message wall_s"),
    )


def record_of_fabric_run(run: FabricRun, kept: KeptRun, seconds: float = 0.0) -> RunRecord:
    """Return a fabric's run: under the key of a study's point where it is one, and else with no way to compute it again.

    Planned circuits that another solve found are kept as that solve.

    Raises
    ------
    InputError
        If the network cannot be priced.
    """
    if run.result is not None and run.result.execution is not None:
        return record_of_solve(run.result, kept, seconds)
    values = kept.values(run.fabric)
    study = StudyJob(kept.resolved)
    cell = study.cell(values)
    key, again = study.key(cell), _is_point(kept, run.fabric, dict(cell))
    if not again:
        made = kept.settings.as_record()
        key = digest_of([key, run.fabric, asdict(kept.options), made, kept.catalogue.digest])
    return kept.record(
        seconds,
        FABRIC,
        key,
        values,
        measures=measures_of_run(run, kept.job, kept.catalogue, values),
        status="simulated",
        stopped_by="",
        message="" if again else NOT_AGAIN,
    )


def _is_point(kept: KeptRun, fabric: str, values: Values) -> bool:
    """Return whether a point with these values runs just this."""
    try:
        job, prices = point_job(kept.resolved, values), priced_at(values)
    except InputError:
        return False
    return (
        kept.cluster == job.cluster
        and kept.settings.as_record() == job.settings.as_record()
        and all(
            getattr(kept.options, name) == getattr(job.options, name)
            for name in ("topology_variant", *ENTRIES[fabric].options)
        )
        and kept.catalogue == prices
    )
