"""The ideal switch and the fat-tree: closed forms, bounds, measures, bad options."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from tests.topox_core.small_graphs import GBIT_MS, cluster, compute, graph, random_graph, transfer
from topox_core.errors import InputError
from topox_core.fabrics.fluid import Stopped
from topox_core.fabrics.ideal import run_ideal
from topox_core.fabrics.links import run_on_links
from topox_core.fabrics.packet import non_blocking, run_fat_tree
from topox_core.fabrics.run import FabricOptions, FabricRequest, FabricRun
from topox_core.io.task_graph_file import load_graph
from topox_core.io.task_graph_rules import validated
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


def to_one(senders: int, ms: float) -> TaskGraph:
    return graph(*(transfer(f"t{s}", s, 0, ms) for s in range(1, senders + 1)))


# Closed forms. A size of ``ms`` is what one port moves in that many milliseconds.


@pytest.mark.parametrize("n", [2, 3, 8, 17])
@pytest.mark.parametrize("ports", [1, 4])
def test_a_ring_all_reduce_takes_two_n_minus_one_over_n_of_its_size(n, ports):
    run = ideal(collective("all_reduce", n, 12.0), ports_per_server=ports)
    assert run.iteration_ms == pytest.approx(2 * (n - 1) / n * 12.0 / ports, rel=1e-12)
    assert run.bound_ms == pytest.approx(run.iteration_ms, rel=1e-12)


def test_the_receiver_limits_an_incast():
    run = ideal(to_one(6, 2.0))
    assert run.iteration_ms == pytest.approx(12)
    assert run.bound_by == "in-ports of server 0 between 0 and 12 ms"
    assert run.bound_ms == pytest.approx(12)


def test_an_incast_of_unequal_transfers_ends_one_by_one():
    """Three transfers of 1, 2 and 3 ms into one port: at 3, 5 and 6 ms."""
    run = ideal(graph(*(transfer(f"t{s}", s, 0, float(s)) for s in (1, 2, 3))))
    assert run.execution.end_ms.tolist() == pytest.approx([3, 5, 6])


def test_an_all_to_all_takes_n_minus_one_over_n_of_the_send_buffer():
    assert ideal(collective("all_to_all", 5, 10.0)).iteration_ms == pytest.approx(8)


def test_max_min_fairness_on_a_switch_by_hand():
    """A sends to X and Y, B sends to Y: at A's port both get half, B gets the half of Y that is left and no more."""
    run = ideal(
        graph(transfer("ax", 0, 2, 1.0), transfer("ay", 0, 3, 1.0), transfer("by", 1, 3, 1.0))
    )
    assert run.execution.end_ms.tolist() == pytest.approx([2, 2, 2])
    # With a second sender into Y the three there get a third each, and A gives the rest to X.
    run = ideal(
        graph(
            transfer("ax", 0, 2, 2.0),
            transfer("ay", 0, 3, 1.0),
            transfer("by", 1, 3, 1.0),
            transfer("cy", 4, 3, 1.0),
        )
    )
    assert run.execution.end_ms.tolist() == pytest.approx([3, 3, 3, 3])


def test_half_duplex_ports_share_what_enters_and_leaves():
    tasks = graph(transfer("there", 0, 1, 3.0), transfer("back", 1, 0, 3.0))
    assert ideal(tasks).iteration_ms == pytest.approx(3)
    assert ideal(tasks, duplex="half").iteration_ms == pytest.approx(6)


# The fat-tree.


def test_a_fat_tree_of_one_rack_shares_the_ideal_switch_fairly_and_is_never_faster():
    for seed in range(10):
        tasks = random_graph(seed)
        request = order(tasks, cluster(4))
        tree = fat_tree(tasks, 4).iteration_ms
        assert tree == fair(request).iteration_ms
        assert run_ideal(request, NEVER).iteration_ms <= tree


def test_a_fat_tree_that_is_not_oversubscribed_is_the_ideal_switch():
    for seed in range(10):
        tasks = random_graph(seed)
        plain = fair(order(tasks, cluster(4)))
        assert fat_tree(tasks, 4, servers_per_rack=2).execution.end_ms == pytest.approx(
            plain.execution.end_ms, rel=1e-9
        )


def test_oversubscription_slows_what_leaves_the_rack_and_nothing_else():
    """Racks of two, 4:1: a rack's uplink is half a port."""
    across = graph(transfer("a", 0, 2, 1.0), transfer("b", 1, 3, 1.0))
    run = fat_tree(across, servers_per_rack=2, oversubscription=4.0)
    assert run.iteration_ms == pytest.approx(4)
    assert run.bound_by == "up link of rack 0 between 0 and 4 ms"
    within = graph(transfer("a", 0, 1, 1.0), transfer("b", 2, 3, 1.0))
    assert fat_tree(within, servers_per_rack=2, oversubscription=4.0).iteration_ms == pytest.approx(
        1
    )


