"""Slots, continuous time and a clock so fine that slots mean nothing: what holds between their schedules and bounds."""

import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from msgspec import structs

from tests.conftest import examples, some
from tests.past import load_past
from tests.topox_core.schedule.circuit_rules import broken_rules
from tests.topox_core.schedule.fake_solvers import solved_by_cpsat
from tests.topox_core.schedule.set_up_brute_force import optimum, random_case
from tests.topox_core.small_graphs import GBIT_MS, cluster, graph, random_graph
from topox_core.fabrics.scheduled import schedule
from topox_core.model.cluster import Cluster
from topox_core.model.lowering import lower
from topox_core.model.task_graph import TaskGraph
from topox_core.model.transfer_graph import durations_ms
from topox_core.runs.stopping import never
from topox_core.schedule.bounds.unrounded import circuit_bound
from topox_core.schedule.bounds.windows import coarsened
from topox_core.schedule.circuits.held_ports import with_set_ups
from topox_core.schedule.continuous import ContinuousPlans, plan_on_continuous_time
from topox_core.schedule.engines.engine import Limits
from topox_core.schedule.fine_clock import (
    FineClockSolve,
    continuous_bound,
    exact_ticks_per_ms,
    fine_problem,
)
from topox_core.schedule.planner import prepare
from topox_core.schedule.replay import replay
from topox_core.schedule.settings import Settings

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
        coarse, tick = coarsened(stretched)
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
    solve = FineClockSolve(prepared, plans.best, Limits(60.0, threads=1))
    while solve.running:
        solve.poll()
        time.sleep(0.02)
    solve.close()
    # Ticks of a microsecond leave it between 62.962 and 62.977 ms.
    assert solve.best.makespan_ms == pytest.approx(62.974183, abs=1e-6)
    assert solve.best.makespan_ms * (1 - 1e-9) <= solve.bound.ms <= solve.best.makespan_ms
    assert (solve.stopped_by, solve.message) == ("proof", "")
    assert broken_rules(solve.best.execution) == []
