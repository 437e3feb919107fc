"""A study in the background: what the library lacks is computed, and every point is kept the moment it is done.

Plans of harder points serve easier ones: a plan for a longer delay, slower or fewer ports can be carried out
with a shorter delay, faster or more ports in the same time at most (:mod:`topox_core.fabrics.planning.passed_plans`),
so that planned times never grow where the network becomes better.
"""

from __future__ import annotations

import concurrent.futures
import gzip
import json
from collections import defaultdict
from collections.abc import Callable, Generator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar

from topox_core.economics.price_sets import DEFAULT_SET, SET_BY_SPEED
from topox_core.library.rows import FAILED, RunRecord
from topox_core.library.run_library import RunLibrary
from topox_core.runs.cells import CellsRun
from topox_core.runs.executor import Shared
from topox_core.runs.identity import code_version
from topox_core.runs.run import RunProgress, RunsInTurn, Turn
from topox_core.schedule.results.result import gap
from topox_core.studies.axes import Point
from topox_core.studies.keys import BILL, DEFAULT_FABRIC, LABEL, Value
from topox_core.studies.outcomes import OF_MONEY, priced_at
from topox_core.studies.point import Cell, StudyJob, run_cell
from topox_core.studies.study import Study, as_record
from topox_core.studies.subject import Kept, Resolved, resolve

RUNNING, COMPLETE, STOPPED = "running", "complete", "stopped"
ResultT = TypeVar("ResultT")
PLANNED = "scheduled"
# The axes of a better network, and whether more of each is easier.
EASIER = {"cluster.reconfiguration_ms": False, "cluster.port_gbps": True, "cluster.degree": True}
DELAY = "cluster.reconfiguration_ms"
# Where one of these is set to something unusual, plans may keep to slots or pay no delay.
OWN_RULES = ("settings.model", "settings.circuits", "settings.clock")
PER_PART = ("price_usd", "power_w")
SERVED = "This point uses a plan made for a longer delay, or for slower or fewer ports: it is shorter than its own."
OF_THE_PLAN = ("iteration_ms", "changes", "dark_share", "bandwidth_tax", "windows", "window_ms")


@dataclass(frozen=True)
class StudyResult:
    """The table of a study as far as it is known, in the order of the design.

    Attributes
    ----------
    lost
        In words, why points are missing though nobody asked.
    """

    study: Study
    rows: tuple[PointRow, ...]
    lost: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return all(row.done for row in self.rows)

    @property
    def done(self) -> int:
        """How many points are there."""
        return sum(row.done for row in self.rows)

    @property
    def failed(self) -> int:
        """How many points could not be computed."""
        return sum(row.failed for row in self.rows)

    def values(self, row: PointRow) -> dict[str, Value]:
        """Return what is set at a row's point."""
        return self.study.values(row.point)


class StudyPlan:
    """A study with its subject read: its points as calls, and which of them are equal.

    Raises
    ------
    InputError
        If the subject is gone or cannot be read.
    """

    def __init__(self, study: Study, resolved: Resolved) -> None:
        # The subject as it was found: a file by its digest, so that runs can be opened without it.
        self.study = study = replace(study, subject=resolved.subject)
        self.resolved = resolved
        self.job = StudyJob(resolved, study.budget.seconds_per_point)
        self.cells: tuple[Cell, ...] = tuple(
            self.job.cell(study.values(point)) for point in study.points
        )
        keys = {cell: self.job.key(cell) for cell in dict.fromkeys(self.cells)}
        self.keys = keys
        self._chains = chains(self.study)

    @property
    def held(self) -> dict[str, Value]:
        """What holds where an axis is at its base, by key: what the study fixes, else the subject's own."""
        held = {**self.job.own, **self.study.fixed}
        if (ports := held.get("cluster.ports_per_server")) is not None:
            held.setdefault("cluster.degree", ports)
        if "prices" in self.study.keys:
            usual = DEFAULT_SET if self.study.subject.runs == BILL else SET_BY_SPEED
            for part in priced_at(held, usual).parts:
                held |= {f"prices.{part.id}.{name}": getattr(part, name) for name in PER_PART}
        return held

    def key_of(self, number: int) -> str:
        """Return the key of a point's run."""
        return self.keys[self.cells[number]]

    def rows(self, known: Mapping[str, PointRow]) -> tuple[PointRow, ...]:
        """Return the table with what is known, by key; planned points may have the plan of a harder one."""
        empty = PointRow(0, ())
        rows = [
            replace(known.get(self.key_of(number), empty), number=number, point=point)
            for number, point in enumerate(self.study.points)
        ]
        return with_harder_plans(rows, self._chains)

    def seconds(self, known: Mapping[str, PointRow], workers: int) -> float | None:
        """Return about how long what is missing takes, by the points that are there; None if none is."""
        times = [row.wall_s for row in known.values() if not row.failed]
        missing = sum(key not in known for key in self.keys.values())
        return fmean(times) * missing / workers if times else None


