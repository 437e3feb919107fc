"""Figures of photonic rails: what a rank sends, how long the windows are, what switching costs, who holds the rail."""

from __future__ import annotations

import numpy as np
import pytest

from topox_core.figures import rails_control, rails_delay, rails_pattern, rails_windows
from topox_core.figures.palette import DARK_THEME, LIGHT, VERMILION, parallelism_colour
from topox_core.rails.iteration import (
    ALL_GATHER,
    COMPUTE,
    REDUCE_SCATTER,
    SEND,
    Message,
    Rail,
    RailCircuit,
    RailGroup,
    RailIteration,
    RailRun,
    Window,
)
from topox_core.rails.window_lengths import MOST_CLASSES, by_traffic, share_hiding
from topox_core.rails.windows import Stretch, strip, traffic_between

MIB = 2**20


def hand_run() -> RailRun:
    """Rank 0 gathers (0 to 4), computes, sends (10 to 12), computes, scatters (20 to 30), all beside rank 1; 5 ms dark."""
    kind = np.array([ALL_GATHER, COMPUTE, SEND, COMPUTE, REDUCE_SCATTER, ALL_GATHER], np.int32)
    groups = (
        RailGroup("shards of stage 0", "fsdp", (0, 1), 2),
        RailGroup("stage 0 to 1", "pp", (0, 1), 2),
    )
    iteration = RailIteration(
        name="by hand",
        ranks=2,
        stands_for=np.ones(2, np.int32),
        stage=np.array([0, 1], np.int32),
        replica=np.zeros(2, np.int32),
        kind=kind,
        rank=np.array([-1, 0, -1, 0, -1, -1], np.int32),
        duration_ms=np.array([0, 6.0, 0, 3, 0, 0]),
        work=np.array([-1, 0, -1, 1, -1, -1], np.int32),
        group=np.array([0, -1, 1, -1, 0, 0], np.int32),
        size_bytes=np.array([8, 0, 64, 0, 3829, 8.0]) * MIB,
        microbatch=np.full(6, -1, np.int32),
        layer=np.full(6, -1, np.int32),
        label=("gather 0", "forward", "send 0", "backward", "scatter", "gather 1"),
        pred_ptr=np.array([0, 0, 1, 2, 3, 4, 4], np.int32),
        pred_idx=np.array([0, 1, 2, 3], np.int32),
        issue_ptr=np.array([0, 6, 10], np.int32),
        issue_idx=np.array([0, 5, 1, 2, 3, 4, 0, 5, 2, 4], np.int32),
        groups=groups,
    )
    start = np.array([0, 4, 10, 12, 20, 2.0])
    end = np.array([2, 10, 12, 15, 30, 4.0])
    windows = (
        Window(0, 0, "fsdp", "pp", "send", 4, 6, 64 * MIB),
        Window(0, 0, "pp", "fsdp", "reduce_scatter", 12, 8, 3829 * MIB),
    )
    circuits = (
        RailCircuit(0, 0, 0, 4, False),
        RailCircuit(1, 4, 9, 12, True),
        RailCircuit(0, 12, 17, 30, True),
    )
    return RailRun(
        iteration,
        Rail(reconfiguration_ms=5),
        start,
        end,
        30.0,
        30.0,
        2,
        circuits,
        (Message(0, "rank 0", "controller", "CONFIG_REQ", "stage 0 to 1"),),
        windows,
    )


def windows(*lengths: float, size: float = 64 * MIB) -> tuple[Window, ...]:
    begins = np.cumsum([0, *np.abs(lengths)]) + np.arange(len(lengths) + 1) * 10
    return tuple(
        Window(0, 0, "fsdp", "pp", "send", float(b), length, size)
        for b, length in zip(begins, lengths, strict=False)
    )


def phases(run: RailRun, rank: int) -> tuple[Stretch, ...]:
    return tuple(one for one in strip(run.iteration, run.start_ms, run.end_ms) if one.rank == rank)


