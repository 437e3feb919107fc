"""Figures of studies and of runs side by side draw what they were given: every value, every gap, every run."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import examples
from topox_core.figures.lanes import Lanes
from topox_core.figures.palette import DARK_THEME, LIGHT, readable_on
from topox_core.figures.parallel_axes import (
    MOST_LINES,
    Upright,
    drawn_rows,
    inside,
    parallel_axes,
)
from topox_core.figures.pareto_front import Cloud, Landmark, drawn_points, pareto_front
from topox_core.figures.runs_compared import RunPicture, on_one_clock, windows_side_by_side
from topox_core.figures.study_axes import MeasureWords, StudyAxis, measure_axis
from topox_core.figures.study_heat_map import HeatMap, heat_legend, heat_map
from topox_core.figures.study_lines import seed_lines
from topox_core.studies.pareto import front_of
from topox_core.studies.seeds import seed_lines_of
from topox_core.text.numbers import delay_label, short, time

BOTH = pytest.mark.parametrize("theme", [LIGHT, DARK_THEME], ids=lambda theme: theme.name)
MS = MeasureWords("iteration time", time)
RATIO = MeasureWords("against a fat-tree", lambda v: f"{short(v)}x")
DELAYS = (0.0, 1.0, 10.0)
DELAY = StudyAxis("delay", DELAYS, tuple(map(delay_label, DELAYS)))
SPEED = StudyAxis("port speed", (100, 400), ("100G", "400G"))


def ratios(*rows, **more) -> HeatMap:
    return HeatMap(SPEED, DELAY, RATIO, tuple(rows), ratio=True, **more)


def sent(figure) -> dict:
    return json.loads(figure.to_json())


@BOTH
def test_every_value_is_written_in_its_cell_and_a_dot_where_it_is_still_to_come(theme) -> None:
    picture = ratios((0.5, 0.61), (1.0, 1.18), (5.9, None))
    figure = heat_map(picture, theme)
    written = {(mark.x, mark.y): mark.text for mark in figure.layout.annotations}
    assert written == {
        (0, 0): "0.5x",
        (1, 0): "0.61x",
        (0, 1): "1x",
        (1, 1): "1.18x",
        (0, 2): "5.9x",
        (1, 2): "·",
    }
    assert [figure.layout.yaxis.ticktext[k] for k in (0, 2)] == ["0 ms", "10 ms"]


@BOTH
def test_what_cannot_run_has_a_cross_and_is_told_apart_from_what_is_still_to_come(theme) -> None:
    picture = ratios((0.5, None), (1.0, None), (2.0, 3.0), failed={(0, 1)})
    marks = {(m.x, m.y): m.text for m in heat_map(picture, theme).layout.annotations}
    assert (marks[1, 0], marks[1, 1]) == ("✗", "·")
    words = [words for _, words in heat_legend(picture, theme, "faster", "slower")]
    assert words == [
        "faster",
        "equal within 3\u00a0%",
        "slower",
        "dot: still to come",
        "✗ cannot run",
    ]


def colours_of(picture: HeatMap, theme) -> list[list[str]]:
    figure = heat_map(picture, theme)
    scale = [colour for _, colour in figure.data[0].colorscale][::2]
    return [[scale[int(value)] for value in row] for row in figure.data[0].z]


@BOTH
def test_a_ratio_is_pale_at_one_and_deeper_the_further_it_is_from_it_on_either_side(theme) -> None:
    picture = ratios((0.3, 0.85), (0.98, 1.02), (1.3, 9.0))
    (deep, less), (pale, same), (worse, worst) = colours_of(picture, theme)
    assert pale == same
    assert len({deep, less, pale, worse, worst}) == 5
    turned = HeatMap(
        SPEED,
        DELAY,
        MeasureWords("gain", str, more_is_better=True),
        ((1 / 0.3, 1 / 0.85), (1.0, 1.0), (1 / 1.3, 1 / 9)),
        ratio=True,
    )
    assert colours_of(turned, theme)[0] == [deep, less]
    assert colours_of(turned, theme)[2] == [worse, worst]


@BOTH
def test_without_a_ratio_the_middle_value_is_pale_and_the_ends_are_deepest(theme) -> None:
    picture = HeatMap(SPEED, DELAY, MS, ((10.0, 50.0), (80.0, 110.0), (140.0, 210.0)))
    rows = colours_of(picture, theme)
    pale = dict(reversed(pair) for pair in heat_legend(picture, theme, "less", "more"))
    assert pale["about 95\u00a0ms"] not in (rows[0][0], rows[2][1])
    assert rows[0][0] != rows[2][1]


def test_values_that_are_equal_are_all_pale() -> None:
    picture = HeatMap(SPEED, DELAY, MS, ((7.0, 7.0), (7.0, 7.0), (7.0, None)))
    (first, second), (third, fourth), (fifth, _none) = colours_of(picture, LIGHT)
    assert {first, second, third, fourth, fifth} == {first}
    assert heat_legend(picture, LIGHT, "less", "more")[0][1] == "about 7\u00a0ms"


def test_a_map_of_which_nothing_is_there_yet_still_draws() -> None:
    picture = ratios((None, None), (None, None), (None, None))
    assert {m.text for m in heat_map(picture, LIGHT).layout.annotations} == {"·"}
    assert heat_legend(picture, LIGHT, "a", "b") == [("", "dot: still to come")]


@BOTH
def test_numbers_can_be_read_on_every_colour_of_the_map(theme) -> None:
    from topox_core.figures.study_heat_map import _colours

    for colour in _colours(theme):
        text = readable_on(colour)
        light, dark = sorted((_luminance(colour), _luminance(text)))
        assert (dark + 0.05) / (light + 0.05) >= 4.5, colour


def _luminance(colour: str) -> float:
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(w * v for w, v in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_a_click_on_a_cell_is_given_its_runs() -> None:
    picture = ratios(
        (1.0, 2.0), (1.0, 2.0), (1.0, None), runs={(0, 1): [7, 9]}, notes={(0, 1): "B"}
    )
    clicks = heat_map(picture, LIGHT).data[1]
    marks = {(x, y): c for x, y, c in zip(clicks.x, clicks.y, clicks.customdata, strict=True)}
    assert list(marks[1, 0]) == [[7, 9], "400G", "0 ms", "against a fat-tree 2x", "B"]
    assert marks[1, 2][0] is None and marks[1, 2][3] == "still to come"


def test_two_thousand_cells_stay_small_and_write_no_numbers() -> None:
    across = StudyAxis("x", tuple(range(50)), tuple(map(str, range(50))))
    up = StudyAxis("y", tuple(range(40)), tuple(map(str, range(40))))
    values = np.random.Generator(np.random.PCG64(1)).random((40, 50)).tolist()
    figure = heat_map(HeatMap(across, up, MS, tuple(map(tuple, values))), LIGHT)
    assert not figure.layout.annotations
    assert len(figure.layout.xaxis.ticktext) <= 14


ROWS = [
    (name, at, base + seed * spread, (name, at, seed))
    for name, base, spread in (("Planned circuits", 100.0, 5.0), ("Fixed circuits", 150.0, 0.0))
    for at in range(3)
    for seed in range(4)
]


@BOTH
def test_a_line_is_the_mean_of_its_seeds_and_its_band_reaches_from_the_least_to_the_most(
    theme,
) -> None:
    lines = seed_lines_of(ROWS, {"Planned circuits": "scheduled", "Fixed circuits": "static"})
    figure = seed_lines(lines, DELAY, MS, theme)
    band, planned, fixed = figure.data  # the fixed circuits' seeds agree: no band
    assert list(planned.y) == [107.5] * 3 and list(fixed.y) == [150.0] * 3
    assert set(band.y) == {100.0, 115.0} and band.fill == "toself"
    assert planned.line.color == theme.fabric_colour("scheduled")
    assert planned.line.dash != fixed.line.dash and planned.marker.symbol != fixed.marker.symbol
    assert [list(run) for run in planned.customdata[1][0]] == [
        ["Planned circuits", 1, k] for k in range(4)
    ]
    assert "mean of 4 seeds" in planned.customdata[1][3]


def test_eight_lines_without_a_fabric_differ_in_dash_and_mark() -> None:
    lines = seed_lines_of([(f"line {k}", 0, 1.0 + k, k) for k in range(8)])
    drawn = seed_lines(lines, DELAY, MS, LIGHT).data
    assert len({(one.line.dash, one.marker.symbol) for one in drawn}) == 8


def test_many_values_stand_at_their_place_on_the_axis_and_few_at_equal_steps() -> None:
    few = StudyAxis("delay", (1.0, 10.0, 1000.0), ("1", "10", "1000"))
    assert few.places() == [0, 1, 2]
    many = tuple(float(10**k) for k in range(14))
    assert StudyAxis("delay", many, tuple(map(str, many))).places() == pytest.approx(
        list(range(14))
    )
    evenly = tuple(3.0 + k / 10 for k in range(15))
    assert StudyAxis("x", evenly, tuple(map(str, evenly))).places() == list(evenly)


@examples(60)
@given(st.lists(st.floats(-1e9, 1e9), max_size=6))
def test_the_axis_of_a_measure_holds_every_value_and_its_ticks_lie_on_it(values) -> None:
    drawn = measure_axis(LIGHT, MS, values)
    low, high = drawn["range"]
    log = drawn.get("type") == "log"
    for value in values:
        assert low <= (math.log10(value) if log else value) <= high
    assert all(low <= (math.log10(t) if log else t) <= high for t in drawn["tickvals"])


RANDOM = np.random.Generator(np.random.PCG64(3))
X, Y = RANDOM.random(300) * 9e5 + 1e5, RANDOM.random(300) * 500 + 100


def cloud(n: int = 300) -> Cloud:
    on = front_of([X[:n].tolist(), Y[:n].tolist()]).on
    steps = sorted(np.flatnonzero(on).tolist(), key=lambda k: X[k])
    return Cloud(
        MeasureWords("price", lambda v: f"${v:,.0f}"),
        MS,
        tuple(X[:n].tolist()),
        tuple(Y[:n].tolist()),
        tuple(on.tolist()),
        tuple(steps),
        tuple(f"run {k}" for k in range(n)),
        tuple(range(n)),
    )


@BOTH
def test_the_front_is_a_step_line_with_names_and_the_rest_is_faint(theme) -> None:
    picture = cloud()
    figure = pareto_front(picture, theme, best=picture.steps[1])
    steps, beaten, front = figure.data
    assert steps.line.shape == "hv" and list(steps.x) == sorted(steps.x)
    assert list(steps.y) == sorted(steps.y, reverse=True)
    assert len(beaten.x) + len(front.x) == 300
    assert beaten.marker.opacity < 1 and front.marker.opacity == 1
    names = [mark.text for mark in figure.layout.annotations]
    assert f"<b>run {picture.steps[1]}</b>" in names
    assert {one[0] for one in front.customdata} == set(picture.steps)
    assert all(trace.type == "scatter" for trace in figure.data)


def test_of_many_points_those_on_the_front_are_all_drawn() -> None:
    picture = cloud()
    shown = drawn_points(picture, most=40)
    assert len(shown) == 40 and set(picture.steps) <= set(shown.tolist())
    figure = pareto_front(picture, LIGHT, most=40)
    assert sum(len(trace.x) for trace in figure.data[1:]) == 40


def test_what_is_to_be_compared_with_stands_in_the_picture() -> None:
    figure = pareto_front(cloud(), LIGHT, landmarks=[Landmark("fat-tree, same cost", 5e6, 90.0)])
    assert any(mark.text == "fat-tree, same cost" for mark in figure.layout.annotations)
    assert figure.layout.xaxis.range[1] > math.log10(5e6)


def test_one_run_alone_is_its_own_front() -> None:
    figure = pareto_front(cloud(1), LIGHT)
    assert [len(trace.x) for trace in figure.data] == [0, 1]


UPRIGHTS = (
    Upright("delay, ms", (1.0, 10.0, 100.0, None)),
    Upright("fabric", ("a", "b", "a", "b"), {"a": "Fixed", "b": "Planned"}),
    Upright("iteration, ms", (5.0, 7.0, 9.0, 11.0)),
)


def test_runs_inside_the_ranges_are_those_whose_values_lie_there() -> None:
    assert inside(UPRIGHTS, {}).tolist() == [True] * 4
    assert inside(UPRIGHTS, {2: (6.0, 9.0)}).tolist() == [False, True, True, False]
    assert inside(UPRIGHTS, {1: (0, 0)}).tolist() == [True, False, True, False]
    # A run without the value lies in no range of it.
    assert inside(UPRIGHTS, {0: (0.0, 1000.0)}).tolist() == [True, True, True, False]
    assert inside(UPRIGHTS, {0: (5.0, 200.0), 1: (0, 0)}).tolist() == [False, False, True, False]


@BOTH
def test_every_run_with_all_values_is_a_line(theme) -> None:
    (drawn,) = parallel_axes(UPRIGHTS, {2: (6.0, 9.0)}, theme).data
    assert [len(one["values"]) for one in drawn.dimensions] == [3, 3, 3]
    assert list(drawn.dimensions[0]["values"]) == [0, 1, 2]  # logarithmic
    assert list(drawn.dimensions[1]["ticktext"]) == ["Fixed", "Planned"]
    assert tuple(drawn.dimensions[2]["constraintrange"]) == (6.0, 9.0)


@pytest.mark.long
def test_of_two_thousand_runs_a_thousand_are_drawn_evenly() -> None:
    many = (Upright("x", tuple(map(float, range(1, 2_001)))),)
    rows = drawn_rows(many)
    assert len(rows) == MOST_LINES and rows[0] == 0 and rows[-1] == 1_999
    assert np.diff(rows).max() <= 3
    assert len(json.dumps(sent(parallel_axes(many * 8, {}, LIGHT)))) < 140_000


LANES = Lanes(8, 1, ((0, 0),), 0, 7)


@BOTH
def test_two_runs_stand_on_one_clock_and_the_shorter_end_goes_through_both(theme) -> None:
    figures = [
        on_one_clock(
            RunPicture(letter, ms, np.zeros((24, 90), np.uint8), LANES), 244.0, 176.0, theme
        )
        for letter, ms in (("A", 176.0), ("B", 244.0))
    ]
    one, other = (figure.layout for figure in figures)
    assert one.xaxis.range == other.xaxis.range == (0, 244)
    assert (one.margin.l, one.margin.r) == (other.margin.l, other.margin.r)
    assert [figure.layout.shapes[0].x0 for figure in figures] == [176.0, 176.0]
    assert other.annotations[0].text == "<b>B</b>&nbsp; 244\u00a0ms"
    # An image ends where its run ends, not where the clock does.
    assert figures[0].data[0].dx * 90 == pytest.approx(176.0)


@BOTH
def test_two_distributions_of_windows_share_an_axis_and_differ_in_dash(theme) -> None:
    figure = windows_side_by_side(
        [("A", np.array([1.0, 2.0, 3.0])), ("B", np.array([0.1, 30.0])), ("C", np.zeros(0))], theme
    )
    a, b = figure.data
    assert a.y[-1] == b.y[-1] == 100 and a.line.dash != b.line.dash
    assert list(a.y)[:2] == [0, pytest.approx(100 / 3)]
    assert "half longer than 2\u00a0ms" in figure.layout.annotations[0].text
    low, high = figure.layout.xaxis.range
    assert low <= math.log10(0.1) and high >= math.log10(30)


def test_a_tornado_of_anything_writes_values_in_its_own_words() -> None:
    from topox_core.economics.comparison import Swing
    from topox_core.figures.tornado import Swinging, tornado

    of = Swinging("iteration", 1.0, " ms", time, time)
    swings = (Swing("delay", ("0 ms", 90.0), ("5 ms", 130.0)), Swing("ports", None, ("4", 80.0)))
    figure = tornado(swings, 100.0, LIGHT, of)
    texts = [mark.text.replace("\u00a0", " ") for mark in figure.layout.annotations]
    assert any("<b>130 ms</b>" in text for text in texts)
    assert [trace.name for trace in figure.data] == ["smaller iteration", "larger iteration"]
    ends = sorted(base + x for t in figure.data for base, x in ((t.base, x) for x in t.x))
    assert ends == [80.0, 90.0, 130.0]
