"""Figures of fabrics, the crossover map, topologies and strategies."""

from __future__ import annotations

import math

import numpy as np
import pytest

from topox_core.fabrics.compare import compare
from topox_core.fabrics.map_words import (
    OPEN,
    OPEN_WORDS,
    MapPicture,
    cell_words,
    map_rows,
    setting_words,
    winner_words,
)
from topox_core.fabrics.registry import FABRICS, LETTERS
from topox_core.fabrics.sweep import Axes, Point
from topox_core.fabrics.winner import MapOutcome, turning_point, winner
from topox_core.figures.crossover import cut, map_legend, place, winner_map
from topox_core.figures.fabrics import (
    before_after,
    iteration_bars,
    shown_until,
    strip_image,
    strips,
)
from topox_core.figures.palette import DARK, DARK_THEME, FORWARD, IDLE, LIGHT
from topox_core.figures.strategy import placements, plan_bars, plan_word, walk
from topox_core.figures.template import log_ticks, time_axis
from topox_core.figures.topology import frames, hops, ring
from topox_core.schedule.settings import Settings
from topox_core.strategy.evaluator import FastEvaluator
from topox_core.strategy.models import MODELS
from topox_core.strategy.moves import SearchSettings
from topox_core.strategy.network import non_blocking
from topox_core.strategy.plans import best_plans
from topox_core.strategy.search import search
from topox_core.text.numbers import delay_label
from topox_core.topology.finder import find_layout, traffic_of
from topox_core.topology.link_load import bandwidth_tax, link_loads
from topox_core.topology.routing import RoutedNetwork
from topox_core.training.machines import MACHINES
from topox_core.training.shapes import SHAPES
from topox_core.workloads.samples import load_sample


@pytest.fixture(scope="module")
def runs():
    graph, cluster = load_sample("race")
    return compare(graph, cluster.changed(reconfiguration_ms=2.0), Settings.of(engine="list"))


def outcomes(**times: float) -> dict[str, MapOutcome]:
    return {name: MapOutcome(times[name], 1.0, 0, 0.0, 1.0) for name in FABRICS if name in times}


def planned(time_ms: float, bound_ms: float = 0.0, **more: object) -> MapOutcome:
    return MapOutcome(
        time_ms, 1.0, 0, 0.0, 1.0, **{"plan_ms": time_ms, "plan_bound_ms": bound_ms, **more}
    )


def point(value: float, delay: float, **times: float) -> Point:
    return Point(value, delay, outcomes(**times), {})


class TestIterationBars:
    def test_bars_start_at_zero_and_end_at_the_iteration(self, runs):
        figure = iteration_bars(runs, FABRICS, {}, LIGHT)
        bars = [t for t in figure.data if t.type == "bar"]
        assert [t.name for t in bars] == ["compute", "exposed transfer", "dark", "waiting"]
        assert list(bars[0].base) == [0.0] * len(runs)
        ends = np.array(bars[-1].base) + np.array(bars[-1].x)
        assert ends == pytest.approx([run.iteration_ms for run in runs.values()])

    def test_the_bound_is_a_tick_across_each_bar(self, runs):
        tick = next(
            t for t in iteration_bars(runs, FABRICS, {}, LIGHT).data if t.name == "lower bound"
        )
        assert list(tick.x) == pytest.approx([run.bound_ms for run in runs.values()])
        assert tick.marker.symbol == "line-ns"

    def test_an_iteration_far_beyond_the_others_is_cut_and_says_so(self, runs):
        from dataclasses import replace

        slow = runs["reactive"]
        late = replace(slow, execution=replace(slow.execution, end_ms=slow.execution.end_ms * 50))
        figure = iteration_bars({**runs, "reactive": late}, FABRICS, {}, LIGHT)
        assert figure.layout.xaxis.range[1] < late.iteration_ms
        assert sum(a.text.endswith("›") for a in figure.layout.annotations) == 1

    def test_the_axis_ends_at_the_slowest_that_is_not_far_behind(self):
        assert shown_until([10.0, 30.0, 500.0]) == 30.0
        assert shown_until([]) == 1.0

    def test_degraded_times_are_hatched_beside_the_undisturbed(self):
        figure = before_after(
            [("Static, repaired", "static", 10.0, 14.0), ("Scheduled", "scheduled", 8.0, 9.0)],
            LIGHT,
        )
        filled = [t for t in figure.data if t.name.endswith("undisturbed")]
        hatched = [t for t in figure.data if t.name.endswith("degraded")]
        assert [t.x[0] for t in filled] == [10.0, 8.0]
        assert [t.x[0] for t in hatched] == [14.0, 9.0]
        assert all(t.marker.pattern.shape == "/" for t in hatched)


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

    def test_each_fabric_ends_at_its_own_time_on_one_clock(self, runs):
        until = shown_until([run.iteration_ms for run in runs.values()])
        images = {name: strip_image(run.execution, until) for name, run in runs.items()}
        times = {name: run.iteration_ms for name, run in runs.items()}
        figure = strips(images, FABRICS, times, until, DARK_THEME)
        ends = [s.x0 for s in figure.layout.shapes if s.type == "line"]
        assert ends == pytest.approx(list(times.values()))
        assert len(figure.data) == 1 and figure.data[0].z.dtype == np.uint8


