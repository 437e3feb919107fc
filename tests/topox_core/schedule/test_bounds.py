"""Lower bounds: never above the optimum, and named by what binds."""

import numpy as np
import pytest

from tests.conftest import some
from tests.topox_core.schedule.problem_builder import Fabric, brute_force, random_problem
from tests.topox_core.small_graphs import cluster, compute, graph, list_schedule, transfer
from topox_core.schedule.bounds.best_bound import best_bound
from topox_core.schedule.generation.list_scheduler import Generator, candidates
from topox_core.schedule.settings import Settings

FABRICS = (
    Fabric(),
    Fabric(switches=2, ports_per_server=2),
    Fabric(half_duplex=True, switches=2, ports_per_server=2),
    Fabric(shares=True),
    Fabric(circuits_per_switch=1),
    Fabric(half_duplex=True, switches=2, ports_per_server=3),
)


@pytest.mark.sampled
@pytest.mark.parametrize("fabric", FABRICS, ids=str)
@pytest.mark.parametrize("ticks_per_slot", [1, 3])
def test_bound_below_optimum_below_every_rule(fabric, ticks_per_slot):
    for seed in some(range(25), quick=8):
        problem = random_problem(seed, fabric, tasks=6, ticks_per_slot=ticks_per_slot, longest=2)
        optimum = brute_force(problem)
        bound = best_bound(problem, 0).ticks
        assert bound <= optimum, seed
        for listed in candidates(Generator.of(problem, bound), 0):
            assert listed.makespan >= optimum, (seed, listed.source)


def test_a_chain_is_bound_by_its_critical_path_with_the_wait_for_the_slot():
    r = list_schedule(
        graph(compute("f", 0, 1.5), transfer("x", 0, 1, 1.0, "f"), compute("g", 1, 0.5, "x")),
        cluster(),
        Settings.of(tick=0.5, clock="slots"),
    )
    assert (r.bound_ms, r.makespan_ms) == (3.5, 3.5)
    assert r.bound_by == "critical path, 3 tasks: f → x → g"
    assert r.bound_tasks == ("f", "x", "g")


def test_many_transfers_from_one_server_are_bound_by_its_out_ports_between_head_and_tail():
    tasks = [compute("f", 0, 2.0), *(transfer(f"x{i}", 0, 1 + i % 2, 3.0, "f") for i in range(4))]
    r = list_schedule(
        graph(*tasks, compute("g", 1, 1.0, *(f"x{i}" for i in range(4)))),
        cluster(),
        Settings.of(tick="slot"),
    )
    assert r.bound_ms == 2 + 4 * 3 + 1
    assert r.bound_by == "out-ports of server 0 between 2 and 14 ms"


def test_a_busy_device_is_named():
    r = list_schedule(
        graph(*(compute(f"f{i}", 1, 2.0) for i in range(3))), cluster(), Settings.of(tick="slot")
    )
    assert r.bound_by == "the device of server 1 between 0 and 6 ms"


def test_every_circuit_beyond_a_ports_first_adds_its_dark_time_to_the_load():
    g = graph(*(transfer(f"x{i}", 0, 1 + i, 2.0) for i in range(3)))
    r = list_schedule(g, cluster(4, reconfiguration_ms=5.0), Settings.of())
    assert r.bound_ms == 3 * 2 + 2 * 5
    assert r.status == "optimal"


def test_a_shared_circuit_counts_once_in_the_load():
    g = graph(*(transfer(f"x{i}", 0, 1, 2.0) for i in range(3)))
    assert list_schedule(g, cluster(), Settings.of("paper")).makespan_ms == 2.0
    assert list_schedule(g, cluster(), Settings.of()).makespan_ms == 6.0


def test_load_thresholds_do_not_change_the_bound_when_there_are_few_tasks():
    from topox_core.model.loads import Load, load_bound

    random = np.random.default_rng(3)
    for _ in range(200):
        head, work, tail = (random.integers(0, 20, 8) for _ in range(3))
        best = max(
            h + -(-work[(head >= h) & (tail >= q)].sum() // 2) + q
            for h in head
            for q in tail
            if work[(head >= h) & (tail >= q)].sum() > 0
        )
        assert load_bound(Load(head, work, tail), 200, 2, 1)[0] == best
