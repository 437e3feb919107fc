"""Gating that changes by iteration: every network runs the same bytes, prices add up, re-evaluation goes on."""

from __future__ import annotations

from dataclasses import replace

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
from topox_core.papers import delta
from topox_core.runs.stopping import never
from topox_core.schedule.settings import Settings
from topox_core.workloads.samples import load_sample

PRICES = PRICE_SETS[SET_BY_SPEED]
SLACK = 1 + 1e-9


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
    runs = gated_networks(order(), PRICES, NETWORKS, never)
    assert list(runs) == list(NETWORKS)
    for run in runs.values():
        assert len(run.iterations_ms) == 2
        # Max-min shares are no optimum, so that a little is left open.
        assert run.mean_ms >= runs[FAT_TREE].mean_ms * 0.95
    assert runs[PACKET_PORTS].mean_ms > runs[FAT_TREE].mean_ms
    assert len({run.iterations_ms for run in runs.values()}) == len(NETWORKS)
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
    for part, ports in zip(regional_parts(of.cluster, PRICES, 1), (1, 3), strict=True):
        assert part.count("nic") == 8 * ports
    assert own.work_a_dollar_over(rival) * rival.work_a_dollar_over(own) == pytest.approx(1.0)
    assert own.work_a_dollar_over(rival) == pytest.approx(
        rival.mean_ms / own.mean_ms * rival.usd / own.usd
    )


def test_the_seed_and_the_skew_decide_the_bytes_and_an_even_gating_does_not_change() -> None:
    one, other = (
        gated_networks(
            replace(order(), settings=Settings.of(engine="list", seed=seed)),
            PRICES,
            (FAT_TREE,),
            never,
        )
        for seed in (0, 1)
    )
    assert one[FAT_TREE].iterations_ms != other[FAT_TREE].iterations_ms
    even = gated_networks(order(gating_skew=0.0), PRICES, (FAT_TREE,), never)[FAT_TREE]
    assert even.iterations_ms[0] == pytest.approx(even.iterations_ms[1], rel=1e-12)
    assert even.mean_ms < one[FAT_TREE].mean_ms


def test_another_lowering_of_other_collectives_keeps_the_gating() -> None:
    of = order()
    gating = Gating(of.graph, of.cluster, of.options.regional, 3)
    _, graph = laid_by(of, never)
    moved = gating.on(graph)
    assert [one.name for one in moved.exchanges] == [one.name for one in gating.exchanges]
    for number in range(len(gating.exchanges)):
        for iteration in (0, 1):
            known = gating.bytes_of(number, iteration)
            assert np.allclose(moved.bytes_of(number, iteration), known, rtol=1e-12)


@pytest.mark.parametrize("interval_ms", long_after(1, [30.0, 200.0]))
def test_the_same_graph_in_turn_is_the_re_evaluated_fabric(interval_ms: float) -> None:
    of = order(reevaluate_ms=interval_ms)
    layout, graph = laid_by(of, never)
    of = replace(of, graph=graph)
    known = reevaluated(replace(of, options=replace(of.options, layout=layout)), never)
    times = [one.execution.makespan_ms for one in known for _ in range(one.times)]
    in_turn = reevaluated_in_turn(of, layout, [graph] * len(times), never)
    assert [one.execution.makespan_ms for one in in_turn] == pytest.approx(times, rel=1e-9)


def test_longer_intervals_change_fewer_circuits_until_none_change() -> None:
    of = order(reevaluate_ms=1e6)
    runs = gated_networks(of, PRICES, (STATIC, REEVALUATED), never)
    assert runs[REEVALUATED].iterations_ms == pytest.approx(runs[STATIC].iterations_ms, rel=1e-9)


def test_what_cannot_run_is_left_out_and_regional_circuits_say_why() -> None:
    of = order(regional_packet_ports=0)
    assert PACKET_PORTS not in gated_networks(of, PRICES, (PACKET_PORTS, FAT_TREE), never)
    with pytest.raises(InputError, match="field regional_packet_ports"):
        gated_networks(of, PRICES, (REGIONAL,), never)
    with pytest.raises(InputError, match="field gating_iterations: must be a whole number from 1"):
        gated_networks(order(gating_iterations=0), PRICES, NETWORKS, never)


def test_circuits_from_the_task_graph_never_lose_to_those_that_the_search_began_with() -> None:
    for name, over in (("llama3-8b", "bytes"), ("fsdp", "topoopt")):
        one = delta.saved(name, over, 2, 50)
        assert one.graph_ms <= one.other_ms * SLACK
        assert -1e-9 <= one.time <= 1 and -1e-9 <= one.gap <= 1