def test_the_last_rack_has_the_uplink_of_the_servers_it_has():
    """Three servers in racks of two: the third is alone, its 2:1 uplink is half a port."""
    assert fat_tree(
        graph(transfer("a", 2, 0, 1.0)), servers_per_rack=2, oversubscription=2.0
    ).iteration_ms == pytest.approx(2)


def test_the_cost_equivalent_fat_tree_has_one_nic_of_the_given_speed():
    assert fat_tree(to_one(2, 1.0), equivalent_gbps=25.0).iteration_ms == pytest.approx(8)


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
        fat_tree(to_one(2, 1.0), **{option: value})
    assert error.value.field == option


def test_a_server_that_the_cluster_does_not_have_is_named():
    for run in (run_ideal, run_fat_tree):
        with pytest.raises(InputError, match="names server 6"):
            run(order(to_one(6, 1.0), cluster(3)), NEVER)


def test_a_run_that_is_told_to_stop_does():
    chain = [transfer("t0", 0, 1, 1.0)]
    chain += [transfer(f"t{i}", i % 2, 1 - i % 2, 1.0, f"t{i - 1}") for i in range(1, 500)]
    with pytest.raises(Stopped):
        run_ideal(order(graph(*chain)), lambda: True)


# What every run promises.

FABRICS = (run_ideal, run_fat_tree)


@pytest.mark.parametrize("seed", range(25))
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


@pytest.mark.parametrize("seed", range(10))
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


@pytest.mark.parametrize("seed", range(10))
def test_relabelling_the_servers_changes_nothing(seed):
    tasks = random_graph(seed, tasks=40, collectives=False)
    label = random.Random(seed).sample(range(4), 4)

    def moved(task: Task) -> Task:
        new = {
            name: label[value]
            for name in ("server", "source", "destination")
            if (value := getattr(task, name)) is not None
        }
        return replace(task, **new)

    relabelled = validated("test", tuple(moved(task) for task in tasks.tasks), "test")
    one, other = (fair(order(t, cluster(4))).execution.end_ms for t in (tasks, relabelled))
    assert one == pytest.approx(other, rel=1e-9)


def test_links_and_ports_are_measured():
    run = ideal(graph(transfer("a", 0, 1, 2.0), transfer("b", 0, 2, 2.0)))
    traffic = run.traffic
    assert (traffic.bandwidth_tax, traffic.mean_hops, traffic.longest_hops) == (1, 1, 1)
    ends = list(zip(traffic.link_source.tolist(), traffic.link_destination.tolist(), strict=True))
    assert ends == [(0, -1), (1, -1), (2, -1), (-1, 0), (-1, 1), (-1, 2)]
    assert traffic.link_busy.tolist() == pytest.approx([1, 0, 0, 0, 0.5, 0.5])
    assert traffic.port_busy.tolist() == pytest.approx([1, 0, 0])
    assert traffic.link_gbps.tolist() == pytest.approx([100] * 6)


def test_a_chain_that_binds_is_named():
    run = ideal(
        graph(compute("f", 0, 3.0), transfer("act", 0, 1, 1.0, "f"), compute("g", 1, 2.0, "act"))
    )
    assert (run.bound_ms, run.bound_by) == (pytest.approx(6), "critical path, 3 tasks: f → act → g")
    assert (run.breakdown.compute_ms, run.breakdown.exposed_ms) == (
        pytest.approx(5),
        pytest.approx(1),
    )


def test_a_device_that_binds_is_named():
    run = ideal(graph(compute("f", 0, 3.0), compute("g", 0, 2.0), compute("h", 0, 4.0)))
    assert (run.bound_ms, run.bound_by) == (9, "the device of server 0 between 0 and 9 ms")


def test_the_bound_of_a_link_knows_that_latency_follows_the_last_byte():
    run = ideal(to_one(2, 1.0), latency_us=500.0)
    assert (run.bound_ms, run.iteration_ms) == (pytest.approx(2.5), pytest.approx(2.5))


def test_without_exclusive_devices_nobody_waits_for_one():
    asked = order(graph(compute("f", 0, 3.0), compute("g", 0, 2.0)), cluster(1))
    run = run_ideal(replace(asked, settings=Settings.of(exclusive_devices=False)), NEVER)
    assert (run.iteration_ms, run.bound_ms) == (3, 3)


def test_a_graph_without_work_takes_no_time():
    run = ideal(graph(Task("join", "barrier"), transfer("empty", 0, 1, 0.0, "join")))
    assert (run.iteration_ms, run.bound_ms, run.bound_by, run.traffic.bandwidth_tax) == (
        0,
        0,
        "nothing to do",
        1,
    )
    assert run.traffic.longest_hops == 0


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
