"""Cost figures: totals stand on top of their parts, bars and lines say what the bills say."""

import numpy as np
import pytest

from tests.topox_core.figures.test_every_figure import PRICED, QUESTION
from topox_core.economics.comparison import Swing, curves
from topox_core.economics.networks import NETWORKS
from topox_core.figures import buying, cost
from topox_core.figures.palette import LIGHT
from topox_core.text.numbers import money, power


@pytest.mark.parametrize(
    ("measure", "unit", "words"), [("cost", 1e6, money), ("power", 1e3, power)]
)
def test_stacked_parts_add_up_to_the_total_on_top(measure, unit, words) -> None:
    figure = cost.stacked(PRICED, measure, LIGHT, infeasible=("photonic_rails",))
    heights = np.zeros(len(NETWORKS))
    for trace in figure.data:
        np.add.at(heights, np.array(trace.x), np.array(trace.y))
    amounts = [one.cost_usd if measure == "cost" else one.power_w for one in PRICED.values()]
    assert heights * unit == pytest.approx(amounts)
    texts = [mark.text for mark in figure.layout.annotations]
    assert texts[0] == f"<b>{words(amounts[0])}</b>" and texts[-1].endswith("✗")


def test_a_swing_whose_ends_lie_on_one_side_shows_both() -> None:
    figure = buying.tornado((Swing("x", ("a", 0.6), ("b", 0.7)),), 0.5, LIGHT)
    assert len(figure.data[1].x) == 2 and abs(figure.data[1].x[0]) > abs(figure.data[1].x[1])


@pytest.mark.parametrize("measure", ["cost", "power"])
def test_names_at_the_lines_ends_do_not_meet(measure) -> None:
    figure = cost.by_size(curves(QUESTION, (512, 1024)), measure, 1024, LIGHT)
    low, high = figure.layout.yaxis.range
    places = sorted(mark.y for mark in figure.layout.annotations)
    assert len(places) == len(NETWORKS)
    assert min(np.diff(places)) >= (high - low) * 13 / (cost.HEIGHT - 52)