class TestWinner:
    def test_the_fastest_wins_and_leads_the_next(self):
        one = winner(outcomes(static=100.0, provisioned=90.0, scheduled=80.0))
        assert (one.fabric, one.next) == ("scheduled", "provisioned")
        assert one.lead == pytest.approx(1 - 80 / 90)

    def test_of_equal_controllers_the_simplest_wins_and_leads_none_of_them(self):
        one = winner(outcomes(static=100.0, reactive=80.0, provisioned=80.0, scheduled=79.0))
        assert (one.fabric, one.next, one.lead) == ("reactive", "scheduled", 0.0)
        assert one.equals == ("reactive", "provisioned", "scheduled")
        assert (one.beyond, one.beyond_lead) == ("static", pytest.approx(0.2))
        assert cell_words(one) == "D ="
        assert winner_words(one, FABRICS) == (
            "Circuits on demand, as fast as Provisioned circuits and Planned circuits within 2 %; leads Fixed circuits by 20 %"
        )

    def test_fixed_and_changing_circuits_within_two_percent_are_equal(self):
        assert winner(outcomes(static=100.0, scheduled=98.5)).fabric == ""
        assert winner(outcomes(static=100.0, scheduled=97.5)).fabric == "scheduled"

    def test_a_plan_that_keeps_circuits_fixed_is_the_static_fabric_itself(self):
        fixed = {"scheduled": planned(100.0, plan_ms=125.0, keeps_fixed=True)}
        one = winner({**outcomes(static=100.0, provisioned=200.0), **fixed})
        assert (one.fabric, one.next, one.lead) == ("static", "scheduled", pytest.approx(0.2))
        only = {"scheduled": planned(100.0, plan_ms=None, keeps_fixed=True)}
        assert winner({**outcomes(static=100.0), **only}).equals == ("static", "scheduled")
        assert winner({**outcomes(static=100.0), **only}).fabric == "static"

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

    def test_nobody_wins_where_nothing_runs(self):
        assert winner({}).equals == ()
        assert winner_words(winner({}), FABRICS) == "no fabric can run"


def picture(points, axes, between=()) -> MapPicture:
    return MapPicture(axes, points, dict(between), FABRICS)


