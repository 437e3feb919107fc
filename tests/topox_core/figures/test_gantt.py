"""The Gantt chart and what shares its axis: bars inside the window, outlines on the critical path, small payloads."""

from dataclasses import replace

import numpy as np
import pytest

from topox_core.figures.gantt import MOST_BARS, gantt, in_view, window_words
from topox_core.figures.lanes import bars_of, first_window, lanes_of
from topox_core.figures.overview import overview, overview_image, paint
from topox_core.figures.palette import (
    CATEGORY_COLOURS,
    DARK,
    EXPERT,
    FORWARD,
    GRADIENT,
    IDLE,
    LIGHT,
)
from topox_core.figures.ports import port_use, step_edges
from topox_core.model.critical_path import critical_path


def drawn(execution, window=None):
    lanes = lanes_of(execution)
    window = window or (0.0, execution.makespan_ms)
    return gantt(
        execution, bars_of(execution, lanes), lanes, window, critical_path(execution), LIGHT
    )


def trace(figure, name):
    return next(t for t in figure.data if t.name == name)


def test_bars_have_their_kind_s_colour_carry_their_task_and_name_their_destination(pipeline):
    figure = drawn(pipeline)
    gradients = trace(figure, "gradient all-reduce (dp)")
    assert gradients.marker.color == CATEGORY_COLOURS[GRADIENT]
    assert [row[0] for row in gradients.customdata] == ["g2", "g1"]
    assert set(trace(figure, "pipeline send").text) == {"1", "2"}
    assert set(trace(figure, "forward").text) == {"F"}
    assert trace(figure, "dark (reconfiguring)").marker.pattern.shape == "/"


def test_bars_and_axis_are_clipped_to_the_window(pipeline):
    window = (5.0, 29.0)
    figure = drawn(pipeline, window)
    assert tuple(figure.layout.xaxis.range) == window
    for bar in (one for one in figure.data if one.type == "bar"):
        start = np.asarray(bar.base, float)
        assert (start >= window[0]).all()
        assert (start + np.asarray(bar.x, float) <= window[1]).all()


def test_the_outline_covers_the_chain_with_its_dark_stretch(pipeline):
    outline = trace(drawn(pipeline), "critical path")
    spans = {*zip(outline.base, outline.x, strict=True)}
    assert {(31.0, 2.0), (33.0, 3.0)} <= spans  # the circuit turns, then sends
    assert (4.0, 2.0) not in spans  # a0 is not on the chain


def test_at_most_five_thousand_bars_are_drawn_in_a_window_that_is_readable_at_first(crowd):
    lanes, whole = lanes_of(crowd).showing(0, 15), (0.0, crowd.makespan_ms)
    bars = bars_of(crowd, lanes)
    figure = gantt(crowd, bars, lanes, whole, None, LIGHT)
    assert sum(len(t.x) for t in figure.data) == MOST_BARS
    assert "5,000 of 20,000" in window_words(whole, len(bars))
    assert window_words((0.0, 1.0), MOST_BARS) == ""
    lanes = lanes_of(crowd)
    bars = bars_of(crowd, lanes)
    low, high = first_window(bars, lanes, crowd.makespan_ms, 1.0)
    assert low == 0
    assert 300 < len(in_view(bars, lanes, (low, high))) < 1500
    path = critical_path(crowd)
    assert len(gantt(crowd, bars, lanes, (low, high), path, LIGHT).to_json()) < 250_000
    assert len(port_use(crowd, (low, high), LIGHT).to_json()) < 60_000


def test_the_overview_is_a_byte_image_of_the_whole_iteration(pipeline):
    lanes = lanes_of(pipeline)
    image, each = overview_image(bars_of(pipeline, lanes), lanes, pipeline.makespan_ms, columns=37)
    assert image.dtype == np.uint8
    assert image.shape == (3 * each, 37)
    device_of_server_0 = image[0]
    assert (device_of_server_0[:8] == FORWARD).all()
    assert (device_of_server_0[8:36] == IDLE).all()
    switch_1_of_server_1 = image[each + 2]
    assert (switch_1_of_server_1[31:33] == DARK).all()
    assert (switch_1_of_server_1[33:36] == GRADIENT).all()


def test_many_servers_share_rows_of_a_small_overview(crowd):
    lanes, end = replace(lanes_of(crowd), servers=5000), crowd.makespan_ms
    image, each = overview_image(bars_of(crowd, lanes), lanes, end)
    assert len(image) <= 640
    assert each == 0
    assert (image == EXPERT).any()
    assert len(overview(image, each, lanes, end, (0.0, end / 9), LIGHT).to_json()) < 150_000


def test_painting_keeps_within_the_image():
    image = np.zeros((2, 10), np.uint8)
    paint(image, np.array([0, 1]), np.array([-5, 9]), np.array([3, 99]), np.array([1, 2], np.uint8))
    assert image.tolist() == [[1, 1, 1] + [0] * 7, [0] * 9 + [2]]


@pytest.mark.parametrize(
    ("window", "edges"), [((0.0, 5.0), [0, 1, 2, 3, 4, 5]), ((0.5, 2.5), [0.5, 1, 2, 2.5])]
)
def test_steps_follow_slots_while_they_fit(window, edges):
    assert step_edges(window, 1.0).tolist() == edges
    assert len(step_edges((0.0, 5000.0), 1.0)) == 421