class TestStrip:
    def test_bars_have_the_colours_of_their_traffic_and_windows_carry_their_length(self):
        run = hand_run()
        figure = rails_pattern.strip(phases(run, 0), run.windows, 7.0, (0, 30), LIGHT)
        bars = {t.name: t for t in figure.data if t.type == "bar"}
        assert bars["sharded weights (fsdp)"].marker.color == parallelism_colour("fsdp")
        assert bars["pipeline send"].marker.color == parallelism_colour("pp")
        assert list(bars["window"].text) == ["6", "8"]

    def test_a_window_shorter_than_the_delay_is_marked_and_one_just_as_long_is_not(self):
        run = hand_run()
        marked = {
            dark: [
                t
                for t in rails_pattern.strip(phases(run, 0), run.windows, dark, (0, 30), LIGHT).data
                if t.type == "scatter"
            ]
            for dark in (6.0, 7.0)
        }
        assert marked[6.0] == []
        assert list(marked[7.0][0].x) == [7.0]

    def test_an_overlap_is_marked_otherwise_than_a_short_window(self):
        figure = rails_pattern.strip((), windows(-3, 2, 9), 5.0, (0, 50), DARK_THEME)
        symbols = {t.name: t.marker.symbol for t in figure.data if t.type == "scatter"}
        assert symbols == {
            "shorter than 5\u00a0ms": "triangle-up",
            "no window: 0 or an overlap": "x-thin",
        }

    def test_parallelisms_of_one_colour_are_told_apart_by_stripes(self):
        both = (Stretch(0, 0, "dp", "", 0, 5, 1, 1.0), Stretch(0, 0, "fsdp", "", 10, 20, 1, 1.0))
        bars = {t.name: t.marker for t in rails_pattern.strip(both, (), 1.0, (0, 20), LIGHT).data}
        plain, striped = bars["sharded weights (fsdp)"], bars["gradient all-reduce (dp)"]
        assert plain.color == striped.color
        assert plain.pattern.shape is None and striped.pattern.shape == "-"
        alone = rails_pattern.strip(both[:1], (), 1.0, (0, 20), LIGHT).data[1]
        assert alone.marker.pattern.shape is None

    def test_a_window_at_the_very_end_is_marked_whole(self):
        mark = rails_pattern.strip(
            (), (Window(0, 0, "fsdp", "dp", "", 19.9, 0.2, 1.0),), 5.0, (0, 20), LIGHT
        ).data[-1]
        assert mark.cliponaxis is False and max(mark.x) <= 20

    def test_what_lies_outside_the_view_is_clipped_to_it(self):
        run = hand_run()
        figure = rails_pattern.strip(phases(run, 0), run.windows, 7.0, (11, 25), LIGHT)
        for bar in (t for t in figure.data if t.type == "bar"):
            ends = np.array(bar.base) + np.array(bar.x)
            assert np.all(np.array(bar.base) >= 11)
            assert np.all(ends <= 25)

    def test_traffic_between_windows_of_a_list_fills_what_they_leave(self):
        run = hand_run()
        found = traffic_between(run.windows, 30.0)
        assert [(s.parallelism, s.begin_ms, s.end_ms) for s in found] == [
            ("fsdp", 0, 4),
            ("pp", 10, 12),
            ("fsdp", 20, 30),
        ]


