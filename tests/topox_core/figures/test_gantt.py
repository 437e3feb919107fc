"""The Gantt chart and what shares its axis: one trace a kind, bars inside the window, small payloads."""

import numpy as np

from topox_core.figures.gantt import MOST_BARS, gantt, in_view, name_kinds_elsewhere, window_words
from topox_core.figures.lanes import bars_of, first_window, lanes_of
from topox_core.figures.overview import overview, overview_image, paint
from topox_core.figures.palette import (
    CATEGORY_COLOURS,
    DARK,
    DARK_THEME,
    EXPERT,
    FORWARD,
    GRADIENT,
    IDLE,
    LIGHT,
)
from topox_core.figures.ports import port_use, step_edges
from topox_core.model.critical_path import critical_path


def drawn(execution, window=None, theme=LIGHT):
    lanes = lanes_of(execution)
    bars = bars_of(execution, lanes)
    return gantt(
        execution,
        bars,
        lanes,
        window or (0.0, execution.makespan_ms),
        critical_path(execution),
        theme,
    )


def trace(figure, name):
    return next(t for t in figure.data if t.name == name)


def test_one_trace_a_kind_with_one_colour_each(pipeline):
    figure = drawn(pipeline)
    assert [t.name for t in figure.data] == [
        "forward",
        "backward",
        "update",
        "pipeline send",
        "gradient all-reduce (dp)",
        "dark (reconfiguring)",
        "critical path",
        "critical path, joins",
    ]
    assert trace(figure, "forward").marker.color == CATEGORY_COLOURS[FORWARD]
    assert trace(figure, "gradient all-reduce (dp)").marker.color == CATEGORY_COLOURS[GRADIENT]
    assert trace(figure, "dark (reconfiguring)").marker.pattern.shape == "/"


def test_the_legend_names_the_colours_that_only_the_overview_shows(pipeline):
    figure = drawn(pipeline, (0.0, 1.0))
    assert "gradient all-reduce (dp)" not in {one.name for one in figure.data}
    name_kinds_elsewhere(figure, pipeline, bars_of(pipeline, lanes_of(pipeline)))
    assert trace(figure, "gradient all-reduce (dp)").marker.color == CATEGORY_COLOURS[GRADIENT]
    names = [one.name for one in figure.data]
    assert len(names) == len(set(names))


def test_bars_are_clipped_to_the_window(pipeline):
    window = (5.0, 29.0)
    for bar in drawn(pipeline, window).data:
        if bar.type == "bar":
            start = np.asarray(bar.base, float)
            assert (start >= window[0]).all()
            assert (start + np.asarray(bar.x, float) <= window[1]).all()


def test_the_time_axis_tells_its_unit_and_starts_where_the_window_does(pipeline):
    figure = drawn(pipeline, (5.0, 29.0))
    assert figure.layout.xaxis.ticksuffix == " ms"
    assert list(figure.layout.xaxis.range) == [5.0, 29.0]
    assert figure.layout.margin.l == 58
    assert figure.layout.xaxis.automargin is False


def test_a_click_carries_the_task(pipeline):
    assert [row[0] for row in trace(drawn(pipeline), "gradient all-reduce (dp)").customdata] == [
        "g2",
        "g1",
    ]


def test_a_port_bar_names_its_destination_and_a_device_bar_its_kind(pipeline):
    figure = drawn(pipeline)
    assert set(trace(figure, "pipeline send").text) == {"1", "2"}
    assert set(trace(figure, "forward").text) == {"F"}


def test_the_outline_covers_the_chain_with_its_dark_stretch(pipeline):
    outline = trace(drawn(pipeline), "critical path")
    spans = set(zip(np.asarray(outline.base).tolist(), np.asarray(outline.x).tolist(), strict=True))
    assert (31.0, 2.0) in spans  # dark
    assert (33.0, 3.0) in spans
    assert (4.0, 2.0) not in spans  # a0 is not on the chain
    assert (
        trace(drawn(pipeline, theme=DARK_THEME), "critical path").marker.line.color
        == DARK_THEME.ink
    )


def test_servers_out_of_view_are_not_drawn(pipeline):
    lanes = lanes_of(pipeline).showing(2, 2)
    bars = bars_of(pipeline, lanes)
    assert set(bars.server[in_view(bars, lanes, (0.0, 37.0))].tolist()) == {2}


def test_at_most_five_thousand_bars_and_the_reader_is_told(crowd):
    lanes = lanes_of(crowd).showing(0, 15)
    bars = bars_of(crowd, lanes)
    figure = gantt(crowd, bars, lanes, (0.0, crowd.makespan_ms), None, LIGHT)
    assert sum(len(t.x) for t in figure.data) == MOST_BARS
    assert "5,000 of 20,000" in window_words((0.0, crowd.makespan_ms), len(bars))
    assert window_words((0.0, 1.0), MOST_BARS) == ""


def test_the_first_window_of_a_large_graph_is_readable(crowd):
    lanes = lanes_of(crowd)
    bars = bars_of(crowd, lanes)
    low, high = first_window(bars, lanes, crowd.makespan_ms, 1.0)
    assert low == 0
    assert 300 < len(in_view(bars, lanes, (low, high))) < 1500


def test_payloads_stay_small(crowd):
    lanes = lanes_of(crowd)
    bars = bars_of(crowd, lanes)
    window = first_window(bars, lanes, crowd.makespan_ms, 1.0)
    image, each = overview_image(bars, lanes, crowd.makespan_ms)
    assert len(gantt(crowd, bars, lanes, window, critical_path(crowd), LIGHT).to_json()) < 250_000
    assert len(overview(image, each, lanes, crowd.makespan_ms, window, LIGHT).to_json()) < 150_000
    assert len(port_use(crowd, window, LIGHT).to_json()) < 60_000


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


def test_many_servers_share_rows(crowd):
    from dataclasses import replace

    lanes = replace(lanes_of(crowd), servers=5000)
    image, each = overview_image(bars_of(crowd, lanes), lanes, crowd.makespan_ms)
    assert len(image) <= 640
    assert each == 0
    assert (image == EXPERT).any()


def test_painting_keeps_within_the_image():
    image = np.zeros((2, 10), np.uint8)
    paint(image, np.array([0, 1]), np.array([-5, 9]), np.array([3, 99]), np.array([1, 2], np.uint8))
    assert image.tolist() == [[1, 1, 1] + [0] * 7, [0] * 9 + [2]]


def test_port_use_stacks_what_is_carried_and_what_is_dark(pipeline):
    figure = port_use(pipeline, (0.0, 37.0), LIGHT)
    assert [t.name for t in figure.data] == ["pipeline send", "gradient all-reduce (dp)", "dark"]
    assert float(np.asarray(figure.data[2].y).max()) == 1.0
    assert figure.layout.yaxis.title.text == "out-ports"


def test_steps_follow_slots_while_they_fit():
    assert step_edges((0.0, 5.0), 1.0).tolist() == [0, 1, 2, 3, 4, 5]
    assert step_edges((0.5, 2.5), 1.0).tolist() == [0.5, 1, 2, 2.5]
    assert len(step_edges((0.0, 5000.0), 1.0)) == 421
