"""Figures of a recorded run: steps, the curve over the network's speed, lanes with waiting told from transfer."""

import numpy as np
import pytest

from tests.topox_core.traces.made import Call, Kernel, Op, Style, Wait, recordings
from tests.topox_core.traces.reading_back import sources
from topox_core.figures.palette import LIGHT, faded, parallelism_colour
from topox_core.figures.recorded import lanes
from topox_core.traces.recorded_run import read_run, step_of
from topox_core.traces.run_graph import RunGraph, call_bars
from topox_core.traces.source import ImportSettings

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
