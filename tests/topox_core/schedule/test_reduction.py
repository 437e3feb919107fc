"""From lowered graphs to the reduced problem: rounding on two clocks, ports as capacities, limits named early."""

import numpy as np
import pytest

from tests.topox_core.small_graphs import cluster, compute, graph, transfer
from topox_core.errors import InputError
from topox_core.model.lowering import lower
from topox_core.model.transfer_graph import Lowering
from topox_core.schedule.reduction import ceil_units, reduce
from topox_core.schedule.settings import Settings


def reduced(g, c, **settings):
    model = settings.pop("model", "physical")
    return reduce(lower(g, Lowering()), c, Settings.of(model, **settings))


STAR = graph(*(transfer(f"x{i}", 0, 1 + i, 2.5) for i in range(5)))


def test_three_times_a_tenth_is_three_tenths_and_not_four():
    assert ceil_units(np.array([0.3, 0.30001, 0.0, 1e-9, 1.1]), 0.1).tolist() == [3, 4, 0, 1, 11]


def test_a_transfer_lasts_whole_slots_and_compute_whole_ticks():
    g = graph(compute("f", 0, 1.3), transfer("x", 0, 1, 2.2, "f"))
    problem = reduced(g, cluster(), tick=0.25).problem
    assert problem.ticks_per_slot == 4
    assert problem.duration.tolist() == [6, 12]


def test_latency_is_added_to_every_transfer():
    g = graph(transfer("x", 0, 1, 1.0))
    assert reduced(g, cluster(latency_us=1.0), tick="slot").problem.duration.tolist() == [2]


def test_the_automatic_tick_is_the_coarsest_that_raises_the_bound_by_less_than_one_percent():
    g = graph(*(compute(f"f{i}", 0, 0.1) for i in range(50)))
    fine = reduced(g, cluster())
    assert fine.rounding < 0.01
    assert fine.problem.ticks_per_slot == 10  # a tenth of a slot holds 0.1 ms exactly
    assert reduced(g, cluster(), tick="slot").rounding == pytest.approx(9.0)


def test_the_unrounded_bound_knows_neither_tick_nor_slot():
    g = graph(compute("f", 0, 0.7), transfer("x", 0, 1, 0.2, "f"))
    assert reduced(g, cluster(), tick="slot").unrounded_bound_ms == pytest.approx(0.9, abs=1e-5)


def test_out_ports_bound_what_a_server_sends_at_once():
    problem = reduced(STAR, cluster(6, ports_per_server=4, switches=2)).problem
    assert problem.resource_names == ("out-ports of server 0",)
    assert problem.capacity.tolist() == [4]


def test_half_duplex_counts_what_a_server_sends_and_receives_together():
    problem = reduced(STAR, cluster(6, ports_per_server=4, switches=2, duplex="half")).problem
    assert problem.resource_names == ("ports of server 0",)


def test_the_total_over_all_switches_counts_only_where_it_can_bind():
    g = graph(*(transfer(f"x{i}", i, (i + 1) % 6, 1.0) for i in range(6)))
    assert reduced(g, cluster(6)).problem.resource_names == ()
    assert reduced(g, cluster(6, ports_per_switch=2)).problem.resource_names == (
        "all switches together",
    )


def test_ports_that_cannot_be_cabled_evenly_are_refused_unless_any_server_may_use_any_switch():
    uneven = cluster(6, ports_per_server=3, switches=2)
    with pytest.raises(InputError, match="ports_per_server: must be a multiple of switches"):
        reduced(STAR, uneven)
    assert reduced(STAR, uneven, model="paper").problem.capacity.tolist() == [
        2
    ]  # one port on each switch


def test_per_slot_circuits_cannot_pay_a_delay():
    with pytest.raises(InputError, match="reconfiguration_ms"):
        reduced(STAR, cluster(6, reconfiguration_ms=2.0), circuits="per-slot")


def test_mixed_up_units_are_named_with_the_number_of_slots_and_a_better_slot():
    g = graph(compute("f", 0, 4e9))
    with pytest.raises(InputError, match=r"4,000,000,000 slots of 1 ms .* Try slot_ms 400000"):
        reduced(g, cluster())


def test_a_tick_must_divide_the_slot():
    with pytest.raises(InputError, match="must divide the slot"):
        reduced(STAR, cluster(6), tick=0.3)


def test_a_long_chain_of_short_enough_tasks_is_named_too_before_memory_is_spent():
    g = graph(*(compute(f"f{i}", 0, 900_000.0, *([f"f{i - 1}"] if i else [])) for i in range(3)))
    with pytest.raises(InputError, match=r"slot_ms: the iteration has at least 2,700,000 slots"):
        reduced(g, cluster())


@pytest.mark.parametrize("delay_ms", [1e7, 1e15, 1e29])
def test_a_delay_of_more_slots_than_there_may_be_is_named(delay_ms):
    with pytest.raises(InputError, match="reconfiguration_ms: must be at most"):
        reduced(STAR, cluster(6, reconfiguration_ms=delay_ms))


def test_only_pairs_with_several_transfers_share_a_circuit():
    g = graph(transfer("a", 0, 1, 1.0), transfer("b", 0, 1, 1.0), transfer("c", 0, 2, 1.0))
    assert reduced(g, cluster(), model="paper").problem.pair.tolist() == [0, 0, -1]


@pytest.mark.parametrize(
    "changes",
    [{"seed": -1}, {"gap": 2.0}, {"threads": 0}, {"threads": 100_000}, {"time_limit_s": -1.0}],
    ids=str,
)
def test_settings_out_of_range_are_named(changes):
    with pytest.raises(InputError, match=f"field {next(iter(changes))}: must be from"):
        Settings.of(**changes)


@pytest.mark.parametrize("slot_ms", [1e-10, 1e29])
def test_a_slot_that_no_file_could_write_is_refused_with_the_cluster(slot_ms):
    with pytest.raises(InputError, match="slot_ms: must be from"):
        cluster(slot_ms=slot_ms)
