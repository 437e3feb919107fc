"""One result for one setting, everywhere: list schedule at once, proof beside the page, all kept by digest."""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import streamlit as st

from topox_core.check.checker import check
from topox_core.check.report import CheckReport
from topox_core.fabrics.passed_plans import KnownPlans, PassedPlan, with_passed_plans
from topox_core.fabrics.run import JobRequest
from topox_core.fabrics.scheduled import prove
from topox_core.figures.lanes import Bars, Lanes, bars_of, lanes_of, overview_image
from topox_core.model.critical_path import CriticalPath, critical_path
from topox_core.model.execution import Execution, Measures, measures
from topox_core.schedule.circuits.standing import crossed
from topox_core.schedule.result import MET, Result, TracePoint
from topox_core.schedule.result_file import to_record
from topox_core.schedule.source import ANOTHER_SOLVE
from topox_core.text.numbers import percent, plural, time
from topox_ui.answers.case import Case, listing
from topox_ui.answers.first import first_answer, first_plan, known_first_answer, shipped_plan
from topox_ui.runs.owner import Kept, RunKind, run_owner, session_over
from topox_ui.runs.shared import once
from topox_ui.shell.preparing import prepared
from topox_ui.state.session import Passing

WORTH_A_WORD = 5_000  # tasks; fewer are scheduled before a spinner could be read


PROOF = RunKind("proof", cancel_help="Stops within a second; the best schedule so far is kept.")


def start_proof(case: Case) -> None:
    """Start an exact solve of a case beside the page; one that runs for another case is ended first."""
    run_owner().start(
        PROOF,
        case.key,
        lambda _slots: prove(case.graph, case.cluster, case.settings),
        partial(keep, run_owner().results(PROOF), case.key),
        at_most_s=case.settings.time_limit_s,
    )


def known(case: Case) -> Result | None:
    """Return what an exact engine or another page made of a case in this session."""
    result: Result | None = run_owner().results(PROOF).get(case.key)
    return result


def keep(results: Kept[Result], key: str, result: Result) -> None:
    """Keep a result of a case among a session's, joined with the one that is there."""
    results[key] = joined(results[key], result) if key in results else result


def joined(before: Result, result: Result) -> Result:
    """Return the better schedule of two results of one case, with the better bound of both for each class."""
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


def best(case: Case, *, at_once: bool = False) -> Result:
    """Return the one result of a case: the list schedule, or a better one of an exact engine or for a harder setting.

    ``at_once``: while nobody has a list schedule that takes long, a first plan stands for it; see :func:`settled`.
    """
    result = known(case)
    if result is None:
        large = len(case.graph.tasks) >= WORTH_A_WORD
        words = f"Scheduling {plural(len(case.graph.tasks), 'task')}"
        with st.spinner(words) if large else nullcontext():
            result = (first_plan if at_once else first_answer)(case, session_over())
    return with_plans(case, result)


def settled(case: Case) -> bool:
    """Return whether the result of a case rests on all choices of its collectives, not on a first plan."""
    return known(case) is not None or known_first_answer(case) is not None


# The plan of a case that was shown first, in ms.
_FIRST_MS = Passing[tuple[str, float]]("first_plan_ms")


def shorter_than_first(case: Case, now_ms: float) -> str:
    """Say by how much the plan in view is shorter than the one that was shown first; empty where both look the same."""
    of, first_ms = _FIRST_MS.get() or ("", 0.0)
    if of != case.key:
        _FIRST_MS.set((case.key, now_ms))
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


def plans_of(case: Case) -> tuple[PassedPlan, ...]:
    """Return the plans of a case's job that are known, whatever their setting, that of the release among them."""
    if prepared():  # what is shipped is no longer; carrying it out anew needs kernels
        known_plans().add(case.job_key, shipped_plan(case.job_key, case))
    return known_plans().of(case.job_key)


def with_plans(case: Case, result: Result) -> Result:
    """Return a result of a case, or the plan for a harder setting that is shorter; easier ones hear of it."""
    known_plans().add(case.job_key, PassedPlan.of(result))
    plans = plans_of(case)
    which = [(plan.cluster.digest[:8], float(plan.end_ms.max(initial=0))) for plan in plans]
    return _with_plans(f"{token(case, result)}|{which}", case, result, plans)


# Mostly the very result that is given, which is not to be weighed twice.
@st.cache_resource(max_entries=64, show_spinner=False)
def _with_plans(
    key: str,  # noqa: ARG001
    _case: Case,
    _result: Result,
    _plans: tuple[PassedPlan, ...],
) -> Result:
    job = JobRequest(_case.graph, _case.cluster, listing(_case.settings))
    return with_passed_plans(job, _result, _plans)


def token(case: Case, result: Result) -> str:
    """Return a key for what is derived from this very result."""
    return f"{case.key}|{result.engine}|{result.makespan_ms}|{result.bound_ms}|{result.wall_s}"


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
    assert result.execution is not None
    execution = crossed(result.execution)
    lanes = lanes_of(execution)
    bars = bars_of(execution, lanes)
    image, rows = overview_image(bars, lanes, execution.makespan_ms)
    path = critical_path(result.execution, result.settings.exclusive_devices)
    return Drawn(execution, lanes, bars, path, measures(execution), image, rows)


def verdict(key: str, case: Case, result: Result) -> CheckReport:
    """Return what the independent checker says of a result, from the input and the result's file alone."""
    return once("checked", key, lambda: check(case.graph, case.cluster, to_record(result)))