class TestDistribution:
    def test_the_share_below_the_threshold_is_written_at_it(self):
        figure = rails_windows.cdf(windows(0.5, 2, 30, 400), 25.0, LIGHT)
        assert "50\u00a0% too short" in figure.layout.annotations[0].text
        assert figure.layout.shapes[0].x0 == 25.0
        assert figure.layout.shapes[0].line.color == VERMILION

    def test_the_curve_climbs_from_none_to_all_and_never_falls(self):
        step = rails_windows.cdf(windows(0.5, 2, 30, 400), 25.0, LIGHT).data[0]
        assert step.y[0] == 0
        assert step.y[-1] == 100
        assert np.all(np.diff(step.y) >= 0)
        assert list(step.x[1:-1]) == [0.5, 2, 30, 400]

    def test_overlaps_lie_at_the_left_end_and_are_too_short_for_any_delay(self):
        some = windows(-4, 10)
        assert share_hiding(some, 0.0) == 0.5
        step = rails_windows.cdf(some, 1.0, LIGHT).data[0]
        assert step.x[1] == step.x[0] > 0

    def test_a_window_as_long_as_the_delay_hides_it(self):
        assert share_hiding(windows(1, 5, 25), 5.0) == pytest.approx(2 / 3)

    def test_windows_of_one_kind_and_size_are_one_class_and_the_largest_traffic_comes_first(self):
        groups = by_traffic((*windows(1, 3), *hand_run().windows))
        assert [(rails_windows.traffic_words(g), len(g.windows)) for g in groups] == [
            ("reduce scatter, 3,829 MiB", 1),
            ("send, 64 MiB", 3),
        ]
        assert groups[1].mean_idle_ms == pytest.approx(10 / 3)

    def test_rare_traffic_shares_a_row_so_that_the_rows_stay_few(self):
        many = tuple(w for k in range(40) for w in windows(1, size=2.0**k * MIB))
        groups = by_traffic(many)
        assert len(groups) == MOST_CLASSES
        assert sum(len(g.windows) for g in groups) == len(many)

    def test_every_window_is_a_dot_and_every_class_has_its_mean(self):
        groups = by_traffic((*windows(1, 3), *hand_run().windows))
        figure = rails_windows.breakdown(groups, 2.0, LIGHT)
        assert sum(len(t.x) for t in figure.data if t.name != "mean") == 4
        assert next(len(t.x) for t in figure.data if t.name == "mean") == 2


