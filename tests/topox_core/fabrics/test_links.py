"""Fabrics whose transfers share links: ideal switch, fat-tree and static circuits by hand, bounds and measures."""

from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import long_after
from tests.topox_core.small_graphs import (
    GBIT_MS,
    cluster,
    collective,
    compute,
    graph,
    random_graph,
    transfer,
)
from topox_core.economics.clusters import same_cost_nic_gbps
from topox_core.fabrics.comparison.compare import run_one
from topox_core.fabrics.fluid.links import SLOWER_BY_PRICE
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.run import FabricRequest, FabricRun
from topox_core.io.task_graph_file import load_graph
from topox_core.model.execution import Layout
from topox_core.model.lowering.lowering import lower
from topox_core.model.lowering_choices import Lowering
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.schedule.settings import Settings


def run(
    fabric: str, tasks: TaskGraph, options: dict[str, Any], lowering: Any = None, **keys: Any
) -> FabricRun:
    circuits = options.get("layout")
    of = cluster(max(tasks.servers, circuits.servers if circuits else 1), **keys)
    lowered = lower(tasks, lowering)
    return run_one(fabric, FabricRequest(lowered, of, Settings.of(), FabricOptions(**options)))


def fixed(tasks: TaskGraph, circuits: Layout, **keys: Any) -> FabricRun:
    two_ports = {"ports_per_server": 2, "switches": 2}
    return run("static", tasks, {"layout": circuits}, **two_ports | keys)


# -- packet switches. A size of ``ms`` is what one port moves in that many milliseconds -------------


TO_ONE = (transfer("a", 1, 0, 1.0), transfer("b", 2, 0, 1.0))
BOTH_WAYS = (transfer("there", 0, 1, 3.0), transfer("back", 1, 0, 3.0))
ON_THE_IDEAL_SWITCH = {  # what runs, on what cluster, in how many ms, and what binds it
    "the receiver limits an incast": (
        TO_ONE,
        {"latency_us": 500.0},  # follows the last byte, and the bound knows
        (2.5, "in-ports of server 0, busy from 0 to 2 ms, and 0.5 ms must follow"),
    ),
    "a ring all-reduce takes two (n - 1) / n of its size, over all ports": (
        (collective("all_reduce", 3, 12.0 * GBIT_MS),),
        {"ports_per_server": 4},
        (4, "critical path, 1 task: c"),
    ),
    "three transfers of different size into one port end with the last byte": (
        tuple(transfer(f"t{s}", s, 0, float(s)) for s in (1, 2, 3)),
        {},
        (6, "in-ports of server 0, busy from 0 to 6 ms"),
    ),
    "an all-to-all moves all but one of n parts": (
        (collective("all_to_all", 5, 10.0 * GBIT_MS),),
        {},
        (8, "out-ports of server 0, busy from 0 to 8 ms"),
    ),
    "ports of both ways send and receive at once": (
        BOTH_WAYS,
        {},
        (3, "critical path, 1 task: there"),
    ),
    "also where the ports of optical switches go one way at a time": (
        BOTH_WAYS,
        {"duplex": "half"},
        (3, "critical path, 1 task: there"),
    ),
    "a chain binds": (
        (compute("f", 0, 3.0), transfer("act", 0, 1, 1.0, "f"), compute("g", 1, 2.0, "act")),
        {},
        (6, "critical path, 3 tasks: f → act → g"),
    ),
    "a device binds": (
        (compute("f", 0, 3.0), compute("g", 0, 2.0), compute("h", 0, 4.0)),
        {},
        (9, "the device of server 0, busy from 0 to 9 ms"),
    ),
    "what moves no bytes takes no time": (
        (Task("join", "barrier"), transfer("empty", 0, 1, 0.0, "join")),
        {},
        (0, "nothing to do"),
    ),
}


@pytest.mark.parametrize("rule", ON_THE_IDEAL_SWITCH)
def test_the_ideal_switch_takes_what_was_counted_by_hand_and_names_what_binds_it(rule: str) -> None:
    tasks, keys, expected = ON_THE_IDEAL_SWITCH[rule]
    answer = run("ideal", graph(*tasks), {}, **keys)
    assert answer.iteration_ms == answer.bound_ms == pytest.approx(expected[0])
    assert answer.bound_by.startswith(expected[1])


@pytest.mark.parametrize("seed", range(6))
def test_full_uplinks_make_racks_of_a_fat_tree_one(seed: int) -> None:
    tasks = random_graph(seed)
    one, racks = (
        run("fat_tree", tasks, {"servers_per_rack": each}, ports_per_switch=4) for each in (0, 2)
    )
    assert racks.execution.end_ms == pytest.approx(one.execution.end_ms, rel=1e-9)


