"""The view Where which wins, the crossover map: computed beside the page in worker processes, cancelled, kept cell by cell."""

from functools import partial
from typing import Any

import streamlit as st

from topox_core.fabrics.comparison.words import FULL, YARDSTICK
from topox_core.fabrics.crossover.map_run import (
    MapPicture,
    MapResult,
    around,
    inferred,
    is_complete,
    map_rows,
    map_run,
    point_names,
    points_won,
    setting_words,
    turns_by_delay,
)
from topox_core.fabrics.crossover.sweep import Sweep
from topox_core.fabrics.run import JobRequest
from topox_core.figures.networks.crossover import cut
from topox_core.figures.palette import Theme
from topox_core.figures.studies.cells import map_legend, winner_map
from topox_core.text.numbers import plural
from topox_ui.answers.contest import Contest, map_calls, sweep_of
from topox_ui.runs.owner import RunKind, run_owner
from topox_ui.runs.slots import shared_workers
from topox_ui.shell.charts import (
    beside,
    button,
    chart,
    chart_title,
    escape,
    headline,
    legend_line,
    quiet,
    show_input_errors,
)
from topox_ui.shell.panel import watched
from topox_ui.state.choices import MapState
from topox_ui.state.loading import Loaded, choose_what_if, cluster_words, loaded, scenario
from topox_ui.state.widgets import menu, pick

KICKER = "Where which wins"
ACROSS = {"port_gbps": "Port speed", "degree": "Ports per server"}
# Nobody asks for a map, so it takes no place from a proof: all sessions' maps are computed by the
# shared workers, which give way to everything else.
AUTOMATIC = True
MAP = RunKind(
    "map",
    most_slots=0,
    cancel_help="Stops at once; the points computed so far are kept.",
    cancelled="Stopped. The points that were computed are kept; computing goes on from there.",
)


def _start(sweep: Sweep) -> None:
    owner = run_owner()

    def keep(result: MapResult) -> str:
        owner.results(MAP)[sweep.digest] = result.complete
        return f"Points are missing. {result.lost[0]}." if result.lost else ""

    calls, workers = map_calls(), shared_workers()
    owner.start(MAP, sweep.digest, lambda _slots: map_run(sweep, calls, workers), keep)


def known_picture(sweep: Sweep, contest: Contest) -> MapPicture:
    """Return what is known of a map, by this session or another."""
    points = tuple(point for point in sweep.points(map_calls()) if point.outcomes)
    between = inferred(sweep.axes, {(p.value, p.delay_ms): p for p in points})
    return MapPicture(sweep.axes, points, between, contest.labels)


def where_which_wins(opened: Loaded, job: JobRequest, contest: Contest, theme: Theme) -> None:
    """Draw the finding, the map and its cut, and compute what is missing of the map beside the page."""
    kicker = f"{KICKER} · {escape(opened.title)} · {cluster_words(job.cluster)}"
    if job.settings.circuits == "per-slot":
        headline(
            kicker,
            "Circuits that may change between slots pay <b>no delay</b>. On the page Schedule let a transfer keep one to see the map.",
        )
        return
    if len([name for name in contest.fabrics if name not in (YARDSTICK, FULL)]) < 2:
        headline(
            kicker,
            "Choose at least <b>two fabrics</b> that can be built, besides a full fat-tree.",
        )
        return
    top = st.container()
    chart_title(
        "Crossover map",
        "letter: the fastest network, a full fat-tree left out; number: its lead over the next in %. Planned circuits mean the "
        "best plan that changes circuits: one that keeps them fixed counts as fixed. Box or circle: your setting; a click moves it",
    )
    by = pick(MapState, "across", ACROSS, label="Across", label_visibility="collapsed")
    with (
        top,
        show_input_errors(f"{KICKER} · {opened.title}", "This map <b>cannot be drawn</b>.", None),
    ):
        sweep = sweep_of(job, contest, by)
    owner = run_owner()
    complete = is_complete(sweep, map_calls())
    ended = sweep.digest in owner.results(MAP)  # cancelled, or calls were lost: on request only
    if AUTOMATIC and not (complete or ended) and owner.run(MAP, sweep.digest) is None:
        _start(sweep)
    picture, yours = known_picture(sweep, contest), _here(job, sweep)

    def now() -> tuple[str, str]:
        known = known_picture(sweep, contest)
        return kicker, _finding(known, is_complete(sweep, map_calls()), *yours)

    running = owner.run(MAP, sweep.digest) is not None
    with top:
        headline(kicker, _finding(picture, complete, *yours), now if running else None)
    live = partial(_live, job, contest, sweep, theme)
    if watched(MAP, "Computing the map", live, sweep.digest):
        return
    if not complete:
        button(
            "Go on with the map",
            "compute_map",
            "grid_on",
            _start,
            sweep,
            help="A coarse grid first, then finer where the winner changes; beside this page, plans by list scheduling.",
        )
    if picture.points:
        given = (job, sweep, picture, theme)
        beside([1.25, 1], partial(_drawn, *given, live=False), partial(cut_through, *given))


