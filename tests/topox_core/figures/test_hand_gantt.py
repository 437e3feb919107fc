"""A schedule by hand as bars: what meets on a lane is seen beside each other."""

from __future__ import annotations

from topox_core.figures.hand_gantt import hand_gantt
from topox_core.figures.palette import LIGHT
from topox_core.labs.generators.board import board


def drawn(starts_ms: dict[str, float]) -> dict[str, tuple[float, float]]:
    """Return the edges, in lanes, of every bar on the lane where x and y are sent."""
    one = board(0)
    figure = hand_gantt(one.graph(), one.cluster(), starts_ms, LIGHT)
    bars = [
        (data[0], y, width)
        for trace in figure.data
        for data, y, width in zip(trace.customdata, trace.y, trace.width, strict=True)
    ]
    lane = min({round(y) for name, y, _ in bars if name == "x"})
    return {name: (y - width / 2, y + width / 2) for name, y, width in bars if round(y) == lane}


def test_two_transfers_that_meet_at_a_port_do_not_hide_each_other() -> None:
    bars = drawn({"a": 0, "x": 3, "y": 3})
    assert bars["x"][1] <= bars["y"][0] + 1e-9


def test_bars_that_only_touch_are_as_high_as_their_lane() -> None:
    bars = drawn({"a": 0, "x": 3, "y": 3 + board(0).x})
    assert len({round(high - low, 6) for low, high in bars.values()}) == 1 and len(bars) == 2
