"""Search, delays, facts, and colours that stay apart for colour-blind readers."""

import itertools

import numpy as np
import pytest

from topox_core.figures.facts import bytes_by_parallelism, tasks_by_kind
from topox_core.figures.palette import (
    CATEGORY_COLOURS,
    DARK_THEME,
    LIGHT,
    VERMILION,
    category_words,
    discrete_scale,
    theme_of,
)
from topox_core.figures.search import delays, search
from topox_core.schedule.result import TracePoint
from topox_core.schedule.source import ENGINES, LOADS, TraceSource

STORY = [
    TracePoint(0.0, None, 100.0, LOADS, LOADS),
    TracePoint(0.1, 150.0, 100.0, TraceSource("rules", "list"), LOADS),
    TracePoint(1.0, 120.0, 110.0, ENGINES["highs"], ENGINES["highs"]),
]


def test_the_search_runs_to_now_and_names_both_lines():
    figure = search(STORY, 3.0, LIGHT)
    assert [t.name for t in figure.data[:2]] == ["bound", "best found"]
    assert figure.data[1].x[-1] == 3.0
    assert [a.text.replace("\u00a0", " ") for a in figure.layout.annotations] == [
        "<b>120 ms</b>",
        "110 ms",
    ]
    low, high = figure.layout.yaxis.range
    assert low < 100 < 150 < high


def test_a_search_that_has_found_nothing_yet_still_draws():
    assert [t.name for t in search(STORY[:1], 0.5, LIGHT).data] == [
        "bound",
        "bounds without search",
    ]
    assert len(search([], 0.0, DARK_THEME).data) == 0


def test_delays_are_on_a_log_axis_with_today_marked():
    figure = delays([0, 1, 5], [100.0, None, 400.0], 90.0, 5, LIGHT)
    assert figure.layout.yaxis.type == "log"
    assert "ms" in figure.layout.xaxis.title.text
    assert list(figure.data[0].text) == ["100", "<b>400</b>"]
    assert figure.layout.shapes[0].y0 == 90.0


def test_fact_charts_start_at_zero_and_write_their_values():
    figure = tasks_by_kind({"forward": 12, "all_reduce": 1400}, LIGHT)
    assert list(figure.layout.yaxis.ticktext) == ["forward", "all reduce"]
    assert list(figure.data[0].text) == ["12", "1,400"]
    assert figure.layout.xaxis.range[0] == 0
    assert bytes_by_parallelism({"dp": 64e9}, LIGHT).data[0].marker.color[0] == CATEGORY_COLOURS[5]


def test_the_legend_names_only_traffic_that_occurs():
    assert category_words(["", "pp"])[4] == "pipeline send, transfer"
    assert category_words(["pp"])[4] == "pipeline send"
    assert category_words([])[4] == "transfer"


def test_flat_colour_scales_have_two_stops_a_colour():
    assert discrete_scale(["#000000", "#FFFFFF"]) == [
        [0.0, "#000000"],
        [0.5, "#000000"],
        [0.5, "#FFFFFF"],
        [1.0, "#FFFFFF"],
    ]


def test_an_unknown_theme_counts_as_light():
    assert theme_of("dark") is DARK_THEME
    assert theme_of("") is LIGHT


def lab_of_a_deuteranope(colour):
    """Lab (D65) of a colour as Machado et al. (2009) simulate full deuteranopia."""
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = (
        np.array(
            [
                [0.367322, 0.860646, -0.227968],
                [0.280085, 0.672501, 0.047413],
                [-0.011820, 0.042940, 0.968881],
            ]
        )
        @ linear
    )
    xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    ) @ np.clip(seen, 0, 1)
    ratio = xyz / np.array([0.9505, 1.0, 1.089])
    f = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("theme", [LIGHT, DARK_THEME])
def test_four_switches_and_dark_stay_apart_without_green(theme):
    colours = [*(theme.switch_colour(r) for r in range(4)), VERMILION, theme.page]
    for a, b in itertools.combinations(colours, 2):
        assert np.linalg.norm(lab_of_a_deuteranope(a) - lab_of_a_deuteranope(b)) > 15, (a, b)
