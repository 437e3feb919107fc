"""Figures of a recorded run: steps, the curve over the network's speed, lanes with waiting told from transfer."""

from __future__ import annotations

import pytest

from tests.topox_core.traces.made import Call, Kernel, Op, Style, Wait, recordings
from tests.topox_core.traces.reading_back import sources
from topox_core.figures.palette import DARK_THEME, LIGHT, faded, parallelism_colour
from topox_core.figures.recorded import (
    StepTime,
    call_bars,
    call_colour,
    call_words,
    lanes,
    speed_curve,
    steps,
)
from topox_core.traces.recorded_run import read_run, step_of
from topox_core.traces.run_graph import RunGraph
from topox_core.traces.settings import ImportSettings

THEMES = pytest.mark.parametrize("theme", [LIGHT, DARK_THEME], ids=lambda theme: theme.name)
DP = parallelism_colour("dp")


def late_rank() -> RunGraph:
    """Rank 1 computes 300 us longer than rank 0; 10 MB of gradients at 80 Gbit/s then take 1 ms."""
    program: dict[int, list[Op]] = {}
    for rank in (0, 1):
        call = Call("g", "all_reduce", (0, 1), 10_000_000, 20, "d", "mesh_dp")
        program[rank] = [Kernel(100.0 + 300.0 * rank), call, Wait("g"), Kernel(50.0, "update")]
    settings = ImportSettings()
    run = read_run(sources(recordings(program, 80.0, Style(offsets_us=(0.0, 5e5)))), settings)
    return step_of(run, settings).assembled.graph


def test_a_call_is_split_where_the_last_of_its_ranks_began() -> None:
    first, last = sorted(call_bars(late_rank(), (0, 1)), key=lambda one: one.rank)
    assert (first.rank, last.rank) == (0, 1)
    assert first.waiting_ms == pytest.approx(0.3, abs=1e-6)
    assert last.waiting_ms == pytest.approx(0.0, abs=1e-6)
    assert first.transfer_ms == pytest.approx(1.0, abs=1e-6)
    assert last.transfer_ms == pytest.approx(1.0, abs=1e-6)


@THEMES
def test_lanes_draw_waiting_pale_and_transfer_full(theme) -> None:
    graph = late_rank()
    figure = lanes(graph, (0, 1), {}, (0.0, graph.recorded_ms), theme)
    by_colour = {trace.marker.color: trace for trace in figure.data}
    pale, full = by_colour[faded(DP, 0.35)], by_colour[DP]
    assert list(pale.x) == pytest.approx([0.3], abs=1e-6)
    assert list(full.x) == pytest.approx([1.0, 1.0], abs=1e-6)
    assert "ms" in figure.layout.xaxis.title.text
    assert len(figure.to_json()) < 20_000


def test_a_reader_s_label_recolours_a_group_and_no_label_has_its_own_colour() -> None:
    graph = late_rank()
    (call,) = graph.calls
    figure = lanes(graph, (0, 1), {call.group: "ep"}, (0.0, graph.recorded_ms), LIGHT)
    assert parallelism_colour("ep") in {trace.marker.color for trace in figure.data}
    call.parallelism = None
    assert call_words(call, {}) == "all-reduce, no label"
    assert call_colour("") not in {parallelism_colour(one) for one in ("", "dp", "ep", "tp")}


def test_lanes_outside_the_view_or_of_other_ranks_are_not_drawn() -> None:
    graph = late_rank()
    assert len(lanes(graph, (0, 1), {}, (9e3, 9.1e3), LIGHT).data) == 0
    one = lanes(graph, (0,), {}, (0.0, graph.recorded_ms), LIGHT)
    both = lanes(graph, (0, 1), {}, (0.0, graph.recorded_ms), LIGHT)
    assert sum(len(trace.x) for trace in one.data) < sum(len(trace.x) for trace in both.data)


@THEMES
def test_steps_stack_to_the_recorded_time_and_outline_the_chosen_one(theme) -> None:
    figure = steps([StepTime(7, 20.0, 15.0), StepTime(8, 24.0, 16.0)], 8, theme)
    below, above, outline = figure.data
    sums = [a + b for a, b in zip(below.y, above.y, strict=True)]
    assert sums == [20.0, 24.0] and list(above.base) == [15.0, 16.0]
    assert list(outline.marker.line.width) == [0, 2]
    assert "step" in figure.layout.xaxis.title.text and figure.layout.yaxis.title.text == "ms"


def test_a_file_without_steps_is_one_bar() -> None:
    figure = steps([StepTime(-1, 20.0, 15.0)], -1, LIGHT)
    assert list(figure.layout.xaxis.ticktext) == ["all"]


@THEMES
def test_the_curve_holds_the_current_point_and_the_recorded_time(theme) -> None:
    points = [(10.0, 200.0), (100.0, 36.0), (1600.0, 19.0)]
    figure = speed_curve(points, (250.0, 25.0), 36.2, 18.6, theme)
    assert list(figure.data[0].x) == [10.0, 100.0, 250.0, 1600.0]
    assert (figure.data[1].x[0], figure.data[1].y[0]) == (250.0, 25.0)
    assert figure.layout.shapes[0].y0 == 36.2
    assert "Gbit/s" in figure.layout.xaxis.title.text and "ms" in figure.layout.yaxis.title.text
    low, high = figure.layout.yaxis.range
    assert low < 18.6 and high > 200.0