@pytest.mark.parametrize(
    ("tasks", "options", "expected_ms", "bound_by"),
    [
        # Racks of two, 4:1: a rack's uplink is half a port, and nobody needs it within a rack.
        (
            ((0, 2), (1, 3)),
            {"servers_per_rack": 2, "oversubscription": 4.0},
            4,
            "up link of rack 0",
        ),
        (
            ((0, 1), (2, 3)),
            {"servers_per_rack": 2, "oversubscription": 4.0},
            1,
            "critical path",
        ),
        # The third server is alone in its rack: its 2:1 uplink is half a port.
        (((2, 0),), {"servers_per_rack": 2, "oversubscription": 2.0}, 2, "critical path"),
        # One NIC of a quarter of a port.
        (((1, 0), (2, 0)), {"equivalent_gbps": 25.0}, 8, "in-ports of server 0"),
    ],
)
def test_the_links_of_a_fat_tree_by_hand(
    tasks: tuple, options: dict[str, Any], expected_ms: float, bound_by: str
) -> None:
    job = graph(*(transfer(f"t{a}", a, b, 1.0) for a, b in tasks))
    answer = run("fat_tree", job, options)
    assert answer.iteration_ms == pytest.approx(expected_ms)
    assert answer.bound_by.startswith(bound_by)


def test_a_fat_tree_of_the_same_cost_says_where_faster_ports_make_it_slower() -> None:
    """10 ms of a port whatever its speed; the same money buys 9.35G beside a port of 10G, 37.5G beside one of 100G."""
    given = graph(Task("t", "communication", source=0, destination=1, duration_ms=10.0))
    sized = graph(transfer("t", 0, 1, 10.0))
    times_ms = {}
    for gbps in (10.0, 100.0):
        of = cluster(2, port_gbps=gbps)
        nic_gbps = same_cost_nic_gbps(of)
        for job in (given, sized):
            one = run(
                "fat_tree", job, {"equivalent_gbps": nic_gbps}, ports_per_switch=2, port_gbps=gbps
            )
            assert (SLOWER_BY_PRICE in one.message) == (job is given)
            times_ms[job is given, gbps] = one.iteration_ms
            assert one.iteration_ms == pytest.approx(
                (10.0 if job is given else 1000.0 / gbps) * gbps / nic_gbps
            )
    assert times_ms[True, 100.0] > 2 * times_ms[True, 10.0]
    assert times_ms[False, 100.0] < times_ms[False, 10.0]
    assert SLOWER_BY_PRICE not in run("fat_tree", given, {}).message


def test_packet_nics_send_and_receive_at_once_and_half_duplex_circuits_do_not() -> None:
    """3 ms there and 3 ms back, on all the ports that a fabric gives them: 3 ms on packets, 6 on circuits."""
    job, half = graph(*BOTH_WAYS), {"ports_per_server": 1, "switches": 1, "duplex": "half"}
    on_packets = {
        "ideal": {},
        "fat_tree": {},
        "fat_tree_full": {},
        "regional": {"regional_packet_ports": 1},
    }
    for name, options in on_packets.items():
        one = run(name, job, options, **half)
        assert one.iteration_ms == one.bound_ms == pytest.approx(3), name
    circuits = run("static", job, {}, **half)
    assert circuits.iteration_ms == circuits.bound_ms == pytest.approx(6)


def test_bytes_that_go_direct_pay_no_tax() -> None:
    job = graph(transfer("a", 0, 1, 2.0), transfer("b", 0, 2, 2.0))
    traffic = run("ideal", job, {}).traffic
    assert (traffic.bandwidth_tax, traffic.mean_hops, traffic.longest_hops) == (1, 1, 1)


def test_the_iteration_of_topoopts_dlrm_on_an_ideal_switch_is_ring_traffic_after_the_first_backward_pass(
    real_inputs: Path,
) -> None:
    """DLRM No. 2 on 16 servers of 4 x 10 Gbit/s: 574.4 MB of all-reduce and 62.9 MB more leave each server."""
    path = real_inputs / "flexnet" / "10dlrm_16.fbuf"
    four = {"ports_per_server": 4, "switches": 4, "port_gbps": 10.0, "ports_per_switch": 16}
    answer = run("ideal", load_graph(path.read_bytes(), path.name), {}, **four)
    sent = 2 * 15 / 16 * 306.34e6 + 30 * 2_097_152
    assert answer.bound_ms == pytest.approx(1.613 + sent / 5e6, rel=1e-3)
    assert answer.bound_ms <= answer.iteration_ms < 1.05 * answer.bound_ms


# -- fixed circuits --------------------------------------------------------------------------------


def layout(servers: int, links: dict[tuple[int, int], int], *routes: tuple[int, ...]) -> Layout:
    """Return circuits by (source, destination), with routes for what has no direct link."""
    circuits = np.zeros((servers, servers), np.int32)
    for pair, parallel in links.items():
        circuits[pair] = parallel
    table = {pair: (pair,) for pair in links}
    for route in routes:
        table[route[0], route[-1]] = (*table.get((route[0], route[-1]), ()), route)
    return Layout(circuits, table, "by hand")


CHAIN = layout(4, {(0, 1): 1, (1, 2): 1, (2, 3): 1}, (0, 1, 2, 3), (0, 1, 2))


