"""One result for one setting, everywhere: the job, its first answer at once, its proof beside the page, all kept by digest."""

import hashlib
import threading
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import streamlit as st

from topox_core.check.checker import check
from topox_core.check.report import CheckReport
from topox_core.errors import InputError
from topox_core.fabrics.planning.passed_plans import KnownPlans, PassedPlan, PlanChoice
from topox_core.fabrics.planning.schedule_workers import ScheduleWorkers
from topox_core.fabrics.planning.scheduled import schedule
from topox_core.fabrics.planning.shipped import file_of, record_in, result_of, shipped_plan
from topox_core.fabrics.run import JobRequest
from topox_core.figures.iteration.lanes import Bars, Lanes, bars_of, lanes_of, overview_image
from topox_core.model.critical_path import CriticalPath, critical_path
from topox_core.model.execution import Execution, Measures, measures
from topox_core.runs.cells import CellsResult, futures_run
from topox_core.runs.cores import NICENESS, keep_to_one_core
from topox_core.runs.executor import WorkerDied
from topox_core.runs.run import Stop
from topox_core.schedule.circuits.standing import crossed
from topox_core.schedule.results.result import MET, Result, TracePoint
from topox_core.schedule.results.result_file import to_record
from topox_core.schedule.results.story import found_by
from topox_core.schedule.source import ANOTHER_SOLVE
from topox_core.text.numbers import percent, plural, time
from topox_core.warm_up import load_kernels
from topox_ui.runs.limits import server_limits
from topox_ui.runs.owner import Kept, RunKind, once, run_owner, session_over
from topox_ui.runs.results import shared, wait_for
from topox_ui.shell.charts import escape, headline
from topox_ui.shell.panel import begun_beside
from topox_ui.shell.preparing import prepared, wait_for_kernels
from topox_ui.shell.terms import PLAN
from topox_ui.state.loading import Loaded, loaded, scenario
from topox_ui.state.scenario import Scenario
from topox_ui.state.session import Passing


def job_of(loaded: Loaded, scenario: Scenario) -> JobRequest:
    """Return the job of what is loaded and chosen; raises InputError where choices do not go together."""
    return JobRequest(loaded.graph, scenario.cluster(loaded.cluster), scenario.settings())


# The list schedules among the answers that all sessions share.
LISTED = "list schedule"


def shipped_answer(job: JobRequest) -> Result | None:
    """Return the schedule of a sample that a first visit shows; None for any other graph, cluster or choice."""
    record = record_in(file_of(job.task_graph))
    result = result_of(record, job.by_rules)
    sound = result is not None and check(job.task_graph, job.cluster, record["result"]).ok
    return result if sound else None


# Fewer tasks are scheduled before another process would have answered; more are not worked out where
# nobody can stop it.
MIN_TASKS, MAX_TASKS = 100, 20_000
# Fewer tasks have their list schedule at once, in 0.1 s; of 1,066 it takes 0.85 s and a first plan a
# fifth of that, which is 0.6 % longer in the mean of 30 settings.
MIN_QUICK_TASKS = 500
# Tasks of a graph that is scheduled without the compiler while that is at work: race, 27 tasks, 1.3 s.
MAX_PLAIN = 300


