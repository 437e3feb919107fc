"""Static circuits: several hops, parallel circuits, split paths, half duplex, layouts that do not work."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from tests.conftest import long_after
from tests.topox_core.small_graphs import GBIT_MS, cluster, compute, graph, random_graph, transfer
from topox_core.errors import InputError
from topox_core.fabrics.run import FabricOptions, FabricRequest, FabricRun
from topox_core.fabrics.static import run_static
from topox_core.model.layout import Layout
from topox_core.model.lowering import lower
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.model.transfer_graph import Lowering
from topox_core.schedule.settings import Settings

NEVER = bool


def layout(servers: int, links: dict[tuple[int, int], int], *routes: tuple[int, ...]) -> Layout:
    """Return circuits by (source, destination), with routes for what has no direct link."""
    circuits = np.zeros((servers, servers), np.int32)
    for pair, parallel in links.items():
        circuits[pair] = parallel
    table = {pair: (pair,) for pair in links}
    for route in routes:
        table[route[0], route[-1]] = (*table.get((route[0], route[-1]), ()), route)
    return Layout(circuits, table, "by hand")


def run(tasks: TaskGraph, circuits: Layout, ports: int = 2, **keys) -> FabricRun:
    lowered = lower(tasks, keys.pop("lowering", None))
    servers = max(tasks.servers, circuits.servers)
    machine = cluster(servers, ports_per_server=ports, switches=ports, **keys)
    order = FabricRequest(lowered, machine, Settings.of(), FabricOptions(layout=circuits))
    return run_static(order, NEVER)


CHAIN = layout(4, {(0, 1): 1, (1, 2): 1, (2, 3): 1}, (0, 1, 2, 3), (0, 1, 2))


def ring(n: int, stride: int = 1) -> dict[tuple[int, int], int]:
    return {(i, (i + stride) % n): 1 for i in range(n)}


BOTH = layout(2, {(0, 1): 1, (1, 0): 1})
THERE_AND_BACK = (transfer("there", 0, 1, 3.0), transfer("back", 1, 0, 3.0))
AROUND = [tuple((i + k) % 5 for k in range(hops + 1)) for i in range(5) for hops in range(2, 5)]


def collective(kind: str, n: int) -> tuple[Task]:
    return (Task("c", kind, members=tuple(range(n)), size_bytes=10.0 * GBIT_MS),)


BY_HAND = {  # tasks, circuits, what else is known; in how many ms, at what bandwidth tax
    "a long way over three links that each carry one short transfer too gets half": (
        (transfer("long", 0, 3, 3.0), *(transfer(f"s{i}", i, i + 1, 1.0) for i in range(3))),
        CHAIN,
        {},
        (4, (3 * 3 + 3) / 6),
    ),
    "bandwidth tax is bytes times hops over bytes": (
        (transfer("relayed", 0, 2, 1.0), transfer("direct", 2, 3, 3.0)),
        CHAIN,
        {},
        (3, (2 * 1 + 3) / 4),
    ),
    "parallel circuits add up": (
        (transfer("a", 0, 1, 4.0),),
        layout(2, {(0, 1): 2}),
        {},
        (2, 1),
    ),
    "bytes are split evenly over the routes of a pair": (
        (transfer("a", 0, 1, 4.0),),
        layout(3, {(0, 1): 1, (0, 2): 1, (2, 1): 1}, (0, 2, 1)),
        {},
        (2, 1.5),
    ),
    "an all-reduce on its own ring takes 2 (n - 1) / n": (
        collective("all_reduce", 5),
        layout(5, ring(5)),
        {},
        (2 * 4 / 5 * 10, 1),
    ),
    "two rings of different strides halve it": (
        collective("all_reduce", 5),
        layout(5, ring(5) | ring(5, 2)),
        {"lowering": Lowering(rings=2)},
        (2 * 4 / 5 * 10 / 2, 1),
    ),
    "an all-to-all on a full mesh takes one part of the send buffer": (
        collective("all_to_all", 5),
        layout(5, dict.fromkeys(permutations(range(5), 2), 1)),
        {"ports": 4},
        (10 / 5, 1),
    ),
    # Each link carries n(n-1)/2 parts, one for each pair whose way leads over it.
    "an all-to-all on a one-way ring pays for the hops": (
        collective("all_to_all", 5),
        layout(5, ring(5), *AROUND),
        {},
        (5 * 4 / 2 * 10 / 5, 5 / 2),
    ),
    "circuits carry both ways at once": (THERE_AND_BACK, BOTH, {}, (3, 1)),
    "half-duplex circuits share the two ways": (THERE_AND_BACK, BOTH, {"duplex": "half"}, (6, 1)),
    # One port a server: what server 1 forwards enters and leaves through it.
    "half-duplex ports share what is forwarded": (
        (transfer("a", 0, 2, 2.0),),
        CHAIN,
        {"ports": 1, "duplex": "half"},
        (4, 2),
    ),
}


@pytest.mark.parametrize("rule", BY_HAND)
def test_fixed_circuits_take_what_was_counted_by_hand(rule):
    tasks, circuits, keys, expected = BY_HAND[rule]
    answer = run(graph(*tasks), circuits, **keys)
    assert (answer.iteration_ms, answer.traffic.bandwidth_tax) == pytest.approx(expected)
    assert answer.bound_ms <= answer.iteration_ms * (1 + 1e-9)


def test_a_transfer_over_three_hops_takes_one_time_and_three_links():
    answer = run(graph(transfer("far", 0, 3, 2.0)), CHAIN, latency_us=100.0)
    assert answer.iteration_ms == pytest.approx(2.1)
    traffic = answer.traffic
    assert (traffic.bandwidth_tax, traffic.mean_hops, traffic.longest_hops) == (3, 3, 3)
    assert traffic.link_busy.tolist() == pytest.approx([2 / 2.1] * 3)
    assert traffic.port_busy.tolist() == pytest.approx(
        [1 / 2.1] * 3 + [0]
    )  # one of two ports, forwarding included


@pytest.mark.parametrize(
    ("circuits", "words"),
    [
        (layout(3, {(0, 1): 3}), "3 circuits out of server 0, which has 2 ports"),
        (
            layout(4, {(0, 3): 1, (1, 3): 1, (2, 3): 1}),
            "3 circuits into server 3, which has 2 ports",
        ),
        (
            layout(3, {(0, 2): 1}, (0, 2, 1)),
            "uses a circuit from server 2 to server 1, which is not there",
        ),
        (
            Layout(layout(3, {(0, 2): 1}).circuits, {(0, 1): ((0, 2),)}),
            "does not lead from server 0 to server 1",
        ),
        (layout(2, {(1, 0): 1}), "server 0 sends to server 1, but no route leads there"),
        (layout(5, ring(5)), "joins 5 servers, but the cluster has 4"),
    ],
)
def test_a_layout_that_cannot_be_is_refused_in_words(circuits, words):
    machine = cluster(min(circuits.servers, 4), ports_per_server=2, switches=2)
    tasks = lower(graph(transfer("a", 0, 1, 1.0)))
    asked = FabricRequest(tasks, machine, Settings.of(), FabricOptions(layout=circuits))
    with pytest.raises(InputError, match=words):
        run_static(asked, NEVER)


def test_the_link_that_binds_is_named():
    later = (transfer("a", 3, 7, 4.0, "f"), transfer("b", 3, 7, 4.0, "f"))
    answer = run(graph(compute("f", 3, 1.0), *later), layout(8, {(3, 7): 2}))
    assert answer.bound_by == "link from server 3 to 7 (2 circuits) between 1 and 5 ms"
    assert answer.iteration_ms == answer.bound_ms == pytest.approx(5)


@pytest.mark.parametrize("seed", long_after(3, range(15)))
@pytest.mark.parametrize("variant", ["published", "released"])
def test_the_layout_that_topologyfinder_computes_carries_every_graph(seed, variant):
    machine = cluster(
        4, ports_per_server=2, switches=2, duplex=("full", "half")[seed % 2], latency_us=50.0
    )
    asked = FabricRequest(
        lower(random_graph(seed, tasks=40)),
        machine,
        Settings.of(),
        FabricOptions(topology_variant=variant),
    )
    answer = run_static(asked, NEVER)
    assert 0 < answer.bound_ms <= answer.iteration_ms
    assert not np.isnan(answer.execution.end_ms).any()
    assert (answer.traffic.link_busy <= 1 + 1e-9).all()
    assert (answer.traffic.port_busy <= 1 + 1e-9).all()
    assert answer.traffic.bandwidth_tax >= 1
    parts = answer.breakdown
    assert parts.compute_ms + parts.exposed_ms == pytest.approx(answer.iteration_ms)
