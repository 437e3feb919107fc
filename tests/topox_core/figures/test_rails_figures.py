"""Figures of rails and of a recorded run: windows, what switching costs, who holds the rail; lanes with waiting apart."""

import numpy as np
import pytest

from tests.topox_core.traces.made import Call, Kernel, Op, Style, Wait, recordings
from tests.topox_core.traces.reading_back import sources
from topox_core.figures.iteration.recorded import lanes, steps
from topox_core.figures.palette import LIGHT, VERMILION, faded, parallelism_colour
from topox_core.figures.rails import (
    delay as rails_delay,
    traffic as rails_traffic,
    windows as rails_windows,
)
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
from topox_core.rails.window_lengths import MAX_CLASSES, by_traffic, share_hiding
from topox_core.rails.windows import Phase, strip, traffic_between
from topox_core.traces.recorded.recorded_run import read_run, step_of
from topox_core.traces.run_graph import RunGraph, StepTime, call_bars
from topox_core.traces.source import ImportSettings

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


CURVES = [
    rails_delay.Curve(control, 1000.0, (0.0, 10.0, 100.0), (1000.0, 1010.0, last))
    for control, last in (("on_demand", 1600.0), ("provisioned", 1200.0))
]


def windows(*lengths: float, size: float = 64 * MIB) -> tuple[Window, ...]:
    begins = np.cumsum([0, *np.abs(lengths)]) + np.arange(len(lengths) + 1) * 10
    return tuple(
        Window(0, 0, "fsdp", "pp", "send", float(b), length, size)
        for b, length in zip(begins, lengths, strict=False)
    )


def phases(run: RailRun, rank: int) -> tuple[Phase, ...]:
    return tuple(one for one in strip(run.iteration, run.start_ms, run.end_ms) if one.rank == rank)


def test_traffic_of_one_kind_is_taken_apart_where_it_pauses():
    run = hand_run()
    run.start_ms[1:6], run.end_ms[5] = np.array([5.0, 10, 12, 20, 3.0]), 5.0
    of_one = [one for one in strip(run.iteration, run.start_ms, run.end_ms) if one.rank == 0]
    apart = [one for one in strip(run.iteration, run.start_ms, run.end_ms, True) if one.rank == 0]
    assert [(one.begin_ms, one.end_ms) for one in of_one] == [(0, 5), (10, 12), (20, 30)]
    assert [(one.begin_ms, one.end_ms) for one in apart] == [(0, 2), (3, 5), (10, 12), (20, 30)]
    assert sum(one.communications for one in apart) == sum(one.communications for one in of_one)


def test_a_window_shorter_than_the_delay_is_marked_and_one_just_as_long_is_not():
    run = hand_run()
    for dark_ms, found in ((6.0, []), (7.0, [(7.0,)])):
        figure = rails_traffic.strip(phases(run, 0), run.windows, dark_ms, (0, 30), LIGHT)
        assert [mark.x for mark in figure.data if mark.type == "scatter"] == found


def test_the_legend_beside_a_strip_names_each_sign_once_and_the_strip_is_lower_by_it():
    run = hand_run()
    drawn = (phases(run, 0), run.windows, 7.0, (0, 30), LIGHT)
    whole, bare = rails_traffic.strip(*drawn), rails_traffic.strip(*drawn, legend=False)
    words = [word for _, word in rails_traffic.strip_legend(bare, LIGHT)]
    assert words == [trace.name for trace in whole.data] and len(set(words)) == len(words)
    assert whole.layout.showlegend and not bare.layout.showlegend
    assert whole.layout.height - bare.layout.height == whole.layout.margin.t - bare.layout.margin.t


def test_what_lies_outside_the_view_is_clipped_to_it_and_a_window_at_its_end_marked_whole():
    run = hand_run()
    figure = rails_traffic.strip(phases(run, 0), run.windows, 7.0, (11, 25), LIGHT)
    for bar in (t for t in figure.data if t.type == "bar"):
        assert min(bar.base) >= 11 and np.add(bar.base, bar.x).max() <= 25
    last = Window(0, 0, "fsdp", "dp", "", 19.9, 0.2, 1.0)
    mark = rails_traffic.strip((), (last,), 5.0, (0, 20), LIGHT).data[-1]
    assert mark.cliponaxis is False and max(mark.x) <= 20


def test_traffic_between_windows_of_a_list_fills_what_they_leave():
    found = traffic_between(hand_run().windows, 30.0)
    assert [(s.parallelism, s.begin_ms, s.end_ms) for s in found] == [
        ("fsdp", 0, 4),
        ("pp", 10, 12),
        ("fsdp", 20, 30),
    ]


def test_the_curve_climbs_from_none_to_all_and_the_share_below_the_delay_is_written_at_it():
    figure = rails_windows.cdf(windows(0.5, 2, 30, 400), 25.0, LIGHT)
    assert "50\u00a0% shorter" in figure.layout.annotations[0].text
    step = figure.data[0]
    assert (step.y[0], step.y[-1]) == (0, 100) and min(np.diff(step.y)) >= 0
    assert list(step.x[1:-1]) == [0.5, 2, 30, 400]


