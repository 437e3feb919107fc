"""One point computed: the call that a worker makes, whatever the subject."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from topox_core.errors import InputError
from topox_core.fabrics.fluid import Stopped
from topox_core.fabrics.run import FabricRun
from topox_core.library.record import FAILED, RunRecord
from topox_core.runs.identity import code_version
from topox_core.runs.stopping import AfterSeconds, Stop, never
from topox_core.studies.fabric_point import fabric_case, fabric_outcome, run_of_point
from topox_core.studies.keys import LABEL, SEED, Value
from topox_core.studies.measures import BILL, FABRIC, RAIL, ROUND
from topox_core.studies.other_points import bill_outcome, rail_outcome, round_outcome
from topox_core.studies.outcome import Outcome
from topox_core.studies.subject import Kept, Resolved, resolve, subject_of
from topox_core.studies.values import PointValues, Values

OUTCOMES: Mapping[str, Callable[[Resolved, Values, Stop], Outcome]] = {
    FABRIC: fabric_outcome,
    RAIL: rail_outcome,
    ROUND: round_outcome,
    BILL: bill_outcome,
}
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
    def values(self) -> PointValues:
        """What holds at points of the subject."""
        return PointValues(self.resolved)

    def cell(self, values: Values) -> Cell:
        """Return the call of a point."""
        return tuple(self.values.set(values).items())

    def key(self, cell: Cell) -> str:
        """Return the key of a call in the library."""
        return self.values.key(dict(cell))


def run_cell(job: StudyJob, cell: Cell) -> RunRecord:
    """Compute one point; what cannot be run is a record too, of a failed run with its one line."""
    values, began = dict(cell), time.time()
    began_s = time.perf_counter()
    limit = job.seconds_per_point
    stop: Stop = never if limit is None else AfterSeconds(limit)
    try:
        outcome = OUTCOMES[job.resolved.subject.runs](job.resolved, values, stop)
    except InputError as error:
        outcome = Outcome({}, FAILED, message=str(error))
    except Stopped:
        outcome = Outcome({}, FAILED, "time_limit", message=f"took longer than {limit:g} s")
    resolved = job.resolved
    return RunRecord(
        key=job.key(cell),
        version=code_version(),
        kind=resolved.subject.runs,
        subject=resolved.title,
        graph=outcome.graph or resolved.digest,
        cluster=outcome.cluster,
        settings=job.values.all(values, outcome.held or None),
        status=outcome.status,
        stopped_by=outcome.stopped_by,
        measures=outcome.measures,
        message=outcome.message,
        seed=int(values.get(SEED, 0)),
        host=host_name(),
        started=began,
        wall_s=time.perf_counter() - began_s,
        result=outcome.result,
    )


@lru_cache(maxsize=1)
def host_name() -> str:
    """Return what this machine is called."""
    return platform.node()


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
    if job.resolved.subject.runs != FABRIC:
        raise InputError("is no run of a task graph: it has no times to draw", file="run")
    return run_of_point(fabric_case(job.resolved, dict(cell)), never)
