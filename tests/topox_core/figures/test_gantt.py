"""The Gantt chart and what shares its axis: bars inside the window, outlines on the critical path, small payloads."""

from dataclasses import replace

import numpy as np
import pytest

from topox_core.figures.gantt import MAX_BARS, gantt, in_view
from topox_core.figures.hand_schedules import hand_gantt
from topox_core.figures.lanes import (
    bars_of,
    first_window,
    lanes_of,
    overview,
    overview_image,
    paint,
    port_use,
)
from topox_core.figures.palette import (
    DARK,
    EXPERT,
    FORWARD,
    GRADIENT,
    IDLE,
    LIGHT,
)
from topox_core.labs.generators.catalogue import generator
from topox_core.model.critical_path import critical_path


def drawn(execution, window=None):
    lanes = lanes_of(execution)
    window = window or (0.0, execution.makespan_ms)
    return gantt(
        execution, bars_of(execution, lanes), lanes, window, critical_path(execution), LIGHT
    )


def trace(figure, name):
    return next(t for t in figure.data if t.name == name)


def test_bars_carry_their_task_and_name_their_destination(pipeline):
    figure = drawn(pipeline)
    gradients = trace(figure, "gradient all-reduce (dp)")
    assert [row[0] for row in gradients.customdata] == ["g2", "g1"]
    assert set(trace(figure, "pipeline send").text) == {"1", "2"}


def test_bars_and_axis_are_clipped_to_the_window(pipeline):
    window = (5.0, 29.0)
    figure = drawn(pipeline, window)
    for bar in (one for one in figure.data if one.type == "bar"):
        start = np.asarray(bar.base, float)
        assert start.min() >= window[0] and (start + bar.x).max() <= window[1]


def test_the_outline_covers_the_chain_with_its_dark_stretch(pipeline):
    outline = trace(drawn(pipeline), "critical path")
    spans = {*zip(outline.base, outline.x, strict=True)}
    assert {(31.0, 2.0), (33.0, 3.0)} <= spans  # the circuit turns, then sends
    assert (4.0, 2.0) not in spans  # a0 is not on the chain


def test_at_most_five_thousand_bars_are_drawn_in_a_window_that_is_readable_at_first(crowd):
    lanes = lanes_of(crowd)
    bars, path = bars_of(crowd, lanes), critical_path(crowd)
    figure = gantt(crowd, bars, lanes, (0.0, crowd.makespan_ms), None, LIGHT)
    assert sum(len(t.x) for t in figure.data) == MAX_BARS
    window = first_window(bars, lanes, crowd.makespan_ms, 1.0)
    assert window[0] == 0
    assert 300 < len(in_view(bars, lanes, window)) < 1500
    assert len(gantt(crowd, bars, lanes, window, path, LIGHT).to_json()) < 250_000
    assert len(port_use(crowd, window, LIGHT).to_json()) < 60_000


def test_the_overview_is_a_byte_image_of_the_whole_iteration(pipeline):
    lanes = lanes_of(pipeline)
    image, each = overview_image(bars_of(pipeline, lanes), lanes, pipeline.makespan_ms, columns=37)
    device_of_server_0, switch_1_of_server_1 = image[0], image[each + 2]
    assert device_of_server_0[:36].tolist() == [FORWARD] * 8 + [IDLE] * 28
    assert switch_1_of_server_1[31:36].tolist() == [DARK] * 2 + [GRADIENT] * 3


def test_many_servers_share_rows_of_a_small_overview(crowd):
    lanes, end = replace(lanes_of(crowd), servers=5000), crowd.makespan_ms
    image, each = overview_image(bars_of(crowd, lanes), lanes, end)
    assert len(image) <= 640 and (image == EXPERT).any()
    assert len(overview(image, each, lanes, end, (0.0, end / 9), LIGHT).to_json()) < 150_000


def test_painting_keeps_within_the_image():
    image = np.zeros((2, 10), np.uint8)
    paint(image, np.array([0, 1]), np.array([-5, 9]), np.array([3, 99]), np.array([1, 2], np.uint8))
    assert image.tolist() == [[1, 1, 1] + [0] * 7, [0] * 9 + [2]]


@pytest.mark.parametrize("after_ms", [0, generator("board").make(0).x])
def test_bars_on_a_lane_of_a_hand_made_schedule_lie_apart_only_where_they_meet(after_ms) -> None:
    """Two transfers at one port at once do not hide each other; two that follow are as high as their lane."""
    one = generator("board").make(0)
    starts_ms = {"a": 0, "x": 3, "y": 3 + after_ms}
    bars = [
        (data[0], y, width)
        for trace in hand_gantt(one.graph(), one.cluster(), starts_ms, LIGHT).data
        for data, y, width in zip(trace.customdata, trace.y, trace.width, strict=True)
    ]
    (x, x_wide), (y, y_wide) = (
        min((place, width) for name, place, width in bars if name == which) for which in "xy"
    )
    assert x_wide == pytest.approx(y_wide)
    assert (x + x_wide / 2 <= y - y_wide / 2 + 1e-9) == (after_ms == 0) == (x != y)
