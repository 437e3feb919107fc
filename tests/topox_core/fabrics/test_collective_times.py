"""One collective alone on circuits takes what its algorithm's formula says.

a is the latency of a message, b the tensor's time on one port, delta the reconfiguration delay; one
port a server, first circuits free (rivals of collectives, Thakur et al. 2005, with the delay added).
"""

from __future__ import annotations

from math import ceil, log2

import pytest

from topox_core.fabrics.compare import run_one
from topox_core.fabrics.run import FabricRequest
from topox_core.model.cluster import Cluster
from topox_core.model.lowering import lower
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.model.transfer_graph import Lowering
from topox_core.schedule.settings import Settings

A, DELTA = 0.01, 0.1
BYTES_PER_MS = 100e6 / 8


def time_ms(
    fabric: str,
    kind: str,
    name: str,
    n: int,
    b: float,
    *,
    ports: int = 1,
    rings: int = 1,
    **changes: float,
) -> float:
    root = 0 if kind == "broadcast" else None
    task = Task("c", kind, (), members=tuple(range(n)), size_bytes=b * BYTES_PER_MS, root=root)
    given = {"reconfiguration_ms": DELTA, "latency_us": 1000 * A, **changes}
    cluster = Cluster(n, ports, 1, n * ports, 100.0).changed(**given)
    graph = lower(TaskGraph("one", (task,)), Lowering(algorithm={kind: name}, rings=rings))
    return run_one(fabric, FabricRequest(graph, cluster, Settings.of())).iteration_ms


def two_level(n: int, m: int, b: float) -> float:
    g = n // m
    return 2 * (m - 1) * (A + b / m) + 2 * (g - 1) * (A + b / n) + 2 * DELTA


def logarithmic(n: int, b: float) -> float:
    k = ceil(log2(n))
    return k * A + (n - 1) / n * b + (k - 1) * DELTA


def halving_doubling(n: int, b: float) -> float:
    k = int(log2(n))
    p = 2**k
    if p == n:
        return 2 * k * A + 2 * (n - 1) / n * b + 2 * (k - 1) * DELTA
    return 2 * (k + 1) * A + (2 + 2 * (p - 1) / p) * b + 2 * k * DELTA


FORMULAS = [
    ("all_reduce", "ring", 8, 14.14, lambda n, b: 2 * (n - 1) * (A + b / n)),
    ("all_reduce", "halving_doubling", 8, 14.46, halving_doubling),
    ("all_reduce", "two_level(4)", 8, 14.28, lambda n, b: two_level(n, 4, b)),
    ("all_gather", "bruck", 8, 7.23, logarithmic),
    ("all_gather", "doubling", 8, 7.23, logarithmic),
    ("reduce_scatter", "halving", 8, 7.23, logarithmic),
    ("broadcast", "tree", 8, 24.23, lambda n, b: 3 * (A + b) + 2 * DELTA),
    ("broadcast", "scatter_gather", 8, 14.84, lambda n, b: 2 * (n - 1) * (A + b / n) + 7 * DELTA),
    ("broadcast", "chain(8)", 8, 14.14, lambda n, b: (n - 2 + 8) * (A + b / 8)),
    ("all_to_all", "pairwise", 8, 7.67, lambda n, b: (n - 1) * (A + b / n) + (n - 2) * DELTA),
    ("all_to_all", "bruck", 8, 12.23, lambda n, b: 3 * (A + b / 2) + 2 * DELTA),
    (
        *("all_to_all", "two_level(4)", 8, 10.34),
        lambda n, b: 3 * (A + 2 * b / n) + (A + 4 * b / n) + 3 * DELTA,
    ),
    ("all_reduce", "ring", 6, 10.1, lambda n, b: 2 * (n - 1) * (A + b / n)),
    ("all_reduce", "halving_doubling", 6, 21.46, halving_doubling),
    ("all_reduce", "two_level(2)", 6, 10.26, lambda n, b: two_level(n, 2, b)),
    ("all_gather", "bruck", 6, 5.23, logarithmic),
    ("broadcast", "tree", 6, 18.23, lambda n, b: 3 * (A + b) + 2 * DELTA),
]


@pytest.mark.parametrize("fabric", ["reactive", "provisioned"])
@pytest.mark.parametrize(("kind", "name", "n", "published", "formula"), FORMULAS)
def test_a_collective_alone_takes_its_formula(
    fabric: str, kind: str, name: str, n: int, published: float, formula: object
) -> None:
    b = float(n)
    time = time_ms(fabric, kind, name, n, b)
    assert time == pytest.approx(formula(n, b), abs=1e-6)  # type: ignore[operator]
    assert time == pytest.approx(published, abs=5e-3)


def test_a_tree_waits_for_each_change_of_peer_that_provisioning_cannot_hide() -> None:
    assert time_ms("reactive", "all_reduce", "tree", 8, 8.0) == pytest.approx(48.56)
    assert time_ms("provisioned", "all_reduce", "tree", 8, 8.0) == pytest.approx(48.46)


@pytest.mark.parametrize(
    ("kind", "name", "reactive", "provisioned"),
    [
        ("all_to_all", "pairwise", 12.0, 7.0),
        ("all_reduce", "halving_doubling", 16.0, 14.0),
        ("all_to_all", "direct", None, 13.0),
    ],
)
def test_with_two_ports_the_next_circuit_is_set_up_while_the_other_sends(
    kind: str, name: str, reactive: float | None, provisioned: float
) -> None:
    two_ports = {"latency_us": 0.0, "reconfiguration_ms": 1.0, "ports": 2}
    assert time_ms("provisioned", kind, name, 8, 8.0, **two_ports) == pytest.approx(provisioned)
    if reactive is not None:
        assert time_ms("reactive", kind, name, 8, 8.0, **two_ports) == pytest.approx(reactive)


def test_direct_has_no_formula_but_pairwise_and_rings_beat_it() -> None:
    def provisioned(kind: str, name: str, **changes: float) -> float:
        return time_ms("provisioned", kind, name, 8, 8.0, latency_us=0.0, **changes)

    at_once = {"reconfiguration_ms": 0.0}
    assert provisioned("all_reduce", "direct", **at_once) == pytest.approx(21.0)
    assert provisioned("all_to_all", "direct", **at_once) == pytest.approx(13.0)
    assert provisioned("all_to_all", "pairwise", **at_once) == pytest.approx(7.0)
    assert provisioned("all_reduce", "direct", ports=2) == pytest.approx(12.0)
    assert provisioned("all_reduce", "ring", ports=2) == pytest.approx(14.0)
    assert provisioned("all_reduce", "ring", ports=2, rings=2) == pytest.approx(7.0)