class FirstAnswers:
    """Makes list schedules for all sessions.

    Who asks alone is answered in this process. As soon as two ask at once, processes for it are
    started, and once they have loaded their kernels they answer: list schedules then take no time
    from the threads that draw everybody's pages, and those stay on one core.

    Parameters
    ----------
    workers
        How many processes there may be; with 0 everything is answered here.
    """

    def __init__(self, workers: int) -> None:
        self._workers = ScheduleWorkers(workers, load=load_kernels) if workers else None
        self._plainly: ScheduleWorkers | None = None
        self._here = threading.Lock()

    def schedule(self, job: JobRequest, over: Stop, quickly: bool = False) -> Result:
        """Return the list schedule of a job, at once the shipped one; raises InputError, and ends the script of who is gone."""
        if (shipped := shipped_answer(job)) is not None:
            shared(LISTED).keep(job.key, shipped)  # no plan for few choices is
            return shipped
        if not prepared():
            return self._before_kernels(job, over)
        workers = self._workers
        if workers is None or not MIN_TASKS <= len(job.task_graph.tasks) <= MAX_TASKS:
            return _schedule_here(job, over, quickly)
        if workers.ready:
            with suppress(WorkerDied):
                asked = workers.schedule(
                    job.task_graph, job.cluster, job.by_rules.settings, quickly
                )
                return wait_for(asked, over)
        if not self._here.acquire(blocking=False):
            workers.start()
            keep_to_one_core()
            return _schedule_here(job, over, quickly)
        try:
            return _schedule_here(job, over, quickly)
        finally:
            self._here.release()

    def _before_kernels(self, job: JobRequest, over: Stop) -> Result:
        """Schedule a small graph without the compiler; a larger one waits for it, and its page says so."""
        if len(job.task_graph.tasks) > MAX_PLAIN:
            headline(
                escape(job.task_graph.name),
                "This schedule <b>waits</b>: its kernels are being compiled.",
            )
            wait_for_kernels()
        if self._plainly is None:
            self._plainly = ScheduleWorkers(1, plainly=True)
        with st.spinner("Scheduling without the fast kernels, which are being prepared"):
            asked = self._plainly.schedule(job.task_graph, job.cluster, job.by_rules.settings)
            return wait_for(asked, over)

    def close(self) -> None:
        """End the processes."""
        for workers in (self._workers, self._plainly):
            if workers is not None:
                workers.close()


def _schedule_here(job: JobRequest, over: Stop, quickly: bool) -> Result:
    settings = job.by_rules.settings
    return schedule(job.task_graph, job.cluster, settings, stop=over, quickly=quickly)


@st.cache_resource(show_spinner=False, on_release=lambda one: one.close())
def _first_answers() -> FirstAnswers:
    return FirstAnswers(server_limits().schedule_workers)


@st.cache_resource(show_spinner=False, on_release=lambda one: one.close())
def _behind() -> ScheduleWorkers:
    """Return the one process that schedules what a reader may ask for next, behind all that somebody waits for."""
    return ScheduleWorkers(1, NICENESS)


def first_answer(job: JobRequest, over: Stop, quickly: bool = False) -> Result:
    """Return the list schedule of a job.

    ``quickly``: where that takes long and nobody has it, a plan for few choices of its collectives.
    """
    takes_long = job.settings.free and MIN_QUICK_TASKS <= len(job.task_graph.tasks) <= MAX_TASKS
    quickly = bool(quickly and takes_long and prepared() and known_first_answer(job) is None)
    kept = shared("first plan" if quickly else LISTED)
    return kept.get(job.key, lambda: _first_answers().schedule(job, over, quickly), over)


def known_first_answer(job: JobRequest) -> Result | None:
    """Return the list schedule of a job if some session had it made."""
    return shared(LISTED).known(job.key)


def prefetch(job: JobRequest) -> Future[Result]:
    """Have the list schedule of a job made behind all that somebody waits for, and kept for whoever asks."""
    listed = shared(LISTED)
    future = _behind().schedule(job.task_graph, job.cluster, job.by_rules.settings)

    def keep(made: Future[Result]) -> None:
        if not made.cancelled() and made.exception() is None:
            listed.keep(job.key, made.result())

    future.add_done_callback(keep)
    return future


CHOICES = RunKind("choices", most_slots=0)


def scheduled_beside(job: JobRequest) -> bool:
    """Have the list schedule of a job made beside the page, which is drawn again once it is there; return False where that failed."""
    start = partial(begin_list_schedule, job)
    return begun_beside(CHOICES, job.key, start, lambda: settled(job))


