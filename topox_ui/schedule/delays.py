"""If the delay were different: the iteration time for a few delays, by the same list scheduler."""

import time
from collections import ChainMap
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, replace
from functools import partial

import streamlit as st

from topox_core.errors import InputError
from topox_core.fabrics.passed_plans import PassedPlan
from topox_core.figures.palette import Theme
from topox_core.figures.search import delays
from topox_core.runs.cells import CellsResult, futures_run
from topox_core.schedule.result import Result
from topox_core.text.numbers import count, short
from topox_ui.answers.solving import (
    Case,
    known,
    known_first_answer,
    known_plans,
    prefetch,
    with_plans,
)
from topox_ui.runs.owner import Kept, RunKind, run_owner
from topox_ui.shell.charts import as_label, chart, chart_title
from topox_ui.shell.preparing import prepared
from topox_ui.state.session import Lasting

STEPS = (0.0, 1.0, 2.0, 5.0, 10.0, 25.0, 100.0)
MAX_TASKS = 3_000
# The other delays are asked for once the page has stood still for so long, and looked for as often.
PAINTED_S = 1.0
# So many points are shared between sessions; a point is three numbers and a word.
MAX_SHARED = 20_000
DELAYS = RunKind("delays", most_kept=24 * len(STEPS), most_slots=0)
# The large graph whose delays the reader asked for.
_ASKED_FOR = Lasting[str]("delays_for")


@dataclass(frozen=True)
class DelayPoint:
    """Makespan, bound and status at one delay; None and an empty status where there is no schedule."""

    makespan_ms: float | None = None
    bound_ms: float | None = None
    status: str = ""

    @staticmethod
    def of(result: Result) -> "DelayPoint":
        """Return the point of a result."""
        return DelayPoint(result.makespan_ms, result.bound_ms, result.status)


Points = Mapping[str, DelayPoint]


def delay_panel(case: Case, result: Result, theme: Theme) -> None:
    """Draw the curve; a large graph waits for a button, circuits that pay no delay have none.

    The page is painted with the delays that are known, and the others follow.
    """
    owner = run_owner()
    if case.settings.circuits == "per-slot" or result.execution is None:
        owner.end(DELAYS)
        return
    now, cases = case.cluster.reconfiguration_ms, _cases(case)
    chart_title("If the delay were different", "iteration time, ms (log); dotted: lower bound")
    if _waits_for_a_click(case, result):
        st.button(
            f"Try {len(cases)} delays",
            key="try_delays",
            on_click=lambda: _ASKED_FOR.set(case.graph.digest),
            help=f"{count(len(case.graph.tasks))} tasks: takes a few seconds.",
        )
        return
    own: dict[str, DelayPoint] = {}
    for one in reversed(
        cases.values()
    ):  # from the longest delay on: a plan serves every shorter one
        there = result if one is case else known(one) or known_first_answer(one)
        if there is not None:
            own[one.key] = DelayPoint.of(with_plans(one, there))
    points = ChainMap(own, owner.results(DELAYS), _listed())
    _drawn(cases, points, now, theme)
    if _missing(cases, points):
        _when_painted(cases, points, now, time.monotonic())


def delays_to_come(case: Case, result: Result) -> bool:
    """Return whether other delays are still to be planned: a plan for a longer one may be shorter here."""
    if case.settings.circuits == "per-slot" or _waits_for_a_click(case, result):
        return False
    points = ChainMap(run_owner().results(DELAYS), _listed())
    return any(
        one is not case
        and one.key not in points
        and known(one) is None
        and known_first_answer(one) is None
        for one in _cases(case).values()
    )


def _cases(case: Case) -> dict[float, Case]:
    """Return the case at every delay of the curve, from the shortest, its own among them."""
    now = case.cluster.reconfiguration_ms
    return {
        delay: case if delay == now else case.at_delay(delay)
        for delay in sorted({*(step * case.cluster.slot_ms for step in STEPS), now})
    }


def _waits_for_a_click(case: Case, result: Result) -> bool:
    """Whether a graph is so large that its delays are planned only when asked for."""
    tasks = 0 if result.execution is None else len(result.execution.graph)
    return tasks > MAX_TASKS and _ASKED_FOR.get() != case.graph.digest


@st.cache_resource(show_spinner=False)
def _listed() -> Kept[DelayPoint]:
    """Return the points of list schedules that any session had worked out; names are in the keys, not in the points."""
    return Kept(MAX_SHARED)


@st.fragment(run_every=PAINTED_S)
def _when_painted(cases: dict[float, Case], points: Points, now: float, painted_s: float) -> None:
    """Have the delays that are not known scheduled once the page is painted, and the curve drawn again when they are."""
    owner, missing = run_owner(), _missing(cases, points)
    case = cases[now]
    owner.ended(DELAYS)
    if not missing:
        owner.end(DELAYS)  # another session may have had them worked out
        st.rerun()
    if time.monotonic() - painted_s < PAINTED_S / 2:
        owner.end(DELAYS)  # of the setting before
    elif prepared() and owner.run(DELAYS, case.key) is None:
        owner.start(
            DELAYS,
            case.key,
            lambda _slots: futures_run(
                {delay: prefetch(cases[delay]) for delay in missing}, partial(_keep, cases)
            ),
            partial(_keep_lost, cases, owner.results(DELAYS)),
        )


def _keep(cases: dict[float, Case], delay: float, result: Result) -> None:
    """Keep what was scheduled behind what anybody waits for: its plan before its point, which the page is drawn again for."""
    known_plans().add(cases[delay].job_key, PassedPlan.of(result))
    _listed()[cases[delay].key] = DelayPoint.of(result)


def _keep_lost(
    cases: dict[float, Case],
    points: MutableMapping[str, DelayPoint],
    result: CellsResult[float, Result],
) -> str:
    """Leave delays empty that have no answer, which would be asked for again without end; return in words what was lost.

    Graph and settings may not go together at a delay: then nothing was.
    """
    for delay in result.failures:
        points[cases[delay].key] = DelayPoint()
    lost = {k: one for k, one in result.failures.items() if not isinstance(one, InputError)}
    return ". ".join(replace(result, failures=lost).lost)


def _missing(cases: dict[float, Case], points: Points) -> list[float]:
    """Return the delays that have no point yet, from the smallest."""
    return [delay for delay, case in cases.items() if case.key not in points]


def _drawn(cases: dict[float, Case], points: Points, now: float, theme: Theme) -> None:
    if note := run_owner().note(DELAYS):
        st.caption(as_label(note))
    tried = list(cases)
    shown = [points.get(one.key, DelayPoint()) for one in cases.values()]
    makespans = [point.makespan_ms for point in shown]
    floor = min(point.bound_ms for point in shown if point.bound_ms is not None)
    chart(
        delays(tried, makespans, floor, now, theme),
        "delays",
        "Iteration time by reconfiguration delay: "
        + ", ".join(
            f"{d:g} ms gives {short(m)} ms"
            for d, m in zip(tried, makespans, strict=True)
            if m is not None
        ),
        lambda: {
            "delay (ms)": tried,
            "iteration (ms)": makespans,
            "bound (ms)": [point.bound_ms for point in shown],
            "status": [point.status for point in shown],
        },
    )
