"""The algorithm of a collective is chosen on the fabric that runs it, and never slower than the default alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from topox_core.fabrics.collective_choice import collectives_of, with_fastest_algorithms
from topox_core.fabrics.compare import run_one
from topox_core.fabrics.run import FabricRequest
from topox_core.model.cluster import Cluster
from topox_core.model.lowering import lower
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.model.transfer_graph import Lowering
from topox_core.schedule.settings import Settings


def alone(kind: str, n: int, size_bytes: float) -> TaskGraph:
    root = 0 if kind == "broadcast" else None
    members = tuple(range(n))
    return TaskGraph("a", (Task("c", kind, (), members=members, size_bytes=size_bytes, root=root),))


def chosen(
    fabric: str, graph: TaskGraph, cluster: Cluster, **lowering: object
) -> tuple[str, float, float]:
    """Return the chosen word, and the times of choice and default."""
    settings = Settings.of(lowering=Lowering(**lowering))  # type: ignore[arg-type]
    choice = with_fastest_algorithms(fabric, graph, cluster, settings)
    times = [
        run_one(fabric, FabricRequest(lower(graph, one), cluster, settings)).iteration_ms
        for one in (choice, settings.lowering)
    ]
    return next((word for _, word in choice.algorithm), "default"), times[0], times[1]


@pytest.mark.parametrize(
    ("size_bytes", "latency_us", "delay_ms", "name", "time_ms"),
    [
        (1e4, 1.0, 0.0, "halving_doubling", 0.0087),
        (1e4, 1.0, 0.01, "two_level(4)", 0.0135),
        (1e4, 20.0, 0.01, "halving_doubling", 0.1615),
        (1e4, 20.0, 0.1, "two_level(4)", 0.2415),
        (1e6, 1.0, 0.1, "two_level(4)", 0.162),
    ],
)
def test_what_wins_an_all_reduce_step_by_step_depends_on_latency_and_delay(
    size_bytes: float, latency_us: float, delay_ms: float, name: str, time_ms: float
) -> None:
    """n = 16, two ports of 100G, provisioned; a ring of lock steps is the default here."""
    cluster = Cluster(16, 2, 1, 32, 100.0, 1.0, delay_ms, latency_us=latency_us)
    graph = alone("all_reduce", 16, size_bytes)
    word, time, default = chosen("provisioned", graph, cluster, steps="stepwise")
    assert word.split("*")[0] == name
    assert time == pytest.approx(time_ms, abs=1e-4)
    assert time < default


def test_a_fluid_ring_on_all_ports_is_never_given_up() -> None:
    cluster = Cluster(8, 2, 2, 8, 100.0, latency_us=5.0)
    for kind in ("all_reduce", "all_gather", "reduce_scatter"):
        word, _, _ = chosen("provisioned", alone(kind, 8, 1e6), cluster, rings=2)
        assert word == "default"


def test_circuits_prefer_an_order_without_conflicts_for_an_all_to_all() -> None:
    graph = alone("all_to_all", 8, 8e8)
    for fabric in ("reactive", "provisioned"):
        word, time, default = chosen(fabric, graph, Cluster(8, 1, 1, 8, 100.0))
        assert word == "pairwise"
        assert time / default == pytest.approx(7 / 13)


def test_what_a_user_names_stays() -> None:
    graph = alone("all_to_all", 8, 8e8)
    cluster = Cluster(8, 1, 1, 8, 100.0)
    fixed = Settings.of(lowering=Lowering(algorithm={"all_to_all": "bruck"}))
    assert with_fastest_algorithms("provisioned", graph, cluster, fixed) == fixed.lowering


def test_each_size_is_judged_once_whatever_its_place_in_the_graph() -> None:
    tasks = [
        Task(f"c{i}", "all_reduce", (), members=members, size_bytes=size)
        for i, (members, size) in enumerate(
            [((0, 1, 2), 1e6), ((3, 4, 5), 1e6 + 1), ((0, 1), 1e6), ((0, 1, 2), 2e6)]
        )
    ]
    graph = TaskGraph("g", tuple(tasks))
    assert [one.key for one in collectives_of(graph, Lowering())] == [
        "all_reduce:3:1e+06",
        "all_reduce:2:1e+06",
        "all_reduce:3:2e+06",
    ]
    off = replace(Lowering(), all_reduce_on_network=False)
    assert collectives_of(graph, off) == ()
