"""Circuits that are re-evaluated at intervals, by hand and against fixed ones; gating that changes by iteration."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.conftest import examples, long_after
from tests.refusal import refusal
from tests.topox_core.fabrics.asked import LIST, request
from tests.topox_core.small_graphs import cluster, graph, sample_with, transfer
from topox_core.api import load_sample
from topox_core.economics.clusters import cluster_bill
from topox_core.economics.price_sets import PRICE_SETS, SET_BY_SPEED
from topox_core.fabrics.comparison.compare import run_one
from topox_core.fabrics.comparison.gated_iterations import (
    FAT_TREE,
    NETWORKS,
    PACKET_PORTS,
    REGIONAL,
    STATIC,
    gated_networks,
)
from topox_core.fabrics.controllers.gating import Gating
from topox_core.fabrics.controllers.reevaluated import mean_ms, reevaluated, reevaluated_in_turn
from topox_core.fabrics.fixed.static import laid_by
from topox_core.fabrics.fluid.links import static_layout, wired
from topox_core.fabrics.fluid.simulator import Pairs, Simulation
from topox_core.fabrics.run import FabricRequest
from topox_core.model.execution import Layout
from topox_core.model.lowering.lowering import lower
from topox_core.runs.run import never
from topox_core.topology.greedy import greedy_circuits, repaired, with_kept
from topox_core.topology.routing import RoutedNetwork


def ring(circuits: int) -> Layout:
    """Servers 0 -> 1 -> 2 -> 0, with the routes over it."""
    around = [(a, (a + 1) % 3, (a + 2) % 3) for a in range(3)]
    routes = {(a, b): ((a, b),) for a, b, _ in around} | {
        (a, c): ((a, b, c),) for a, b, c in around
    }
    return Layout(circuits * np.roll(np.eye(3, dtype=np.int32), 1, axis=1), routes)


def far(delay_ms: float = 0.0, **options: object) -> FabricRequest:
    """8 ms from server 0 to 2, which no circuit joins at first; two ports a server."""
    return request(
        graph(transfer("far", 0, 2, 8.0)),
        cluster(3, ports_per_server=2, switches=2, reconfiguration_ms=delay_ms),
        layout=ring(2),
        **options,
    )


@pytest.mark.parametrize(
    ("delay_ms", "options", "expected"),
    [
        # Evaluated at 5 ms, up at 6, then 8 ms on two circuits; the next iterations find them there.
        (1.0, {"reevaluate_ms": 5.0, "forwarding": False}, [10, 4, 4]),
        # At 1 ms 6 of 8 ms are left; two new circuits carry them, forwarded or not, as fast.
        (0.0, {"reevaluate_ms": 1.0}, [4]),
        # Both circuits of the way are given up for the direct ones: either pause stops the transfer.
        (0.5, {"reevaluate_ms": 1.0, "pause": "all"}, [4.5]),
        (0.5, {"reevaluate_ms": 1.0, "pause": "changed"}, [4.5]),
    ],
)
def test_a_transfer_whose_circuits_change_on_its_way_by_hand(
    delay_ms: float, options: dict[str, Any], expected: list[float]
) -> None:
    runs = reevaluated(far(delay_ms, **options), never)
    times = [one.execution.makespan_ms for one in runs for _ in range(one.times)]
    assert times[: len(expected)] == pytest.approx(expected)
    if options == {"reevaluate_ms": 1.0}:
        assert runs[0].traffic.bandwidth_tax == pytest.approx((2 * 2 + 6) / 8)


def test_a_pause_of_all_also_stops_what_does_not_change() -> None:
    """A transfer on circuits that stay goes on if only those that change are dark."""
    both = lower(graph(transfer("far", 0, 2, 9.0), transfer("near", 1, 2, 4.0)))
    paused, changed = (
        reevaluated(replace(far(2.0, reevaluate_ms=1.0, pause=pause), graph=both), never)[0]
        for pause in ("all", "changed")
    )
    assert changed.execution.makespan_ms < paused.execution.makespan_ms


@pytest.mark.parametrize("name", long_after(2, ["race", "patience", "dlrm-16", "moe"]))
def test_until_the_first_interval_ends_it_is_the_fabric_of_fixed_circuits(name: str) -> None:
    order = request(*load_sample(name), reevaluate_ms=1e9)
    fixed, run = run_one("static", order), reevaluated(order, never)[0]
    assert run.execution.makespan_ms == pytest.approx(fixed.iteration_ms, rel=1e-12)
    assert run.changed == 0 and run.dark_ms == 0
    assert run.traffic.bandwidth_tax == pytest.approx(fixed.traffic.bandwidth_tax)
    assert run.traffic.longest_hops == fixed.traffic.longest_hops


@pytest.mark.parametrize(
    ("name", "variant"), long_after(1, [("race", "published"), ("dlrm-16", "released")])
)
def test_a_run_that_is_carried_over_goes_on_as_if_nothing_happened(name: str, variant: str) -> None:
    """Between any two events, several times over, onto the same links; over several paths bytes are dealt anew."""
    task_graph, one = load_sample(name)
    layout, moved = static_layout(lower(task_graph), one, variant, 0)
    pairs = Pairs.of(moved, one)
    network = wired(layout.layout, pairs, one).network
    whole, cut = (Simulation(moved, one, pairs, network) for _ in range(2))
    while whole.advance(100):
        pass
    for now_ms in np.linspace(0.05, 0.95, 9) * whole.now_ms:
        while cut.advance(100, now_ms):
            pass
        cut = cut.moved_to(network, now_ms)
    while cut.advance(100):
        pass
    assert cut.over
    assert cut.state.end == pytest.approx(whole.state.end, rel=1e-9)


def test_the_typical_iteration_is_near_the_mean() -> None:
    order = request(*sample_with("race", reconfiguration_ms=0.1), reevaluate_ms=20.0)
    iterations, run = reevaluated(order, never), run_one("reevaluated", order)
    mean = mean_ms(iterations)
    nearest = min(iterations, key=lambda one: abs(one.execution.makespan_ms - mean))
    assert run.iteration_ms == pytest.approx(nearest.execution.makespan_ms)
    assert 0 <= run.dark_share < 1
    assert run.bound_ms <= run.iteration_ms * (1 + 1e-9)  # what the ports of a server carry at most


# --- circuits dealt greedily


def test_circuits_go_to_most_bytes_a_circuit() -> None:
    wanted = np.array([[0.0, 9.0, 4.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    assert greedy_circuits(wanted, 3).tolist() == [[0, 2, 1], [0, 0, 2], [0, 0, 0]]


@examples(60)
@given(st.integers(2, 7), st.integers(1, 4), st.integers(0, 10_000))
def test_repaired_circuits_keep_to_the_ports_and_reach_everybody_who_talks(
    n: int, ports: int, seed: int
) -> None:
    draws = np.random.default_rng(seed)
    wanted = draws.choice([0.0, 0.0, 1.0, 5.0, 30.0], (n, n)) * (1 - np.eye(n))
    before = greedy_circuits(draws.random((n, n)), ports)
    pairs = [(a, b) for a, b in np.argwhere(wanted).tolist()]
    dealt = greedy_circuits(wanted, ports)
    kept = with_kept(dealt, before, ports)
    mended = repaired(kept, pairs, wanted, ports)
    for circuits in (dealt, kept, mended):
        assert (circuits >= 0).all() and not np.diagonal(circuits).any()
        assert circuits.sum(axis=0).max() <= ports and circuits.sum(axis=1).max() <= ports
    assert (kept >= dealt).all()
    network = RoutedNetwork(mended)
    assert all(network.connected(a, b) for a, b in pairs)


# --- gating that changes: every network runs the same bytes, prices add up


PRICES = PRICE_SETS[SET_BY_SPEED]


def order(
    sample: str = "moe", ports: int = 4, delay_ms: float = 1.0, **options: Any
) -> FabricRequest:
    task_graph, of = sample_with(
        sample, ports_per_server=ports, switches=ports, port_gbps=100.0, reconfiguration_ms=delay_ms
    )
    return request(task_graph, of, **{"gating": "walk", "gating_iterations": 2} | options)


def test_every_network_runs_the_iterations_and_none_beats_the_packet_switch_on_all_ports() -> None:
    runs = gated_networks(order(), PRICES, NETWORKS, never)
    assert list(runs) == list(NETWORKS)
    for run in runs.values():
        assert len(run.iterations_ms) == 2
        # Max-min shares are no optimum, so that a little is left open.
        assert run.mean_ms >= runs[FAT_TREE].mean_ms * 0.95
    assert runs[PACKET_PORTS].mean_ms > runs[FAT_TREE].mean_ms
    assert runs[FAT_TREE].iterations_ms[0] != runs[FAT_TREE].iterations_ms[1]


def test_a_gating_that_is_given_is_the_job_itself() -> None:
    of = order(gating="given", gating_iterations=1)
    runs = gated_networks(of, PRICES, (STATIC, REGIONAL), never)
    for name in (STATIC, REGIONAL):
        assert runs[name].mean_ms == pytest.approx(run_one(name, of).iteration_ms)


def test_both_parts_cost_what_the_whole_costs_and_work_a_dollar_is_a_ratio_of_both() -> None:
    of = order(regional_packet_ports=1)
    runs = gated_networks(of, PRICES, (FAT_TREE, REGIONAL), never)
    own, rival = runs[REGIONAL], runs[FAT_TREE]
    bill = cluster_bill("regional_ocs", of.cluster, PRICES, packet_ports=1)
    assert own.packet_usd + own.optical_usd == pytest.approx(bill.cost_usd)
    one, three = (of.cluster.changed(ports_per_server=k, switches=k) for k in (1, 3))
    assert own.packet_usd == cluster_bill("fat_tree", one, PRICES).cost_usd
    assert own.optical_usd == cluster_bill("topoopt_ocs", three, PRICES).cost_usd
    cheaper, sooner = rival.usd / own.usd, rival.mean_ms / own.mean_ms
    assert own.work_a_dollar_over(rival) == pytest.approx(sooner * cheaper)


def test_the_seed_and_the_skew_decide_the_bytes_and_an_even_gating_does_not_change() -> None:
    orders = order(), replace(order(), settings=replace(LIST, seed=1)), order(gating_skew=0.0)
    one, other, even = (
        gated_networks(of, PRICES, (FAT_TREE,), never)[FAT_TREE].iterations_ms for of in orders
    )
    assert one != other
    assert even[0] == pytest.approx(even[1], rel=1e-12)
    assert sum(even) < sum(one)


def test_another_lowering_of_other_collectives_keeps_the_gating() -> None:
    of = order()
    gating = Gating(of.graph, of.cluster, of.options, 3)
    moved = gating.on(laid_by(of, never)[1])
    assert [one.name for one in moved.exchanges] == [one.name for one in gating.exchanges]
    for exchange in product(range(len(gating.exchanges)), (0, 1)):
        known = gating.bytes_of(*exchange)
        assert np.allclose(moved.bytes_of(*exchange), known, rtol=1e-12)


@pytest.mark.parametrize("interval_ms", long_after(1, [30.0, 200.0]))
def test_the_same_graph_in_turn_is_the_re_evaluated_fabric(interval_ms: float) -> None:
    of = order(reevaluate_ms=interval_ms)
    layout, graph = laid_by(of, never)
    of = replace(of, graph=graph)
    known = reevaluated(replace(of, options=replace(of.options, layout=layout)), never)
    times = [one.execution.makespan_ms for one in known for _ in range(one.times)]
    in_turn = reevaluated_in_turn(of, layout, [graph] * len(times), never)
    assert [one.execution.makespan_ms for one in in_turn] == pytest.approx(times, rel=1e-9)


def test_what_cannot_run_is_left_out_and_regional_circuits_say_why() -> None:
    of = order(regional_packet_ports=0)
    assert PACKET_PORTS not in gated_networks(of, PRICES, (PACKET_PORTS, FAT_TREE), never)
    assert "field regional_packet_ports" in refusal(gated_networks, of, PRICES, (REGIONAL,), never)
