"""Figures of fabrics, the crossover map, topologies and strategies."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.topox_core.figures.test_every_figure import fabric_runs
from topox_core.fabrics.map_words import (
    OPEN,
    OPEN_WORDS,
    MapPicture,
    cell_words,
    map_rows,
    setting_words,
    winner_words,
)
from topox_core.fabrics.registry import FABRICS
from topox_core.fabrics.sweep import Axes, Point
from topox_core.fabrics.winner import MapOutcome, turning_point, winner
from topox_core.figures.crossover import cut, map_legend, place, winner_map
from topox_core.figures.fabrics import (
    iteration_bars,
    shown_until,
    strip_image,
)
from topox_core.figures.palette import DARK, FORWARD, IDLE, LIGHT
from topox_core.figures.strategy import placements, walk
from topox_core.figures.template import log_ticks, time_axis
from topox_core.figures.topology import frames, hops, ring
from topox_core.strategy.evaluator import FastEvaluator
from topox_core.strategy.models import MODELS
from topox_core.strategy.moves import SearchSettings
from topox_core.strategy.network import non_blocking
from topox_core.strategy.search import search
from topox_core.text.numbers import delay_label
from topox_core.topology.finder import find_layout, traffic_of
from topox_core.topology.routing import RoutedNetwork
from topox_core.workloads.samples import load_sample


def outcomes(**times: float) -> dict[str, MapOutcome]:
    return {name: MapOutcome(times[name], 1.0, 0, 0.0, 1.0) for name in FABRICS if name in times}


def planned(time_ms: float, bound_ms: float = 0.0, **more: object) -> MapOutcome:
    return MapOutcome(
        time_ms, 1.0, 0, 0.0, 1.0, **{"plan_ms": time_ms, "plan_bound_ms": bound_ms, **more}
    )


def point(value: float, delay: float, **times: float) -> Point:
    return Point(value, delay, outcomes(**times), {})


class TestIterationBars:
    def test_an_iteration_far_beyond_the_others_is_cut_and_says_so(self):
        runs = fabric_runs()
        slow = runs["reactive"]
        late = replace(slow, execution=replace(slow.execution, end_ms=slow.execution.end_ms * 50))
        figure = iteration_bars({**runs, "reactive": late}, FABRICS, {}, LIGHT)
        assert figure.layout.xaxis.range[1] < late.iteration_ms
        assert sum(a.text.endswith("›") for a in figure.layout.annotations) == 1
        assert shown_until([10.0, 30.0, 500.0]) == 30.0
        assert shown_until([]) == 1.0


class TestStrips:
    def test_a_servers_compute_is_above_what_it_sends(self, pipeline):
        image = strip_image(pipeline, pipeline.makespan_ms, columns=37)
        assert image.shape == (6, 37)
        assert image[0, 0] == FORWARD and image[1, 0] == IDLE
        assert DARK in image[3]  # server 1 waits for its circuit to turn

    def test_many_servers_share_rows(self, crowd):
        image = strip_image(crowd, crowd.makespan_ms)
        assert len(image) == 16
        assert image.any(axis=1).all()


class TestWinner:
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
                outcomes(static=100.0, reactive=80.0, provisioned=80.0, scheduled=79.0),
                "reactive",
                ("reactive", "provisioned", "scheduled"),
                "scheduled",
                0.0,
            ),
            # Fixed and changing circuits within two percent are equal.
            (
                outcomes(static=100.0, scheduled=98.5),
                "",
                ("static", "scheduled"),
                "",
                0.0,
            ),
            (
                outcomes(static=100.0, scheduled=97.5),
                "scheduled",
                ("scheduled",),
                "static",
                0.025,
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
    def test_the_fastest_wins_and_leads_the_next(self, found, fabric, equals, ahead_of, lead):
        one = winner(found)
        assert (one.fabric, one.equals, one.next) == (fabric, equals, ahead_of)
        assert one.lead == pytest.approx(lead)

    def test_who_is_as_fast_and_who_is_beaten_is_told_in_words(self):
        one = winner(outcomes(static=100.0, reactive=80.0, provisioned=80.0, scheduled=79.0))
        assert cell_words(one) == "D ="
        assert winner_words(one, FABRICS) == (
            "Circuits on demand, as fast as Provisioned circuits and Planned circuits within 2 %; leads Fixed circuits by 20 %"
        )

    @pytest.mark.parametrize(
        ("plan", "doubt"),
        [
            (planned(120.0, bound_ms=90.0), "gap"),  # a better plan could win
            (planned(120.0, bound_ms=110.0), ""),  # none can
            (planned(101.0, bound_ms=90.0), "gap"),  # equal, and a better plan could win
            (planned(80.0, bound_ms=50.0), ""),  # wins already: a better plan wins by more
            (planned(120.0, bound_ms=90.0, rounding_ms=30.0), "rounding"),
            (planned(120.0, bound_ms=110.0, rounding_ms=5.0), ""),
        ],
    )
    def test_a_winner_that_a_gap_or_rounding_decides_is_marked(self, plan, doubt):
        one = winner({**outcomes(static=100.0), "scheduled": plan})
        assert one.doubt == doubt
        assert cell_words(one).partition(" ")[0] in ("F", "P", "=")
        assert cell_words(one).endswith(OPEN[doubt]) if doubt else cell_words(one)[-1].isdigit()


class TestMap:
    axes = Axes((0.0, 1.0, 10.0), (100.0, 200.0))
    points = tuple(
        point(v, d, static=100.0, scheduled=80.0 + 10 * d)
        for v in (100.0, 200.0)
        for d in (0.0, 1.0, 10.0)
    )

    def drawn(self, points, between=()):
        picture = MapPicture(self.axes, points, dict(between), FABRICS)
        return picture, winner_map(picture, (100.0, 1.0), LIGHT)

    def test_a_cell_between_points_that_agree_has_their_colour_and_no_number(self):
        between = {(200.0, 10.0): winner(self.points[2].outcomes)}
        picture, figure = self.drawn(self.points[:-1], between)
        assert figure.data[0].z[2, 1] == figure.data[0].z[2, 0] != 0
        assert len(figure.layout.annotations) == 5
        facts = {tuple(row[:2]): row[3] for row in figure.data[1].customdata}
        assert facts.keys() == set(self.axes.points()) and "not computed" in facts[200.0, 10.0]
        _, figure = self.drawn(self.points[:-1])
        assert figure.data[0].z[2, 1] == 0 and len(figure.data[1].x) == 5, "a cell without a point"
        assert map_legend(picture, LIGHT)[-1] == ("", "no number: between points that agree")
        assert len(map_rows(picture)) == 5

    def test_open_cells_have_a_sign_that_legend_hover_and_table_explain(self):
        plan = {"scheduled": planned(120.0, bound_ms=90.0)}
        first = Point(100.0, 1.0, {**outcomes(static=100.0), **plan}, {})
        picture, figure = self.drawn((first, self.points[3]))
        assert {a.text for a in figure.layout.annotations} == {"F 17 ◐", "P 20"}
        assert ("", OPEN_WORDS["gap"]) in map_legend(picture, LIGHT)
        assert [row["open"] for row in map_rows(picture)] == [OPEN_WORDS["gap"], ""]
        assert OPEN_WORDS["gap"] in figure.data[1].customdata[0][3]
        assert "leads Planned circuits by 16.7 % (◐ open" in setting_words(picture, (100.0, 1.0))
        assert setting_words(picture, (50.0, 1.0)) == ""

    def test_the_ring_lies_between_cells_where_the_setting_does(self):
        delays = (0.0, 1.0, 10.0)
        places = [place(delays, delay) for delay in (1.0, math.sqrt(10), 0.0, 500.0)]
        assert places == pytest.approx([1, 1.5, 0, 2])

    def test_the_turning_point_is_the_longest_delay_at_which_changing_wins(self):
        winners = [p.winner for p in self.points[:3]]
        assert turning_point((0.0, 1.0, 10.0), winners) == 1.0
        assert turning_point((0.0, 1.0), winners[:2]) is None

    def test_the_cut_is_logarithmic_both_ways_and_fixed_fabrics_are_labelled_lines(self):
        figure = cut(self.points, 100.0, self.axes.delay_ms, FABRICS, 1.0, LIGHT)
        assert figure.layout.yaxis.type == "log" and "log" in figure.layout.xaxis.title.text
        changing = next(t for t in figure.data if t.name == "Planned circuits")
        assert np.diff(changing.x) == pytest.approx([1, 1])  # 0 a decade below 1, then 1 to 10
        assert [a.text for a in figure.layout.annotations] == ["Fixed circuits"]

    def test_ticks_are_round_and_delays_written_with_their_unit(self):
        assert log_ticks(95, 1050) == [100, 200, 500, 1000]
        assert len(log_ticks(100, 103)) >= 4
        words = [delay_label(d) for d in (0.0, 0.002, 0.1, 25.0)]
        assert words == ["0 ms", "2 µs", "0.1 ms", "25 ms"]
        assert time_axis(LIGHT, 1500.0)["ticksuffix"] == " ms"
        assert time_axis(LIGHT, 22_000.0)["ticktext"] == ["0 s", "5 s", "10 s", "15 s", "20 s"]


def layout_of(sample: str, degree: int, variant: str = "published"):
    graph, cluster = load_sample(sample)
    demand = traffic_of(graph, cluster.servers)
    return find_layout(demand, degree, variant), demand


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
    found, _ = layout_of(sample, degree, variant)
    pictures = frames(found)
    assert (pictures[-1].circuits(found.layout.servers) == found.layout.circuits).all()
    laid = [picture.circuits(found.layout.servers).sum() for picture in pictures]
    assert laid == sorted(laid)


def test_circuits_that_lead_both_ways_are_drawn_apart_and_others_straight():
    both, one_way = layout_of("dlrm-16", 4, "released")[0], layout_of("dlrm-16", 4)[0]
    drawn, straight = (ring(frames(one)[-1], 16, (), LIGHT).data for one in (both, one_way))
    middles = {
        (round(float(x), 6), round(float(y), 6))
        for t in drawn
        if t.mode == "markers" and t.customdata is not None and "→" in str(t.customdata[0])
        for x, y in zip(t.x, t.y, strict=True)
    }
    assert len(middles) == both.layout.circuits.sum()
    assert not ((one_way.layout.circuits > 0) & (one_way.layout.circuits.T > 0)).any()
    strides = [t for t in straight if t.mode == "lines"]
    assert all(len(t.x) == 3 * 16 for t in strides)
    assert all(len(t.x) > 3 * 32 for t in drawn if t.mode == "lines")
    assert len({t.line.color for t in strides}) == len({t.line.dash for t in strides}) == 4


def test_hops_are_written_where_they_can_be_read_and_a_missing_way_is_a_cross():
    circuits = np.zeros((4, 4), np.int32)
    circuits[[0, 1, 2], [1, 2, 0]] = 1
    matrix = RoutedNetwork(circuits).hop_matrix()
    assert matrix[0].tolist() == [0, 1, 2, -1]
    texts = [a.text for a in hops(matrix, 2, LIGHT).layout.annotations]
    assert texts.count("×") == 6 and texts.count("2") == 3


def test_the_walk_falls_from_the_first_strategy_to_the_best_one():
    graph = MODELS["candle-16"].build(8)
    found = search(graph, 8, FastEvaluator(graph, non_blocking(8)), SearchSettings(200))
    times = found.start_ms, found.iteration_ms
    figure = walk((), found.moves, *times, found.proposals, LIGHT, found.tried)
    best = next(t for t in figure.data if t.name == "best so far")
    assert (best.y[0], best.y[-1]) == pytest.approx(times)
    assert (np.diff(best.y) <= 0).all()
    z = placements(found.strategy, LIGHT).data[0].z  # operators by servers
    assert ((z > 0).sum(axis=1) == [p.partitions for p in found.strategy.placements]).all()
