"""The six studies, one after the other, and their table: what every fabric takes at one job, ports, speed and delay."""

import concurrent.futures
import gzip
import json
from collections import defaultdict
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

from topox_core.fabrics.comparison.compare import fastest_of, same_time
from topox_core.fabrics.registry import PAYS_DELAY
from topox_core.library.run_library import RunLibrary
from topox_core.runs.identity import code_version
from topox_core.runs.run import RunsInTurn
from topox_core.studies.study import Study, load_study
from topox_core.studies.study_run import (
    PLANNED,
    PointRow,
    Step,
    StudyPlan,
    StudyResult,
    chains,
    known_rows,
    plan_of,
    steps_run,
    with_harder_plans,
)

FOLDER = Path(__file__).with_name("studies")
POINTS = Path(__file__).parent / "shipped_points.json.gz"
# In the order of every table.
JOBS: Mapping[str, str] = {
    "dense": "Dense transformer",
    "experts": "Mixture of experts",
    "recommendation": "Recommendation (DLRM)",
    "sharded": "Sharded weights (FSDP)",
    "pipeline": "Deep pipeline",
    "serving": "Serving in bursts",
}


def file_of(job: str) -> Path:
    """Return the study file of a job."""
    return FOLDER / f"{job}.study.json"


@cache
def study_of_job(job: str) -> Study:
    """Return the study of a job, as its file has it."""
    path = file_of(job)
    return load_study(path.read_bytes(), path.name)


Results = Mapping[str, StudyResult]


def rivals_run(
    library: RunLibrary | None = None,
    executor: concurrent.futures.Executor | int | None = None,
    jobs: Sequence[str] = tuple(JOBS),
) -> RunsInTurn[Results]:
    """Start the studies of some of :data:`~topox_core.claims.cells.JOBS`; their tables come by job.

    What the library has of this version is not computed again; the other arguments are those of
    :class:`~topox_core.studies.study_run.StudyRun`.
    """
    plans = {job: plan_of(study_of_job(job)) for job in jobs}
    known = {job: _known(plan, library) for job, plan in plans.items()}

    def steps() -> Generator[Step, StudyResult, None]:
        for job, plan in plans.items():
            yield Step(JOBS[job], plan)

    def read(there: Results, _lost: tuple[str, ...], _complete: bool) -> Results:
        return {job: there.get(JOBS[job], known[job]) for job in plans}

    total = sum(len(plan.keys) for job, plan in plans.items() if not known[job].complete)
    return steps_run(steps(), read, library, executor, total=total)


def _known(plan: StudyPlan, library: RunLibrary | None) -> StudyResult:
    return StudyResult(plan.study, plan.rows(known_rows(plan, library)))


@cache
def shipped_results() -> Results:
    """Return the tables that come with the release, by job; ``tools/make_answers.py`` writes their points."""
    points = json.loads(gzip.decompress(POINTS.read_bytes()))
    return {job: _shipped(study_of_job(job), points[job]) for job in JOBS}


def _shipped(
    study: Study, points: Sequence[tuple[str, str, dict[str, float | None]]]
) -> StudyResult:
    rows = [
        PointRow(number, point, None, measures, status, message, code_version())
        for number, (point, (status, message, measures)) in enumerate(
            zip(study.points, points, strict=True)
        )
    ]
    return StudyResult(study, with_harder_plans(rows, chains(study)))


def known_results(library: RunLibrary | None) -> Results:
    """Return the tables with what a library has of this version, by job; nothing is computed."""
    return {job: _known(plan_of(study_of_job(job)), library) for job in JOBS}


Side = Literal["fixed", "changing", "even", ""]
Place = tuple[str, int, float, float]
_NETWORK = ("degree", "port_gbps", "reconfiguration_ms")


