"""The picture of what is worth its price: every network, its whiskers, the front, the one to buy."""

from __future__ import annotations

import json

import pytest

from topox_core.figures.buying import Drawn, buying_figure
from topox_core.figures.palette import DARK_THEME, LIGHT, Theme
from topox_core.figures.study_axes import MeasureWords
from topox_core.text.numbers import time

PRICE, TIME = MeasureWords("price", lambda v: f"${v:g}"), MeasureWords("iteration time", time)
NETWORKS = (
    Drawn("Fixed", (100.0, 100.0, 100.0), (90.0, 90.0, 90.0), True, True),
    Drawn("Tree", (900.0, 900.0, 900.0), (85.0, 85.0, 85.0), True),
    Drawn("Fast", (200.0, 300.0, 500.0), (60.0, 70.0, 80.0), False, True),
    Drawn("As fast", (200.0, 300.0, 500.0), (60.0, 70.0, 80.0), False),
)


@pytest.mark.parametrize("theme", [LIGHT, DARK_THEME], ids=lambda theme: theme.name)
def test_every_network_is_drawn_with_its_range_and_the_best_is_ringed(theme: Theme) -> None:
    figure = json.loads(buying_figure(NETWORKS, PRICE, TIME, theme, 2, (0, 2)).to_json())
    by_name = {one["name"]: one for one in figure["data"]}
    front = by_name["nothing beats it"]
    assert (front["x"], front["y"]) == ([100.0, 300.0], [90.0, 70.0])
    switches = by_name["switch"]
    assert switches["error_x"]["array"] == [200.0, 200.0]
    assert switches["error_x"]["arrayminus"] == [100.0, 100.0]
    assert switches["error_y"]["array"] == [10.0, 10.0]
    rivals = by_name["no switch"]
    assert rivals["marker"]["symbol"] == "diamond" != switches["marker"]["symbol"]
    assert "error_x" not in rivals
    assert by_name["to buy"]["x"] == [300.0]
    labels = [one["text"] for one in figure["layout"]["annotations"]]
    assert "<b>Fast</b><br>As fast" in labels
    assert {"Fixed", "Tree"} <= set(labels)
    assert len(json.dumps(figure)) < 30_000


def test_without_a_winner_nothing_is_ringed() -> None:
    figure = buying_figure(NETWORKS[:1], PRICE, TIME, LIGHT)
    assert "to buy" not in [one.name for one in figure.data]
