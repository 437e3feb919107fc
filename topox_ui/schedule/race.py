"""The race: list scheduling, HiGHS, CP-SAT and auto on the same graph, one after another, each alone."""

from __future__ import annotations

from functools import partial

import streamlit as st

from topox_core.figures.palette import Theme
from topox_core.figures.search import race
from topox_core.runs.run import FunctionRun
from topox_core.schedule.story import ENGINES, Contestant, race_finding, race_table
from topox_core.text.numbers import plural, seconds, short
from topox_ui.answers.case import Case
from topox_ui.answers.solving import PROOF
from topox_ui.runs.limits import server_limits
from topox_ui.runs.owner import run_owner
from topox_ui.runs.panel import BEFORE, run_note, run_panel
from topox_ui.schedule.racing import RACE, EngineStart, Race, start
from topox_ui.schedule.state import ScheduleState
from topox_ui.shell.charts import chart
from topox_ui.shell.page import button, escape, quiet
from topox_ui.state.session import Passing
from topox_ui.state.store import state_of
from topox_ui.state.widgets import slide

LIMITS_S = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
WHAT = (
    "Who finds the shortest schedule of this graph, and who can prove it? Four ways run one after another, each alone, on the "
    "same cores and with the same time: <b>list</b> scheduling by rules; <b>HiGHS</b>, a mixed-integer solver; <b>CP-SAT</b>, a "
    "constraint solver; and <b>auto</b>, exact engines and local search together. All but list start from the list schedule, and "
    "have the local search beside them where they are given a second core. This page then shows the best that any of them found."
)

MARKS = "Solid: the best schedule so far. Dotted: the bound. The mark is where an engine ended, filled if by a proof."
# Whether the box stands open: its own key.
_OPEN = Passing[bool]("race_box")


def race_section(case: Case, theme: Theme) -> None:
    """Draw the race of this setting behind an expander: the way to start it, its way so far, or its outcome."""
    owner = run_owner()
    current = Race(case, state_of(ScheduleState).race_s)
    running = owner.run(RACE) is not None
    if running:  # also where one comes back to the page, and the reader has not closed it since
        _OPEN.get_or(lambda: True)
    box = st.expander(
        "Race of the engines", key="race_box", on_change="rerun", icon=":material/flag:"
    )
    if box.open:
        with box:
            _race(current, current.contestants(owner.results(RACE)), running, theme)
    else:
        run_note(RACE)


def _race(current: Race, ended: list[Contestant], running: bool, theme: Theme) -> None:
    """Draw what the race is or who won, the way to start it, and its chart."""
    st.html(
        f'<p class="card">{escape(race_finding(ended))}</p>'
        if len(ended) > 1
        else f'<p class="quiet">{WHAT}</p>'
    )
    run_note(RACE)
    _offer(current, {one.engine for one in ended}, running)
    if running:
        run_panel(RACE, "Race", partial(_live, current.key, theme))
    elif ended:
        quiet(f"{MARKS}")
        chart(
            race(ended, current.limit_s, theme),
            "race_chart",
            f"Schedules and bounds of {', '.join(r.name for r in ended)} over wall time. {race_finding(ended)}",
            lambda: race_table(ended),
            "Every engine",
        )


def _offer(current: Race, ran: set[str], running: bool) -> None:
    """Offer to run what has not run: the time limit, the button, and how long it will take."""
    left = [engine for engine in ENGINES if engine not in ran]
    proving = run_owner().run(PROOF) is not None
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        slide(
            "Time limit of each engine",
            ScheduleState,
            "race_s",
            [one for one in LIMITS_S if one <= server_limits().longest_s],
            words=lambda v: f"{short(v)} s",
            width=230,
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
        button(
            words,
            "race",
            "flag",
            start,
            current,
            disabled=proving,
            help="A proof is running and has the cores: wait for its end or cancel it."
            if proving
            else None,
        )
        quiet(
            f"At most {seconds(sum(engine != 'list' for engine in left) * current.limit_s)} on "
            f"{plural(current.case.settings.threads, 'core')}"
        )


def _live(key: str, theme: Theme, run: FunctionRun[int, EngineStart]) -> None:
    """Draw the engines that have ended and the one that runs."""
    if not run.steps:
        return
    step = run.steps[-1]
    if step.race.key != key:
        quiet(f"{BEFORE}")
    contestants = step.race.contestants(run_owner().results(RACE))
    if step.contestant is not None and step.engine not in {one.engine for one in contestants}:
        contestants.append(step.contestant)
    if contestants:
        quiet(f"{MARKS}")
        chart(
            race(contestants, step.race.limit_s, theme),
            "race_live",
            "Schedules and bounds of the engines so far.",
        )
