"""If the delay were different: the iteration time for a few delays, by the same list scheduler."""

from __future__ import annotations

import streamlit as st

from topox_core.errors import InputError
from topox_core.figures.search import delays
from topox_core.schedule.result import Result
from topox_core.text.numbers import count, short
from topox_ui.schedule.solving import Case, best
from topox_ui.shell.charts import chart
from topox_ui.shell.page import PageStyle, chart_title

STEPS = (0.0, 1.0, 2.0, 5.0, 10.0, 25.0, 100.0)
MOST_TASKS = 3_000


def delay_panel(case: Case, result: Result, look: PageStyle) -> None:
    """Draw the curve; a large graph waits for a button, circuits that pay no delay have none."""
    if case.settings.circuits == "per-slot" or result.execution is None:
        return
    now = case.cluster.reconfiguration_ms
    tried = sorted({*(step * case.cluster.slot_ms for step in STEPS), now})
    chart_title("If the delay were different", "iteration, ms (log); dotted: bound", under=True)
    waiting = (
        len(result.execution.graph) > MOST_TASKS
        and st.session_state.get("delays_for") != case.graph.digest
    )
    if waiting:
        st.button(
            f"Try {len(tried)} delays",
            key="try_delays",
            on_click=lambda: st.session_state.update(delays_for=case.graph.digest),
            help=f"{count(len(case.graph.tasks))} tasks: takes a few seconds.",
        )
        return
    results = [result if delay == now else _at(case, delay) for delay in tried]
    found = [r.makespan_ms if r else None for r in results]
    floor = min((r.bound_ms for r in results if r), default=result.bound_ms)
    chart(
        delays(tried, found, floor, now, look.theme, look.scale),
        "delays",
        "Iteration time by reconfiguration delay: "
        + ", ".join(
            f"{d:g} ms gives {short(m)} ms"
            for d, m in zip(tried, found, strict=True)
            if m is not None
        ),
        lambda: {
            "delay (ms)": tried,
            "iteration (ms)": found,
            "bound (ms)": [r.bound_ms if r else None for r in results],
            "status": [r.status if r else "" for r in results],
        },
    )


def _at(case: Case, delay_ms: float) -> Result | None:
    try:
        return best(case.at_delay(delay_ms))
    except InputError:
        return None
