"""What a page or a command has computed already, as a record of the run library."""

import platform
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from topox_core.economics.price_sets import Catalogue
from topox_core.errors import InputError
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.registry import ENTRIES
from topox_core.fabrics.run import FabricRun, JobRequest
from topox_core.fabrics.scheduled import planned_run
from topox_core.io.content import digest_of
from topox_core.library.rows import RunRecord
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph
from topox_core.runs.identity import code_version
from topox_core.schedule.result import Result
from topox_core.schedule.settings import Settings
from topox_core.studies.fabric_point import FabricCase, deflated, fabric_case, measures_of_run
from topox_core.studies.keys import FABRIC, FABRIC_FIELDS, SEED, SETTINGS, Value
from topox_core.studies.point import StudyJob
from topox_core.studies.subject import FAT_TREE_SHAPE, Resolved

SCHEDULE = "schedule"
NOT_AGAIN = "It depends on a choice that no study can name, so that it cannot be computed again."


@dataclass(frozen=True)
class Kept:
    """What a run that is there belongs to.

    Attributes
    ----------
    resolved
        The subject, with the graph and the cluster as their files have them.
    cluster, settings, options
        What was run: the cluster with all what-ifs.
    catalogue
        At whose prices its network is counted.
    prices
        The name of the price set that these prices are, or begin with.
    link
        Query string of the page state that shows it.
    name
        Given by the user.
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

    def case(self, fabric: str) -> FabricCase:
        """Return the run as a point would make it."""
        return FabricCase(
            fabric,
            JobRequest(self.graph, self.cluster, self.settings, self.options),
            self.catalogue,
        )

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


def record_of_solve(result: Result, kept: Kept, seconds: float = 0.0) -> RunRecord:
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
    what: list[object] = [SCHEDULE, kept.graph.digest, kept.cluster.digest, made, kept.graph.name]
    if result.engine != "list":
        what += [result.makespan_ms, result.bound_ms]
    values = kept.values("scheduled")
    measures = measures_of_run(planned_run(result), kept.case("scheduled"), values)
    shown = {
        "settings.effort": result.settings.effort,
        "settings.engine": made["engine"],
        "settings.tick": made["tick"],
    }
    return _record(
        SCHEDULE,
        digest_of(what),
        kept,
        values | shown,
        measures | {"bound_ms": result.bound_ms, "gap": result.gap},
        result,
        seconds=seconds,
    )


def record_of_fabric_run(run: FabricRun, kept: Kept, seconds: float = 0.0) -> RunRecord:
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
    case = kept.case(run.fabric)
    job = StudyJob(kept.resolved)
    again = _is_point(job, case, values)
    key = job.key(job.cell(values))
    if not again:
        key = digest_of(
            [key, run.fabric, asdict(case.request.options), case.request.settings.as_record()]
        )
    measures = measures_of_run(run, case, values)
    return _record(
        FABRIC, key, kept, values, measures, None, "" if again else NOT_AGAIN, seconds=seconds
    )


def _is_point(job: StudyJob, case: FabricCase, values: Mapping[str, Value]) -> bool:
    """Return whether a point with these values runs just this."""
    try:
        point = fabric_case(job.resolved, dict(job.cell(values)))
    except InputError:
        return False
    ours, its = case.request, point.request
    return (
        ours.cluster == its.cluster
        and ours.settings.as_record() == its.settings.as_record()
        and all(
            getattr(ours.options, name) == getattr(its.options, name)
            for name in ("topology_variant", *ENTRIES[case.fabric].options)
        )
        and case.catalogue == point.catalogue
    )


def _record(
    kind: str,
    key: str,
    kept: Kept,
    values: Mapping[str, Any],
    measures: Mapping[str, float | None],
    result: Result | None,
    message: str = "",
    *,
    seconds: float,
) -> RunRecord:
    content, status, stopped_by, wall_s = None, "simulated", "", 0.0
    if result is not None:
        content = deflated(result)
        status, stopped_by, wall_s = result.status, result.stopped_by, result.wall_s
        message = message or result.message
    return RunRecord(
        key=key,
        version=code_version(),
        kind=kind,
        subject=kept.resolved.title,
        graph=kept.graph.digest,
        cluster=kept.cluster.digest,
        settings={**StudyJob(kept.resolved).all(values, asdict(kept.cluster)), **values},
        status=status,
        stopped_by=stopped_by,
        measures=measures,
        message=message,
        seed=kept.settings.seed,
        name=kept.name,
        link=kept.link,
        host=platform.node(),
        started=seconds or time.time(),
        wall_s=wall_s,
        result=content,
    )