def test_a_window_as_long_as_the_delay_hides_it_and_an_overlap_hides_none():
    assert share_hiding(windows(1, 5, 25), 5.0) == pytest.approx(2 / 3)
    assert share_hiding(windows(-4, 10), 0.0) == 0.5
    step = rails_windows.cdf(windows(-4, 10), 1.0, LIGHT).data[0]
    assert step.x[1] == step.x[0] > 0


def test_windows_of_one_kind_and_size_are_one_class_and_the_largest_traffic_comes_first():
    groups = by_traffic((*windows(1, 3), *hand_run().windows))
    assert [(rails_windows.traffic_words(g), len(g.windows)) for g in groups] == [
        ("reduce scatter, 3,829 MiB", 1),
        ("send, 64 MiB", 3),
    ]
    assert groups[1].mean_idle_ms == pytest.approx(10 / 3)


def test_rare_traffic_shares_a_row_so_that_the_rows_stay_few():
    many = tuple(w for k in range(40) for w in windows(1, size=2.0**k * MIB))
    groups = by_traffic(many)
    assert len(groups) == MAX_CLASSES
    assert sum(len(g.windows) for g in groups) == len(many)


def test_overhead_lies_on_a_logarithmic_axis_with_no_delay_at_its_left():
    one, two = rails_delay.overhead_curves(CURVES, 25.0, 0.05, {}, LIGHT).data
    assert list(one.x[1:]) == pytest.approx([1.0, 2.0])
    assert one.x[0] < np.log10(rails_delay.MIN_MS)
    assert list(one.y) == pytest.approx([0, 1, 60])
    assert one.marker.symbol != two.marker.symbol and one.line.dash != two.line.dash


@pytest.mark.parametrize("now_ms", [0.01, 100.0, 120_000.0])
def test_the_axes_hold_the_chosen_delay_and_what_it_costs(now_ms):
    one = rails_delay.Curve("on_demand", 1000.0, (0.0, now_ms), (1000.0, 9000.0))
    layout = rails_delay.overhead_curves((one,), now_ms, 0.05, {}, LIGHT).layout
    chosen = next(s for s in layout.shapes if s.line.color == VERMILION)
    assert layout.xaxis.range[0] < chosen.x0 < layout.xaxis.range[1]
    assert chosen.x0 == pytest.approx(np.log10(now_ms)) or now_ms < rails_delay.MIN_MS
    assert layout.yaxis.range[1] > 800
    axis = rails_windows.cdf(windows(0.5, 2, 30, 400), now_ms, LIGHT).layout.xaxis
    assert axis.range[0] <= np.log10(now_ms) <= axis.range[1]


DP = parallelism_colour("dp")


def late_rank() -> RunGraph:
    """Rank 1 computes 300 us longer than rank 0; 10 MB of gradients at 80 Gbit/s then take 1 ms."""
    program: dict[int, list[Op]] = {}
    for rank in (0, 1):
        call = Call("g", "all_reduce", (0, 1), 10_000_000, 20, "d", "mesh_dp")
        program[rank] = [Kernel(100.0 + 300.0 * rank), call, Wait("g"), Kernel(50.0, "update")]
    settings = ImportSettings()
    run = read_run(sources(recordings(program, 80.0, Style(offsets_us=(0.0, 5e5)))), settings)
    return step_of(run, settings).graph


def test_a_call_is_split_where_the_last_of_its_ranks_began_and_waiting_is_drawn_pale() -> None:
    graph = late_rank()
    calls = sorted((one.rank, one.waiting_ms, one.transfer_ms) for one in call_bars(graph, (0, 1)))
    assert np.array(calls) == pytest.approx(np.array([(0, 0.3, 1.0), (1, 0.0, 1.0)]), abs=1e-6)
    figure = lanes(graph, (0, 1), {}, (0.0, graph.recorded_ms), LIGHT)
    by_colour = {trace.marker.color: trace for trace in figure.data}
    assert list(by_colour[faded(DP, 0.35)].x) == pytest.approx([0.3], abs=1e-6)
    assert list(by_colour[DP].x) == pytest.approx([1.0, 1.0], abs=1e-6)


def test_lanes_outside_the_view_or_of_other_ranks_are_not_drawn() -> None:
    graph, views = late_rank(), (((0, 1), 9e3), ((0,), 0.0), ((0, 1), 0.0))
    none, one, both = (
        sum(len(trace.x) for trace in lanes(graph, ranks, {}, (start, start + 100), LIGHT).data)
        for ranks, start in views
    )
    assert 0 == none < one < both


def test_a_click_on_a_step_of_a_recording_is_told_which() -> None:
    rows = [StepTime(7, 20.0, 15.0), StepTime(8, 24.0, 16.0)]
    told = [[one[0] for one in layer.customdata] for layer in steps(rows, 8, LIGHT).data]
    assert told == [["7", "8"]] * 3