def begin_list_schedule(job: JobRequest) -> None:
    """Begin with the list schedule of a job beside the page."""
    run_owner().start(
        CHOICES,
        job.key,
        lambda _slots: futures_run({job.key: prefetch(job)}, lambda _key, _result: None),
        why_lost,
    )


def why_lost(result: CellsResult[str, Any]) -> str:
    """Return why an answer could not be worked out, in words; empty where it was."""
    return ". ".join([*map(str, result.failures.values()), *result.lost][:1])


WORTH_A_WORD = 5_000  # tasks; fewer are scheduled before a spinner could be read


PROOF = RunKind("proof", cancel_help="Stops within a second; the best schedule so far is kept.")


def known(job: JobRequest) -> Result | None:
    """Return what an exact engine or another page made of a job in this session."""
    return run_owner().results(PROOF).get(job.key)  # type: ignore[no-any-return]


def keep(results: Kept[Result], key: str, result: Result) -> None:
    """Keep a result of a job among a session's, joined with the one that is there."""
    results[key] = joined(results[key], result) if key in results else result


def joined(before: Result, result: Result) -> Result:
    """Return the better schedule of two results of one job, with the better bound of both for each class."""
    if before.makespan_ms is None or result.makespan_ms is None:
        return result
    if _cost(before) < _cost(result):
        before, result = result, before
    classes = tuple(one.with_known(before.classes) for one in result.classes)
    if classes == result.classes:
        return result
    makespan_ms = result.makespan_ms or 0.0
    bound_ms = min(makespan_ms, *(one.bound_ms for one in classes))
    proved, raised = makespan_ms <= bound_ms * (1 + MET), bound_ms > result.bound_ms
    line = TracePoint(result.wall_s, makespan_ms, bound_ms, ANOTHER_SOLVE, ANOTHER_SOLVE)
    return replace(
        result,
        classes=classes,
        bound_ms=bound_ms,
        bound_by=before.bound_by if raised else result.bound_by,
        trace=(*result.trace, line),
        status="optimal" if proved else result.status,
        stopped_by="proof" if proved else result.stopped_by,
    )


def _cost(result: Result) -> tuple[float, int]:
    """Return what is minimised: the makespan, then the number of circuit changes."""
    changes = 0 if result.execution is None else int(result.execution.circuits.changed.sum())
    return result.makespan_ms or 0.0, changes


def best(job: JobRequest, *, at_once: bool = False) -> Result:
    """Return the one result of a job: the list schedule, or a better one of an exact engine or for a harder setting.

    ``at_once``: while nobody has a list schedule that takes long, a first plan stands for it; see :func:`settled`.
    """
    result = known(job)
    if result is None:
        large = len(job.task_graph.tasks) >= WORTH_A_WORD
        words = f"Scheduling {plural(len(job.task_graph.tasks), 'task')}"
        with st.spinner(words) if large else nullcontext():
            result = first_answer(job, session_over(), at_once)
    return with_plans(job, result)


def settled(job: JobRequest) -> bool:
    """Return whether the result of a job rests on all choices of its collectives, not on a first plan."""
    return known(job) is not None or known_first_answer(job) is not None


# The plan of a job that was shown first, in ms.
_FIRST_MS = Passing[tuple[str, float]]("first_plan_ms")


def shorter_than_first(job: JobRequest, now_ms: float) -> str:
    """Say by how much the plan in view is shorter than the one that was shown first; empty where both look the same."""
    of, first_ms = _FIRST_MS.get() or ("", 0.0)
    if of != job.key:
        _FIRST_MS.set((job.key, now_ms))
        return ""
    if now_ms >= first_ms or time(now_ms) == time(first_ms):
        return ""
    return (
        f"Searching beside the page made the planned iteration {percent(1 - now_ms / first_ms)} shorter than the first plan, "
        f"{time(first_ms)}."
    )