@dataclass(frozen=True)
class Cell:
    """One setting with every fabric that ran there.

    Attributes
    ----------
    job, ports, port_gbps, delay_ms
        Which job of :data:`~topox_core.claims.cells.JOBS`, and its network.
    times_ms, dollars
        By fabric: the iteration, and the price of its network.
    unchanged
        The fabrics that could change circuits here and did not, because that is faster.
    complete
        Whether every fabric of the study has come: before that, nobody is ahead.
    """

    job: str
    ports: int
    port_gbps: float
    delay_ms: float
    times_ms: Mapping[str, float]
    dollars: Mapping[str, float]
    unchanged: frozenset[str] = frozenset()
    complete: bool = True

    @property
    def fastest(self) -> str:
        """The fastest fabric; of equal ones the simplest controller. Empty where nothing ran."""
        return next(iter(fastest_of(self.times_ms)), "")

    @property
    def side(self) -> Side:
        """Which side is faster here: networks fixed for the whole iteration, or circuits that change in it.

        Even at the same time, and where no network changes a circuit; empty where not all ran.
        """
        fixed, changing = self._least(changing=False), self._least(changing=True)
        if fixed is None or not self.complete:
            return ""
        # Where nothing changes a circuit, nobody gains by a change.
        if changing is None or same_time(fixed, changing):
            return "even"
        return "fixed" if fixed < changing else "changing"

    @property
    def lead(self) -> float:
        """How much sooner the faster side ends, as a share of the other one's time."""
        times = [self._least(changing=side) for side in (False, True)]
        known = [one for one in times if one is not None]
        return 1 - min(known) / max(known) if len(known) == 2 and max(known) > 0 else 0.0

    def ratio(self, one: str, other: str) -> float | None:
        """Return the time on one fabric over that on another one; None where one of them did not run."""
        if one not in self.times_ms or not self.times_ms.get(other):
            return None
        return self.times_ms[one] / self.times_ms[other]

    def changes(self, fabric: str) -> bool:
        """Whether a fabric that ran here changes a circuit during the iteration."""
        return fabric in self.times_ms and fabric in PAYS_DELAY - self.unchanged

    def _least(self, changing: bool) -> float | None:
        times = [ms for name, ms in self.times_ms.items() if self.changes(name) == changing]
        return min(times, default=None)


def cells_of(results: Mapping[str, StudyResult]) -> tuple[Cell, ...]:
    """Return the cells of which a fabric is known, in the order of the studies, the shortest delay first.

    Planned circuits stay as the fixed ones that are searched from the task graph where that is faster,
    as on Compare.
    """
    found: defaultdict[Place, dict[str, PointRow]] = defaultdict(dict)
    for job, result in results.items():
        for row in result.rows:
            value = result.values(row)
            network = (value[f"cluster.{key}"] for key in _NETWORK)
            ports, gbps, delay_ms = (float(one) for one in network)
            found[job, int(ports), gbps, delay_ms][str(value["fabric"])] = row
    cells = (_cell(place, found[place]) for place in sorted(found))
    known = [_may_stay(one) for one in cells if one.times_ms]
    return tuple(sorted(known, key=lambda one: list(results).index(one.job)))


def _cell(place: Place, rows: Mapping[str, PointRow]) -> Cell:
    """Return what is known of a setting, by the rows of its fabrics."""
    ran = {
        fabric: row.measures
        for fabric, row in rows.items()
        if row.measures is not None and not row.failed
    }

    def known(name: str) -> dict[str, float]:
        return {fabric: one for fabric in ran if (one := ran[fabric].get(name)) is not None}

    stayed = frozenset(fabric for fabric, changes in known("changes").items() if changes == 0)
    complete = all(row.done for row in rows.values())
    return Cell(*place, known("iteration_ms"), known("dollars"), stayed, complete)


def _may_stay(one: Cell) -> Cell:
    """Return a cell in which planned circuits take no longer than those fixed from the task graph."""
    fixed = one.times_ms.get("static_graph")
    if fixed is None or PLANNED not in one.times_ms or fixed >= one.times_ms[PLANNED]:
        return one
    times = {**one.times_ms, PLANNED: fixed}
    return replace(one, times_ms=times, unchanged=one.unchanged | {PLANNED})
