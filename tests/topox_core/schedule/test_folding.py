"""Equal replicas are folded: what unfolds is a schedule, bounds by path and load stay, and nothing symmetric is proved."""

import random
from dataclasses import replace
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from msgspec import structs

from tests.conftest import examples
from tests.topox_core.schedule.problem_builder import (
    Fabric,
    brute_force,
    build,
    makespan,
    random_problem,
)
from tests.topox_core.small_graphs import cluster, list_schedule, random_graph
from topox_core.check.checker import check
from topox_core.io.task_graph_rules import validated
from topox_core.model.task_graph import TaskGraph
from topox_core.schedule.bounds.best_bound import best_bound
from topox_core.schedule.planning import planner as planning
from topox_core.schedule.planning.fold import fold
from topox_core.schedule.planning.planner import Planner, SchedulePlan, prepare
from topox_core.schedule.problem import Problem
from topox_core.schedule.rcpsp.feasibility import violation
from topox_core.schedule.results.report import to_result
from topox_core.schedule.results.result_file import to_record
from topox_core.schedule.settings import Settings
from topox_core.workloads.catalogue import generate

ANY = 0.1  # the least ratio of a folding that is wanted however little it folds


@pytest.fixture
def folded_always(monkeypatch):
    monkeypatch.setattr(planning, "FOLD_ABOVE", 0)
    monkeypatch.setattr(planning, "fold", partial(fold, least=1.2))


def replicated(seed: int, replicas: int, fabric: Fabric, tasks: int = 7) -> Problem:
    """Make a random problem and copies of it: edges within copies, to the next copy or to all, transfers within and round."""
    rng = random.Random(seed)
    durations, transfers, devices, edges = [], {}, {}, []
    for j in range(tasks):
        kind, x, round_the_copies = rng.random(), rng.randrange(fabric.servers), rng.random() < 0.4
        length = rng.randint(1, 3) * 2 if kind < 0.6 else rng.randint(0, 5)
        y = rng.randrange(fabric.servers)
        for r in range(replicas):
            durations.append(length)
            here, other = r * fabric.servers + x, (r + 1) % replicas * fabric.servers + y
            if kind < 0.6:
                inside = r * fabric.servers + (y if y != x else (x + 1) % fabric.servers)
                transfers[j * replicas + r] = (here, other if round_the_copies else inside)
            elif kind < 0.9:
                devices[j * replicas + r] = here
        for i in range(j):
            if rng.random() < 0.25:
                way = rng.choice(("own", "own", "next", "all"))
                for r in range(replicas):
                    waited = range(replicas) if way == "all" else [(r + (way == "next")) % replicas]
                    edges += [(i * replicas + q, j * replicas + r) for q in waited]
    return build(
        durations,
        transfers,
        edges,
        replace(fabric, servers=fabric.servers * replicas),
        devices,
        ticks_per_slot=2,
    )


def copies(original: TaskGraph, count: int) -> TaskGraph:
    """Put copies of a graph side by side, each on servers of its own."""
    n = original.servers
    tasks = [
        structs.replace(
            t,
            id=f"{t.id}.{r}",
            dependencies=tuple(f"{d}.{r}" for d in t.dependencies),
            server=None if t.server is None else t.server + r * n,
            source=None if t.source is None else t.source + r * n,
            destination=None if t.destination is None else t.destination + r * n,
        )
        for r in range(count)
        for t in original.tasks
    ]
    return validated("copies", tasks, "test")


FABRICS = st.sampled_from(
    [
        Fabric(servers=2),
        Fabric(servers=2, switches=2, ports_per_server=2),
        Fabric(servers=2, circuits_per_switch=2),
        Fabric(servers=2, switches=2, ports_per_server=3, half_duplex=True),
        Fabric(servers=2, switches=2, half_duplex=True),
    ]
)


def plan_of(problem: Problem) -> SchedulePlan:
    return Planner.of(problem, 0, continuous=False, dark_slots=0).best_plan()


@given(st.integers(0, 10**6), st.integers(2, 5), FABRICS)
@examples(150)
def test_every_schedule_of_the_quotient_unfolds_and_critical_path_and_loads_bound_both_alike(
    seed, replicas, fabric
):
    problem = replicated(seed, replicas, fabric)
    folding = fold(problem, ANY)
    plan = plan_of(folding.problem)
    assert violation(folding.problem, plan.start) is None
    start = folding.unfolded(plan.start)
    assert violation(problem, start) is None
    assert makespan(problem, start) == plan.makespan
    assert best_bound(folding.problem, 0).ticks == best_bound(problem, 0).ticks


@given(st.integers(0, 10**6), FABRICS, st.integers(1, 3))
@examples(60)
def test_what_has_no_replicas_unfolds_just_as_well(seed, fabric, coarse):
    problem = random_problem(seed, fabric, tasks=6)
    if folding := fold(problem, coarse / 3):
        plan = plan_of(folding.problem)
        assert violation(problem, folding.unfolded(plan.start)) is None
        assert plan.makespan >= brute_force(problem)


def two_pipelines(last: int) -> Problem:
    """Two copies of f -> x -> b, of which the second ends with a task that lasts so long."""
    transfers, edges = {1: (0, 1), 4: (2, 3)}, [(0, 1), (1, 2), (3, 4), (4, 5)]
    devices = {0: 0, 2: 1, 3: 2, 5: 3}
    return build([3, 2, 4, 3, 2, last], transfers, edges, Fabric(servers=4), devices)


