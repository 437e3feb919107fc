"""What a class predicted, as figures: counts add up, ends are named, and the truth is drawn only where it is given."""

from __future__ import annotations

import json

from topox_core.figures.palette import LIGHT
from topox_core.figures.predictions import numbers_as_dots, numbers_histogram, options_chosen

INTERVALS = [(float(k), float(k + 1), (3 * k) % 5) for k in range(12)]
ENDS = ("or less", "or more")


def test_a_histogram_has_a_bar_an_interval_and_names_its_tails() -> None:
    figure = numbers_histogram(INTERVALS, LIGHT, unit="ms", ends=ENDS)
    bars = figure.data[0]
    assert list(bars.y) == [count for _, _, count in INTERVALS]
    ticks = list(figure.layout.xaxis.ticktext)
    assert ticks[0] == "1<br>or less" and ticks[-1] == "11<br>or more"
    assert list(figure.layout.xaxis.tickvals) == sorted(figure.layout.xaxis.tickvals)
    assert not figure.layout.shapes and not figure.layout.annotations


def test_the_truth_is_a_line_in_view_even_where_nobody_is_near() -> None:
    for truth in (-30.0, 5.0, 90.0):
        for figure in (
            numbers_histogram(
                INTERVALS, LIGHT, unit="ms", ends=ENDS, truth=truth, truth_words="90 ms"
            ),
            numbers_as_dots([1.0, 2.0, 2.0], LIGHT, unit="ms", truth=truth, truth_words="90 ms"),
        ):
            low, high = figure.layout.xaxis.range
            assert low < truth < high
            assert figure.layout.shapes[0].x0 == truth
            assert "90 ms" in figure.layout.annotations[0].text


def test_answers_that_are_all_the_same_are_one_bar() -> None:
    figure = numbers_histogram([(9.0, 9.0, 7)], LIGHT, unit="ms", ends=ENDS)
    low, high = figure.layout.xaxis.range
    assert low < 9 < high and list(figure.data[0].y) == [7] and figure.data[0].width[0] > 0


def test_equal_numbers_stand_over_each_other() -> None:
    figure = numbers_as_dots([9.0, 10.0, 9.0], LIGHT, unit="ms")
    assert sorted(zip(figure.data[0].x, figure.data[0].y, strict=True)) == [(9, 1), (9, 2), (10, 1)]


def test_options_show_both_votes_and_mark_the_right_one_only_when_told() -> None:
    options = [("x", 6), ("y", 3), ("neither", 0)]
    before = options_chosen(options, LIGHT)
    assert "✓" not in json.dumps(before.to_plotly_json(), default=str, ensure_ascii=False)
    assert list(before.data[0].x) == [6, 3, 0]
    after = options_chosen(options, LIGHT, names=("first", "again"), again=[1, 8, 0], right=[1])
    assert [list(bars.x) for bars in after.data if bars.type == "bar"] == [[6, 3, 0], [1, 8, 0]]
    assert [name for name in after.layout.yaxis.ticktext if "✓" in name] == ["✓ y"]
    assert after.layout.showlegend and not before.layout.showlegend


def test_many_options_take_no_more_room_than_a_few() -> None:
    heights = [
        options_chosen([(f"o{k}", k) for k in range(n)], LIGHT).layout.height for n in (2, 4, 7)
    ]
    assert heights[0] < heights[1] <= heights[2] < 200
