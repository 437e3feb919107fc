"""A schedule by hand as bars: what meets on a lane is seen beside each other."""

from __future__ import annotations

from topox_core.figures.hand_gantt import hand_gantt
from topox_core.figures.palette import LIGHT
from topox_core.labs.generators.board import board


def drawn(starts_ms: dict[str, float]) -> dict[tuple[str, int], tuple[float, float]]:
    """Return the edges, in lanes, of every bar by its task and lane."""
    instance = board(0)
    figure = hand_gantt(instance.graph(), instance.cluster(), starts_ms, LIGHT)
    return {
        (data[0], round(y)): (y - width / 2, y + width / 2)
        for trace in figure.data
        for data, y, width in zip(trace.customdata, trace.y, trace.width, strict=True)
    }


def test_two_transfers_that_meet_at_a_port_do_not_hide_each_other() -> None:
    bars = drawn({"a": 0, "x": 3, "y": 3})
    (lane,) = {lane for name, lane in bars if name == "x"} & {
        lane for name, lane in bars if name == "y"
    }
    upper, lower = bars["x", lane], bars["y", lane]
    assert upper[1] <= lower[0] + 1e-9


def test_bars_that_only_touch_are_as_high_as_their_lane() -> None:
    x_ms = board(0).x
    bars = drawn({"a": 0, "x": 3, "y": 3 + x_ms})
    assert len({round(high - low, 6) for low, high in bars.values()}) == 1
