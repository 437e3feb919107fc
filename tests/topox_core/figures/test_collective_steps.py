"""Inside one collective: a bar a part of a step, and a set-up wherever a port changes its circuit."""

from __future__ import annotations

import pytest

from topox_core.fabrics.one_collective import OneCollective, sent_rows
from topox_core.figures.collective_steps import set_ups, steps_on_ports
from topox_core.figures.palette import LIGHT


@pytest.mark.parametrize("delay_ms", [0.0, 0.8])
def test_every_part_and_every_set_up_is_a_bar(delay_ms: float) -> None:
    one = OneCollective("all_to_all", "pairwise", 8, 2, 8.0, 0.0, delay_ms)
    way = one.split()
    figure = steps_on_ports(one, way, LIGHT)
    bars = {
        wide: sum(len(trace.x) for trace in figure.data if (trace.width > 0.5) == wide)
        for wide in (True, False)
    }
    assert bars == {True: len(sent_rows(one, way)), False: len(set_ups(one, way))}
    assert (bars[False] > 0) == (delay_ms > 0)
