"""The reduced problem: rounding on clocks, ports as capacities; what holds between readings and between clocks."""

import time
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from msgspec import structs

from tests.conftest import examples, some
from tests.past import load_past
from tests.topox_core.schedule.circuit_rules import broken_rules
from tests.topox_core.schedule.fake_solvers import solved_by_cpsat
from tests.topox_core.schedule.set_up_brute_force import optimum, random_case
from tests.topox_core.small_graphs import GBIT_MS, cluster, compute, graph, random_graph, transfer
from topox_core.check.checker import check
from topox_core.errors import InputError
from topox_core.fabrics.planning.scheduled import run_scheduled, schedule
from topox_core.fabrics.run import FabricRequest
from topox_core.model.cluster import Cluster
from topox_core.model.lowering.lowering import lower
from topox_core.model.lowering_choices import Lowering
from topox_core.model.task_graph import TaskGraph
from topox_core.model.transfer_graph import durations_ms
from topox_core.papers.table_iii_runs import TABLE, lowered
from topox_core.runs.run import never
from topox_core.schedule.bounds.unrounded import circuit_bound
from topox_core.schedule.bounds.windows import coarsened
from topox_core.schedule.circuits.held_ports import with_set_ups
from topox_core.schedule.engines.engine import Limits
from topox_core.schedule.planning.continuous import ContinuousPlans, plan_on_continuous_time
from topox_core.schedule.planning.fine_clock import (
    FineClock,
    continuous_bound,
    exact_ticks_per_ms,
    fine_problem,
)
from topox_core.schedule.planning.planner import prepare
from topox_core.schedule.planning.replay import replay
from topox_core.schedule.race.portfolio import Portfolio
from topox_core.schedule.rcpsp.feasibility import violation
from topox_core.schedule.rcpsp.reduction import ceil_units, reduce
from topox_core.schedule.results.result_file import to_record
from topox_core.schedule.settings import Settings
from topox_core.schedule.solve import carried_over, length_ms


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


# Circuits that stay, circuits a pair shares, devices that are free, any switch a server likes.
Reading = tuple[bool, bool, bool, bool]
READINGS: tuple[Reading, ...] = (
    *((True, False, free, False) for free in (False, True)),
    *((False, s, f, a) for s in (False, True) for f in (False, True) for a in (False, True)),
)


def settings_of(reading: Reading, **changes: Any) -> Settings:
    stays, shared, free, any_switch = reading
    return Settings.of(
        circuits="continuous" if stays else "per-slot",
        share_circuits=shared,
        exclusive_devices=not free,
        any_port=any_switch,
        **{"clock": "slots", "engine": "list"} | changes,
    )


def is_relaxed(one: Reading, other: Reading, ports_on_switch: int) -> bool:
    """Whether every schedule of ``other`` is one of ``one``, choice by choice."""
    stays, shared, free, any_switch = one
    if stays > other[0] or shared < other[1] or free < other[2]:
        return False
    # With several ports on_reading a switch, any switch a server likes means one port of them.
    return ports_on_switch == 1 or any_switch <= other[3]


def on_reading(ports: int, switches: int, **keys: Any) -> Cluster:
    return cluster(
        4, ports_per_server=ports, switches=switches, ports_per_switch=4 * ports // switches, **keys
    )


