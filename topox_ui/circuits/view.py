"""Circuits: which circuit every port holds in every slot, and what the switches must be told."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from topox_core.fabrics.run import JobRequest
from topox_core.figures.iteration.circuits import (
    changes,
    cross_connects_in,
    matrix,
    ports_over_time,
)
from topox_core.figures.palette import Theme
from topox_core.io.exports import PROGRAM_COLUMNS, cross_connects
from topox_core.model.execution import (
    Circuits,
    Execution,
    SlotState,
    busiest_slot,
    changes_a_slot,
    ports_busy,
    slot_state,
    slots,
)
from topox_core.schedule.circuits.standing import standing
from topox_core.schedule.results.result import Result
from topox_core.text.numbers import enumeration, is_or_are, percent, plural, short, time
from topox_ui.answers.solving import Drawn, best, drawn, job_of, token
from topox_ui.shell.charts import chart, chart_title, escape, frame, headline, show_input_errors
from topox_ui.shell.downloads import result_files
from topox_ui.shell.player import Player
from topox_ui.state.address import keep_address
from topox_ui.state.choices import CircuitsState
from topox_ui.state.loading import Loaded, cluster_words, scenario
from topox_ui.state.session import reader_of
from topox_ui.state.what_ifs import what_ifs
from topox_ui.state.widgets import control, menu, pick

MAX_COLUMNS = 16
ALL = -1


PLAYER = Player("circuits", lambda slot: CircuitsState.choose(slot=slot), 1.2)


def slot_view(loaded: Loaded, job: JobRequest, result: Result, parts: Drawn, theme: Theme) -> None:
    """Draw everything that belongs to one slot; the slider redraws only this, and it plays slot by slot."""
    execution = result.execution
    title = st.container()
    with st.container(key="slot_strip"):
        heading = st.container(horizontal=True, vertical_alignment="center")
        state = _slot(result, execution)
        at = f"at {state.at_ms:,.6g}&nbsp;ms"
        changed = parts.measures.circuits_changed
        with heading:
            keys = "Arrow keys move the slider."
            each = f"in each {_step(result)} of {short(job.cluster.slot_ms)}&nbsp;ms"
            chart_title(
                f"Circuits set up {each}" if changed else f"Circuits in use {each}",
                f"{_first(result)} {keys}" if changed else keys,
                beside=True,
            )
            PLAYER.buttons(state.slot, slots(execution) - 1, heading)
        chart(
            changes(execution, state, theme),
            "changes",
            "Circuits set up in each step of the timeline; the moment in view is marked.",
            lambda: {
                "from (ms)": (np.arange(slots(execution)) * job.cluster.slot_ms).tolist(),
                "circuits set up": changes_a_slot(execution).tolist(),
            },
            "Changes over time",
        )
    with title:
        _headline(loaded, job, result, parts, state, execution.circuits)
    left, right = st.columns([1, 1.12], gap="medium")
    with left:
        carrying, dark = len(state.carrying), len(state.dark)
        chart(
            matrix(execution, state, theme),
            "matrix",
            f"Circuits at {state.at_ms:.6g} ms: {carrying} carry data, {dark} are being set up. The table has the same facts.",
            lambda: _circuit_rows(execution, state),
            "Circuits at this moment",
            title=(
                f"Who sends to whom {at}",
                "from server (down) to server (across); colour and number: the switch; at the edges: ports in use",
            ),
        )
    with right:
        title = st.container()
        switch = _switch(job)
        ever_dark = (execution.circuits.start_ms > execution.circuits.setup_ms).any()
        dark_words = " vermilion: dark;" if ever_dark else ""
        note = (
            "one row per port; number: receiving server"
            if switch is not None
            else f"one row for each switch;{dark_words} empty: free"
        )
        chart_title(
            "Every out-port over the iteration"
            if switch is None
            else f"Switch {switch} over the iteration",
            note,
            at=title,
        )
        chart(
            ports_over_time(execution, state, switch, theme),
            "over_time",
            "Which circuit every out-port holds over the iteration; the moment in view is marked.",
            lambda: _program(execution, switch),
            "Circuits of the whole iteration",
        )
        _cross_connects(job, execution, state, theme)
    keep_address()


def slot_in_view(execution: Execution, now: CircuitsState) -> int:
    """Return the slot that was chosen; without a choice the busiest one of the traffic with the most circuit changes."""
    slot = busiest_slot(execution) if now.slot is None else now.slot
    return min(slot, slots(execution) - 1)


def _slot(result: Result, execution: Execution) -> SlotState:
    last = slots(execution) - 1
    value = PLAYER.step(slot_in_view(execution, CircuitsState.now()), last)
    if last:
        control(
            "slider",
            CircuitsState,
            "slot",
            label="Slot",
            value=value,
            min_value=0,
            max_value=last,
            format=f"{_step(result)} %d",
            at=st.container(key="slot"),
            label_visibility="collapsed",
        )
    return slot_state(execution, value)


def _first(result: Result) -> str:
    """Say whether a port's first circuit counts as a change."""
    if result.settings.repeats:
        return "The change back to a port’s first circuit counts."
    return "A port’s first circuit does not count as a change."


