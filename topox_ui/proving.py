"""Prove it: start an exact engine beside the page, watch it, stop it."""

from __future__ import annotations

import streamlit as st

from topox_core.errors import InputError
from topox_core.figures.numbers import percent, seconds, time
from topox_core.figures.search import search
from topox_core.schedule.result import Result
from topox_ui import session
from topox_ui.frame import Look, chart_title
from topox_ui.loading import loaded as loaded_now
from topox_ui.show import chart
from topox_ui.solving import Case, best, case_of, desk
from topox_ui.what_if import engine_choice

WORTH_A_CHART_S = 0.5


def prove_button(result: Result) -> None:
    """Draw the button in the sidebar, with the engine and its time limit behind a small menu."""
    proved, running = result.status == "optimal", desk().proof is not None
    with st.sidebar:
        st.button("Proved" if proved else "Proving …" if running else "Prove it", type="secondary" if proved else "primary",
                  icon=":material/verified:", disabled=proved or running, width="stretch", key="prove", on_click=_start,
                  help="Start the exact engine in a process of its own; sliders stay live.")
        with st.expander("Exact engine", key="engine_menu", type="compact"):
            engine_choice()


def _start() -> None:
    found = loaded_now()
    if found is None:
        return
    try:
        desk().start(case_of(found, session.scenario()))
    except InputError as error:
        session.say("error", str(error))


def search_panel(case: Case, result: Result, look: Look) -> None:
    """Draw the running solve, or the story of the one that ended, or why none began."""
    if desk().proof is not None:
        _live(case, look)
        return
    if best(case) is not result:
        # The solve ended while this page was being drawn.
        st.rerun()
    if desk().note:
        st.warning(desk().note.replace("$", "\\$"))
    if result.engine != "list" and len(result.story) > 1 and result.wall_s >= WORTH_A_CHART_S:
        chart_title("Search", "the optimum lies between the lines", under=True)
        chart(search(result.story, result.wall_s, look.theme, look.scale), "search",
              f"Best schedule and bound over {seconds(result.wall_s)}.", lambda: _story(result.story))


@st.fragment(run_every=0.5)
def _live(case: Case, look: Look) -> None:
    """Poll the solve twice a second; redraw the page when it has ended."""
    proof = desk().proof
    if desk().ended() or proof is None:
        st.rerun()
        return
    gap = 1 - proof.bound_ms / proof.incumbent_ms if proof.incumbent_ms else 0.0
    chart_title("Searching", f"{seconds(round(proof.elapsed_s, 1))} of {seconds(proof.prepared.settings.time_limit_s)}, "
                             f"gap {percent(max(0.0, gap))}", under=True)
    if desk().proof_key != case.key:
        st.html('<p class="quiet">For the setting before your last change; its result is kept for when you go back.</p>')
    chart(search(proof.story, proof.elapsed_s, look.theme, look.scale), "search_live",
          f"Best schedule {time(proof.incumbent_ms)}, bound {time(proof.bound_ms)}, so far.")
    if proof.trouble:
        st.warning(proof.trouble.replace("$", "\\$"))
    st.button("Cancel", key="cancel", on_click=desk().cancel, width="stretch", icon=":material/stop_circle:",
              help="Stops within a second; the best schedule so far is kept.")


def _story(story: object) -> dict[str, list[object]]:
    lines = list(story)  # type: ignore[call-overload]
    return {"after (s)": [round(line.elapsed_s, 3) for line in lines], "best (ms)": [line.incumbent_ms for line in lines],
            "bound (ms)": [line.bound_ms for line in lines], "by": [line.source for line in lines]}
