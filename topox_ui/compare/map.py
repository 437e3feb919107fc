"""The crossover map: computed beside the page in worker processes, watched, cancelled, kept cell by cell."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import streamlit as st

from topox_core.errors import InputError
from topox_core.fabrics.registry import FABRICS
from topox_core.fabrics.sweep import Axes, Cell, CellResult, Point, Sweep
from topox_core.fabrics.verdict import YARDSTICK
from topox_core.figures.crossover import EQUAL, cut, turning_point, winner, winner_map
from topox_core.figures.palette import Theme
from topox_core.runs.cells import CellsResult
from topox_core.text.numbers import delay_in_sentence, percent, plural
from topox_ui.compare.contest import Contest, scaled
from topox_ui.compare.state import CompareState
from topox_ui.runs.owner import RunKind, run_owner
from topox_ui.runs.panel import run_note, run_panel
from topox_ui.runs.slots import CORES
from topox_ui.schedule.solving import Case
from topox_ui.shell.charts import chart, show_error, table_under
from topox_ui.shell.page import PLAIN, button, chart_title, quiet
from topox_ui.state.loading import choose_what_if, loaded, scenario
from topox_ui.state.store import state_of
from topox_ui.state.widgets import pick

DELAYS_MS = (0.0, 0.01, 0.1, 1.0, 2.0, 5.0, 10.0, 25.0, 100.0)
SPEEDS_GBPS = (25.0, 50.0, 100.0, 200.0, 400.0, 800.0)
DEGREES = (1, 2, 3, 4, 6, 8)
ACROSS = {"port_gbps": "Port speed", "degree": "Ports per server"}
MOST_CELLS = 20_000
MAP = RunKind(
    "map",
    MOST_CELLS,
    CORES,
    "Stops at once; the points that are there are kept.",
    "Stopped. The points that were computed are kept; computing goes on from there.",
)


def _start(sweep: Sweep) -> None:
    owner = run_owner()
    cells = owner.results(MAP)
    owner.start(MAP, sweep.digest, lambda slots: sweep.start(cells, workers=slots), _note)


def _note(result: CellsResult[Cell, CellResult]) -> str:
    lost = result.lost
    return f"Points are missing. {lost[0]}. Compute again to fill them in." if lost else ""


def sweep_of(case: Case, contest: Contest, by: str) -> Sweep:
    """Return the map of a case: its own speed or degree and delay do not matter, so that sliders only move the ring.

    Raises
    ------
    InputError
        If a degree does not go with the cluster's switches.
    """
    cluster = case.cluster
    fabrics = tuple(name for name in contest.fabrics if name != YARDSTICK)
    options = scaled(contest.options, case)
    values: tuple[float, ...]
    if by == "degree":
        each = 1 if cluster.ports_per_server == cluster.switches else cluster.switches
        values = tuple(float(each * k) for k in DEGREES)
    else:
        values = SPEEDS_GBPS
        if not SPEEDS_GBPS[0] <= cluster.port_gbps <= SPEEDS_GBPS[-1]:
            low = min(cluster.port_gbps, SPEEDS_GBPS[0])
            values = (
                tuple(low * 2.0**k for k in range(6))
                if low < SPEEDS_GBPS[0]
                else (*SPEEDS_GBPS[1:], cluster.port_gbps)
            )
    settings = replace(case.settings, engine="list")
    return Sweep(case.graph, cluster, settings, Axes(DELAYS_MS, values, by), fabrics, options)  # type: ignore[arg-type]


def known_points(sweep: Sweep) -> tuple[Point, ...]:
    """Return the points of a map that this session has computed and where a fabric can run."""
    cells = run_owner().results(MAP)
    known = {cell: cells[key] for cell in sweep.cells() if (key := sweep.key(cell)) in cells}
    return tuple(point for point in sweep.points(known) if point.outcomes)


def turn(case: Case, contest: Contest) -> str:
    """Return beyond which delay circuits that change stop winning at today's port speed, in words; empty while unknown."""
    try:
        sweep = sweep_of(case, contest, "port_gbps")
    except InputError:
        return ""
    points = known_points(sweep)
    delay = turning_point(points, case.cluster.port_gbps)
    return (
        ""
        if delay is None
        else f"Circuits that change are worth it up to a delay of about <b>{delay_in_sentence(delay)}</b>."
    )


