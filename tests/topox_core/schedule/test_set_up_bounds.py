"""Bounds that count set-ups along paths of the graph: what one port, or two, must change between ancestors and a task."""

from __future__ import annotations

import numpy as np
import pytest

from tests.topox_core.schedule.problem_builder import Fabric, build, random_problem
from tests.topox_core.schedule.set_up_brute_force import optimum
from topox_core.schedule.bounds.set_up_bounds import (
    set_up_bound,
    set_up_heads_and_tails,
)
from topox_core.schedule.bounds.windows import clocks
from topox_core.schedule.circuits.held_ports import with_set_ups
from topox_core.schedule.planner import Planner
from topox_core.schedule.problem import Problem


def raised(problem: Problem, delay: int) -> int:
    """The best bound in ticks from heads and tails with set-ups."""
    head, tail = set_up_heads_and_tails(
        problem, clocks(problem), 1_000, delay * problem.ticks_per_slot
    )
    bound = set_up_bound(problem, head, tail, 0, delay)
    assert bound is not None
    return bound.ticks


def chain(*ends: tuple[int, int], fabric: Fabric | None = None, between: bool = False) -> Problem:
    """Transfers of one tick, each after the one before (through a task of no time in between, if asked for)."""
    if not between:
        edges = [(j, j + 1) for j in range(len(ends) - 1)]
        return build([1] * len(ends), dict(enumerate(ends)), edges, fabric)
    durations = [1, 0] * len(ends)
    edges = [(j, j + 1) for j in range(2 * len(ends) - 1)]
    return build(durations, {2 * j: end for j, end in enumerate(ends)}, edges, fabric)


@pytest.mark.parametrize("between", [False, True])
def test_a_chain_through_one_port_pays_every_change(between):
    # 0-1, 0-2, 0-1: three transfers of 1 and two changes of 2 at the out-port of server 0.
    assert raised(chain((0, 1), (0, 2), (0, 1), between=between), 2) == 7


def test_the_way_of_a_circuit_counts_in_half_duplex_only():
    there_and_back = ((0, 1), (1, 0), (0, 1))
    assert raised(chain(*there_and_back), 2) == 3
    assert raised(chain(*there_and_back, fabric=Fabric(half_duplex=True)), 2) == 7


def test_two_ports_pay_once_in_three_peers():
    two = Fabric(servers=6, switches=2, ports_per_server=2)
    assert raised(chain((0, 1), (0, 2), fabric=two), 5) == 2
    assert raised(chain((0, 1), (0, 2), (0, 3), fabric=two), 5) == 3 + 4
    assert raised(chain((0, 1), (0, 2), (0, 1), fabric=two), 5) == 3
    # Each of the last three may share a port with one before, two steps back at the latest.
    assert raised(chain((0, 1), (0, 2), (0, 3), (0, 4), (0, 5), fabric=two), 5) == 5 + 2 * 4


@pytest.mark.parametrize(("peers", "slots"), [(2, 1), (3, 1 + 5 + 1), (4, 7), (5, 3 + 2 * 5)])
def test_one_of_two_ports_serves_half_of_the_peers_with_a_change_between_any_two(peers, slots):
    # On average the ports of three peers would be busy for (3 + 5) / 2 slots only.
    two = Fabric(servers=6, switches=2, ports_per_server=2)
    ends = {j: (0, j + 1) for j in range(peers)}
    at_once = build([1] * peers, ends, [], two)
    assert raised(at_once, 5) == slots
    assert raised(build([1] * peers, {j: e[::-1] for j, e in ends.items()}, [], two), 5) == slots
    assert optimum(with_set_ups(at_once, 5)) == slots
    behind = build([1] * peers + [2], ends, [(j, peers) for j in range(peers)], two)
    assert raised(behind, 5) == slots + 2


def test_the_bound_never_passes_a_plan_and_grows_with_the_delay():
    for seed in range(30):
        fabric = Fabric(
            servers=4,
            switches=1 + seed % 2,
            ports_per_server=1 + seed % 2,
            half_duplex=seed % 3 == 0,
        )
        problem = random_problem(seed, fabric, tasks=14, density=0.2, ticks_per_slot=1 + seed % 4)
        bounds = [raised(problem, delay) for delay in range(4)]
        plans = [
            Planner.of(problem, 0, continuous=True, dark_slots=delay).best_plan().makespan
            for delay in range(4)
        ]
        assert bounds == sorted(bounds)
        assert (np.array(bounds) <= plans).all()
