"""The race: list scheduling, HiGHS, CP-SAT and auto on the same graph, one after another, each alone."""

from __future__ import annotations

import streamlit as st

from topox_core.figures.race import ENGINE_WORDS, ENGINES, finding, race, race_table
from topox_core.text.numbers import plural, seconds, short
from topox_ui.schedule.racing import Ask, race_desk, start
from topox_ui.schedule.solving import Case, desk
from topox_ui.shell.charts import chart
from topox_ui.shell.page import PageStyle, escape
from topox_ui.state.session import chosen, scenario, widget

LIMITS_S = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
FIRST_LIMIT_S = 5.0
WHAT = (
    "Who finds the shortest schedule of this graph, and who can prove it? Four ways run one after another, each alone, on the "
    "same cores and with the same time: <b>list</b> scheduling by rules; <b>HiGHS</b>, a mixed-integer solver; <b>CP-SAT</b>, a "
    "constraint solver; and <b>auto</b>, exact engines and local search together. All but list start from the list schedule, and "
    "have the local search beside them where they are given a second core. This page then shows the best that any of them found."
)

MARKS = "Solid: the best schedule so far. Dotted: the bound. The mark is where an engine ended, filled if by a proof."


def race_section(case: Case, look: PageStyle) -> None:
    """Draw the race of this setting: the way to start it, its way so far, or its outcome."""
    ask, racing = Ask(case, scenario().value("race_s") or FIRST_LIMIT_S), race_desk()
    if racing.heat is None:
        racing.ended()
    runners = racing.runners(ask)
    st.html(
        '<p class="chart" style="margin-top:1rem">Race of the engines</p>'
        + (
            f'<p class="card">{escape(finding(runners))}</p>'
            if len(runners) > 1
            else f'<p class="quiet">{WHAT}</p>'
        )
    )
    if racing.note:
        st.warning(racing.note.replace("$", "\\$"))
    _offer(ask, {runner.engine for runner in runners}, racing.heat is not None)
    if racing.heat is not None:
        _live(ask, look)
    elif runners:
        st.html(f'<p class="quiet">{MARKS}</p>')
        chart(
            race(runners, ask.limit_s, look.theme, look.scale),
            "race_chart",
            f"Schedules and bounds of {', '.join(r.name for r in runners)} over wall time. {finding(runners)}",
            lambda: race_table(runners),
            "Every engine",
        )


def _offer(ask: Ask, ran: set[str], running: bool) -> None:
    """Offer to run what has not run: the time limit, the button, and how long it will take."""
    left, proving = [engine for engine in ENGINES if engine not in ran], desk().proof is not None
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        key = widget("race_s", ask.limit_s)
        st.select_slider(
            "Time limit of each engine",
            sorted({*LIMITS_S, ask.limit_s}),
            key=key,
            width=230,
            format_func=lambda v: f"{short(v)} s",
            on_change=chosen,
            args=("race_s", key),
            help="Each engine has this long for itself; a proof ends its run sooner. Outcomes are kept by limit.",
        )
        if running or not left:
            return
        words = (
            "Start the race"
            if not ran
            else f"Run the other {len(left)}"
            if len(left) > 1
            else "Run the last one"
        )
        st.button(
            words,
            key="race",
            on_click=start,
            args=(ask,),
            icon=":material/flag:",
            disabled=proving,
            help="A proof is running and has the cores: wait for its end or cancel it."
            if proving
            else None,
        )
        st.html(
            f'<p class="quiet">At most {seconds(sum(engine != "list" for engine in left) * ask.limit_s)} on '
            f"{plural(ask.case.settings.threads, 'core')}</p>"
        )


@st.fragment(run_every=0.5)
def _live(ask: Ask, look: PageStyle) -> None:
    """Watch the race; redraw the page when it has ended."""
    racing = race_desk()
    heat, ended = racing.heat, racing.ended()
    if ended or heat is None:
        st.html('<p class="quiet">The race has ended; what was found is kept.</p>')
        st.rerun()
        return
    runners = racing.runners(heat.ask)
    now = heat.on_the_way()
    spent = now.wall_s if now is not None else 0.0
    share = (len(runners) + min(1.0, spent / heat.ask.limit_s)) / len(ENGINES)
    bar, stop = st.columns([4, 1], vertical_alignment="center")
    bar.progress(
        min(1.0, share),
        text=f"{ENGINE_WORDS.get(heat.engine, 'making ready')}, {len(runners) + 1} of {len(ENGINES)}: "
        f"{seconds(round(spent, 1))} of {seconds(heat.ask.limit_s)}",
    )
    stop.button(
        "Cancel",
        key="cancel_race",
        on_click=racing.cancel,
        width="stretch",
        icon=":material/stop_circle:",
        help="Stops at once; the engines that have ended are kept.",
    )
    if heat.ask.key != ask.key:
        st.html(
            '<p class="quiet">For the setting before your last change; what it brings is kept for when you go back.</p>'
        )
    runners += [now] if now is not None else []
    if runners:
        st.html(f'<p class="quiet">{MARKS}</p>')
        chart(
            race(runners, heat.ask.limit_s, look.theme, look.scale),
            "race_live",
            "Schedules and bounds of the engines so far.",
        )