def crossover(case: Case, contest: Contest, theme: Theme) -> None:
    """Draw the map with the cut beside it, or the button that computes it."""
    if case.settings.circuits == "per-slot":
        chart_title(
            "Who wins where",
            "Circuits that are drawn afresh each slot pay no delay: let circuits stay on Schedule.",
            beside=True,
        )
        return
    if len([name for name in contest.fabrics if name != YARDSTICK]) < 2:
        chart_title("Who wins where", "Choose at least two fabrics that can be built.", beside=True)
        return
    title, choice = st.columns([2.3, 1], vertical_alignment="bottom")
    by = pick("Across", CompareState, "across", ACROSS, at=choice, label_visibility="collapsed")
    with title:
        chart_title(
            "Who wins where",
            f"fastest fabric that can be built, and its lead over the next. Within {100 * EQUAL:.0f} % the simpler one "
            "wins. Ring: your setting. Click a cell to go there",
        )
    try:
        sweep = sweep_of(case, contest, by)
    except InputError as error:
        show_error(error)
        return
    if run_owner().run(MAP, sweep.digest) is not None:
        run_panel(MAP, "Computing the map", lambda _run: _live(case, contest, sweep, theme))
        return
    points = known_points(sweep)
    run_note(MAP)
    if len(points) < len(sweep.axes):
        _offer(sweep, points)
    if points:
        _drawn(case, contest, sweep, points, theme, live=False)


def _offer(sweep: Sweep, points: tuple[Point, ...]) -> None:
    left = len(sweep.axes) - len(points)
    with st.container(horizontal=True, vertical_alignment="center"):
        button(
            "Compute the map" if not points else f"Compute the other {left} points",
            "compute_map",
            "grid_on",
            _start,
            sweep,
            primary=True,
        )
        quiet(
            f"{plural(len(sweep.axes), 'point')}: {plural(len(sweep.axes.delay_ms), 'delay')} on "
            f"{len(sweep.axes.values)} {'port speeds' if sweep.axes.by == 'port_gbps' else 'numbers of ports'}, "
            f"{plural(len(sweep.fabrics), 'fabric')} each, beside this page; plans by list scheduling."
        )


def _live(case: Case, contest: Contest, sweep: Sweep, theme: Theme) -> None:
    points = known_points(sweep)
    if points:
        _drawn(case, contest, sweep, points, theme, live=True)


def _drawn(
    case: Case, contest: Contest, sweep: Sweep, points: tuple[Point, ...], theme: Theme, live: bool
) -> None:
    axes, cluster = sweep.axes, case.cluster
    here = float(cluster.port_gbps if axes.by == "port_gbps" else cluster.ports_per_server)
    left, right = st.columns([1.42, 1], gap="medium")
    won = [winner(p) for p in points]
    leaders = {name: sum(one.fabric == name for one in won) for name in FABRICS}
    wins = ", ".join(f"{contest.labels[name]} {n}" for name, n in leaders.items() if n) or "none"
    with left:
        figure = winner_map(points, axes, contest.labels, (here, cluster.reconfiguration_ms), theme)
        options: dict[str, Any] = {} if live else {"on_select": _picked, "selection_mode": "points"}
        st.plotly_chart(
            figure,
            theme=None,
            config=PLAIN,
            key="map_live" if live else "map",
            **options,
            alt=f"Winner by delay and {ACROSS[axes.by].lower()}. Points won: {wins}. The table has every point.",
        )
        if not live:
            table_under("map", lambda: _table(contest, points), "Every point")
    with right:
        value = min(axes.values, key=lambda v: abs(v - here))
        at = f"{value:g}G" if axes.by == "port_gbps" else plural(int(value), "port")
        chart_title(f"Cut at {at}", "iteration in ms, both axes logarithmic; dotted: your delay")
        if not any(p.value == value for p in points):
            quiet("No point of this cut is there yet.")
            return
        chart(
            cut(points, value, axes.delay_ms, contest.labels, cluster.reconfiguration_ms, theme),
            "cut_live" if live else "cut",
            f"Iteration against reconfiguration delay at {at}.",
            None if live else lambda: _table(contest, tuple(p for p in points if p.value == value)),
            "This cut",
        )


def _picked() -> None:
    """Set the sliders to the point that was clicked."""
    chosen: Any = st.session_state.get("map") or {}
    points = chosen.get("selection", {}).get("points", [])
    facts = points[0].get("customdata") if points else None
    if facts:
        value, opened = float(facts[0]), loaded()
        changes: dict[str, Any] = {"port_gbps": value}
        if state_of(CompareState).across == "degree" and opened is not None:
            changes = {"ports_per_server": int(value)}
            now = scenario().cluster(opened.cluster)
            if now.ports_per_server == now.switches:
                # One port on each: on the map, too, the switches follow.
                choose_what_if(switches=int(value))
        choose_what_if(**changes)
        choose_what_if(reconfiguration_ms=float(facts[1]))


def _table(contest: Contest, points: tuple[Point, ...]) -> pd.DataFrame:
    rows = []
    for p in points:
        one = winner(p)
        rows.append(
            {
                "value": p.value,
                "delay (ms)": p.delay_ms,
                "winner": contest.labels.get(one.fabric, "equal"),
                "lead": percent(one.lead) if one.fabric else "",
                "equal": ", ".join(contest.labels[name] for name in one.equals)
                if len(one.equals) > 1
                else "",
                **{
                    f"{contest.labels[name]} (ms)": p.outcomes[name].iteration_ms
                    for name in FABRICS
                    if name in p.outcomes
                },
                **({"cannot run": "; ".join(p.failed.values())} if p.failed else {}),
            }
        )
    return pd.DataFrame(rows)
