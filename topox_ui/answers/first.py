"""The first answer to a setting, its list schedule: made once for all sessions, in processes of their own where many ask."""

import gzip
import json
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

import streamlit as st
from streamlit.runtime.scriptrunner import StopException

from topox_core.check.checker import check
from topox_core.errors import InputError
from topox_core.fabrics.fluid import Stopped
from topox_core.fabrics.passed_plans import PassedPlan
from topox_core.fabrics.schedule_workers import ScheduleWorkers
from topox_core.fabrics.scheduled import schedule
from topox_core.io.sample_folder import SAMPLE_FOLDER
from topox_core.runs.cores import NICENESS, keep_to_one_core
from topox_core.runs.executor import WorkerDied
from topox_core.runs.stopping import Stop
from topox_core.schedule.result import Result, TracePoint
from topox_core.schedule.result_file import from_record, to_record
from topox_core.schedule.source import Family, TraceSource
from topox_core.warm_up import load_kernels
from topox_ui.answers.case import Case, listing
from topox_ui.runs.limits import server_limits
from topox_ui.runs.shared import shared, wait_for
from topox_ui.shell.charts import escape, headline
from topox_ui.shell.preparing import prepared, wait_for_kernels

FOLDER = SAMPLE_FOLDER / "answers"
# The list schedules among the answers that all sessions share.
LISTED = "list schedule"


def shipped_answer(case: Case) -> Result | None:
    """Return the schedule of a sample that a first visit shows; None for any other graph, cluster or choice."""
    record = _shipped(case)
    result = _result_if_alike(record, case)
    sound = result is not None and check(case.graph, case.cluster, record["result"]).ok
    return result if sound else None


@st.cache_resource(max_entries=64, show_spinner=False)
def shipped_plan(job_key: str, _case: Case) -> PassedPlan | None:  # noqa: ARG001
    """Return the plan for another delay that beats a sample's list schedule; None where none does, and for any other job or choice."""
    record = _shipped(_case).get("plan", {})
    made_for = record.get("result", {}).get("settings", {}).get("cluster", {})
    case = replace(_case, cluster=_case.cluster.changed(**made_for))
    return PassedPlan.of(_result_if_alike(record, case))


def _shipped(case: Case) -> dict[str, Any]:
    """Return what the release has for a graph, as ``tools/make_answers.py`` writes it; empty where it has nothing."""
    file = FOLDER / f"{case.graph.digest[:16]}.json.gz"
    return json.loads(gzip.decompress(file.read_bytes())) if file.is_file() else {}


def _result_if_alike(record: Mapping[str, Any], case: Case) -> Result | None:
    """Return the result of a record; None of an empty one, or one that was made with other choices or for another cluster."""
    with suppress(InputError):
        return _result(record, case) if record else None
    return None


def answer_record(result: Result) -> dict[str, Any]:
    """Return a result as plain values with what its own file leaves out: who found it, and what it beat."""
    return {
        "result": to_record(result),
        "lowered_bound_ms": result.lowered_bound_ms,
        "trace": [
            (
                *(point.elapsed_s, point.incumbent_ms, point.bound_ms),
                *((one.family, one.name) for one in (point.source, point.bound_source)),
            )
            for point in result.trace
        ],
        "alternative": result.alternative and answer_record(result.alternative),
    }


def _result(record: Mapping[str, Any], case: Case) -> Result:
    own = from_record(record["result"], case.graph, case.cluster, listing(case.settings))
    trace = tuple(
        TracePoint(*numbers, _source(found), _source(bounded))
        for *numbers, found, bounded in record["trace"]
    )
    other = record["alternative"]
    return replace(
        own,
        lowered_bound_ms=record["lowered_bound_ms"],
        trace=trace,
        alternative=None if other is None else _result(other, case),
        message=str(record["result"].get("message", "")),
    )


def _source(words: tuple[str, str]) -> TraceSource:
    family, name = words
    return TraceSource(cast("Family", family), name)


