"""Prove it: start an exact engine beside the page, watch it, stop it; then say how the answer came about."""

from __future__ import annotations

from functools import partial

import streamlit as st

from topox_core.figures.palette import Theme
from topox_core.figures.search import GLYPHS, families_of, search
from topox_core.schedule.engines.waiting_workers import exact_engine, expect_request
from topox_core.schedule.proof import Proof
from topox_core.schedule.result import Result
from topox_core.schedule.story import (
    FAMILY_WORDS,
    Event,
    event_table,
    events_of,
    proof_of,
    summary_sentence,
)
from topox_core.text.foreign import escape_untrusted
from topox_core.text.numbers import seconds, time
from topox_ui.answers.case import Case, case_of
from topox_ui.answers.solving import PROOF, start_proof
from topox_ui.runs.owner import run_owner
from topox_ui.runs.panel import BEFORE, run_note, run_panel
from topox_ui.schedule.certificate import seal_line
from topox_ui.schedule.race import RACE
from topox_ui.shell.charts import chart, frame
from topox_ui.shell.page import chart_title, escape, quiet, write_html
from topox_ui.state.loading import loaded, scenario
from topox_ui.state.notices import notify_errors
from topox_ui.state.what_ifs import engine_choice

WORTH_A_CHART_S = 0.5
LIVE_HEIGHT = 108  # px: with progress and Cancel it stays beside headline and key figures


def proof_panel(case: Case, result: Result, theme: Theme) -> None:
    """Draw the button, or the solve that runs with its Cancel; the engine and its time limit behind a small menu."""
    with st.container(border=True, key="proof", height="stretch"):
        if run_owner().run(PROOF) is not None:
            run_panel(PROOF, "Proving", partial(_live, case.key, theme))
            return
        _offer(case, result)
        with st.expander("Exact engine", key="engine_menu", type="compact"):
            engine_choice()


def _offer(case: Case, result: Result) -> None:
    """Draw the button with what it does, and what the last solve left to be said."""
    write_html(seal_line(result))
    proved, racing = result.settled, run_owner().run(RACE) is not None
    st.button(
        "Nothing left to prove" if proved else "Prove it",
        type="secondary" if proved else "primary",
        icon=":material/verified:",
        disabled=proved or racing,
        width="stretch",
        key="prove",
        on_click=_start,
        help="The race uses all cores: wait until it ends, or cancel it."
        if racing
        else "Start the exact engine in a process of its own; sliders stay live.",
    )
    if proved and result.status != "optimal":
        plans = "No plan that changes circuits"
        if result.lowered_bound_ms is not None:
            plans += " and has these rings and algorithms"
        quiet(
            f"{plans} can be shorter (proved). Other fixed circuits might, since transfers share them "
            "and servers forward; no engine here looks for those."
        )
    if not proved:
        expect_request([exact_engine(case.settings.engine)])
        quiet(
            "Looks for a shorter schedule, or for a proof that there is none, for at most "
            f"{seconds(case.settings.time_limit_s)}."
        )
    run_note(PROOF)


@notify_errors()
def _start() -> None:
    source = loaded()
    if source is not None:
        start_proof(case_of(source, scenario()))


def search_panel(result: Result, theme: Theme) -> None:
    """Draw how the schedule that is shown was found."""
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
        frame(event_table(events))


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
    quiet("&ensp; ".join((*_lines(theme), *marks)))


def _lines(theme: Theme) -> tuple[str, str]:
    return (
        f'<b style="color:{theme.primary}">━</b>&nbsp;best&nbsp;schedule',
        "┅&nbsp;lower&nbsp;bound",
    )


def _live(key: str, theme: Theme, proof: Proof) -> None:
    """Draw the schedules and bounds of the solve so far."""
    if run_owner().key(PROOF) != key:
        quiet(f"{BEFORE}")
    quiet("&ensp; ".join(_lines(theme)))
    story = proof.story
    now = story[-1]
    chart(
        search(story, proof.elapsed_s, theme, LIVE_HEIGHT),
        "search_live",
        f"Best schedule {time(now.incumbent_ms or 0.0)}, bound {time(now.bound_ms)}, so far.",
        files=False,
    )
    if proof.trouble:
        st.warning(escape_untrusted(proof.trouble, "markdown"))
