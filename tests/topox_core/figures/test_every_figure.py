"""Every figure: in both themes it is small, says on its axes what they count, and draws the numbers of its table."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from numbers import Real
from typing import Any, get_type_hints

import numpy as np
import plotly.graph_objects as go
import pytest

from tests.topox_core.figures.test_gantt import FOUR, LONG
from tests.topox_core.figures.test_jobs_figures import EXECUTION, NAMES, ROUND, TOGETHER
from tests.topox_core.figures.test_rails_figures import CURVES, hand_run, late_rank, phases
from tests.topox_core.figures.test_study_figures import (
    DELAY,
    LANES,
    LINES,
    MS,
    PRICED,
    QUESTION,
    UPRIGHTS,
    cloud,
    ratios,
)
from topox_core import figures
from topox_core.claims.cells import Cell
from topox_core.economics.comparison import Running, curves, tornado as swings_of, year_of
from topox_core.fabrics.comparison.compare import compare
from topox_core.fabrics.comparison.gated_iterations import FAT_TREE, REGIONAL, GatedNetwork
from topox_core.fabrics.controllers.one_collective import OneCollective
from topox_core.fabrics.crossover.map_run import MapPicture
from topox_core.fabrics.crossover.sweep import Axes, MapOutcome, Point
from topox_core.fabrics.registry import FABRICS
from topox_core.figures import builders, papers, strategy, template
from topox_core.figures.iteration import circuits, facts, gantt, lanes, recorded, search
from topox_core.figures.jobs import gains as jobs_study, links as jobs_links, rounds as jobs
from topox_core.figures.labs import hand_schedules, instance_numbers, predictions
from topox_core.figures.labs.instance_pictures import pictures_of
from topox_core.figures.labs.picture import Asking
from topox_core.figures.networks import buying, cost, crossover, fabrics, topology
from topox_core.figures.palette import DARK_THEME, LIGHT, VERMILION, Theme
from topox_core.figures.rails import (
    delay as rails_delay,
    traffic as rails_traffic,
    windows as rails_windows,
)
from topox_core.figures.studies import axes as study_axes, cells as maps, points as study_points
from topox_core.labs.generators.catalogue import generator
from topox_core.labs.hand_schedule import drawn_or_read
from topox_core.labs.lab import Lab, texts_in
from topox_core.labs.lab_file import ready_labs
from topox_core.model.critical_path import critical_path
from topox_core.model.execution import (
    Execution,
    SlotState,
    busiest_slot,
    changes_a_slot,
    slot_state,
)
from topox_core.papers.accuracy import Comparison, Kind
from topox_core.papers.rows import Row
from topox_core.rails.window_lengths import by_traffic
from topox_core.schedule.results import story
from topox_core.schedule.results.story import event_table, events_of
from topox_core.schedule.settings import Settings
from topox_core.strategy.fabric_table import StrategyTable, TableRow
from topox_core.strategy.models import MODELS
from topox_core.strategy.on_fabrics import Outcome
from topox_core.strategy.plans import RankedPlan, best_plans
from topox_core.strategy.strategy import data_parallel
from topox_core.tdm.model import bottleneck, rounds
from topox_core.tdm.model.jobs import RoundTracePoint
from topox_core.topology import ring_circuits
from topox_core.topology.finder import find_layout, traffic_of
from topox_core.traces import run_graph
from topox_core.training.iteration import Piece
from topox_core.training.machine import MACHINES
from topox_core.training.measured.measurements import calibration_rows
from topox_core.training.measured.validation import predicted as predicted_of
from topox_core.training.plan import order_1f1b
from topox_core.training.shape import SHAPES
from topox_core.workloads.samples import load_sample


def every_figure() -> dict[str, Callable[..., go.Figure]]:
    """Return every function of the package that makes a figure in a theme."""
    modules = [
        importlib.import_module(one.name)
        for one in pkgutil.walk_packages(figures.__path__, f"{figures.__name__}.")
    ]
    return {
        f"{module.__name__.rpartition('.')[2]}.{name}": one
        for module in modules
        for name, one in vars(module).items()
        if inspect.isfunction(one) and one.__module__ == module.__name__ and name[0] != "_"
        # As text or not, whether or not its module puts off its annotations.
        if (made := get_type_hints(one)).get("return") is go.Figure
        if made.get("theme") is Theme and module not in (template, builders)
    }


# -- what they are drawn from ------------------------------------------------------------------------

NETWORKS = (
    buying.Drawn("Fixed", (100.0, 100.0, 100.0), (90.0, 90.0, 90.0), True, True),
    buying.Drawn("Fast", (200.0, 300.0, 500.0), (60.0, 70.0, 80.0), False, True),
)
POINTS = tuple(
    Point(value, delay, {name: MapOutcome(ms) for name, ms in times.items()}, {})
    for value in (100.0, 200.0)
    for delay, times in (
        (0.0, {"static": 100.0, "scheduled": 80.0}),
        (10.0, {"static": 100.0, "scheduled": 125.0}),
    )
)
MAP = MapPicture(Axes((0.0, 10.0), (100.0, 200.0)), POINTS, {}, FABRICS)
PIECES = (Piece("computing", 40.0), Piece("gradients", 12.5, 3.0), Piece("update", 2.5))
CELLS = (
    Cell("moe", 4, 100.0, 0.0, {"static": 100.0, "scheduled": 80.0}, {}),
    Cell("moe", 4, 100.0, 10.0, {"static": 100.0, "scheduled": 160.0}, {}),
)
BOARD = generator("board").make(1)
COLLECTIVE = OneCollective("all_to_all", "pairwise", 8, 2, 8.0, 0.0, 0.8)


@cache
def planned() -> Execution:
    """The list schedule of a small sample."""
    return fabric_runs()["scheduled"].execution


@cache
def fabric_runs() -> dict[str, Any]:
    """A small sample on three fabrics."""
    graph, cluster = load_sample("blackboard")
    cluster = cluster.changed(reconfiguration_ms=0.5)
    return compare(graph, cluster, Settings.of(engine="list"), ("static", "reactive", "scheduled"))


@cache
def laid() -> tuple[Any, ...]:
    """The circuits of a topology, step by step."""
    graph, cluster = load_sample("moe")
    return ring_circuits.frames(find_layout(traffic_of(graph, cluster.servers), 2, "published"))


@cache
def strategies() -> StrategyTable:
    """Data parallel against itself on two fabrics."""
    start = data_parallel(MODELS["candle-16"].build(4), 4)
    rows = (
        TableRow(
            start,
            ("static", "scheduled"),
            {"static": Outcome(12.0, 10.0, "ports"), "scheduled": Outcome(9.0, 8.0, "ports")},
        ),
    )
    return StrategyTable(("static", "scheduled"), rows, {}, "budget")


@cache
def plans() -> list[RankedPlan]:
    """The best ways to split a model over some machines."""
    return best_plans(SHAPES["llama3-8b"], MACHINES["h100"], 2, 512).ranked[:5]


def lane_parts(execution: Execution) -> tuple[Any, Any]:
    found = lanes.lanes_of(execution)
    return lanes.bars_of(execution, found), found


def busiest(execution: Execution) -> SlotState:
    return slot_state(execution, busiest_slot(execution))


def ends_of(execution: Execution) -> list[float]:
    """Return when the tasks of an execution end that take time."""
    return execution.end_ms[execution.end_ms > execution.start_ms].tolist()


# How each is drawn, and the numbers that the table beside it has.
PREDICTED = (
    Kind(
        "a",
        "A",
        "x",
        "not fitted",
        (Comparison("one", 11.0, 10.0, "ms"), Comparison("two", 8.0, 10.0, "ms")),
    ),
    Kind("b", "B", "y", "not fitted", held=(252, 1e-4)),
)
EVERY: dict[Callable[..., go.Figure], Callable[[Theme], tuple[go.Figure, Sequence[float]]]] = {
    buying.buying_figure: lambda look: (
        buying.buying_figure(NETWORKS, MS, MS, look, (1,), (0, 1)),
        [number for one in NETWORKS for number in (*one.price, *one.time)],
    ),
    circuits.matrix: lambda look: (
        circuits.matrix(planned(), busiest(planned()), look),
        [0, 1],
    ),
    circuits.ports_over_time: lambda look: (
        circuits.ports_over_time(planned(), busiest(planned()), 0, look),
        planned().circuits.end_ms.tolist(),
    ),
    circuits.changes: lambda look: (
        circuits.changes(planned(), busiest(planned()), look),
        changes_a_slot(planned()).tolist(),
    ),
    topology.steps_on_ports: lambda look: (
        topology.steps_on_ports(COLLECTIVE, COLLECTIVE.split(), look),
        [COLLECTIVE.split().makespan_ms],
    ),
    cost.stacked: lambda look: (
        cost.stacked(PRICED, "cost", look),
        [line.amount("cost") / 1e6 for one in PRICED.values() for line in one.lines],
    ),
    cost.by_size: lambda look: (
        cost.by_size(curves(QUESTION, (512, 1024)), "cost", 1024, look),
        [one.cost_usd / 1024 for one in PRICED.values()],
    ),
    cost.yearly: lambda look: (
        cost.yearly({name: year_of(one, Running()) for name, one in PRICED.items()}, look),
        [year_of(one, Running()).total_usd / 1e6 for one in PRICED.values()],
    ),
    cost.worth: lambda look: (
        cost.worth(
            [("static", "Fixed", 12.0, "12"), ("scheduled", "Planned", 9.5, "9.5")], "", look
        ),
        [12, 9.5],
    ),
    maps.winner_map: lambda look: (maps.winner_map(MAP, (100.0, 10.0), look), [20]),
    crossover.cut: lambda look: (
        crossover.cut(POINTS, 100.0, (0.0, 10.0), FABRICS, 10.0, look),
        [80, 100, 125],
    ),
    fabrics.iteration_bars: lambda look: (
        fabrics.iteration_bars(fabric_runs(), FABRICS, {}, look),
        [ms for run in fabric_runs().values() for ms in (run.iteration_ms, run.bound_ms)],
    ),
    fabrics.strips: lambda look: (
        fabrics.strips(
            {"static": lanes.strip_image(planned(), 20.0)}, FABRICS, {"static": 12.5}, 20.0, look
        ),
        [12.5],
    ),
    fabrics.before_after: lambda look: (
        fabrics.before_after(
            [("Fixed", "static", 10.0, 14.0), ("Planned", "scheduled", 8.0, 9.0)], look
        ),
        [10, 14, 8, 9],
    ),
    facts.tasks_by_kind: lambda look: (
        facts.tasks_by_kind({"forward": 12, "all_reduce": 1400}, look),
        [12, 1400],
    ),
    facts.bytes_by_parallelism: lambda look: (
        facts.bytes_by_parallelism({"dp": 64e9, "pp": 3e9}, look),
        [64e9, 3e9],
    ),
    facts.time_by_kind: lambda look: (
        facts.time_by_kind({"computing": (12.5, VERMILION)}, look),
        [12.5],
    ),
    gantt.gantt: lambda look: (
        gantt.gantt(
            planned(),
            *lane_parts(planned()),
            (0.0, planned().makespan_ms),
            critical_path(planned()),
            look,
        ),
        ends_of(planned()),
    ),
    crossover.gated_lines: lambda look: (
        crossover.gated_lines(
            {
                name: GatedNetwork(name, (10.0, ms), 1e6, 1e5)
                for name, ms in ((FAT_TREE, 12.0), (REGIONAL, 9.0))
            },
            look,
        ),
        [10, 12, 9],
    ),
    hand_schedules.hand_gantt: lambda look: (
        hand_schedules.hand_gantt(
            BOARD.graph(),
            BOARD.cluster(),
            {"a": 0, "x": 1, "y": 3, "b": 3, "c": 7, "z": 8},
            look,
            9.0,
            8.0,
        ),
        [1, 3, 7, 8, 9],
    ),
    instance_numbers.pipeline: lambda look: (
        instance_numbers.pipeline(order_1f1b(3, 4), ["0", "1", "2"], look),
        range(1, 13),
    ),
    jobs.timeline: lambda look: (
        jobs.timeline([("Hill climbing", ROUND), ("Non-TDM", TOGETHER)], look),
        [
            end
            for one in (ROUND, TOGETHER)
            for bar in rounds.bars(one, one.cycles[0])
            for end in (bar.start_s, bar.start_s + bar.length_s)
        ],
    ),
    jobs.pod_group_bars: lambda look: (jobs.pod_group_bars(ROUND, [5.0], look), [1.25, 0.5, 5]),
    jobs_study.gain_map: lambda look: (
        jobs_study.gain_map(
            {
                "all-train": [
                    jobs_study.GainPoint(2.0, 0.1, 64, "64 jobs"),
                    jobs_study.GainPoint(8.0, -0.05, 64, "64 jobs"),
                ]
            },
            {"all-train": "all"},
            {64: "64 jobs"},
            look,
        ),
        [2, 10, 8, -5],
    ),
    jobs_links.link_matrix: lambda look: (
        jobs_links.link_matrix(bottleneck.link_view(ROUND, 0, 0), look),
        [2, 1.25, 1, 0.5],
    ),
    jobs_links.ring_drawing: lambda look: (
        jobs_links.ring_drawing(ROUND, 0, 0, look),
        [0, 1, 2, 3],
    ),
    jobs.pod_gantt: lambda look: (
        jobs.pod_gantt(*jobs.pod_view(EXECUTION, 0, NAMES), (0.0, EXECUTION.makespan_ms), look),
        [8_500, 9_000, 15_000],
    ),
    jobs_study.climb: lambda look: (
        jobs_study.climb(
            [
                RoundTracePoint(0.1, 0, 20.0, 5.0, "start"),
                RoundTracePoint(1.0, 1, 15.0, 12.0, "HiGHS"),
            ],
            [("best", 14.0, "dot")],
            look,
            by_step=False,
        ),
        [20, 5, 15, 12],
    ),
    jobs_study.gains: lambda look: (
        jobs_study.gains(
            {"best": {256: [0.2, 0.3], 512: [0.1, 0.2]}}, {"best": "Best"}, "jobs", look, 512
        ),
        [20, 30, 10, 25, 15],
    ),
    instance_numbers.named_bars: lambda look: (
        instance_numbers.named_bars(
            ["AAAA", "ABBA"], [60.0, 44.0], "s", look, [1], (40.0, "bound")
        ),
        [60, 44],
    ),
    lanes.overview: lambda look: (
        lanes.overview(
            *lanes.overview_image(*lane_parts(planned()), planned().makespan_ms),
            lane_parts(planned())[1],
            planned().makespan_ms,
            (0.0, 5.0),
            look,
        ),
        [planned().makespan_ms],
    ),
    papers.paired: lambda look: (
        papers.paired(
            [
                Row("s", "one", "", 10.0, 11.0, "trend", "", "ms", 9.0),
                Row("s", "two", "", None, 7.0, "not printed", "", "ms"),
            ],
            look,
        ),
        [10, 11, 9, 7],
    ),
    study_points.parallel_axes: lambda look: (
        study_points.parallel_axes(UPRIGHTS, {2: (6.0, 9.0)}, look),
        [5, 7, 9],
    ),
    study_points.pareto_front: lambda look: (
        study_points.pareto_front(cloud(40), look, cloud(40).found.steps[0]),
        [*cloud(40).found.x, *cloud(40).found.y],
    ),
    facts.pieces_bars: lambda look: (facts.pieces_bars(PIECES, look), [40, 12.5, 2.5, 55]),
    lanes.port_use: lambda look: (
        lanes.port_use(planned(), (0.0, planned().makespan_ms), look),
        [0, 1],
    ),
    predictions.error_dots: lambda look: (
        predictions.error_dots(PREDICTED, look),
        [abs(one.error) for kind in PREDICTED for one in kind.comparisons]
        + [kind.most for kind in PREDICTED if kind.held],
    ),
    predictions.predicted_against_measured: lambda look: (
        predictions.predicted_against_measured(
            [predictions.MeasuredSet("fitted to", "calibration", predicted_of(calibration_rows()))],
            look,
        ),
        [
            ms / 1e3
            for row in predicted_of(calibration_rows())
            for ms in (row.measured.measured_ms, row.predicted_ms)
        ],
    ),
    predictions.numbers_histogram: lambda look: (
        predictions.numbers_histogram(
            [(float(k), k + 1.0, 3 * k % 5) for k in range(12)],
            look,
            unit="ms",
            ends=("or less", "or more"),
            truth=5.0,
            truth_words="5 ms",
        ),
        range(5),
    ),
    predictions.numbers_as_dots: lambda look: (
        predictions.numbers_as_dots([9.0, 10.0, 9.0], look, unit="ms"),
        [9, 10, 1, 2],
    ),
    predictions.options_chosen: lambda look: (
        predictions.options_chosen(
            [("x", 6), ("y", 3)], look, names=("first", "again"), again=[1, 8], right=[1]
        ),
        [6, 3, 1, 8],
    ),
    search.race: lambda look: (
        search.race(FOUR, 5.0, look),
        [
            one
            for name in ("iteration (ms)", "bound (ms)", "best after (s)")
            for one in story.race_table(FOUR)[name]
        ],
    ),
    rails_traffic.timeline: lambda look: (
        rails_traffic.timeline(hand_run(), look),
        [0, 4, 9, 12, 17, 30],
    ),
    rails_delay.overhead_curves: lambda look: (
        rails_delay.overhead_curves(CURVES, 10.0, 0.05, {"MEMS": 15.0}, look),
        [0, 1, 20, 60],
    ),
    rails_delay.expert_region: lambda look: (
        rails_delay.expert_region(
            (8, 16), {10.0: (0.03, 0.2), 100.0: (0.4, None)}, {10.0: {8: 0.03}}, 0.1, look
        ),
        [3, 20, 40],
    ),
    rails_traffic.strip: lambda look: (
        rails_traffic.strip(phases(hand_run(), 0), hand_run().windows, 7.0, (0, 30), look),
        [4, 10, 12, 20, 30, 6, 8],
    ),
    rails_windows.cdf: lambda look: (
        rails_windows.cdf(hand_run().windows, 7.0, look),
        [6, 8, 50, 100],
    ),
    rails_windows.breakdown: lambda look: (
        rails_windows.breakdown(by_traffic(hand_run().windows), 2.0, look),
        [6, 8],
    ),
    rails_windows.counts: lambda look: (
        rails_windows.counts((95, 129, 65), 127, look),
        [95, 129, 65, 127],
    ),
    rails_delay.wirings: lambda look: (
        rails_delay.wirings(
            [("Switch", 100.0, 0.0), ("Optics", 110.0, 8.0), ("Ring", None, 0.0)], look
        ),
        [100, 102, 110, 8],
    ),
    recorded.steps: lambda look: (
        recorded.steps(
            [run_graph.StepTime(7, 20.0, 15.0), run_graph.StepTime(8, 24.0, 16.0)], 8, look
        ),
        [20, 24, 15, 16],
    ),
    recorded.speed_curve: lambda look: (
        recorded.speed_curve([(10.0, 200.0), (100.0, 36.0)], (250.0, 25.0), 36.2, 18.6, look),
        [200, 36, 25],
    ),
    recorded.lanes: lambda look: (
        recorded.lanes(late_rank(), (0, 1), {}, (0.0, late_rank().recorded_ms), look),
        [0.3, 1.0],
    ),
    lanes.on_one_clock: lambda look: (
        lanes.on_one_clock("A", 176.0, np.zeros((24, 90), np.uint8), LANES, 244.0, 176.0, look),
        [176],
    ),
    rails_windows.windows_side_by_side: lambda look: (
        rails_windows.windows_side_by_side(
            [("A", np.array([1.0, 2.0])), ("B", np.array([0.5, 30.0]))], look
        ),
        [1, 2, 0.5, 30],
    ),
    search.search: lambda look: (
        search.search(LONG, 10.0, look),
        event_table(events_of(LONG))["schedule (ms)"],
    ),
    search.delays: lambda look: (
        search.delays([0, 1, 5], [100.0, None, 400.0], 90.0, 5, look),
        [100, 400],
    ),
    strategy.walk: lambda look: (
        strategy.walk([(10, 100.0), (20, 90.0)], (), 100.0, 90.0, 20, look),
        [100, 90],
    ),
    strategy.before_and_after: lambda look: (
        strategy.before_and_after([("before", 20.0, 12.0), ("after", 15.0, 11.0)], look),
        [20, 12, 15, 11],
    ),
    strategy.placements: lambda look: (
        strategy.placements(strategies().start.strategy, look),
        [0, 1],
    ),
    strategy.plan_bars: lambda look: (
        strategy.plan_bars(plans(), look),
        [one.total_ms for one in plans()],
    ),
    strategy.strategies_on_fabrics: lambda look: (
        strategy.strategies_on_fabrics(strategies(), look),
        [12, 10, 9, 8],
    ),
    maps.heat_map: lambda look: (
        maps.heat_map(ratios((0.5, 0.61), (1.0, 1.18), (5.9, None)), look),
        [0.5, 0.61, 1.0, 1.18, 5.9],
    ),
    study_axes.seed_lines: lambda look: (
        study_axes.seed_lines(LINES, DELAY, MS, look),
        [100, 107.5, 115, 150],
    ),
    topology.ring: lambda look: (topology.ring(laid()[-1], 8, (), look), range(8)),
    topology.hops: lambda look: (
        topology.hops(np.array([[0, 1, 2], [2, 0, 1], [1, 2, 0]], np.int32), 2, look),
        [1, 2],
    ),
    buying.tornado: lambda look: (
        buying.tornado(swings_of(QUESTION), 0.5, look),
        [100 * (end[1] - 0.5) for one in swings_of(QUESTION) for end in (one.low, one.high) if end],
    ),
    circuits.around_a_switch: lambda look: (
        circuits.around_a_switch(planned(), busiest(planned()), look),
        [0, 1, 2],
    ),
    crossover.over_delay: lambda look: (
        crossover.over_delay(
            [0.0, 5.0], {"static": [65.0, 65.0], "reactive": [51.0, 66.0]}, FABRICS, 5.0, look
        ),
        [65, 51, 66],
    ),
    rails_windows.by_length: lambda look: (
        rails_windows.by_length(hand_run().windows, 7.0, look),
        [6, 8],
    ),
    maps.sides_map: lambda look: (
        maps.sides_map(CELLS, {"moe": "Mixture of experts"}, look),
        [20, 38],
    ),
}


def numbers_in(value: Any) -> Iterator[float]:
    """Yield the numbers in what a figure is sent with, those written in words included."""
    if isinstance(value, str):
        yield from (
            float(one.replace(",", "")) for one in re.findall(r"-?\d[\d,]*(?:\.\d+)?", value)
        )
    elif isinstance(value, Real):
        yield float(value)
    elif isinstance(value, Sequence | np.ndarray):
        for one in value:
            yield from numbers_in(one)


def drawn(figure: go.Figure) -> Iterator[float]:
    """Yield every number that a figure draws: places, ends of bars, whiskers and images, and what is written."""
    for trace in figure.data:
        of = trace.to_plotly_json()
        for name in ("x", "y", "z", "base", "text", "customdata"):
            yield from numbers_in(of.get(name))
        if of.get("base") is not None:
            lengths = of["x" if of.get("orientation") == "h" else "y"]
            yield from (
                float(base) + float(one)
                for base, one in zip(
                    np.broadcast_to(of["base"], len(lengths)), lengths, strict=True
                )
            )
        for way in "xy":
            if whiskers := of.get(f"error_{way}"):
                yield from np.add(of[way], whiskers["array"]).tolist()
                yield from np.subtract(of[way], whiskers["arrayminus"]).tolist()
        if "dx" in of:
            yield of["x0"] + of["dx"] * (np.shape(trace.z)[1] - 0.5)
        for one in of.get("dimensions", ()):
            yield from numbers_in(one["values"])
    for mark in (*figure.layout.annotations, *figure.layout.shapes):
        yield from numbers_in([mark.x0, mark.y0] if "x0" in mark else [mark.text])


MAX_BYTES = 60_000
OTHER = {LIGHT: DARK_THEME, DARK_THEME: LIGHT}
# The line above these charts says what their bare axis counts.
NAMED_ABOVE = {
    "cost.worth": "x",
    "lanes.overview": "x",
    "windows.counts": "y",
    "search.search": "y",
    "crossover.over_delay": "y",
}


def test_every_figure_of_the_package_is_drawn_here() -> None:
    assert set(every_figure().values()) == set(EVERY)


def is_named(axis: Any) -> bool:
    """Whether an axis that is seen says what it counts: by a title, by units, or by names in place of numbers."""
    seen = axis.visible is not False and axis.showticklabels is not False and axis.tickvals != ()
    return not seen or bool(axis.title.text or axis.ticksuffix or axis.ticktext)


@pytest.mark.parametrize("theme", OTHER, ids=lambda theme: theme.name)
@pytest.mark.parametrize("name", every_figure())
def test_every_figure_is_small_says_what_it_counts_and_draws_the_numbers_of_its_table(
    name: str, theme: Theme
) -> None:
    figure, table = EVERY[every_figure()[name]](theme)
    sent = figure.to_json()
    assert len(sent) < MAX_BYTES
    assert OTHER[theme].ink not in sent, "a colour of the other theme"
    axes = {"x": figure.select_xaxes(), "y": figure.select_yaxes()}
    if figure.data[0].type != "parcoords":  # whose axes are its dimensions
        bare = "".join(way for way, every in axes.items() if not all(map(is_named, every)))
        assert bare == NAMED_ABOVE.get(name, "")
    legend = figure.layout.legend
    at_top = legend.yref == "container" or (legend.yanchor == "bottom" and legend.y >= 1)
    outside = at_top or (legend.yanchor == "top" and legend.y <= 0)
    assert outside or not figure.layout.showlegend, "the legend lies on the chart"
    found = np.array([*drawn(figure)])
    missing = [one for one in table if not np.isclose(found, one, rtol=2e-3, atol=1e-6).any()]
    assert len(table) > 0 and missing == []


# What a figure makes of a number of its table.
DRAWN_AS = {
    "overhead": lambda ms, asking: 100 * (ms / asking.instance.base_ms - 1),
    "bills": lambda usd, _: usd / 1e6,
}


@pytest.mark.parametrize("lab", ready_labs().values(), ids=lambda lab: lab.id)
def test_every_picture_of_a_lab_is_small_and_has_words_and_a_table_of_what_it_draws(
    lab: Lab,
) -> None:
    words, pictures = texts_in("en"), []
    for screen in lab.screens:
        one = drawn_or_read(lab, screen, 1)
        asking = Asking(lab, screen, one, words, LIGHT, computed=True, tried=("ABBA",))
        pictures += [(asking, picture) for picture in pictures_of(asking)]
    assert len(pictures) > 1
    for asking, picture in pictures:
        assert len(picture.figure.to_json()) < MAX_BYTES
        assert picture.title and picture.alt.endswith(".")
        assert not re.search(r"[.:;,] ?\.", picture.alt), picture.alt
        assert not re.search(r"[{}@]", picture.title + picture.note + picture.alt)
        found = np.array([*drawn(picture.figure)])
        as_drawn = DRAWN_AS.get(picture.id, lambda number, _: number)
        table = [as_drawn(v, asking) for row in picture.table.rows for v in numbers_in(row[1:])]
        missing = [v for v in table if v and not np.isclose(found, v, rtol=2e-3).any()]
        assert missing == [], (asking.screen.id, picture.id)