@examples(3)
@given(
    st.integers(0, 10_000), st.sampled_from([(1, 1), (2, 2), (4, 2)]), st.sampled_from([1.0, 0.5])
)
@example(16, (1, 1), 1.0)  # by the rules alone shared circuits take 19 ms, circuits of one's own 18
def test_no_reading_needs_longer_than_a_stricter_one(
    seed: int, ports: tuple[int, int], slot_ms: float
) -> None:
    of, task_graph = on_reading(*ports, slot_ms=slot_ms), random_graph(seed, tasks=14)
    time_ms: dict[Reading, float] = {}
    for reading in READINGS:
        result = schedule(task_graph, of, settings_of(reading))
        assert check(task_graph, of, to_record(result)).ok
        assert result.makespan_ms is not None
        time_ms[reading] = result.makespan_ms
    for one, other in permutations(READINGS, 2):
        if is_relaxed(one, other, ports[0] // ports[1]):
            assert time_ms[one] <= time_ms[other] + 1e-9, (one, other)


@pytest.mark.parametrize(("strict_ticks", "own_ticks"), [(2, 4), (4, 2), (2, 3)])
def test_a_plan_of_a_stricter_reading_keeps_its_slots_on_another_tick(
    strict_ticks: int, own_ticks: int
) -> None:
    strict, own = (
        prepare(random_graph(3, tasks=14), on_reading(1, 1), settings_of(reading, tick=1 / ticks))
        for reading, ticks in (
            ((False, False, False, False), strict_ticks),
            ((False, False, True, False), own_ticks),
        )
    )
    plan = strict.planner.best_plan()
    finer, carried = carried_over(plan, strict, own)
    assert violation(finer.reduction.problem, carried.start) is None
    assert length_ms(finer, carried) <= length_ms(strict, plan)


def test_the_printed_model_needs_no_longer_than_the_physical_on_row_5_of_table_iii() -> None:
    row, graph = TABLE[4], lowered(2, 8, on_network=False)
    times = [
        run_scheduled(FabricRequest(graph, row.cluster, of), never).iteration_ms
        for of in (
            Settings.of("paper", engine="list", lowering=graph.lowering),
            Settings.of(circuits="per-slot", engine="list", lowering=graph.lowering),
            Settings.of(clock="slots", engine="list", lowering=graph.lowering),
        )
    ]
    assert times == sorted(times)
    assert times[0] <= 29.24


SLOTS = Settings.of(engine="list", clock="slots", switching="planned")
CONTINUOUS = Settings.of(engine="list", clock="continuous", switching="planned")
PORTS = ((1, 1), (2, 2), (4, 2))


def on(ports: tuple[int, int], delay_ms: float) -> Cluster:
    each, switches = ports
    keys = {"ports_per_server": each, "switches": switches}
    return cluster(4, ports_per_switch=4 * each // switches, reconfiguration_ms=delay_ms, **keys)


def in_whole_slots(seed: int, tasks: int) -> TaskGraph:
    """A random graph whose tasks all last whole slots of 1 ms."""

    def whole(size: float | None, unit: float) -> float | None:
        return None if size is None else (round(size / unit) + 1) * unit

    rough = random_graph(seed, tasks, collectives=False)
    return graph(
        *(
            structs.replace(
                task,
                size_bytes=whole(task.size_bytes, GBIT_MS),
                duration_ms=whole(task.duration_ms, 1.0),
            )
            for task in rough.tasks
        )
    )


def slot_bound_ms(task_graph: TaskGraph, of: Cluster) -> float:
    """The bound on slots that work and set-ups of ancestors give."""
    planner, _ = prepare(task_graph, of, SLOTS).planner.with_ancestor_tails()
    return planner.problem.ms(planner.bound)


@examples(6)
@given(st.integers(0, 10_000), st.sampled_from(PORTS), st.sampled_from((0.0, 1.0, 4.0)))
def test_where_nothing_is_rounded_the_bound_on_continuous_time_is_no_lower_than_on_slots(
    seed, ports, delay_ms
):
    task_graph, of = in_whole_slots(seed, 20), on(ports, delay_ms)
    fine = continuous_bound(lower(task_graph), of, CONTINUOUS)
    assert fine.ms >= slot_bound_ms(task_graph, of) * (1 - 1e-12)


@examples(4)
@given(st.integers(0, 10_000), st.sampled_from(PORTS), st.sampled_from((0.0, 0.3, 1.0, 4.0)))
def test_bound_and_schedule_on_continuous_time_and_schedule_on_slots_come_in_this_order(
    seed, ports, delay_ms
):
    task_graph, of = random_graph(seed, 18), on(ports, delay_ms)
    slots, continuous = schedule(task_graph, of, SLOTS), schedule(task_graph, of, CONTINUOUS)
    raised_ms = continuous_bound(lower(task_graph), of, CONTINUOUS).ms
    assert max(raised_ms, continuous.bound_ms) <= continuous.makespan_ms * (1 + 1e-12)
    assert continuous.makespan_ms <= slots.makespan_ms * (1 + 1e-9)
    assert slot_bound_ms(task_graph, of) <= slots.makespan_ms


def test_a_plan_carried_out_says_the_slot_it_was_planned_on_and_not_its_tick():
    of = on((1, 1), 1.0)
    prepared = prepare(random_graph(3, 18), of, replace(CONTINUOUS, tick=0.25))
    carried_out = replay(prepared, prepared.planner.best_plan(), of)
    assert carried_out.planned_slot_ms == of.slot_ms


@pytest.mark.parametrize("factor", [7, 10**6])
def test_a_clock_of_set_ups_is_made_as_coarse_as_loses_nothing(factor):
    for seed in range(6):
        problem = replace(random_case(seed), ticks_per_slot=1)
        net = replace(problem.network, dark_slots=problem.dark_ticks * factor)
        stretched = replace(problem, duration=problem.duration * factor, network=net)
        coarse = coarsened(stretched)
        tick = round(coarse.tick_ms / stretched.tick_ms)
        assert tick % factor == 0
        assert (coarse.duration * tick == stretched.duration).all()
        assert coarse.dark_ticks * tick == stretched.dark_ticks
        assert optimum(coarse) * tick == optimum(problem) * factor


def test_exact_solves_agree_on_whole_slots_and_are_no_longer_where_circuits_start_at_any_time():
    for seed in some(range(4), quick=1):
        for whole in (True, False):
            task_graph = (in_whole_slots if whole else random_graph)(seed, 10)
            of, lowered = on(PORTS[seed % 2], 1.0), lower(task_graph)
            reduction = prepare(task_graph, of, SLOTS).reduction
            ticks_per_ms = exact_ticks_per_ms(durations_ms(lowered, of), 10.0)
            on_slots = with_set_ups(reduction.problem, reduction.dark_slots)
            at_any_time = fine_problem(lowered, of, CONTINUOUS, ticks_per_ms)
            answers = solved_by_cpsat([on_slots, at_any_time], Limits(60.0))
            assert {answer.stopped_by for answer in answers} == {"proof"}
            slots_ms, continuous_ms = (
                problem.ms(answer.bound)
                for problem, answer in zip((on_slots, at_any_time), answers, strict=True)
            )
            assert continuous_ms <= slots_ms * (1 + 1e-9)
            assert not whole or continuous_ms == pytest.approx(slots_ms, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "delay_ms", "raised_ms"),
    [
        ("patience", 3, 13.0),
        ("race", 0, 62.905889),
        ("race", 3, 63.650183),
        ("race", 10, 74.587013),
        ("moe", 1, 152.491257),
        ("dlrm-16", 10, 93.913611),
    ],
)
def test_work_and_set_ups_of_ancestors_raise_the_bound_on_continuous_time(
    name, delay_ms, raised_ms
):
    graph, cluster = load_past(name)
    lowered, cluster = lower(graph), cluster.changed(reconfiguration_ms=delay_ms)
    raised = continuous_bound(lowered, cluster, CONTINUOUS).ms
    assert raised == pytest.approx(raised_ms, abs=1e-6)
    cheap = circuit_bound(lowered, cluster, Settings.of()).ms
    assert raised >= continuous_bound(lowered, cluster, CONTINUOUS, near=0).ms >= cheap


def test_the_fine_clock_rounds_down_and_all_it_rounds_off_is_less_than_a_proof_needs():
    graph, cluster = load_past("race")
    lowered, cluster = lower(graph), cluster.changed(reconfiguration_ms=1 / 3)
    length_ms = durations_ms(lowered, cluster)
    ticks_per_ms = exact_ticks_per_ms(length_ms, 70.0)
    problem = fine_problem(lowered, cluster, CONTINUOUS, ticks_per_ms)
    off_ms = length_ms - problem.duration / ticks_per_ms
    assert (off_ms >= 0).all()
    assert off_ms.sum() < 70.0 * 1e-9
    assert problem.dark_ticks == np.floor(ticks_per_ms / 3)


def test_a_sample_is_proved_where_circuits_may_start_at_any_time():
    graph, cluster = load_past("race")
    prepared = prepare(graph, cluster.changed(reconfiguration_ms=1.0), CONTINUOUS)
    plans = ContinuousPlans.of(prepared)
    plan_on_continuous_time(plans, None, never)
    fine = FineClock.of(prepared, plans.best.makespan_ms)
    plan = fine.plan_of(plans.best)
    race = Portfolio(fine.prepared.planner, plan, "cpsat", Limits(60.0, threads=1))
    while race.running:
        race.poll()
        time.sleep(0.02)
    race.close()
    best, bound = fine.carried_out(race.plan), fine.bound(race.bound, race.raised.words)
    # Ticks of a microsecond leave it between 62.962 and 62.977 ms.
    assert best.makespan_ms == pytest.approx(62.974183, abs=1e-6)
    assert best.makespan_ms * (1 - 1e-9) <= bound.ms <= best.makespan_ms
    assert (race.stopped_by, race.message) == ("proof", "")
    assert broken_rules(best.execution) == []