# Fewer tasks are scheduled before another process would have answered; more are not worked out where
# nobody can stop it.
MIN_TASKS, MAX_TASKS = 100, 20_000
# Fewer tasks have their list schedule at once, in 0.1 s; of 1,066 it takes 0.85 s and a first plan
# 0.17 s, which is 0.8 % longer in the mean of 30 settings.
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

    def schedule(self, case: Case, over: Stop, quickly: bool = False) -> Result:
        """Return the list schedule of a case, at once the shipped one; raises InputError, and ends the script of who is gone."""
        if (shipped := shipped_answer(case)) is not None:
            shared(LISTED).keep(case.key, shipped)  # no plan for few choices is
            return shipped
        if not prepared():
            return self._before_kernels(case, over)
        workers = self._workers
        if workers is None or not MIN_TASKS <= len(case.graph.tasks) <= MAX_TASKS:
            return _schedule_here(case, over, quickly)
        if workers.ready:
            with suppress(WorkerDied):
                asked = workers.schedule(case.graph, case.cluster, listing(case.settings), quickly)
                return wait_for(asked, over)
        if not self._here.acquire(blocking=False):
            workers.start()
            keep_to_one_core()
            return _schedule_here(case, over, quickly)
        try:
            return _schedule_here(case, over, quickly)
        finally:
            self._here.release()

    def _before_kernels(self, case: Case, over: Stop) -> Result:
        """Schedule a small graph without the compiler; a larger one waits for it, and its page says so."""
        if len(case.graph.tasks) > MAX_PLAIN:
            headline(
                escape(case.graph.name),
                "This schedule <b>waits</b>: its kernels are being compiled.",
            )
            wait_for_kernels()
        if self._plainly is None:
            self._plainly = ScheduleWorkers(1, plainly=True)
        with st.spinner("Scheduling without the fast kernels, which are being prepared"):
            asked = self._plainly.schedule(case.graph, case.cluster, listing(case.settings))
            return wait_for(asked, over)

    def close(self) -> None:
        """End the processes."""
        for workers in (self._workers, self._plainly):
            if workers is not None:
                workers.close()


def _schedule_here(case: Case, over: Stop, quickly: bool) -> Result:
    with suppress(Stopped):
        result = schedule(
            case.graph, case.cluster, listing(case.settings), stop=over, quickly=quickly
        )
        if not over():
            return result
    raise StopException  # nobody is there to see it, and what was cut short is not for others


@st.cache_resource(show_spinner=False, on_release=lambda one: one.close())
def _first_answers() -> FirstAnswers:
    return FirstAnswers(server_limits().schedule_workers)


@st.cache_resource(show_spinner=False, on_release=lambda one: one.close())
def _behind() -> ScheduleWorkers:
    """Return the one process that schedules what a reader may ask for next, behind all that somebody waits for."""
    return ScheduleWorkers(1, NICENESS)


def first_answer(case: Case, over: Stop) -> Result:
    """Return the list schedule of a case."""
    return shared(LISTED).get(case.key, lambda: _first_answers().schedule(case, over), over)


def first_plan(case: Case, over: Stop) -> Result:
    """Return the list schedule of a case, or a plan for few choices of its collectives where that takes long and none has it."""
    quick = bool(case.settings.free) and MIN_QUICK_TASKS <= len(case.graph.tasks) <= MAX_TASKS
    if not quick or not prepared() or known_first_answer(case) is not None:
        return first_answer(case, over)
    return shared("first plan").get(
        case.key, lambda: _first_answers().schedule(case, over, quickly=True), over
    )


def known_first_answer(case: Case) -> Result | None:
    """Return the list schedule of a case if some session had it made."""
    return shared(LISTED).known(case.key)


def prefetch(case: Case) -> Future[Result]:
    """Have the list schedule of a case made behind all that somebody waits for, and kept for whoever asks."""
    listed = shared(LISTED)
    future = _behind().schedule(case.graph, case.cluster, listing(case.settings))

    def keep(made: Future[Result]) -> None:
        if not made.cancelled() and made.exception() is None:
            listed.keep(case.key, made.result())

    future.add_done_callback(keep)
    return future