class TestDelay:
    curve = rails_delay.Curve("on_demand", 1000.0, (0.0, 10.0, 100.0), (1000.0, 1060.0, 1600.0))
    quick = rails_delay.Curve("provisioned", 1000.0, (0.0, 10.0, 100.0), (1000.0, 1010.0, 1200.0))

    def test_overhead_is_counted_from_the_curve_s_own_base(self):
        assert self.curve.overhead == pytest.approx((0.0, 0.06, 0.6))

    def test_delays_lie_on_a_logarithmic_axis_with_0_at_its_left(self):
        drawn = rails_delay.overhead_curves((self.curve, self.quick), 25.0, 0.05, {}, LIGHT).data[0]
        assert list(drawn.x[1:]) == pytest.approx([1.0, 2.0])
        assert drawn.x[0] < np.log10(rails_delay.LEAST_MS)
        assert list(drawn.y) == pytest.approx([0, 6, 60])

    def test_the_two_controls_differ_in_more_than_colour(self):
        one, two = rails_delay.overhead_curves((self.curve, self.quick), 25.0, 0.05, {}, LIGHT).data
        assert one.marker.symbol != two.marker.symbol
        assert one.line.dash != two.line.dash

    def test_each_technology_has_its_line_and_name_and_those_off_the_axis_stand_at_its_ends(self):
        technologies = {"PLZT": 1e-5, "SiP": 0.007, "MEMS": 15.0, "Piezo": 25.0, "robot": 120_000.0}
        figure = rails_delay.overhead_curves((self.curve,), 25.0, 0.05, technologies, LIGHT)
        assert len([s for s in figure.layout.shapes if s.line.dash == "3px,3px"]) == 2
        named = {a.text: a for a in figure.layout.annotations}
        assert (
            named["‹ PLZT, SiP<br>7 µs and less"].x
            < named["MEMS<br>15 ms"].x
            < named["Piezo<br>25 ms"].x
        )
        assert named["robot<br>120\u00a0s ›"].xanchor == "right"

    def test_a_measured_curve_is_told_from_a_simulated_one(self):
        theirs = rails_delay.Curve(
            "on_demand", 10.0, (0.0, 10.0), (10.0, 11.0), "measured by the authors"
        )
        figure = rails_delay.overhead_curves((self.curve, theirs), 25.0, 0.05, {}, LIGHT)
        assert figure.data[1].marker.symbol == "circle-open"
        assert figure.data[1].name == "on demand, measured by the authors"
        assert figure.layout.showlegend

    def test_a_curve_far_above_is_cut_and_the_limit_always_in_view(self):
        wild = rails_delay.Curve("on_demand", 1.0, (0.0, 1000.0), (1.0, 500.0))
        top = rails_delay.overhead_curves((wild,), 25.0, 0.05, {}, LIGHT).layout.yaxis.range[1]
        assert top < 100
        flat = rails_delay.Curve("on_demand", 1.0, (0.0, 1000.0), (1.0, 1.0))
        assert rails_delay.overhead_curves((flat,), 25.0, 0.2, {}, LIGHT).layout.yaxis.range[1] > 20

    @pytest.mark.parametrize("now_ms", [0.01, 100.0, 120_000.0])
    def test_the_axes_hold_the_chosen_delay_and_what_it_costs(self, now_ms):
        one = rails_delay.Curve("on_demand", 1000.0, (0.0, now_ms), (1000.0, 9000.0))
        layout = rails_delay.overhead_curves((one,), now_ms, 0.05, {}, LIGHT).layout
        chosen = next(s for s in layout.shapes if s.line.color == VERMILION)
        assert layout.xaxis.range[0] < chosen.x0 < layout.xaxis.range[1]
        assert chosen.x0 == pytest.approx(np.log10(now_ms)) or now_ms < rails_delay.LEAST_MS
        assert layout.yaxis.range[1] > 800
        axis = rails_windows.cdf(windows(0.5, 2, 30, 400), now_ms, LIGHT).layout.xaxis
        assert axis.range[0] <= np.log10(now_ms) <= axis.range[1]

    def test_expert_parallelism_has_a_line_a_delay_and_shades_where_it_fails(self):
        figure = rails_delay.expert_region(
            (8, 16), {10.0: (0.03, 0.2), 100.0: (0.4, None)}, {10.0: {8: 0.03}}, 0.1, LIGHT
        )
        assert [list(t.y) for t in figure.data] == [
            pytest.approx([3, 20]),
            pytest.approx([40]),
            pytest.approx([3]),
        ]
        assert figure.layout.shapes[0].y0 == pytest.approx(10)
        assert "✗ fails" in " ".join(a.text for a in figure.layout.annotations)


class TestControl:
    def test_a_changed_circuit_is_dark_first_and_one_in_place_is_not(self):
        figure = rails_control.timeline(hand_run(), LIGHT)
        dark = figure.data[-1]
        assert dark.name == "dark (switching)"
        assert dark.marker.pattern.shape == "/"
        assert list(dark.base) == [4, 12]
        assert list(dark.x) == [5, 5]

    def test_every_group_with_a_circuit_has_a_row_with_its_name(self):
        assert list(rails_control.timeline(hand_run(), LIGHT).layout.yaxis.ticktext) == [
            "pp, stages 0 and 1",
            "fsdp, stages 0 and 1",
        ]

    def test_a_run_without_circuits_is_an_empty_timeline(self):
        from dataclasses import replace

        assert len(rails_control.timeline(replace(hand_run(), circuits=()), LIGHT).data) == 0

    def test_counts_stand_beside_the_formula_which_says_that_it_is_reconstructed(self):
        figure = rails_windows.counts((95, 129, 65), 127, LIGHT)
        assert list(figure.data[0].y) == [95, 129, 65]
        assert figure.layout.shapes[0].y0 == 127
        assert "reconstructed: 127" in figure.layout.annotations[0].text
