"""Instances *turns*, *fan-out* and *windows*: closed forms against the simulators and every order."""

from __future__ import annotations

from itertools import permutations

import pytest

from tests.conftest import some
from topox_core.fabrics.compare import compare
from topox_core.fabrics.scheduled import schedule
from topox_core.labs.generators.fan_out import fan_out
from topox_core.labs.generators.turns import turns
from topox_core.labs.generators.windows import windows
from topox_core.labs.lesson import LESSON_SETTINGS
from topox_core.labs.tour import FABRICS

SEEDS = range(60)


@pytest.mark.parametrize("seed", range(4))
def test_fan_out_by_hand_is_what_the_scheduler_proves(seed: int) -> None:
    one = fan_out(seed)
    for ports, answer in ((1, one.one_port_ms), (2, one.two_ports_ms)):
        result = schedule(one.graph(), one.cluster(ports), LESSON_SETTINGS)
        assert result.makespan_ms == result.bound_ms == answer
    result = schedule(one.graph(), one.cluster(port_gbps=16.0), LESSON_SETTINGS)
    assert result.makespan_ms == one.fast_port_ms


def test_two_queues_by_hand_are_as_short_as_every_order_on_two_ports() -> None:
    """All 24 orders, each transfer on the port that is free first, then its receiver's compute."""
    for seed in some(range(201), quick=20):
        one = fan_out(seed)
        ends = []
        for order in permutations(range(len(one.sent_mb))):
            free, last = [one.first_ms, one.first_ms], 0
            for k in order:
                port = free.index(min(free))
                free[port] += one.sent_mb[k]
                last = max(last, free[port] + one.computed_ms[k])
            ends.append(last)
        assert min(ends) == one.two_ports_ms


def test_windows_by_formula_are_those_that_were_counted() -> None:
    for seed in some(range(201), quick=20):
        one = windows(seed)
        stages, microbatches = one.stages, one.microbatches
        first = 2 * microbatches + 2 * min(stages, microbatches) - 1
        inside = [4 * microbatches + 1] * (stages - 2)
        counted = [one.counted(stage) for stage in range(stages)]
        assert counted == [first, *inside, 2 * microbatches + 1]
        assert one.counted(0, "afab") == 4 * microbatches - 1


@pytest.mark.parametrize("delay_ms", [0.0, 2.0, 5.0, 10.0, 20.0])
def test_turns_by_formula_is_what_the_simulators_give(delay_ms: float) -> None:
    for seed in some(range(201), quick=3):
        one = turns(seed)
        runs = compare(one.graph(), one.cluster(delay_ms), LESSON_SETTINGS, FABRICS)
        assert {name: run.iteration_ms for name, run in runs.items()} == pytest.approx(
            {
                "static": one.static_ms,
                "reactive": one.reactive_ms(delay_ms),
                "provisioned": one.provisioned_ms(delay_ms),
            }
        )