@st.cache_resource(show_spinner=False)
def known_plans() -> KnownPlans:
    """Return the plans that any session found, by job: they serve every easier setting."""
    return KnownPlans()


def plans_of(job: JobRequest) -> tuple[PassedPlan, ...]:
    """Return the plans of a job that are known, whatever their setting, that of the release among them."""
    if prepared():  # what is shipped is no longer; carrying it out anew needs kernels
        known_plans().add(job.key_of_plans, shipped_plan(job.by_rules))
    return known_plans().of(job.key_of_plans)


def plans_shown(job: JobRequest) -> tuple[PassedPlan, ...]:
    """Return the plan that pages show for a job, once there is one; of a sample at once.

    Plans for other delays, known by chance, are left out: one setting has one answer, whatever was opened before.
    """
    shown = PassedPlan.of(result_shown(job))
    return () if shown is None else (shown,)


def result_shown(job: JobRequest) -> Result | None:
    """Return the result that pages show for a job; None until it rests on more than a first plan."""
    return best(job) if settled(job) or shipped_answer(job) is not None else None


def with_plans(job: JobRequest, result: Result) -> Result:
    """Return a result of a job, or the plan for a harder setting that is shorter; easier ones hear of it."""
    known_plans().add(job.key_of_plans, PassedPlan.of(result))
    shown = _choice(token(job, result), job, result).among(plans_of(job))
    if _of_loaded(job):
        PLAN.set(_plan_words(shown))
    return shown


def _of_loaded(job: JobRequest) -> bool:
    """Return whether a job is the loaded job with its what-ifs: a citation names the plan of that one."""
    opened = loaded()
    with suppress(InputError):  # what-ifs that do not go together
        return opened is not None and (job.task_graph.digest, job.cluster.digest) == (
            opened.graph.digest,
            scenario().cluster(opened.cluster).digest,
        )
    return False


def _plan_words(result: Result) -> str:
    """Return what tells a plan from another one for the same setting, which a longer search may have found."""
    if result.execution is None:
        return ""
    digest = hashlib.sha256(result.execution.start_ms.tobytes()).hexdigest()[:12]
    found = f"found by {found_by(result)}" if found_by(result) else "made by rules"
    return f"{result.makespan_ms:.6g} ms, {found}; bound {result.bound_ms:.6g} ms; digest of its start times {digest}"


@st.cache_resource(max_entries=64, show_spinner=False)
def _choice(key: str, _job: JobRequest, _result: Result) -> PlanChoice:  # noqa: ARG001
    return PlanChoice(_job.by_rules, _result)


def token(job: JobRequest, result: Result) -> str:
    """Return a key for what is derived from this very result."""
    return f"{job.key}|{result.engine}|{result.makespan_ms}|{result.bound_ms}|{result.wall_s}"


@dataclass(frozen=True)
class Drawn:
    """What every chart of a result starts from; where circuits stay, each transfer has the circuits that it crosses."""

    execution: Execution
    lanes: Lanes
    bars: Bars
    path: CriticalPath
    measures: Measures
    image: Any
    image_rows: int


def drawn(key: str, result: Result) -> Drawn:
    """Return lanes, bars, critical chain, measures and overview image of a result with a schedule."""
    return once("drawn", key, lambda: _draw(result))


def _draw(result: Result) -> Drawn:
    execution = crossed(result.execution)
    lanes = lanes_of(execution)
    bars = bars_of(execution, lanes)
    image, rows = overview_image(bars, lanes, execution.makespan_ms)
    path = critical_path(result.execution, result.settings.exclusive_devices)
    return Drawn(execution, lanes, bars, path, measures(execution), image, rows)


def verdict(key: str, job: JobRequest, result: Result) -> CheckReport:
    """Return what the independent checker says of a result, from the input and the result's file alone."""
    return once("checked", key, lambda: check(job.task_graph, job.cluster, to_record(result)))
