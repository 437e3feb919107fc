"""The ideal switch and the fat-tree: closed forms, bounds, measures, bad options."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import long_after
from tests.topox_core.small_graphs import GBIT_MS, cluster, compute, graph, random_graph, transfer
from topox_core.errors import InputError
from topox_core.fabrics.ideal import run_ideal
from topox_core.fabrics.links import run_on_links
from topox_core.fabrics.packet import non_blocking, run_fat_tree
from topox_core.fabrics.run import FabricOptions, FabricRequest, FabricRun
from topox_core.io.task_graph_file import load_graph
from topox_core.model.lowering import lower
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.schedule.settings import Settings

NEVER = bool


def order(tasks: TaskGraph, machine=None, **options) -> FabricRequest:
    settings = Settings.of()
    return FabricRequest(
        lower(tasks, settings.lowering),
        machine or cluster(max(tasks.servers, 1)),
        settings,
        FabricOptions(**options),
    )


def ideal(tasks: TaskGraph, **keys) -> FabricRun:
    return run_ideal(order(tasks, cluster(max(tasks.servers, 1), **keys)), NEVER)


def fair(request: FabricRequest) -> FabricRun:
    """Fair shares on the ideal switch: one of the ways in which it may be used."""
    return run_on_links("ideal", request, non_blocking(request), NEVER)


def fat_tree(tasks: TaskGraph, servers: int = 0, **options) -> FabricRun:
    return run_fat_tree(order(tasks, cluster(servers or tasks.servers), **options), NEVER)


def collective(kind: str, members: int, ms: float) -> TaskGraph:
    return graph(Task("c", kind, members=tuple(range(members)), size_bytes=ms * GBIT_MS))


# Closed forms. A size of ``ms`` is what one port moves in that many milliseconds.


@pytest.mark.parametrize(("n", "ports"), [(2, 1), (3, 4), (17, 1)])
def test_a_ring_all_reduce_takes_two_n_minus_one_over_n_of_its_size(n, ports):
    run = ideal(collective("all_reduce", n, 12.0), ports_per_server=ports)
    assert run.iteration_ms == pytest.approx(2 * (n - 1) / n * 12.0 / ports, rel=1e-12)
    assert run.bound_ms == pytest.approx(run.iteration_ms, rel=1e-12)


TO_ONE = (transfer("a", 1, 0, 1.0), transfer("b", 2, 0, 1.0))
BOTH_WAYS = (transfer("there", 0, 1, 3.0), transfer("back", 1, 0, 3.0))
BY_HAND = {  # what runs, on what cluster, in how many ms, and what binds it
    "the receiver limits an incast": (
        TO_ONE,
        {"latency_us": 500.0},  # follows the last byte, and the bound knows
        (2.5, "in-ports of server 0 between 0 and 2 ms"),
    ),
    "three transfers of different size into one port end with the last byte": (
        tuple(transfer(f"t{s}", s, 0, float(s)) for s in (1, 2, 3)),
        {},
        (6, "in-ports of server 0 between 0 and 6 ms"),
    ),
    "an all-to-all moves all but one of n parts": (
        (Task("c", "all_to_all", members=tuple(range(5)), size_bytes=10.0 * GBIT_MS),),
        {},
        (8, "out-ports of server 0 between 0 and 8 ms"),
    ),
    "ports of both ways send and receive at once": (
        BOTH_WAYS,
        {},
        (3, "critical path, 1 task: there"),
    ),
    "half-duplex ports share what enters and leaves": (
        BOTH_WAYS,
        {"duplex": "half"},
        (6, "ports of server 0 between 0 and 6 ms"),
    ),
    "a chain binds": (
        (compute("f", 0, 3.0), transfer("act", 0, 1, 1.0, "f"), compute("g", 1, 2.0, "act")),
        {},
        (6, "critical path, 3 tasks: f → act → g"),
    ),
    "a device binds": (
        (compute("f", 0, 3.0), compute("g", 0, 2.0), compute("h", 0, 4.0)),
        {},
        (9, "the device of server 0 between 0 and 9 ms"),
    ),
    "what moves no bytes takes no time": (
        (Task("join", "barrier"), transfer("empty", 0, 1, 0.0, "join")),
        {},
        (0, "nothing to do"),
    ),
}


@pytest.mark.parametrize("rule", BY_HAND)
def test_the_ideal_switch_takes_what_was_counted_by_hand_and_names_what_binds_it(rule):
    tasks, keys, expected = BY_HAND[rule]
    run = ideal(graph(*tasks), **keys)
    assert run.iteration_ms == run.bound_ms == pytest.approx(expected[0])
    assert run.bound_by.startswith(expected[1])


# The fat-tree.


@pytest.mark.parametrize("seed", range(6))
def test_a_fat_tree_with_full_uplinks_shares_the_ideal_switch_fairly_and_is_never_faster(seed):
    tasks = random_graph(seed)
    request = order(tasks, cluster(4))
    shared = fair(request)
    assert fat_tree(tasks, 4).iteration_ms == shared.iteration_ms
    in_racks = fat_tree(tasks, 4, servers_per_rack=2)
    assert in_racks.execution.end_ms == pytest.approx(shared.execution.end_ms, rel=1e-9)
    assert run_ideal(request, NEVER).iteration_ms <= shared.iteration_ms


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
def test_the_links_of_a_fat_tree_by_hand(tasks, options, expected_ms, bound_by):
    run = fat_tree(graph(*(transfer(f"t{a}", a, b, 1.0) for a, b in tasks)), **options)
    assert run.iteration_ms == pytest.approx(expected_ms)
    assert run.bound_by.startswith(bound_by)


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("oversubscription", 0.5, "must be at least 1"),
        ("oversubscription", float("nan"), "must be at least 1"),
        ("servers_per_rack", -1, "at least 0"),
        ("servers_per_rack", 1.5, "whole number"),
        ("equivalent_gbps", 0.0, "greater than 0"),
        ("equivalent_gbps", float("inf"), "greater than 0"),
    ],
)
def test_a_wrong_option_is_named(option, value, words):
    with pytest.raises(InputError, match=words) as error:
        fat_tree(graph(*TO_ONE), **{option: value})
    assert error.value.field == option


# What every run promises.

FABRICS = (run_ideal, run_fat_tree)


@pytest.mark.parametrize("seed", long_after(6, range(25)))
@pytest.mark.parametrize("run", FABRICS)
def test_no_iteration_ends_before_its_bound_and_the_four_shares_add_up_to_it(seed, run):
    machine = cluster(4, latency_us=float(seed % 3) * 100, duplex=("full", "half")[seed % 2])
    answer = run(
        order(random_graph(seed, tasks=40), machine, servers_per_rack=2, oversubscription=3.0),
        NEVER,
    )
    assert 0 < answer.bound_ms <= answer.iteration_ms
    parts = answer.breakdown
    assert parts.compute_ms + parts.exposed_ms == pytest.approx(answer.iteration_ms)
    assert (
        abs(parts.dark_ms) + abs(parts.waiting_ms) < 1e-6
    )  # nothing is dark, and nobody waits without a reason
    assert (answer.traffic.link_busy <= 1 + 1e-9).all()
    assert (answer.traffic.port_busy <= 1 + 1e-9).all()


@pytest.mark.parametrize("seed", long_after(3, range(10)))
def test_precedence_and_devices_are_respected(seed):
    execution = run_ideal(order(random_graph(seed, tasks=60), cluster(4)), NEVER).execution
    g = execution.graph
    for i in range(len(g)):
        before = g.pred_idx[g.pred_ptr[i] : g.pred_ptr[i + 1]]
        assert (execution.end_ms[before] <= execution.start_ms[i]).all()
    for server in range(4):
        own = np.flatnonzero((g.server == server) & (execution.end_ms > execution.start_ms))
        own = own[np.argsort(execution.start_ms[own])]
        assert (execution.end_ms[own][:-1] <= execution.start_ms[own][1:]).all()


def test_links_and_ports_are_measured():
    traffic = ideal(graph(transfer("a", 0, 1, 2.0), transfer("b", 0, 2, 2.0))).traffic
    assert (traffic.bandwidth_tax, traffic.mean_hops, traffic.longest_hops) == (1, 1, 1)
    ends = list(zip(traffic.link_source.tolist(), traffic.link_destination.tolist(), strict=True))
    assert ends == [(0, -1), (1, -1), (2, -1), (-1, 0), (-1, 1), (-1, 2)]
    assert traffic.link_busy.tolist() == pytest.approx([1, 0, 0, 0, 0.5, 0.5])
    assert traffic.port_busy.tolist() == pytest.approx([1, 0, 0])


def test_the_iteration_of_topoopts_dlrm_on_an_ideal_switch_is_ring_traffic_after_the_first_backward_pass(
    real_inputs,
):
    """DLRM No. 2 on 16 servers of 4 x 10 Gbit/s: 574.4 MB of all-reduce and 62.9 MB more leave each server."""
    path = real_inputs / "flexnet" / "10dlrm_16.fbuf"
    run = ideal(
        load_graph(path.read_bytes(), path.name),
        ports_per_server=4,
        switches=4,
        port_gbps=10.0,
        ports_per_switch=16,
    )
    sent = 2 * 15 / 16 * 306.34e6 + 30 * 2_097_152
    assert run.bound_ms == pytest.approx(1.613 + sent / 5e6, rel=1e-3)
    assert run.bound_ms <= run.iteration_ms < 1.05 * run.bound_ms
