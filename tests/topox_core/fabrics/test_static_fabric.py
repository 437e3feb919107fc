"""Static circuits: several hops, parallel circuits, split paths, half duplex, layouts that do not work."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from tests.topox_core.small_graphs import GBIT_MS, cluster, compute, graph, random_graph, transfer
from topox_core.errors import InputError
from topox_core.fabrics.ideal import run_ideal
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


def run(
    tasks: TaskGraph,
    circuits: Layout | None,
    ports: int = 2,
    lowering: Lowering | None = None,
    **keys,
) -> FabricRun:
    machine = cluster(
        max(tasks.servers, circuits.servers if circuits else 0),
        ports_per_server=ports,
        switches=ports,
        **keys,
    )
    return run_static(
        FabricRequest(
            lower(tasks, lowering), machine, Settings.of(), FabricOptions(layout=circuits)
        ),
        NEVER,
    )


CHAIN = layout(4, {(0, 1): 1, (1, 2): 1, (2, 3): 1}, (0, 1, 2, 3), (0, 1, 2))


def ring(n: int, stride: int = 1) -> dict[tuple[int, int], int]:
    return {(i, (i + stride) % n): 1 for i in range(n)}


def test_a_transfer_over_three_hops_takes_one_time_and_three_links():
    answer = run(graph(transfer("far", 0, 3, 2.0)), CHAIN, latency_us=100.0)
    assert answer.iteration_ms == pytest.approx(2.1)
    traffic = answer.traffic
    assert (traffic.bandwidth_tax, traffic.mean_hops, traffic.longest_hops) == (3, 3, 3)
    assert traffic.link_busy.tolist() == pytest.approx([2 / 2.1] * 3)
    assert traffic.port_busy.tolist() == pytest.approx(
        [1 / 2.1] * 3 + [0]
    )  # one of two ports, forwarding included


def test_the_parking_lot():
    """A long way over three links that each carry one short transfer too: everybody gets half."""
    tasks = graph(
        transfer("long", 0, 3, 3.0), *(transfer(f"s{i}", i, i + 1, 1.0) for i in range(3))
    )
    assert run(tasks, CHAIN).execution.end_ms.tolist() == pytest.approx([4, 2, 2, 2])


def test_the_parking_lot_with_a_tight_first_link_leaves_the_rest_to_the_others():
    """Two short transfers beside the long one on link 0 -> 1: it gets a third there, and the others the rest elsewhere."""
    tasks = graph(
        transfer("long", 0, 3, 2.0),
        transfer("a", 0, 1, 2.0),
        transfer("b", 0, 1, 2.0),
        transfer("c", 1, 2, 2.0),
    )
    assert run(tasks, CHAIN).execution.end_ms.tolist() == pytest.approx([6, 6, 6, 3])


def test_the_bandwidth_tax_is_bytes_times_hops_over_bytes():
    answer = run(graph(transfer("relayed", 0, 2, 1.0), transfer("direct", 2, 3, 3.0)), CHAIN)
    assert answer.traffic.bandwidth_tax == pytest.approx((2 * 1 + 3) / 4)
    assert answer.traffic.longest_hops == 2


def test_parallel_circuits_add_up():
    answer = run(graph(transfer("a", 0, 1, 4.0)), layout(2, {(0, 1): 2}))
    assert answer.iteration_ms == pytest.approx(2)
    assert answer.traffic.link_gbps.tolist() == pytest.approx([200])


def test_bytes_are_split_evenly_over_the_routes_of_a_pair():
    """Half goes direct, half over server 2, each at a port's speed."""
    circuits = layout(3, {(0, 1): 1, (0, 2): 1, (2, 1): 1}, (0, 2, 1))
    answer = run(graph(transfer("a", 0, 1, 4.0)), circuits)
    assert answer.iteration_ms == pytest.approx(2)
    assert answer.traffic.bandwidth_tax == pytest.approx(1.5)


@pytest.mark.parametrize("n", [3, 8])
def test_a_ring_all_reduce_on_its_own_ring_takes_two_n_minus_one_over_n(n):
    tasks = graph(Task("c", "all_reduce", members=tuple(range(n)), size_bytes=10.0 * GBIT_MS))
    answer = run(tasks, layout(n, ring(n)))
    assert answer.iteration_ms == pytest.approx(2 * (n - 1) / n * 10)
    assert answer.bound_ms == pytest.approx(answer.iteration_ms)


def test_two_rings_of_different_strides_halve_the_all_reduce():
    tasks = graph(Task("c", "all_reduce", members=tuple(range(5)), size_bytes=10.0 * GBIT_MS))
    circuits = layout(5, ring(5) | ring(5, 2))
    assert run(tasks, circuits, lowering=Lowering(rings=2)).iteration_ms == pytest.approx(
        2 * 4 / 5 * 10 / 2
    )