def test_two_pipelines_are_one_unless_a_copy_is_a_tick_longer():
    # Three orbits, two devices (those of senders and of receivers), no port that could bind.
    folding = fold(two_pipelines(4), 2)
    quotient = folding.problem
    assert (quotient.n, quotient.devices, len(quotient.capacity)) == (3, 2, 0)
    assert folding.orbit.tolist() == [0, 1, 2, 0, 1, 2]
    assert fold(two_pipelines(5), ANY).problem.n == 6
    assert fold(two_pipelines(5), 2) is None


def test_equal_tasks_of_one_device_run_one_after_the_other():
    folding = fold(build([2] * 6, devices={j: j % 2 for j in range(6)}), 2)
    assert folding.orbit.tolist() == [0, 0, 1, 1, 2, 2]
    assert best_bound(folding.problem, 0).ticks == 6


def test_an_all_to_all_becomes_as_many_exchanges_as_a_server_has_peers():
    n = 5
    pairs = list(permutations(range(n), 2))
    folding = fold(build([1] * len(pairs), dict(enumerate(pairs)), fabric=Fabric(servers=n)), 4)
    assert np.bincount(folding.orbit).tolist() == [n] * (n - 1)
    assert len(folding.problem.capacity) == 1  # every in-port and every out-port is used alike
    assert plan_of(folding.problem).makespan == folding.problem.n == n - 1


def test_the_best_symmetric_schedule_may_be_longer_than_the_best_so_that_the_whole_is_scheduled_too(
    folded_always,
):
    # Three kinds of two unit transfers each, told apart by what follows them, with room for three
    # circuits at once. Orbits of two fill two of three circuits, so that three orbits need three
    # slots; six transfers need two.
    transfers = {j: (2 * j, 2 * j + 1) for j in range(6)}
    edges = [(2, 6), (3, 7), (4, 8), (4, 9), (5, 10), (5, 11)]
    fabric = Fabric(servers=12, circuits_per_switch=3)
    problem = build([1] * 6 + [0] * 6, transfers, edges, fabric)
    assert plan_of(fold(problem, 2).problem).makespan == 3
    planner = Planner.of(problem, best_bound(problem, 0).ticks, continuous=False, dark_slots=0)
    found = list(planner.plans())
    assert [plan.makespan for plan in found] == [3, 2]
    assert brute_force(problem) == 2
    assert found[0].source.name.startswith("folded: 2 equal replicas, 5 tasks instead of 12")


def test_shared_circuits_and_plain_projects_are_not_folded():
    shared = Fabric(servers=2, shares=True)
    assert fold(build([1] * 4, dict.fromkeys(range(4), (0, 1)), fabric=shared), ANY) is None
    assert fold(replace(build([1] * 4), network=None), ANY) is None


def rings(back: int, **fabric: Any) -> Problem:
    """A ring of four transfers, and one to the next but ``back`` behind it."""
    ends = {j: (j, (j + 1) % 4) for j in range(4)} | {4 + j: (j, (j + back) % 4) for j in range(4)}
    return build([1] * 8, ends, [(j, 4 + j) for j in range(4)], Fabric(servers=4, **fabric))


@pytest.mark.parametrize(
    ("problem", "dark_slots", "folds"),
    [
        (rings(1), 0, True),
        (rings(1), 2, True),
        (rings(3), 0, True),
        (rings(3), 2, False),
        (rings(1, half_duplex=True), 0, False),
        (rings(1, circuits_per_switch=3), 0, False),  # a switch may fill
    ],
)
def test_ports_fold_where_a_circuit_of_the_quotient_is_one_of_the_whole(problem, dark_slots, folds):
    quotient = fold(problem, ANY, dark_slots=dark_slots).problem
    assert (quotient.network is not None) == folds


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"reconfiguration_ms": 2.0},
        {"duplex": "half"},
        {"ports_per_switch": 2},
        {"ports_per_server": 2, "switches": 2},
        {"ports_per_server": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("circuits", ["continuous", "per-slot"])
def test_the_checker_finds_nothing_wrong_with_what_unfolds(folded_always, keys, circuits):
    for seed in range(0 if circuits == "per-slot" and "reconfiguration_ms" in keys else 4):
        g = copies(random_graph(seed, 12, 3, collectives=False), 4)
        prepared = prepare(g, cluster(g.servers, **keys), Settings.of(circuits=circuits))
        bound, (folding, planner) = prepared.reduction.bound, prepared.planner.folded
        for plan in planner.plans():
            whole = prepared.planner.unfolded(plan)
            result = to_result(prepared, whole, bound.ticks, bound.text, "heuristic", (), 0.0)
            assert check(g, prepared.cluster, to_record(result)).ok
            on_ports = folding.problem.network is not None
            if on_ports or prepared.planner.ports is None:
                assert whole.makespan == plan.makespan


@pytest.mark.parametrize("circuits", ["continuous", "per-slot"])
def test_eight_replicas_of_a_pipeline_are_solved_as_one(circuits):
    g, c = generate("llama3-70b", {"data": 8, "microbatches": 16})
    result = list_schedule(g, c, Settings.of(circuits=circuits))
    assert result.status == "optimal"
    words = "folded: 8 equal replicas, 1,056 tasks instead of 8,224"
    assert result.trace[0].source.name.startswith(words)
    assert check(g, c, to_record(result)).ok