def _step(result: Result) -> str:
    """Return what the slider moves by: a slot, or on a continuous clock a step of the same length."""
    return "slot" if result.slotted_ms is None else "step"


def _headline(
    loaded: Loaded,
    job: JobRequest,
    result: Result,
    parts: Drawn,
    state: SlotState,
    circuits: Circuits,
) -> None:
    cluster = job.cluster
    every = cluster.servers * cluster.ports_per_server
    carrying, held = (
        ports_busy(circuits, state.carrying),
        ports_busy(circuits, state.all),
    )
    dark, free = held - carrying, max(0, every - held)
    others = [
        f"<b>{number:,}</b> {is_or_are(number)} {word}"
        for number, word in ((dark, "dark"), (free, "free"))
        if number
    ]
    carry = f"<b>{carrying:,}</b> of {plural(every, 'out-port')} carry data"
    if not carrying:
        carry = "<b>no</b> out-port carries data"
    elif carrying == every:
        carry = f"<b>all {plural(every, 'out-port')}</b> carry data"
    chosen = CircuitsState.now().slot is not None
    rest = f"; {enumeration(others)}" if others and chosen else ""
    busiest = "" if chosen else ", where this view opens"
    life = parts.measures.mean_life_ms
    lives = (
        f"; a circuit lasts <b>{time(life)}</b> on average"
        if life is not None and result.switching != "fixed"
        else ""
    )
    changed = parts.measures.circuits_changed
    changing = (
        f"<b>{plural(changed, 'circuit change')}</b> per iteration."
        if changed
        else "<b>No circuit changes.</b>"
    )
    headline(
        f"Circuits · {escape(loaded.title)} · {cluster_words(cluster)}",
        f"{changing} Out-ports carry data <b>{percent(parts.measures.port_carrying)}</b> of the time{lives}. "
        f"At <b>{state.at_ms:,.6g}&nbsp;ms</b>{busiest}, {carry}{rest}.",
    )


def _switch(job: JobRequest) -> int | None:
    switches = job.cluster.switches
    if switches == 1:
        return 0
    offer, word = (pick, "") if switches <= 8 else (menu, "Switch ")
    options = {ALL: "All switches"} | {one: f"{word}{one}" for one in range(switches)}
    now = CircuitsState.now().switch
    chosen = offer(
        CircuitsState,
        "switch",
        options,
        label="Switch",
        value=ALL if now is None else now,
        take=lambda one: CircuitsState.choose(switch=None if one == ALL else one),
        label_visibility="collapsed",
    )
    return None if chosen == ALL else int(chosen)


def _cross_connects(job: JobRequest, execution: Execution, state: SlotState, theme: Theme) -> None:
    chart_title(
        f"Circuits of each switch at {state.at_ms:,.6g}&nbsp;ms",
        "one row for each sender, in it the receiver",
    )
    if job.cluster.switches > MAX_COLUMNS:
        frame(_circuit_rows(execution, state))
        return
    table, bad = pd.DataFrame(cross_connects_in(execution, state)), f"color: {theme.bad}"
    colours = table.map(lambda cell: bad if cell.startswith("dark") else "")
    frame(table, css=colours if len(state.dark) else None)


def _circuit_rows(execution: Execution, state: SlotState) -> dict[str, list[Any]]:
    circuits, chosen = execution.circuits, state.all
    words = ["carrying"] * len(state.carrying) + ["dark"] * len(state.dark)
    return {
        "source": circuits.source[chosen].tolist(),
        "destination": circuits.destination[chosen].tolist(),
        "switch": circuits.switch[chosen].tolist(),
        "state": words,
        "task": [execution.graph.ids[i] for i in circuits.node[chosen].tolist()],
        "setup (ms)": circuits.setup_ms[chosen].tolist(),
        "start (ms)": circuits.start_ms[chosen].tolist(),
        "end (ms)": circuits.end_ms[chosen].tolist(),
    }


def _program(execution: Execution, switch: int | None) -> pd.DataFrame:
    rows = pd.DataFrame(cross_connects(execution), columns=list(PROGRAM_COLUMNS))
    return rows if switch is None else rows[rows["switch"] == switch]


def draw(theme: Theme, opened: Loaded) -> None:
    """Draw the view Circuits."""
    what_ifs(opened)
    with show_input_errors(f"Circuits · {opened.title}"):
        job = job_of(opened, scenario())
        result = best(job)
    if result.execution is not None:
        result = replace(result, execution=standing(result.execution))
    if result.execution is None or not len(result.execution.circuits):
        headline(
            f"Circuits · {cluster_words(job.cluster)}",
            "<b>No data crosses the network</b> here, so no circuit is needed. Pick another job on Home.",
        )
        return

    parts = drawn(token(job, result), result)
    PLAYER.draw(slot_view, opened, job, result, parts, theme)
    execution = result.execution

    chosen = reader_of(CircuitsState)

    def state() -> SlotState:
        """Return the slot in view when a figure is asked for."""
        return slot_state(execution, slot_in_view(execution, chosen()))

    result_files(
        opened,
        result,
        {
            "Circuits": lambda look: matrix(execution, state(), look),
            "Ports over time": lambda look: ports_over_time(execution, state(), None, look),
            "Changes": lambda look: changes(execution, state(), look),
        },
    )