def test_an_all_to_all_on_a_full_mesh_takes_one_part_of_the_send_buffer():
    n = 5
    tasks = graph(Task("c", "all_to_all", members=tuple(range(n)), size_bytes=10.0 * GBIT_MS))
    answer = run(tasks, layout(n, dict.fromkeys(permutations(range(n), 2), 1)), ports=n - 1)
    assert answer.iteration_ms == pytest.approx(10 / n)
    assert answer.traffic.link_busy.tolist() == pytest.approx([1] * n * (n - 1))


def test_an_all_to_all_on_a_one_way_ring_pays_for_the_hops():
    """On a ring of n each link carries n(n-1)/2 parts, one for each pair whose way leads over it."""
    n = 5
    tasks = graph(Task("c", "all_to_all", members=tuple(range(n)), size_bytes=10.0 * GBIT_MS))
    around = [tuple((i + k) % n for k in range(hops + 1)) for i in range(n) for hops in range(2, n)]
    answer = run(tasks, layout(n, ring(n), *around))
    assert answer.bound_ms == pytest.approx(n * (n - 1) / 2 * 10 / n)
    assert answer.iteration_ms == pytest.approx(answer.bound_ms)
    assert answer.traffic.bandwidth_tax == pytest.approx(n / 2)


def test_the_link_that_binds_is_named():
    circuits = layout(8, {(3, 7): 2})
    answer = run(
        graph(compute("f", 3, 1.0), transfer("a", 3, 7, 4.0, "f"), transfer("b", 3, 7, 4.0, "f")),
        circuits,
    )
    assert answer.bound_by == "link from server 3 to 7 (2 circuits) between 1 and 5 ms"
    assert answer.iteration_ms == answer.bound_ms == pytest.approx(5)


def test_half_duplex_circuits_share_the_two_ways():
    both = layout(2, {(0, 1): 1, (1, 0): 1})
    tasks = graph(transfer("there", 0, 1, 3.0), transfer("back", 1, 0, 3.0))
    assert run(tasks, both).iteration_ms == pytest.approx(3)
    half = run(tasks, both, duplex="half")
    assert half.iteration_ms == pytest.approx(6)
    assert half.bound_by == "circuits between servers 0 and 1, both ways between 0 and 6 ms"


def test_half_duplex_ports_share_what_is_forwarded():
    """One port a server: what server 1 forwards enters and leaves through it."""
    assert run(
        graph(transfer("a", 0, 2, 2.0)), CHAIN, ports=1, duplex="half"
    ).iteration_ms == pytest.approx(4)
    assert run(graph(transfer("a", 0, 2, 2.0)), CHAIN, ports=1).iteration_ms == pytest.approx(2)


def test_a_pair_without_a_route_is_named():
    with pytest.raises(InputError, match="server 3 sends to server 0, but no route leads there"):
        run(graph(transfer("back", 3, 0, 1.0)), CHAIN)


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
    ],
)
def test_a_layout_that_cannot_be_is_refused_in_words(circuits, words):
    with pytest.raises(InputError, match=words):
        run(graph(transfer("a", 0, 1, 1.0)), circuits)


def test_a_route_that_leads_elsewhere_is_refused():
    circuits = layout(3, {(0, 2): 1})
    wrong = Layout(circuits.circuits, {(0, 1): ((0, 2),)})
    with pytest.raises(InputError, match="does not lead from server 0 to server 1"):
        run(graph(transfer("a", 0, 1, 1.0)), wrong)


def test_a_layout_of_more_servers_than_the_cluster_has_is_refused():
    machine = cluster(2, ports_per_server=2, switches=2)
    asked = FabricRequest(
        lower(graph(transfer("a", 0, 1, 1.0))), machine, Settings.of(), FabricOptions(layout=CHAIN)
    )
    with pytest.raises(InputError, match="joins 4 servers, but the cluster has 2"):
        run_static(asked, NEVER)


@pytest.mark.parametrize("seed", range(15))
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


def test_a_full_mesh_with_parallel_circuits_is_no_faster_than_the_ideal_switch_on_one_transfer():
    circuits = layout(3, dict.fromkeys(permutations(range(3), 2), 1))
    tasks = graph(transfer("a", 0, 1, 4.0))
    machine = cluster(3, ports_per_server=2, switches=2)
    switch = run_ideal(FabricRequest(lower(tasks), machine, Settings.of()), NEVER)
    assert (run(tasks, circuits).iteration_ms, switch.iteration_ms) == (
        pytest.approx(4),
        pytest.approx(2),
    )


def test_an_all_reduce_runs_on_the_rings_that_topologyfinder_laid():
    """With all four ports on rings, 16 servers need a quarter of what one ring needs."""
    tasks = graph(Task("c", "all_reduce", members=tuple(range(16)), size_bytes=16.0 * GBIT_MS))
    answer = run(tasks, None, ports=4)
    assert answer.iteration_ms == pytest.approx(2 * 15 / 16 * 16 / 4)
    assert answer.traffic.bandwidth_tax == pytest.approx(1)