class TestMap:
    axes = Axes((0.0, 1.0, 10.0), (100.0, 200.0))
    points = tuple(
        point(v, d, static=100.0, scheduled=80.0 + 10 * d)
        for v in (100.0, 200.0)
        for d in (0.0, 1.0, 10.0)
    )

    def test_a_missing_point_is_an_empty_cell_and_takes_no_click(self):
        figure = winner_map(picture(self.points[:-1], self.axes), (100.0, 1.0), LIGHT)
        assert figure.data[0].z[2, 1] == 0
        assert len(figure.data[1].x) == 5

    def test_a_cell_between_points_that_agree_has_their_colour_and_no_number(self):
        between = {(200.0, 10.0): winner(self.points[2].outcomes)}
        figure = winner_map(picture(self.points[:-1], self.axes, between), (100.0, 1.0), LIGHT)
        assert figure.data[0].z[2, 1] == figure.data[0].z[2, 0] != 0
        assert len(figure.layout.annotations) == 5
        facts = {tuple(row[:2]): row[3] for row in figure.data[1].customdata}
        assert "not computed" in facts[200.0, 10.0]
        legend = map_legend(picture(self.points[:-1], self.axes, between), LIGHT)
        assert legend[-1] == ("", "no number: between points that agree")
        assert len(map_rows(picture(self.points[:-1], self.axes, between))) == 5

    def test_a_click_carries_the_point(self):
        figure = winner_map(picture(self.points, self.axes), (100.0, 1.0), LIGHT)
        assert {tuple(facts[:2]) for facts in figure.data[1].customdata} == set(self.axes.points())

    def test_colour_is_not_alone_leads_are_written_and_equals_named(self):
        figure = winner_map(picture(self.points, self.axes), (100.0, 1.0), LIGHT)
        assert {a.text for a in figure.layout.annotations} == {"F 44", "P 10", "P 20"}
        assert map_legend(picture(self.points, self.axes), LIGHT) == [
            (LIGHT.fabric_colour("static"), "F Fixed circuits"),
            (LIGHT.fabric_colour("scheduled"), "P Planned circuits"),
        ]

    def test_every_fabric_has_a_letter_of_its_own(self):
        assert sorted(LETTERS.values()) == sorted({one for one in LETTERS.values() if one})

    def test_open_cells_have_a_sign_that_legend_hover_and_table_explain(self):
        plan = {"scheduled": planned(120.0, bound_ms=90.0)}
        points = (Point(100.0, 1.0, {**outcomes(static=100.0), **plan}, {}), self.points[3])
        shown = picture(points, self.axes)
        figure = winner_map(shown, (100.0, 1.0), LIGHT)
        assert {a.text for a in figure.layout.annotations} == {"F 17 ◐", "P 20"}
        assert ("", OPEN_WORDS["gap"]) in map_legend(shown, LIGHT)
        assert [row["open"] for row in map_rows(shown)] == [OPEN_WORDS["gap"], ""]
        assert OPEN_WORDS["gap"] in figure.data[1].customdata[0][3]
        assert "leads Planned circuits by 16.7 % (◐ open" in setting_words(shown, (100.0, 1.0))
        assert setting_words(shown, (50.0, 1.0)) == ""

    def test_the_ring_lies_between_cells_where_the_setting_does(self):
        assert place((0.0, 1.0, 10.0), 1.0) == 1
        assert place((0.0, 1.0, 10.0), math.sqrt(10)) == pytest.approx(1.5)
        assert place((0.0, 1.0, 10.0), 0.0) == 0 and place((0.0, 1.0, 10.0), 500.0) == 2

    def test_the_turning_point_is_the_longest_delay_at_which_changing_wins(self):
        winners = [p.winner for p in self.points[:3]]
        assert turning_point((0.0, 1.0, 10.0), winners) == 1.0
        assert turning_point((0.0, 1.0), winners[:2]) is None

    def test_the_cut_is_logarithmic_both_ways_and_fixed_fabrics_are_labelled_lines(self):
        figure = cut(self.points, 100.0, self.axes.delay_ms, FABRICS, 1.0, LIGHT)
        assert figure.layout.yaxis.type == "log" and "log" in figure.layout.xaxis.title.text
        lines = {t.name: t for t in figure.data}
        assert np.diff(lines["Planned circuits"].x) == pytest.approx(
            [1.0, 1.0]
        )  # 0 a decade below 1, then 1 to 10
        assert lines["Fixed circuits"].line.dash == "2px,3px"
        assert [a.text for a in figure.layout.annotations] == ["Fixed circuits"]

    def test_log_axes_have_round_ticks(self):
        assert log_ticks(95, 1050) == [100, 200, 500, 1000]
        assert len(log_ticks(100, 103)) >= 4

    def test_delays_are_written_with_their_unit(self):
        assert [delay_label(d) for d in (0.0, 0.002, 0.1, 25.0)] == [
            "0 ms",
            "2 µs",
            "0.1 ms",
            "25 ms",
        ]


