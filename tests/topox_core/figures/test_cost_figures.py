"""Cost figures: every part is drawn once, totals stand on top, bars and lines say what the bills say."""

from __future__ import annotations

import json

import numpy as np
import pytest

from topox_core.economics.comparison import Question, Running, Swing, curves, tornado, year_of
from topox_core.economics.networks import NETWORKS, Counting, bills
from topox_core.economics.price_sets import PRICE_SETS
from topox_core.figures import cost, cost_curves
from topox_core.figures import tornado as tornado_figure
from topox_core.figures.cost import energy, money, power
from topox_core.figures.palette import DARK_THEME, LIGHT

V1 = PRICE_SETS["opus-v1"]
QUESTION = Question(1024, V1, Counting())
PRICED = bills(1024, V1)


@pytest.mark.parametrize("theme", [LIGHT, DARK_THEME], ids=lambda theme: theme.name)
@pytest.mark.parametrize("measure", ["cost", "power"])
def test_stacked_parts_add_up_to_the_total_on_top(theme, measure) -> None:
    figure = cost.stacked(PRICED, measure, theme, infeasible=("photonic_rails",))
    heights = np.zeros(len(NETWORKS))
    for trace in figure.data:
        np.add.at(heights, np.array(trace.x), np.array(trace.y))
    unit = 1e6 if measure == "cost" else 1e3
    amounts = [one.cost_usd if measure == "cost" else one.power_w for one in PRICED.values()]
    assert heights * unit == pytest.approx(amounts)
    texts = [mark.text for mark in figure.layout.annotations]
    assert texts[0] == f"<b>{(money if measure == 'cost' else power)(amounts[0])}</b>" and texts[
        -1
    ].endswith("✗")
    assert figure.layout.yaxis.range[0] == 0


def test_the_tornado_has_one_row_a_swing_round_the_present_saving() -> None:
    swings = tornado(QUESTION)
    base = QUESTION.saving("photonic_rails", "rail_optimized", "cost")
    figure = tornado_figure.tornado(swings, base, LIGHT)
    assert list(figure.layout.yaxis.ticktext) == [one.name for one in swings]
    for trace in figure.data:
        for row, width in zip(trace.y, trace.x, strict=True):
            ends = [100 * (end[1] - base) for end in (swings[row].low, swings[row].high) if end]
            assert any(width == pytest.approx(end) for end in ends)
    assert sum(len(trace.y) for trace in figure.data) == sum(
        end is not None for one in swings for end in (one.low, one.high)
    )


def test_a_tornado_without_rows_is_empty_not_wrong() -> None:
    figure = tornado_figure.tornado((), 0.5, LIGHT)
    assert all(len(trace.y) == 0 for trace in figure.data)


def test_a_swing_whose_ends_lie_on_one_side_shows_both() -> None:
    figure = tornado_figure.tornado((Swing("x", ("a", 0.6), ("b", 0.7)),), 0.5, LIGHT)
    assert len(figure.data[1].x) == 2 and abs(figure.data[1].x[0]) > abs(figure.data[1].x[1])


def test_photonic_rails_are_dotted_where_switches_run_out_of_ports() -> None:
    figure = cost_curves.by_size(
        curves(QUESTION, (512, 1024, 2048, 4096)), "cost", 1024, LIGHT, most_photonic=2304
    )
    lines = {trace.name: trace for trace in figure.data}
    assert list(lines["Photonic rails"].x) == [512, 1024, 2048]
    beyond = lines["Photonic rails, too few ports"]
    assert list(beyond.x) == [2048, 4096] and beyond.line.dash == "dot"
    assert lines["Rail only"].y[1] == pytest.approx(PRICED["rail_only"].cost_usd / 1024)
    assert (
        figure.layout.xaxis.type == figure.layout.yaxis.type == "log"
        and "logarithmic" in figure.layout.xaxis.title.text
    )


@pytest.mark.parametrize("measure", ["cost", "power"])
def test_names_at_the_lines_ends_do_not_meet(measure) -> None:
    figure = cost_curves.by_size(curves(QUESTION, (512, 1024)), measure, 1024, LIGHT)
    low, high = figure.layout.yaxis.range
    places = sorted(mark.y for mark in figure.layout.annotations)
    assert len(places) == len(NETWORKS)
    assert min(np.diff(places)) >= (high - low) * 13 / (cost_curves.HEIGHT - 52)


def test_prices_of_nothing_still_draw() -> None:
    free = V1.changed({part.id: {"price_usd": 0, "power_w": 0} for part in V1.parts})
    question = Question(64, free, Counting())
    assert not cost_curves.by_size(
        curves(question, (64, 128)), "cost", 64, LIGHT
    ).layout.annotations
    assert cost.stacked(bills(64, free), "cost", LIGHT).data == ()


def test_a_year_is_purchase_and_electricity() -> None:
    years = {name: year_of(one, Running()) for name, one in PRICED.items()}
    figure = cost_curves.yearly(years, LIGHT)
    ends = np.array(figure.data[1].base) + np.array(figure.data[1].x)
    assert ends * 1e6 == pytest.approx([year.total_usd for year in years.values()])


def test_iterations_for_a_dollar_start_at_zero_in_the_fabrics_colours() -> None:
    figure = cost_curves.worth(
        [("static", "Static circuits", 12.0), ("scheduled", "Scheduled", 9.0)], LIGHT
    )
    assert figure.layout.xaxis.range[0] == 0
    assert list(figure.data[0].marker.color) == [
        LIGHT.fabric_colour("static"),
        LIGHT.fabric_colour("scheduled"),
    ]


@pytest.mark.parametrize(
    ("words", "value", "says"),
    [
        (money, 1_289_216, "$1.29 M"),
        (money, 454_656, "$455 k"),
        (money, 12, "$12"),
        (money, 999_990, "$1.00 M"),
        (power, 11_040, "11.0 kW"),
        (power, 1_062_100, "1.06 MW"),
        (power, 850, "850 W"),
        (energy, 126_000, "126 MWh"),
    ],
)
def test_dollars_and_watts_as_people_read_them(words, value, says) -> None:
    assert words(value).replace("\u00a0", " ") == says


def test_the_payload_is_small() -> None:
    figures = [
        cost.stacked(PRICED, "cost", LIGHT),
        tornado_figure.tornado(tornado(QUESTION), 0.7, LIGHT),
    ]
    assert sum(len(json.dumps(json.loads(figure.to_json()))) for figure in figures) < 60_000
