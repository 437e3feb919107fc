"""Prove it: start an exact engine beside the page, watch it, stop it; then tell how the answer came about."""

from __future__ import annotations

from functools import partial

import streamlit as st

from topox_core.errors import InputError
from topox_core.figures.palette import Theme
from topox_core.figures.search import GLYPHS, families_of, search
from topox_core.figures.trace import (
    FAMILY_WORDS,
    Event,
    event_table,
    events_of,
    proof_of,
    summary_sentence,
)
from topox_core.schedule.proof import Proof
from topox_core.schedule.result import Result
from topox_core.text.foreign import as_text
from topox_core.text.numbers import seconds, time
from topox_ui.runs.owner import run_owner
from topox_ui.runs.panel import BEFORE, run_note, run_panel
from topox_ui.schedule.racing import RACE
from topox_ui.schedule.solving import PROOF, Case, case_of, start_proof
from topox_ui.shell.charts import chart, table_under
from topox_ui.shell.page import chart_title, escape, quiet
from topox_ui.state.loading import loaded as loaded_now
from topox_ui.state.loading import scenario
from topox_ui.state.notices import notify
from topox_ui.state.what_ifs import engine_choice

WORTH_A_CHART_S = 0.5


def prove_button(result: Result) -> None:
    """Draw the button in the sidebar, with the engine and its time limit behind a small menu."""
    owner, proved = run_owner(), result.status == "optimal"
    running, racing = owner.run(PROOF) is not None, owner.run(RACE) is not None
    with st.sidebar:
        st.button(
            "Proved" if proved else "Proving …" if running else "Prove it",
            type="secondary" if proved else "primary",
            icon=":material/verified:",
            disabled=proved or running or racing,
            width="stretch",
            key="prove",
            on_click=_start,
            help="The race has the cores: wait for its end or cancel it."
            if racing
            else "Start the exact engine in a process of its own; sliders stay live.",
        )
        with st.expander("Exact engine", key="engine_menu", type="compact"):
            engine_choice()


def _start() -> None:
    source = loaded_now()
    if source is None:
        return
    try:
        start_proof(case_of(source, scenario()))
    except InputError as error:
        notify("error", str(error))


def search_panel(case: Case, result: Result, theme: Theme) -> None:
    """Draw the running solve, or the trace of the one that ended, or why none began."""
    if run_owner().run(PROOF) is not None:
        run_panel(PROOF, "Searching", partial(_live, case.key, theme))
        return
    run_note(PROOF)
    events = events_of(result.trace)
    if not events:
        return
    chart_title("How this schedule was found", escape(summary_sentence(events)))
    if _worth_a_chart(events, result):
        _legend(events, theme)
        chart(
            search(result.trace, result.wall_s, theme),
            "search",
            f"Best schedule and bound over {seconds(result.wall_s)}. {summary_sentence(events)}",
            lambda: event_table(events),
            "Every step",
        )
    else:
        table_under("search", lambda: event_table(events), "Every step")


def _worth_a_chart(events: tuple[Event, ...], result: Result) -> bool:
    """Whether a solve took long enough for its steps to be worth a picture."""
    proof = proof_of(events)
    return (
        result.engine != "list"
        and len(events) > 2
        and (proof.elapsed_s if proof else result.wall_s) >= WORTH_A_CHART_S
    )


def _legend(events: tuple[Event, ...], theme: Theme) -> None:
    """Say what lines and marks mean, in a line that wraps in the narrow column."""
    marks = [
        f"{GLYPHS[family]}&nbsp;{FAMILY_WORDS[family].replace(' ', '&nbsp;')}"
        for family in families_of(events)
    ]
    lines = [f'<b style="color:{theme.primary}">━</b>&nbsp;schedule', "┅&nbsp;bound"]
    quiet(f"{'&ensp; '.join((*lines, *marks))}")


def _live(key: str, theme: Theme, proof: Proof) -> None:
    """Draw the schedules and bounds of the solve so far."""
    if run_owner().key(PROOF) != key:
        quiet(f"{BEFORE}")
    trace = tuple(proof.trace)
    _legend(events_of(trace), theme)
    chart(
        search(trace, proof.elapsed_s, theme),
        "search_live",
        f"Best schedule {time(proof.incumbent_ms)}, bound {time(proof.bound_ms)}, so far.",
    )
    if proof.trouble:
        st.warning(as_text(proof.trouble, "markdown"))
