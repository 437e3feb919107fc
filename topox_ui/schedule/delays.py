"""If the delay were different: the iteration time for a few delays, by the same list scheduler."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass
from functools import partial

import streamlit as st

from topox_core.errors import InputError
from topox_core.figures.palette import Theme
from topox_core.figures.search import delays
from topox_core.runs.run import FunctionRun
from topox_core.runs.stopping import Stop
from topox_core.schedule.result import Result
from topox_core.text.numbers import count, short
from topox_ui.runs.owner import RunKind, run_owner
from topox_ui.schedule.solving import Case, known, listed
from topox_ui.shell.charts import chart
from topox_ui.shell.page import chart_title

STEPS = (0.0, 1.0, 2.0, 5.0, 10.0, 25.0, 100.0)
MOST_TASKS = 3_000
# The other delays are asked for once the page has stood still for so long.
PAINTED_S = 0.4
DELAYS = RunKind("delays", most_kept=24 * len(STEPS), most_slots=0)


@dataclass(frozen=True)
class DelayPoint:
    """What is drawn of one delay; None and an empty status where there is no schedule."""

    makespan_ms: float | None = None
    bound_ms: float | None = None
    status: str = ""

    @staticmethod
    def of(result: Result) -> DelayPoint:
        """Return the point of a result."""
        return DelayPoint(result.makespan_ms, result.bound_ms, result.status)


Points = MutableMapping[str, DelayPoint]


def delay_panel(case: Case, result: Result, theme: Theme) -> None:
    """Draw the curve; a large graph waits for a button, circuits that pay no delay have none.

    The page is painted with the delays that are known, and the others follow.
    """
    owner = run_owner()
    if case.settings.circuits == "per-slot" or result.execution is None:
        owner.end(DELAYS)
        return
    now = case.cluster.reconfiguration_ms
    cases = {
        delay: case if delay == now else case.at_delay(delay)
        for delay in sorted({*(step * case.cluster.slot_ms for step in STEPS), now})
    }
    chart_title("If the delay were different", "iteration, ms (log); dotted: bound")
    waiting = (
        len(result.execution.graph) > MOST_TASKS
        and st.session_state.get("delays_for") != case.graph.digest
    )
    if waiting:
        st.button(
            f"Try {len(cases)} delays",
            key="try_delays",
            on_click=lambda: st.session_state.update(delays_for=case.graph.digest),
            help=f"{count(len(case.graph.tasks))} tasks: takes a few seconds.",
        )
        return
    points: Points = owner.results(DELAYS)
    for one in cases.values():
        best = result if one is case else known(one)
        if best is not None:
            points[one.key] = DelayPoint.of(best)
    if _missing(cases.values(), points):
        _when_painted(cases, points, now, theme, time.monotonic())
    else:
        _drawn(cases, points, now, theme)


@st.fragment(run_every=PAINTED_S)
def _when_painted(
    cases: dict[float, Case], points: Points, now: float, theme: Theme, painted_s: float
) -> None:
    """Draw the delays that are known, and have the others scheduled once the page is painted."""
    owner, missing = run_owner(), _missing(cases.values(), points)
    key = tuple(one.key for one in cases.values())
    owner.ended(DELAYS)
    if not missing:
        st.rerun()
    if time.monotonic() - painted_s < PAINTED_S / 2:
        owner.end(DELAYS)  # of the setting before
    elif owner.run(DELAYS, key) is None:
        function = partial(_schedule_all, missing, points)
        owner.start(DELAYS, key, lambda _slots: FunctionRun(function, name="delays"), lambda _: "")
    _drawn(cases, points, now, theme)


def _missing(cases: Iterable[Case], points: Points) -> list[Case]:
    return [one for one in cases if one.key not in points]


def _schedule_all(
    cases: Sequence[Case], points: Points, stop: Stop, _on_step: Callable[[object], None]
) -> int:
    """Schedule cases until told to stop; return how many."""
    for k, case in enumerate(cases):
        if stop():
            return k
        try:
            points[case.key] = DelayPoint.of(listed(case))
        except InputError:
            points[case.key] = DelayPoint()
    return len(cases)


def _drawn(cases: dict[float, Case], points: Points, now: float, theme: Theme) -> None:
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
