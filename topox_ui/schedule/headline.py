"""The Schedule page's words: headline and KPIs, against the setting before."""

from __future__ import annotations

import streamlit as st

from topox_core.figures.trace import events_of, last_better
from topox_core.model.measures import Measures
from topox_core.schedule.result import Result
from topox_core.text.numbers import apart, count, percent, plural, short, time
from topox_ui.schedule.solving import Case
from topox_ui.shell.charts import kpis
from topox_ui.shell.page import escape, headline
from topox_ui.state.loading import Loaded, cluster_words


def schedule_headline(loaded: Loaded, case: Case, result: Result, now: Measures) -> None:
    """Write the finding: the time, how sure it is, what circuits cost."""
    kicker = f"Schedule · {escape(loaded.title)} · {cluster_words(case.cluster)}"
    makespan, bound = apart((result.makespan_ms or 0.0, result.bound_ms))
    if result.status == "optimal":
        first = f"One iteration takes <b>{makespan}</b>; no schedule can be shorter."
    else:
        first = f"One iteration takes <b>{makespan}</b>; no schedule can be shorter than <b>{bound}</b>."
    changes = now.circuits_changed
    often = f"<b>{count(changes)}</b> times" if changes > 1 else "<b>once</b>"
    if result.alternative is not None and result.alternative.makespan_ms is not None:
        best = time(result.alternative.makespan_ms)
        second = f"Fixed circuits are best here: changing them takes <b>{best}</b>."
    elif result.switching == "fixed":
        second = "The circuits are fixed."
    elif not now.circuits_used:
        second = "No data crosses the network."
    elif not changes:
        second = "No circuit changes."
    elif now.dark_ms > 0:
        second = (
            f"Circuits change {often}; ports are dark <b>{percent(now.port_dark)}</b> of the time."
        )
    else:
        second = f"Circuits change {often}; at {_delay(case)} delay that costs nothing."
    headline(kicker, f"{first} {second}")


def _delay(case: Case) -> str:
    return f"{short(case.cluster.reconfiguration_ms)}&nbsp;ms"


def schedule_kpis(case: Case, result: Result, now: Measures) -> None:
    """Draw the KPIs, each with its change against the setting before."""
    before = _before(case, now)
    makespan = result.makespan_ms or 0.0
    gap = result.gap or 0.0
    shown, bound = apart((makespan, result.bound_ms))
    devices, ports = (
        case.cluster.servers * each
        for each in (case.cluster.devices_per_server, case.cluster.ports_per_server)
    )
    kpis(
        (
            "Iteration",
            shown,
            *_change(
                makespan, before.makespan_ms if before else None, "ms", _by(result), worse_up=True
            ),
        ),
        (
            "Gap to bound",
            percent(gap),
            "proved" if result.status == "optimal" else f"bound {bound}",
        ),
        (
            "Devices computing",
            percent(now.device_busy),
            *_change(
                100 * now.device_busy,
                100 * before.device_busy if before else None,
                "points",
                f"of {plural(devices, 'device')}",
            ),
        ),
        (
            "Ports carrying",
            percent(now.port_carrying),
            *_change(
                100 * now.port_carrying,
                100 * before.port_carrying if before else None,
                "points",
                f"of {plural(ports, 'out-port')}",
                neutral=True,
            ),
        ),
        (
            "Circuit changes",
            count(now.circuits_changed),
            f"{percent(now.port_dark)} of port time dark"
            if now.dark_ms
            else f"{plural(_circuits(result, now), 'circuit')} used",
        ),
    )


def _circuits(result: Result, now: Measures) -> int:
    """Return how many circuits there are: those that stay, or one for every use."""
    layout = None if result.execution is None else result.execution.layout
    return now.circuits_used if layout is None else int(layout.circuits.sum())


def _before(case: Case, now: Measures) -> Measures | None:
    """Return the measures of the setting shown before this one, of the same graph."""
    state = st.session_state
    this = (case.graph.digest, case.key)
    last = state.get("shown")
    if last is not None and last[0] != this and last[0][0] == this[0]:
        state["shown_before"] = last
    elif last is not None and last[0][0] != this[0]:
        state.pop("shown_before", None)
    state["shown"] = (this, now)
    before = state.get("shown_before")
    return before[1] if before is not None else None


def _by(result: Result) -> str:
    """Return who found the schedule that is shown."""
    step = last_better(events_of(result.trace))
    return "list schedule" if step is None or step.family == "rules" else f"by {step.words}"


def _change(
    value: float,
    before: float | None,
    unit: str,
    first: str,
    *,
    worse_up: bool = False,
    neutral: bool = False,
) -> tuple[str, str, str]:
    """Return the line under a KPI, its arrow and its colour: colours tell better from worse, arrows the direction."""
    if before is None:
        return first, "off", "off"
    if abs(value - before) < 1e-6 * max(abs(value), abs(before), 1e-9):
        return "unchanged", "off", "off"
    up = value > before
    words = time(abs(value - before)) if unit == "ms" else f"{short(abs(value - before))} {unit}"
    # The text carries no sign, so "normal" is drawn as better and "inverse" as worse.
    colour = "off" if neutral else "inverse" if up == worse_up else "normal"
    return f"{words} against before" if unit == "ms" else words, "up" if up else "down", colour
