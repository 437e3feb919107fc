"""From lowered graphs to the reduced problem: rounding on two clocks, ports as capacities, limits named early."""

import numpy as np
import pytest

from tests.topox_core.small_graphs import cluster, compute, graph, transfer
from topox_core.errors import InputError
from topox_core.model.lowering import lower
from topox_core.model.lowering_choices import Lowering
from topox_core.schedule.reduction import ceil_units, reduce
from topox_core.schedule.settings import Settings


def reduced(g, c, **settings):
    model = settings.pop("model", "physical")
    return reduce(lower(g, Lowering()), c, Settings.of(model, **settings))


STAR = graph(*(transfer(f"x{i}", 0, 1 + i, 2.5) for i in range(5)))


RING = graph(*(transfer(f"x{i}", i, (i + 1) % 6, 1.0) for i in range(6)))


def test_three_times_a_tenth_is_three_tenths_and_not_four():
    assert ceil_units(np.array([0.3, 0.30001, 0.0, 1e-9, 1.1]), 0.1).tolist() == [3, 4, 0, 1, 11]


def test_a_transfer_lasts_whole_slots_with_its_latency_and_compute_whole_ticks():
    g = graph(compute("f", 0, 1.3), transfer("x", 0, 1, 2.2, "f"), transfer("y", 0, 1, 1.0))
    reduction = reduced(g, cluster(latency_us=1.0), tick=0.25)
    assert reduction.problem.ticks_per_slot == 4
    assert reduction.problem.duration.tolist() == [6, 12, 8]
    # The unrounded bound knows neither tick nor slot.
    assert reduction.unrounded_bound_ms == pytest.approx(1.3 + 2.201)


def test_the_automatic_tick_is_the_coarsest_that_raises_the_bound_by_less_than_one_percent():
    g = graph(*(compute(f"f{i}", 0, 0.1) for i in range(50)))
    fine = reduced(g, cluster())
    assert fine.rounding < 0.01
    assert fine.problem.ticks_per_slot == 10  # a tenth of a slot holds 0.1 ms exactly
    assert reduced(g, cluster(), tick="slot").rounding == pytest.approx(9.0)


FOUR_PORTS = {"ports_per_server": 4, "switches": 2}


@pytest.mark.parametrize(
    ("g", "keys", "names"),
    [
        (STAR, FOUR_PORTS, ("out-ports of server 0",)),
        (STAR, FOUR_PORTS | {"duplex": "half"}, ("ports of server 0",)),
        (STAR, {"ports_per_server": 40, "switches": 40}, ()),  # more than there is to send
        (RING, {}, ()),
        (RING, {"ports_per_switch": 2}, ("all switches together",)),
    ],
)
def test_ports_and_the_total_of_all_switches_count_only_where_they_can_bind(g, keys, names):
    problem = reduced(g, cluster(6, **keys)).problem
    assert problem.resource_names == names
    assert problem.capacity.tolist() in ([], [4], [2])


CHAIN = [compute(f"f{i}", 0, 900_000.0, *([f"f{i - 1}"] if i else [])) for i in range(3)]


@pytest.mark.parametrize(
    ("g", "of", "settings", "words"),
    [
        (
            STAR,
            cluster(6, ports_per_server=3, switches=2),
            {},
            "ports_per_server: must be a multiple of switches",
        ),
        (STAR, cluster(6, reconfiguration_ms=2.0), {"circuits": "per-slot"}, "reconfiguration_ms"),
        (STAR, cluster(6), {"tick": 0.3}, "must divide the slot"),
        (
            graph(compute("f", 0, 4e9)),
            cluster(),
            {},
            r"4,000,000,000 slots of 1 ms .* Try slot_ms 400000",
        ),
        # Before memory is spent, though every task is short enough.
        (graph(*CHAIN), cluster(), {}, "slot_ms: the iteration has at least 2,700,000 slots"),
        *(
            (STAR, cluster(6, reconfiguration_ms=ms), {}, "reconfiguration_ms: must be at most")
            for ms in (1e7, 1e9)
        ),
    ],
)
def test_what_does_not_fit_a_clock_or_a_fabric_is_named(g, of, settings, words):
    with pytest.raises(InputError, match=words):
        reduced(g, of, **settings)


def test_any_switch_a_server_likes_means_one_port_of_each():
    uneven = cluster(6, ports_per_server=3, switches=2)
    assert reduced(STAR, uneven, model="paper").problem.capacity.tolist() == [2]


def test_only_pairs_with_several_transfers_share_a_circuit():
    g = graph(transfer("a", 0, 1, 1.0), transfer("b", 0, 1, 1.0), transfer("c", 0, 2, 1.0))
    assert reduced(g, cluster(), model="paper").problem.pair.tolist() == [0, 0, -1]


@pytest.mark.parametrize(
    ("make", "key", "value"),
    [
        (Settings.of, "seed", -1),
        (Settings.of, "gap", 2.0),
        (Settings.of, "threads", 0),
        (Settings.of, "threads", 100_000),
        (Settings.of, "time_limit_s", -1.0),
        (cluster, "slot_ms", 1e-10),
        (cluster, "slot_ms", 1e29),
    ],
)
def test_choices_out_of_range_are_named(make, key, value):
    with pytest.raises(InputError, match=f"{key}: must be (at|from)"):
        make(**{key: value})