def _finding(picture: MapPicture, complete: bool, yours: float, delay_ms: float) -> str:
    """Return who wins between which delays at your value, or by the columns next to it; before they are known how many points."""
    if not picture.points:
        return "The map is <b>not computed yet</b>: it comes point by point, beside this page."
    so_far = "" if complete else " so far"
    if turns := turns_by_delay(picture, yours):
        columns, by = around(picture.axes.values, yours), picture.axes.by
        where = f"at {_at(by, columns[0])}"
        if len(columns) > 1:
            where = f"between {_at(by, columns[0])} and {_at(by, columns[1])}, where your {_at(by, yours)} lies"
        elif yours not in columns:
            where += f", the column nearest to your {_at(by, yours)}"
        here = setting_words(picture, (yours, delay_ms)) if "depends" in turns else ""
        return f"Without a full fat-tree, the fastest{so_far} {where}, by the best plans found: <b>{escape(turns)}</b>. {escape(here)}"
    return f"Points won{so_far}, of {len(picture.points)}: <b>{escape(points_won(picture))}</b>."


def _at(by: str, value: float) -> str:
    return f"{value:g}G" if by == "port_gbps" else plural(int(value), "port")


def _live(job: JobRequest, contest: Contest, sweep: Sweep, theme: Theme, _run: object) -> None:
    picture = known_picture(sweep, contest)
    if picture.points:
        _drawn(job, sweep, picture, theme, live=True)


def _drawn(job: JobRequest, sweep: Sweep, picture: MapPicture, theme: Theme, live: bool) -> None:
    here = _here(job, sweep)
    legend_line(map_legend(picture, theme), theme)
    chart(
        winner_map(picture, here, theme),
        "map_live" if live else "map",
        f"Winner by delay and {ACROSS[sweep.axes.by].lower()}. Points won: {points_won(picture)}. The table has every point.",
        None if live else lambda: map_rows(picture),
        "Every point",
        on_click=None if live else lambda facts: _go_to(float(facts[0]), float(facts[1])),
    )
    quiet(escape(setting_words(picture, here)))
    if not live:
        _choice(picture, here)


def cut_through(job: JobRequest, sweep: Sweep, picture: MapPicture, theme: Theme) -> None:
    """Draw the map's column at today's setting as curves over the delay."""
    axes, cluster, points = sweep.axes, job.cluster, picture.points
    yours = _here(job, sweep)[0]
    value = yours if axes.focus is None else axes.focus  # the column nearest to it
    at = _at(axes.by, value)
    nearest = "" if value == yours else f"the column nearest to your {_at(axes.by, yours)}; "
    chart_title(
        f"Cut at {at}", f"{nearest}iteration in ms, both axes logarithmic; upright line: your delay"
    )
    if not any(p.value == value for p in points):
        quiet("No point of this cut is computed yet.")
        return
    chart(
        cut(points, value, axes.delay_ms, picture.labels, cluster.reconfiguration_ms, theme),
        "cut",
        f"Iteration against reconfiguration delay at {at}.",
        lambda: map_rows(picture, value),
        "This cut",
    )


def _here(job: JobRequest, sweep: Sweep) -> tuple[float, float]:
    """Return today's setting as a place on the map: (value, delay in ms)."""
    cluster = job.cluster
    by_speed = sweep.axes.by == "port_gbps"
    value = cluster.port_gbps if by_speed else cluster.ports_per_server
    return float(value), cluster.reconfiguration_ms


def _choice(picture: MapPicture, here: tuple[float, float]) -> None:
    """Draw the choice of a point, which does by keyboard what a click on the map does."""
    names = point_names(picture)
    words = {str(point): name for point, name in names.items()}
    points = {str(point): point for point in names}
    if here not in names:
        words = {"": "Choose a point of the map"} | words
    menu(
        MapState,
        "map_point",
        words,
        label="Point of the map",
        value=str(here) if here in names else "",
        take=lambda chosen: _go_to(*points[chosen]) if chosen else None,
        label_visibility="collapsed",
    )


def _go_to(value: float, delay_ms: float) -> None:
    """Set the sliders to a point of the map."""
    opened = loaded()
    changes: dict[str, Any] = {"port_gbps": value}
    if MapState.now().across == "degree" and opened is not None:
        changes = {"ports_per_server": int(value)}
        now = scenario().cluster(opened.cluster)
        if now.ports_per_server == now.switches:
            # One port on each: on the map, too, the switches follow.
            choose_what_if(switches=int(value))
    choose_what_if(**changes)
    choose_what_if(reconfiguration_ms=delay_ms)