def ring(n: int, stride: int = 1) -> dict[tuple[int, int], int]:
    return {(i, (i + stride) % n): 1 for i in range(n)}


BOTH = layout(2, {(0, 1): 1, (1, 0): 1})
AROUND = [tuple((i + k) % 5 for k in range(hops + 1)) for i in range(5) for hops in range(2, 5)]


ON_FIXED_CIRCUITS = {  # tasks, circuits, what else is known; in how many ms, at what bandwidth tax
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
        (collective("all_reduce", 5, 10.0 * GBIT_MS),),
        layout(5, ring(5)),
        {},
        (2 * 4 / 5 * 10, 1),
    ),
    "two rings of different strides halve it": (
        (collective("all_reduce", 5, 10.0 * GBIT_MS),),
        layout(5, ring(5) | ring(5, 2)),
        {"lowering": Lowering(rings=2)},
        (2 * 4 / 5 * 10 / 2, 1),
    ),
    "an all-to-all on a full mesh takes one part of the send buffer": (
        (collective("all_to_all", 5, 10.0 * GBIT_MS),),
        layout(5, dict.fromkeys(permutations(range(5), 2), 1)),
        {"ports_per_server": 4, "switches": 4},
        (10 / 5, 1),
    ),
    # Each link carries n(n-1)/2 parts, one for each pair whose way leads over it.
    "an all-to-all on a one-way ring pays for the hops": (
        (collective("all_to_all", 5, 10.0 * GBIT_MS),),
        layout(5, ring(5), *AROUND),
        {},
        (5 * 4 / 2 * 10 / 5, 5 / 2),
    ),
    "circuits carry both ways at once": (BOTH_WAYS, BOTH, {}, (3, 1)),
    "half-duplex circuits share the two ways": (BOTH_WAYS, BOTH, {"duplex": "half"}, (6, 1)),
    # One port a server: what server 1 forwards enters and leaves through it.
    "half-duplex ports share what is forwarded": (
        (transfer("a", 0, 2, 2.0),),
        CHAIN,
        {"ports_per_server": 1, "switches": 1, "duplex": "half"},
        (4, 2),
    ),
}


@pytest.mark.parametrize("rule", ON_FIXED_CIRCUITS)
def test_fixed_circuits_take_what_was_counted_by_hand(rule: str) -> None:
    tasks, circuits, keys, expected = ON_FIXED_CIRCUITS[rule]
    answer = fixed(graph(*tasks), circuits, **keys)
    assert (answer.iteration_ms, answer.traffic.bandwidth_tax) == pytest.approx(expected)
    assert answer.bound_ms <= answer.iteration_ms * (1 + 1e-9)


def test_a_transfer_over_three_hops_takes_one_time_and_three_links() -> None:
    answer = fixed(graph(transfer("far", 0, 3, 2.0)), CHAIN, latency_us=100.0)
    assert answer.iteration_ms == pytest.approx(2.1)
    traffic = answer.traffic
    assert (traffic.bandwidth_tax, traffic.mean_hops, traffic.longest_hops) == (3, 3, 3)


def test_the_link_that_binds_is_named() -> None:
    later = (transfer("a", 3, 7, 4.0, "f"), transfer("b", 3, 7, 4.0, "f"))
    answer = fixed(graph(compute("f", 3, 1.0), *later), layout(8, {(3, 7): 2}))
    assert answer.bound_by == "link from server 3 to 7 (2 circuits), busy from 1 to 5 ms"
    assert answer.iteration_ms == answer.bound_ms == pytest.approx(5)


# -- what every run promises -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", long_after(6, range(12)))
@pytest.mark.parametrize("fabric", ["ideal", "fat_tree", "published", "released"])
def test_bounds_shares_precedence_devices_and_links_are_kept(fabric: str, seed: int) -> None:
    options = {"servers_per_rack": 2, "oversubscription": 3.0}
    if fabric in ("published", "released"):
        fabric, options = "static", {"topology_variant": fabric}
    keys = {"latency_us": seed % 3 * 100.0, "duplex": ("full", "half")[seed % 2]}
    tasks = random_graph(seed, tasks=40)
    answer = run(fabric, tasks, options, ports_per_server=2, switches=2, **keys)
    # The bound counts the load of every link: none carried more than it can.
    assert 0 < answer.bound_ms <= answer.iteration_ms
    parts = answer.breakdown
    assert parts.compute_ms + parts.exposed_ms == pytest.approx(answer.iteration_ms)
    # Nothing is dark, and nobody waits without a reason.
    assert abs(parts.dark_ms) + abs(parts.waiting_ms) < 1e-6
    assert answer.traffic.bandwidth_tax >= 1
    g, start, end = answer.execution.graph, answer.execution.start_ms, answer.execution.end_ms
    waiting = np.repeat(np.arange(len(g)), np.diff(g.pred_ptr))
    assert (end[g.pred_idx] <= start[waiting]).all()
    for server in range(4):
        own = np.flatnonzero((g.server == server) & (end > start))
        assert all(end[a] <= start[b] for a, b in pairwise(own[np.argsort(start[own])]))
