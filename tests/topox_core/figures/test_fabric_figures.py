"""Figures of fabrics, the crossover map, topologies and strategies."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tests.topox_core.figures.test_every_figure import fabric_runs
from topox_core.fabrics.controllers.one_collective import OneCollective, sent_rows, set_ups
from topox_core.fabrics.crossover.map_run import (
    OPEN,
    OPEN_WORDS,
    MapPicture,
    cell_words,
    map_rows,
    setting_words,
    turns_by_delay,
)
from topox_core.fabrics.crossover.sweep import Axes, MapOutcome, Point, winner
from topox_core.fabrics.registry import FABRICS
from topox_core.figures.networks.crossover import cut, over_delay
from topox_core.figures.networks.fabrics import (
    iteration_bars,
)
from topox_core.figures.networks.topology import hops, ring, steps_on_ports
from topox_core.figures.palette import LIGHT
from topox_core.figures.studies.cells import place, winner_map
from topox_core.figures.template import log_ticks, time_axis
from topox_core.text.numbers import delay_label
from topox_core.topology.finder import find_layout, traffic_of
from topox_core.topology.ring_circuits import frames
from topox_core.topology.routing import RoutedNetwork
from topox_core.workloads.samples import load_sample

PLANNED, FIXED = FABRICS["scheduled"], FABRICS["static"]


def outcomes(**times: float) -> dict[str, MapOutcome]:
    return {name: MapOutcome(times[name]) for name in FABRICS if name in times}


def planned(time_ms: float, bound_ms: float = 0.0, **more: object) -> MapOutcome:
    return MapOutcome(time_ms, **{"plan_ms": time_ms, "plan_bound_ms": bound_ms, **more})


def point(value: float, delay: float, **times: float) -> Point:
    return Point(value, delay, outcomes(**times), {})


def test_an_iteration_far_beyond_the_others_is_cut_and_says_so():
    slow = fabric_runs()["reactive"]
    late = replace(slow, execution=replace(slow.execution, end_ms=slow.execution.end_ms * 50))
    figure = iteration_bars({**fabric_runs(), "reactive": late}, FABRICS, {}, LIGHT)
    assert figure.layout.xaxis.range[1] < late.iteration_ms
    assert sum(a.text.endswith("›") for a in figure.layout.annotations) == 1


@pytest.mark.parametrize(
    ("found", "fabric", "equals", "ahead_of", "lead"),
    [
        (
            outcomes(static=100.0, provisioned=90.0, scheduled=80.0),
            "scheduled",
            ("scheduled",),
            "provisioned",
            1 - 80 / 90,
        ),
        (  # of equal controllers the simplest wins, and leads none of them
            outcomes(static=100.0, reactive=80.0, provisioned=80.0, scheduled=79.7),
            "reactive",
            ("reactive", "provisioned", "scheduled"),
            "scheduled",
            0.0,
        ),
        # Fixed and changing circuits within half a percent are equal.
        (
            outcomes(static=100.0, scheduled=99.6),
            "",
            ("static", "scheduled"),
            "",
            0.0,
        ),
        (
            outcomes(static=100.0, scheduled=99.0),
            "scheduled",
            ("scheduled",),
            "static",
            0.01,
        ),
        (  # a plan that keeps its circuits is the static fabric itself
            {
                **outcomes(static=100.0, provisioned=200.0),
                "scheduled": planned(100.0, plan_ms=125.0, keeps_fixed=True),
            },
            "static",
            ("static",),
            "scheduled",
            0.2,
        ),
        (
            {
                **outcomes(static=100.0),
                "scheduled": planned(100.0, plan_ms=None, keeps_fixed=True),
            },
            "static",
            ("static", "scheduled"),
            "scheduled",
            0.0,
        ),
    ],
)
def test_the_fastest_wins_and_leads_the_next(found, fabric, equals, ahead_of, lead):
    one = winner(found)
    assert (one.fabric, one.equals, one.next) == (fabric, equals, ahead_of)
    assert one.lead == pytest.approx(lead)


@pytest.mark.parametrize(
    ("plan", "doubt"),
    [
        (planned(120.0, bound_ms=90.0), "gap"),  # a better plan could win
        (planned(120.0, bound_ms=110.0), ""),  # none can
        (planned(100.4, bound_ms=90.0), "gap"),  # equal, and a better plan could win
        (planned(80.0, bound_ms=50.0), ""),  # wins already: a better plan wins by more
        (planned(120.0, bound_ms=90.0, rounding_ms=30.0), "rounding"),
        (planned(120.0, bound_ms=110.0, rounding_ms=5.0), ""),
    ],
)
def test_a_winner_that_a_gap_or_rounding_decides_is_marked(plan, doubt):
    one = winner({**outcomes(static=100.0), "scheduled": plan})
    assert one.doubt == doubt
    assert cell_words(one).endswith(OPEN[doubt]) if doubt else cell_words(one)[-1].isdigit()


AXES = Axes((0.0, 1.0, 10.0), (100.0, 200.0))
MAP_POINTS = tuple(
    point(v, d, static=100.0, scheduled=80.0 + 10 * d)
    for v in (100.0, 200.0)
    for d in (0.0, 1.0, 10.0)
)


def drawn(points, between=()):
    picture = MapPicture(AXES, points, dict(between), FABRICS)
    return picture, winner_map(picture, (100.0, 1.0), LIGHT)


def test_a_cell_between_points_that_agree_has_their_colour_and_no_number():
    picture, figure = drawn(MAP_POINTS[:-1], {(200.0, 10.0): winner(MAP_POINTS[2].outcomes)})
    assert figure.data[0].z[2, 1] == figure.data[0].z[2, 0] != 0
    assert len(figure.layout.annotations) == 5
    _, figure = drawn(MAP_POINTS[:-1])
    assert figure.data[0].z[2, 1] == 0 and len(figure.data[1].x) == 5, "a cell without a point"
    assert len(map_rows(picture)) == 5


def test_a_column_of_the_map_says_who_wins_between_which_delays():
    picture, _ = drawn(MAP_POINTS)  # planned 80, 90, 180 against 100
    assert turns_by_delay(picture, 100.0) == f"{PLANNED} up to 1 ms, {FIXED} from 10 ms"
    picture, _ = drawn(MAP_POINTS[:2])
    assert not turns_by_delay(picture, 100.0), "nothing is known of the longest delay"
    assert turns_by_delay(picture, 200.0) == turns_by_delay(picture, 150.0) == ""


def test_between_two_columns_the_map_says_who_wins_at_both_and_draws_a_circle():
    times = {0.1: (80.0, 80.0), 1.0: (80.0, 120.0), 10.0: (120.0, 120.0)}
    points = tuple(
        point(value, delay, scheduled=ms, static=100.0)
        for delay, both in times.items()
        for value, ms in zip((100.0, 200.0), both, strict=True)
    )
    picture = MapPicture(Axes(tuple(times), (100.0, 200.0)), points, {}, FABRICS)
    assert turns_by_delay(picture, 150.0) == (
        f"{PLANNED} up to 0.1 ms, {FIXED} from 10 ms; above 0.1 ms and below 10 ms it depends on the port speed"
    )
    longer = {
        delay: times[0.1 if delay < 1 else 1.0 if delay < 10 else 10.0]
        for delay in (0.1, 1.0, 2.0, 5.0, 10.0)
    }
    between = {
        (value, delay): point(value, delay, scheduled=ms, static=100.0).winner
        for delay, both in longer.items()
        for value, ms in zip((100.0, 200.0), both, strict=True)
    }
    for delays, where in (
        ((0.1, 1.0, 2.0, 5.0, 10.0), "above 0.1 ms and below 10 ms"),
        ((1.0, 2.0, 10.0), "below 10 ms"),
        ((0.1, 1.0), "above 0.1 ms"),
    ):
        known = {place: one for place, one in between.items() if place[1] in delays}
        finer = MapPicture(Axes(delays, (100.0, 200.0)), (), known, FABRICS)
        assert turns_by_delay(finer, 150.0).endswith(f"; {where} it depends on the port speed")
    middle = MapPicture(Axes((1.0,), (100.0, 200.0)), points[2:4], {}, FABRICS)
    assert turns_by_delay(middle, 150.0) == "at every delay it depends on the port speed"
    assert turns_by_delay(picture, 300.0) == turns_by_delay(picture, 200.0), "the nearest column"
    places = "The fastest at the places of the map around your setting: "
    assert setting_words(picture, (150.0, 0.1)) == f"{places}{PLANNED}."
    assert setting_words(picture, (150.0, 0.5)) == f"{places}{PLANNED} or {FIXED}."
    assert setting_words(MapPicture(picture.axes, points[1:], {}, FABRICS), (150.0, 0.1)) == ""
    shapes = [
        winner_map(picture, now, LIGHT).layout.shapes[-1] for now in ((100.0, 1.0), (150.0, 1.0))
    ]
    assert [one.type for one in shapes] == ["rect", "circle"]
    assert 0 < shapes[1].xanchor < 1 and shapes[1].yanchor == 1
    # No words are under the circle: those of the cell beside it make room.
    shifts = {
        now: [mark.xshift for mark in winner_map(picture, (now, 1.0), LIGHT).layout.annotations]
        for now in (100.0, 110.0, 150.0)
    }
    assert not any(shifts[100.0]) and not any(shifts[150.0])
    assert [one for one in shifts[110.0] if one] == [-12]
    marks = winner_map(picture, (110.0, 1.0), LIGHT).layout.annotations
    assert not [one.text for one in marks if "<br>" in one.text], "letter and number in one line"


def test_who_wins_at_one_delay_of_a_column_wins_at_it():
    times = {0.1: 80.0, 1.0: 100.0, 10.0: 120.0, 100.0: 120.0}
    points = tuple(point(100.0, delay, scheduled=ms, static=100.0) for delay, ms in times.items())
    picture = MapPicture(Axes(tuple(times), (100.0,)), points, {}, FABRICS)
    assert turns_by_delay(picture, 100.0) == (
        f"{PLANNED} up to 0.1 ms, {FIXED} and {PLANNED} equally at 1 ms, {FIXED} from 10 ms"
    )


def test_open_cells_have_a_sign_that_the_table_explains():
    plan = {"scheduled": planned(120.0, bound_ms=90.0)}
    first = Point(100.0, 1.0, {**outcomes(static=100.0), **plan}, {})
    picture, figure = drawn((first, MAP_POINTS[3]))
    assert {a.text for a in figure.layout.annotations} == {"F 17 ◐", "P 20"}
    assert [row["open"] for row in map_rows(picture)] == [OPEN_WORDS["gap"], ""]


def test_the_ring_lies_between_cells_where_the_setting_does():
    places = [place(AXES.delay_ms, delay) for delay in (1.0, math.sqrt(10), 0.0, 500.0)]
    assert places == pytest.approx([1, 1.5, 0, 2])


def test_the_cut_is_logarithmic_both_ways_and_its_legend_names_every_line():
    figure = cut(MAP_POINTS, 100.0, AXES.delay_ms, FABRICS, 1.0, LIGHT)
    assert figure.layout.yaxis.type == "log"
    changing = next(t for t in figure.data if t.name == "Planned circuits")
    assert np.diff(changing.x) == pytest.approx([1, 1])  # 0 a decade below 1, then 1 to 10
    assert [one.name for one in figure.data if one.showlegend] == [
        "Fixed by TopoOpt",
        "Planned circuits",
    ]


def test_names_over_the_delay_stand_behind_their_lines_and_apart():
    times = {"static": [100.0, 100.0], "reactive": [60.0, 130.0], "provisioned": [50.0, 99.0]}
    figure = over_delay([0.0, 5.0], times, FABRICS, 5.0, LIGHT)
    names = sorted(figure.layout.annotations, key=lambda mark: mark.y)
    assert [mark.text for mark in names] == [
        FABRICS[n] for n in ("provisioned", "static", "reactive")
    ]
    assert all(mark.x == 5.0 and mark.xanchor == "left" for mark in names)
    assert min(b.y - a.y for a, b in pairwise(names)) > 0.05 * figure.layout.yaxis.range[1]


def test_ticks_are_round_and_delays_written_with_their_unit():
    assert log_ticks(95, 1050) == [100, 200, 500, 1000]
    assert len(log_ticks(100, 103)) >= 4
    assert [delay_label(d) for d in (0.0, 0.002, 25.0)] == ["0 ms", "2 µs", "25 ms"]
    assert time_axis(LIGHT, 22_000.0)["ticktext"] == ["0 s", "5 s", "10 s", "15 s", "20 s"]


def layout_of(sample: str, degree: int, variant: str = "published"):
    graph, cluster = load_sample(sample)
    return find_layout(traffic_of(graph, cluster.servers), degree, variant)


@pytest.mark.parametrize(
    ("sample", "degree", "variant"),
    [
        ("moe", 2, "published"),
        ("dlrm-16", 8, "released"),
        ("race", 1, "published"),
        ("fsdp", 3, "published"),
    ],
)
def test_the_player_ends_with_exactly_the_circuits_of_the_layout(sample, degree, variant):
    found = layout_of(sample, degree, variant)
    laid = [picture.circuits(found.layout.servers) for picture in frames(found)]
    assert (laid[-1] == found.layout.circuits).all()
    assert (np.diff([step.sum() for step in laid]) >= 0).all()


def test_circuits_that_lead_both_ways_are_drawn_apart_and_others_straight():
    both = layout_of("dlrm-16", 4, "released")
    drawn, straight = (
        ring(frames(one)[-1], 16, (), LIGHT).data for one in (both, layout_of("dlrm-16", 4))
    )
    middles = {
        (round(float(x), 6), round(float(y), 6))
        for t in drawn
        if t.mode == "markers" and t.customdata is not None and "→" in str(t.customdata[0])
        for x, y in zip(t.x, t.y, strict=True)
    }
    assert len(middles) == both.layout.circuits.sum()
    strides = [t for t in straight if t.mode == "lines"]
    assert {len(t.x) for t in strides} == {3 * 16}
    assert len({t.line.color for t in strides}) == len({t.line.dash for t in strides}) == 4


def test_hops_are_written_where_they_can_be_read_and_a_missing_way_is_a_cross():
    circuits = np.zeros((4, 4), np.int32)
    circuits[[0, 1, 2], [1, 2, 0]] = 1
    matrix = RoutedNetwork(circuits).hop_matrix()
    assert matrix[0].tolist() == [0, 1, 2, -1]
    texts = [a.text for a in hops(matrix, 2, LIGHT).layout.annotations]
    assert texts.count("×") == 6 and texts.count("2") == 3


@pytest.mark.parametrize("delay_ms", [0.0, 0.8])
def test_every_part_and_every_set_up_of_a_collective_is_a_bar(delay_ms: float) -> None:
    one = OneCollective("all_to_all", "pairwise", 8, 2, 8.0, 0.0, delay_ms)
    way = one.split()
    narrow, wide = (
        sum(len(bar.x) for bar in steps_on_ports(one, way, LIGHT).data if (bar.width > 0.5) == big)
        for big in (False, True)
    )
    assert (narrow, wide) == (len(set_ups(one, way)), len(sent_rows(one, way)))
    assert (narrow > 0) == (delay_ms > 0)
