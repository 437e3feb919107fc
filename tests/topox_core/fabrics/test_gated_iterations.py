"""Gating that changes by iteration: every network runs the same bytes, prices add up, re-evaluation goes on."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from tests.conftest import long_after
from topox_core.economics.clusters import cluster_bill, regional_parts
from topox_core.economics.price_sets import PRICE_SETS, SET_BY_SPEED
from topox_core.errors import InputError
from topox_core.fabrics.compare import run_one
from topox_core.fabrics.gated_iterations import (
    FAT_TREE,
    NETWORKS,
    PACKET_PORTS,
    REEVALUATED,
    REGIONAL,
    STATIC,
    gated_networks,
)
from topox_core.fabrics.gating import Gating
from topox_core.fabrics.reevaluated import reevaluated, reevaluated_in_turn
from topox_core.fabrics.run import FabricOptions, FabricRequest
from topox_core.fabrics.static import laid_by
from topox_core.model.lowering import lower
from topox_core.model.transfer_graph import Lowering
from topox_core.runs.stopping import never
from topox_core.schedule.settings import Settings
from topox_core.workloads.samples import load_sample

PRICES = PRICE_SETS[SET_BY_SPEED]


def order(sample: str = "moe", ports: int = 4, delay_ms: float = 1.0, **options) -> FabricRequest:
    graph, cluster = load_sample(sample)
    of = cluster.changed(
        ports_per_server=ports, switches=ports, port_gbps=100.0, reconfiguration_ms=delay_ms
    )
    given = {"gating": "walk", "gating_iterations": 2} | options
    return FabricRequest(
        lower(graph, Lowering()), of, Settings.of(engine="list"), FabricOptions(**given)
    )


def test_every_network_runs_the_iterations_and_none_beats_the_packet_switch_on_all_ports() -> None:
    # Re-evaluated so seldom that no circuit changes.
    runs = gated_networks(order(reevaluate_ms=1e6), PRICES, NETWORKS, never)
    assert list(runs) == list(NETWORKS)
    for run in runs.values():
        assert len(run.iterations_ms) == 2
        # Max-min shares are no optimum, so that a little is left open.
        assert run.mean_ms >= runs[FAT_TREE].mean_ms * 0.95
    assert runs[PACKET_PORTS].mean_ms > runs[FAT_TREE].mean_ms
    assert runs[REEVALUATED].iterations_ms == pytest.approx(runs[STATIC].iterations_ms, rel=1e-9)
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
    packet, optical = regional_parts(of.cluster, PRICES, 1)
    assert (packet.count("nic"), optical.count("nic")) == (8 * 1, 8 * 3)
    cheaper, sooner = rival.usd / own.usd, rival.mean_ms / own.mean_ms
    assert own.work_a_dollar_over(rival) == pytest.approx(sooner * cheaper)


def test_the_seed_and_the_skew_decide_the_bytes_and_an_even_gating_does_not_change() -> None:
    settings = Settings.of(engine="list", seed=1)
    orders = order(), replace(order(), settings=settings), order(gating_skew=0.0)
    one, other, even = (
        gated_networks(of, PRICES, (FAT_TREE,), never)[FAT_TREE].iterations_ms for of in orders
    )
    assert one != other
    assert even[0] == pytest.approx(even[1], rel=1e-12)
    assert sum(even) < sum(one)


def test_another_lowering_of_other_collectives_keeps_the_gating() -> None:
    of = order()
    gating = Gating(of.graph, of.cluster, of.options.regional, 3)
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
    with pytest.raises(InputError, match="field regional_packet_ports"):
        gated_networks(of, PRICES, (REGIONAL,), never)
    with pytest.raises(InputError, match="field gating_iterations: must be a whole number from 1"):
        gated_networks(order(gating_iterations=0), PRICES, NETWORKS, never)