def apart(colours) -> float:
    def lab(code):
        rgb = np.array([int(code[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        rgb = np.where(rgb > 0.04045, ((rgb + 0.055) / 1.055) ** 2.4, rgb / 12.92)
        xyz = (
            np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
            @ rgb
        )
        f = np.cbrt(xyz / np.array([0.95047, 1.0, 1.08883]))
        return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])

    values = [lab(c) for c in colours]
    return min(float(np.linalg.norm(a - b)) for i, a in enumerate(values) for b in values[i + 1 :])


@pytest.mark.parametrize("theme", [LIGHT, DARK_THEME])
def test_fabrics_differ_from_one_another_and_from_the_page(theme):
    colours = [theme.fabric_colour(name) for name in FABRICS if name != "ideal"]
    assert apart([*colours, theme.page]) > 20


def layout_of(sample: str, degree: int, variant: str = "published"):
    graph, cluster = load_sample(sample)
    demand = traffic_of(graph, cluster.servers)
    return find_layout(demand, degree, variant), demand


@pytest.mark.parametrize(
    ("sample", "degree", "variant"),
    [
        ("moe", 2, "published"),
        ("moe", 4, "published"),
        ("dlrm-16", 4, "published"),
        ("dlrm-16", 8, "released"),
        ("llama3-70b", 4, "published"),
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


def test_strides_differ_by_colour_and_by_dash():
    found, _ = layout_of("dlrm-16", 4)
    last = frames(found)[-1]
    lines = [t for t in ring(last, 16, (), LIGHT).data if t.mode == "lines"]
    assert len({t.line.color for t in lines}) == len({t.line.dash for t in lines}) == 4


def test_circuits_that_lead_both_ways_are_drawn_apart_and_others_straight():
    both, one_way = layout_of("dlrm-16", 4, "released")[0], layout_of("dlrm-16", 4)[0]
    drawn, straight = (
        [t for t in ring(frames(one)[-1], 16, (), LIGHT).data if t.mode == "lines"]
        for one in (both, one_way)
    )
    middles = {
        (round(float(x), 6), round(float(y), 6))
        for t in ring(frames(both)[-1], 16, (), LIGHT).data
        if t.mode == "markers" and t.customdata is not None and "→" in str(t.customdata[0])
        for x, y in zip(t.x, t.y, strict=True)
    }
    assert len(middles) == both.layout.circuits.sum()
    circuits = one_way.layout.circuits
    assert not ((circuits > 0) & (circuits.T > 0)).any()
    assert all(len(t.x) == 3 * 16 for t in straight)
    assert all(len(t.x) > 3 * 32 for t in drawn)


def test_hops_are_written_where_they_can_be_read_and_a_missing_way_is_a_cross():
    circuits = np.zeros((4, 4), np.int32)
    circuits[[0, 1, 2], [1, 2, 0]] = 1
    matrix = RoutedNetwork(circuits).hop_matrix()
    assert matrix[0].tolist() == [0, 1, 2, -1]
    texts = [a.text for a in hops(matrix, 2, LIGHT).layout.annotations]
    assert texts.count("×") == 6 and texts.count("2") == 3


def test_the_tax_is_bytes_times_hops_over_bytes_and_equals_what_the_links_carry():
    found, demand = layout_of("dlrm-16", 4)
    whole = demand.all_reduce_bytes + demand.model_parallel_bytes
    assert sum(link_loads(found, demand).values()) == pytest.approx(
        bandwidth_tax(found, demand) * whole
    )
    assert bandwidth_tax(found, demand) > 1


def test_the_tax_of_the_layout_is_the_tax_of_the_run():
    graph, cluster = load_sample("moe")
    found, demand = layout_of("moe", cluster.ports_per_server)
    run = compare(graph, cluster, Settings.of(engine="list"), ("static",))["static"]
    assert bandwidth_tax(found, demand) == pytest.approx(run.traffic.bandwidth_tax)


@pytest.fixture(scope="module")
def found_strategy():
    graph = MODELS["candle-16"].build(8)
    return graph, search(graph, 8, FastEvaluator(graph, non_blocking(8)), SearchSettings(200))


class TestStrategyFigures:
    def test_the_walk_ends_at_the_best_and_tells_reasons_apart(self, found_strategy):
        _, found = found_strategy
        times = found.start_ms, found.iteration_ms
        figure = walk((), found.moves, *times, found.proposals, LIGHT, found.tried)
        assert figure.layout.xaxis.range[1] == found.tried
        best = next(t for t in figure.data if t.name == "best so far")
        assert best.y[0] == found.start_ms and best.y[-1] == pytest.approx(found.iteration_ms)
        assert (np.diff(best.y) <= 0).all()
        marks = [t for t in figure.data if t.mode == "markers"]
        assert len({t.marker.symbol for t in marks}) == len(marks)

    def test_a_walk_is_drawn_while_it_runs(self):
        figure = walk([(10, 100.0), (20, 90.0)], (), 100.0, 90.0, 20, LIGHT)
        assert list(figure.data[1].y) == [100.0, 100.0, 90.0, 90.0]

    def test_every_operator_is_on_as_many_servers_as_it_has_partitions(self, found_strategy):
        _, found = found_strategy
        z = placements(found.strategy, LIGHT).data[0].z
        assert ((z > 0).sum(axis=1) == [p.partitions for p in found.strategy.placements]).all()

    def test_the_parts_of_a_plan_add_up_to_its_iteration(self):
        ranked = best_plans(SHAPES["llama3-8b"], MACHINES["h100"], 2, 512).ranked[:5]
        bars = [t for t in plan_bars(ranked, LIGHT).data if t.type == "bar"]
        drawn = np.sum([t.x for t in bars], axis=0)
        assert drawn == pytest.approx([one.total_ms for one in ranked], rel=1e-9)
        assert plan_word(ranked[0]).startswith(f"TP{ranked[0].plan.tensor} PP")

    def test_axes_beyond_two_seconds_count_in_seconds(self):
        assert time_axis(LIGHT, 1500.0)["ticksuffix"] == " ms"
        assert time_axis(LIGHT, 22_000.0)["ticktext"] == ["0 s", "5 s", "10 s", "15 s", "20 s"]