def plan_of(
    study: Study, library: RunLibrary | None = None, folder: Path | None = None
) -> StudyPlan:
    """Return a study with its subject read, from the library's kept files where it has them.

    Raises
    ------
    InputError
        If the subject is gone or cannot be read.
    """
    return StudyPlan(study, resolve(study.subject, folder, kept_by(library)))


def probe_s(plan: StudyPlan, known: Mapping[str, PointRow], workers: int = 1) -> float:
    """Return about how long what is missing takes, by the points that are there, else by computing three of them."""
    seconds = plan.seconds(known, workers)
    if seconds is not None:
        return seconds
    missing = [cell for cell, key in plan.keys.items() if key not in known]
    if not missing:
        return 0.0
    run_cell(plan.job, missing[0])  # makes kernels ready, which the others do not wait for
    chosen = dict.fromkeys((missing[0], missing[len(missing) // 2], missing[-1]))
    return fmean(run_cell(plan.job, cell).wall_s for cell in chosen) * len(missing) / workers


def kept_by(library: RunLibrary | None) -> Kept:
    """Return where files are found by digest."""

    def content(digest: str) -> bytes | None:
        kept = None if library is None else library.input(digest)
        return None if kept is None else kept.content

    return content


def known_rows(
    plan: StudyPlan, library: RunLibrary | None, any_version: bool = False
) -> dict[str, PointRow]:
    """Return the points that a library has, by key; ``any_version`` takes those of other versions too."""
    if library is None:
        return {}
    version = None if any_version else code_version()
    known = library.known(list(plan.keys.values()), version)
    return {key: row_of(one.record, one.id) for key, one in known.items()}


def shipped_rows(file: Path) -> dict[str, PointRow]:
    """Return the points of a file that comes with the release, by key; ``tools/make_answers.py`` writes them."""
    points = json.loads(gzip.decompress(file.read_bytes()))
    return {
        key: PointRow(0, (), None, measures, status, message, code_version())
        for key, (status, message, measures) in points.items()
    }


def row_of(record: RunRecord, run: int | None = None) -> PointRow:
    """Return what a point's table says of a run; ``run`` is its number in a library."""
    return PointRow(
        0,
        (),
        run,
        record.measures,
        record.status,
        record.message,
        record.version,
        record.wall_s,
    )


class StudyRun:
    """A run of a study; its contract is that of :class:`~topox_core.runs.run.Run`.

    What the library has of this version is not computed again. Points whose worker process died are
    computed again; one that kills its worker twice is missing, and ``lost`` says so.

    Parameters
    ----------
    plan
        Of :func:`plan_of`.
    library
        Where every point is kept as soon as it is there; None keeps them in memory only.
    executor
        As of :class:`~topox_core.runs.cells.CellsRun`: an executor, or how many processes.
    known
        Points computed before, by their key, which are not computed again; new ones are added.
    listed
        Whether the library lists the study; its points are kept in any case.
    """

    def __init__(
        self,
        plan: StudyPlan,
        library: RunLibrary | None = None,
        executor: concurrent.futures.Executor | int | None = None,
        known: MutableMapping[str, PointRow] | None = None,
        listed: bool = True,
    ) -> None:
        self.plan, self._library = plan, library
        self._shared: MutableMapping[str, PointRow] = {} if known is None else known
        self._known = {
            key: row for key in plan.keys.values() if (row := self._shared.get(key)) is not None
        }
        self._known |= known_rows(plan, library)
        self._shared.update(self._known)
        self._before = len(self._known)
        self._numbers: dict[str, list[int]] = {}
        for number in range(len(plan.cells)):
            self._numbers.setdefault(plan.key_of(number), []).append(number)
        self._study_id = None if library is None else _enter(plan, library, listed)
        self._link({key: row.run for key, row in self._known.items() if row.run is not None})
        missing = [cell for cell, key in plan.keys.items() if key not in self._known]
        self._run: CellsRun[Cell, str, RunRecord] = CellsRun(
            missing,
            plan.keys.__getitem__,
            run_cell,
            executor=executor,
            on_results=self._take,
            shared=Shared.of(plan.job),
            seconds=plan.study.budget.seconds,
        )

    @property
    def running(self) -> bool:
        """Whether points are still to come."""
        return self._run.running

    @property
    def progress(self) -> RunProgress:
        """How many different points are done, those that the library had among them."""
        now = self._run.progress
        total = len(self.plan.keys)
        done = min(total, self._before + (now.done or 0))
        share = done / total if total else 1.0
        return replace(now, share=share, done=done, total=total, unit="points")

    def poll(self) -> None:
        """Take in what has happened."""
        self._run.poll()

    def use(self, workers: int) -> None:
        """Set the number of workers; running points finish first."""
        self._run.use(workers)

    def cancel(self) -> None:
        """Stop; what is there is kept, and a study that is started again goes on from it."""
        self._run.cancel()

    def close(self) -> None:
        """End the run at once and say in the library how far it came."""
        self._run.close()
        if self._library is not None and self._study_id is not None:
            ended = self.result()
            state = COMPLETE if ended.complete else STOPPED
            self._library.set_study_state(self._study_id, state)

    def result(self) -> StudyResult:
        """Return the table as it stands."""
        ended = self._run.result()
        return StudyResult(self.plan.study, self.plan.rows(dict(self._known)), ended.lost)

    def _take(self, results: Sequence[tuple[Cell, RunRecord]]) -> None:
        """Keep what came; called in the run's thread."""
        records = [record for _, record in results]
        self._known |= {record.key: row_of(record) for record in records}
        # A point that took too long may have more time in the next run.
        kept = [
            record for record in records if record.stopped_by != "time_limit" or record.measures
        ]
        if self._library is not None and kept:
            runs = dict(zip((record.key for record in kept), self._library.add(kept), strict=True))
            self._known |= {record.key: row_of(record, runs[record.key]) for record in kept}
            self._link(runs)
        self._shared.update({record.key: self._known[record.key] for record in kept})

    def _link(self, runs: Mapping[str, int]) -> None:
        """Say in the library which runs are points of the study, equal ones too."""
        if self._library is not None and self._study_id is not None:
            points = {n: run for key, run in runs.items() for n in self._numbers[key]}
            self._library.link_points(self._study_id, points)


def _enter(plan: StudyPlan, library: RunLibrary, listed: bool) -> int | None:
    """Write the files of a subject into the library, and its study if it is to be listed; return the study's number."""
    library.keep_inputs(plan.resolved.files)
    if not listed:
        return None
    number = library.add_study(
        plan.study.digest,
        plan.study.name,
        as_record(plan.study),
        len(plan.study.points),
        code_version(),
    )
    library.set_study_state(number, RUNNING)
    return number


@dataclass(frozen=True)
class Step:
    """One of several studies: its name in words, and whether the library lists it."""

    words: str
    plan: StudyPlan
    listed: bool = True


def steps_run(
    steps: Generator[Step, StudyResult, None],
    read: Callable[[Mapping[str, StudyResult], tuple[str, ...], bool], ResultT],
    library: RunLibrary | None = None,
    executor: concurrent.futures.Executor | int | None = None,
    known: MutableMapping[str, PointRow] | None = None,
    total: int | None = None,
) -> RunsInTurn[ResultT]:
    """Start studies one after another, each chosen by what came of those before.

    Parameters
    ----------
    steps
        Yields them, and is sent the result of each.
    read
        ``read(results, lost, complete) -> result``: what there is, given the results by the words of their
        step (the study under way last; of steps with the same words the last), in words why points are
        missing though nobody asked, and whether nothing is still to come.
    library, executor, known
        As of :class:`StudyRun`.
    total
        How many different points all steps have, where that is known beforehand.
    """
    there: MutableMapping[str, PointRow] = {} if known is None else known
    results: dict[str, StudyResult] = {}
    lost: dict[str, None] = {}

    def turns() -> Generator[Turn, StudyResult, None]:
        step = next(steps, None)
        while step is not None:
            rows = step.plan.rows(there)
            result = StudyResult(step.plan.study, rows)
            if not result.complete:
                run = StudyRun(step.plan, library, executor, there, step.listed)
                result = yield Turn(step.words, run)
            results[step.words] = result
            lost.update(dict.fromkeys(result.lost))
            try:
                step = steps.send(result)
            except StopIteration:
                return

    def read_all(turn: Turn | None, complete: bool) -> ResultT:
        now: dict[str, Any] = {} if turn is None else {turn.words: turn.run.result()}
        return read({**results, **now}, tuple(lost), complete)

    return RunsInTurn(turns(), read_all, total=total)


# -- rows, and the plans of harder points ---------------------------------------------------------


@dataclass(frozen=True)
class PointRow:
    """One point of a study and what came of it.

    Attributes
    ----------
    number
        Of the point in the design, from 0.
    point
        The axes' values; None where an axis is at its base.
    run
        Its number in the library; None where there is no library, or nothing came yet.
    measures
        None while the point is still to come.
    status, message
        Of the run; ``failed`` with its reason where it could not be computed.
    version
        Which code computed it.
    wall_s
        How long it took; equal points are computed once.
    """

    number: int
    point: Point
    run: int | None = None
    measures: Mapping[str, float | None] | None = None
    status: str = ""
    message: str = ""
    version: str = ""
    wall_s: float = 0.0

    @property
    def done(self) -> bool:
        """Whether it was computed, or was found not to be possible."""
        return self.measures is not None

    @property
    def failed(self) -> bool:
        """Whether it could not be computed."""
        return self.status == FAILED

    def measure(self, name: str) -> float | None:
        """Return a measure; None where the point is missing or has none."""
        return None if self.measures is None else self.measures.get(name)


# An axis, and its points as (how easy, number).
Chain = tuple[str, tuple[tuple[float, int], ...]]


def chains(study: Study) -> tuple[Chain, ...]:
    """Return the planned points that differ in one axis of :data:`EASIER` alone, axis by axis, the hardest first.

    Names and prices do not count: no plan depends on them.
    """
    groups: defaultdict[tuple[str, object], list[tuple[float, int]]] = defaultdict(list)
    every = [study.values(point) for point in study.points]
    usual = {name: key.own for name, key in study.subject.keys.items() if name in OWN_RULES}
    for axis, more in EASIER.items():
        for number, values in enumerate(every):
            planned = values.get("fabric", DEFAULT_FABRIC) == PLANNED
            planned &= all(values.get(name, own) == own for name, own in usual.items())
            if axis in values and planned:
                rest = frozenset(
                    one
                    for one in values.items()
                    if one[0] not in (axis, LABEL) and not one[0].startswith(OF_MONEY)
                )
                ease = float(values[axis]) if more else -float(values[axis])
                groups[axis, rest].append((ease, number))
    return tuple(
        (axis, tuple(sorted(points))) for (axis, _), points in groups.items() if len(points) > 1
    )


def with_harder_plans(rows: Sequence[PointRow], known: Sequence[Chain]) -> tuple[PointRow, ...]:
    """Return the rows of a study, those with the plan of a harder point that takes less time than their own; ``known``: its chains."""
    found = list(rows)
    for axis, chain in known:
        best: PointRow | None = None
        best_ms = best_ease = 0.0
        for ease, number in chain:
            row, own_ms = found[number], found[number].measure("iteration_ms")
            if not own_ms:
                continue
            # Fixed circuits share their links, which may become worse where they are faster.
            serves = best is not None and (axis == DELAY or (best.measure("changes") or 0.0) > 0)
            if best is not None and serves and best_ms < own_ms * (1 - 1e-9):
                dark = ease / best_ease if axis == DELAY and best_ease else 1.0
                found[number] = row = _served(row, best, dark)
            best, best_ms, best_ease = row, row.measure("iteration_ms") or 0.0, ease
    return tuple(found)


def _served(row: PointRow, plan: PointRow, dark: float) -> PointRow:
    """Return a point with the plan of a harder one, whose ports are dark for a share ``dark`` of what they were there."""
    own, its = dict(row.measures or {}), dict(plan.measures or {})
    its_ms = its["iteration_ms"] or 0.0
    longer = (own["iteration_ms"] or 0.0) / its_ms
    bound_ms = min(own.get("bound_ms") or 0.0, its_ms)
    measures = own | {name: its.get(name) for name in OF_THE_PLAN}
    measures |= {"bound_ms": bound_ms, "gap": gap(its_ms, bound_ms)}
    measures["dark_share"] = (its.get("dark_share") or 0.0) * dark
    for name, factor in (("iterations_per_dollar", longer), ("joules_per_iteration", 1 / longer)):
        value = own.get(name)
        measures[name] = None if value is None else value * factor
    status = "feasible" if measures["gap"] else "optimal"
    # Whoever opens the point sees the run whose time stands there.
    return replace(row, run=plan.run, measures=measures, status=status, message=SERVED)
