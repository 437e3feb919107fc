"""Slots and continuous time side by side, with set-ups: what holds between their schedules and bounds."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import examples
from tests.topox_core.schedule.fake_solvers import solved_by_cpsat
from tests.topox_core.schedule.set_up_brute_force import optimum, random_case
from tests.topox_core.small_graphs import cluster, graph, random_graph
from topox_core.fabrics.scheduled import schedule
from topox_core.model.durations import durations_ms
from topox_core.model.lowering import lower
from topox_core.model.task_graph import TaskGraph
from topox_core.schedule.bounds.windows import coarsened
from topox_core.schedule.circuits.held_ports import with_set_ups
from topox_core.schedule.engines.engine import Limits
from topox_core.schedule.fine_clock import continuous_bound, exact_ticks_per_ms, fine_problem
from topox_core.schedule.planner import prepare
from topox_core.schedule.problem import Problem
from topox_core.schedule.settings import Settings

SLOTS = Settings.of(engine="list", clock="slots", switching="planned")
CONTINUOUS = Settings.of(engine="list", clock="continuous", switching="planned")
DELAYS_MS = (0.0, 0.3, 1.0, 4.0)
PORTS = ((1, 1), (2, 2), (4, 2))


def on(ports: tuple[int, int], delay_ms: float):  # type: ignore[no-untyped-def]
    each, switches = ports
    return cluster(
        4,
        ports_per_server=each,
        switches=switches,
        ports_per_switch=4 * each // switches,
        reconfiguration_ms=delay_ms,
    )


def in_whole_slots(seed: int, tasks: int) -> TaskGraph:
    """A random graph whose tasks all last whole slots of 1 ms."""
    rough = random_graph(seed, tasks, collectives=False)
    made = []
    for task in rough.tasks:
        if task.size_bytes:
            made.append(replace(task, size_bytes=round(task.size_bytes / 12.5e6 + 0.5) * 12.5e6))
        elif task.duration_ms is not None:
            made.append(replace(task, duration_ms=float(round(task.duration_ms + 0.5))))
        else:
            made.append(task)
    return graph(*made)


def slot_bound_ms(task_graph: TaskGraph, of) -> float:  # type: ignore[no-untyped-def]
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


@examples(6)
@given(st.integers(0, 10_000), st.sampled_from(PORTS))
def test_a_finer_clock_lowers_the_bound_by_no_more_than_a_coarse_one_rounds_up(seed, ports):
    """On one port nothing is rounded up; two share work, and half a tick counts as one."""
    lowered, of = lower(random_graph(seed, 20)), on(ports, 0.3)
    bounds = []
    for ticks_per_ms in (1.0, 10.0, 100.0):
        problem = fine_problem(lowered, of, CONTINUOUS, ticks_per_ms)
        rounded = replace(lowered, duration_ms=problem.duration / ticks_per_ms)
        delayed = of.changed(reconfiguration_ms=(problem.dark_ticks or 0) / ticks_per_ms)
        bounds.append(continuous_bound(rounded, delayed, CONTINUOUS).ms)
    bounds.append(continuous_bound(lowered, of, CONTINUOUS).ms)
    for (rougher, finer), tick_ms in zip(pairwise(bounds), (1.0, 0.1, 0.01), strict=True):
        rounded_up_ms = 0.0 if ports == (1, 1) else tick_ms
        assert rougher - rounded_up_ms <= finer * (1 + 1e-12)


@examples(4)
@given(st.integers(0, 10_000), st.sampled_from(PORTS), st.sampled_from(DELAYS_MS))
def test_bound_and_schedule_on_continuous_time_and_schedule_on_slots_come_in_this_order(
    seed, ports, delay_ms
):
    task_graph, of = random_graph(seed, 18), on(ports, delay_ms)
    slots, continuous = schedule(task_graph, of, SLOTS), schedule(task_graph, of, CONTINUOUS)
    assert continuous.bound_ms <= continuous.makespan_ms * (1 + 1e-12)
    assert continuous.makespan_ms <= slots.makespan_ms * (1 + 1e-9)
    raised_ms = continuous_bound(lower(task_graph), of, CONTINUOUS).ms
    assert raised_ms <= continuous.makespan_ms * (1 + 1e-12)
    assert slot_bound_ms(task_graph, of) <= slots.makespan_ms


@pytest.mark.parametrize("factor", [7, 10**6])
def test_a_clock_of_set_ups_is_made_as_coarse_as_loses_nothing(factor):
    for seed in range(12):
        problem = replace(random_case(seed), ticks_per_slot=1)
        assert problem.network is not None
        stretched = replace(
            problem,
            duration=problem.duration * factor,
            network=replace(problem.network, dark_slots=(problem.dark_ticks or 0) * factor),
        )
        coarse, tick = coarsened(stretched)
        assert tick % factor == 0
        assert (coarse.duration * tick == stretched.duration).all()
        assert (coarse.dark_ticks or 0) * tick == stretched.dark_ticks
        if seed < 4:
            assert optimum(coarse) * tick == optimum(problem) * factor


def test_whole_slots_are_whole_ticks_of_the_fine_clock():
    lowered, of = lower(in_whole_slots(3, 20)), on((1, 1), 0.1)
    problem = fine_problem(lowered, of, CONTINUOUS, 1e9)
    assert set((problem.duration % 10**9).tolist()) == {0}
    assert coarsened(problem)[1] == 10**8


@pytest.mark.sampled
def test_exact_solves_agree_on_whole_slots_and_are_no_longer_where_circuits_start_at_any_time():
    cases: list[tuple[bool, Problem]] = []
    for seed in range(4):
        for whole in (True, False):
            task_graph = in_whole_slots(seed, 10) if whole else random_graph(seed, 10)
            of, lowered = on(PORTS[seed % 2], 1.0), lower(task_graph)
            reduction = prepare(task_graph, of, SLOTS).reduction
            ticks_per_ms = exact_ticks_per_ms(durations_ms(lowered, of), 10.0)
            cases.append((whole, with_set_ups(reduction.problem, reduction.dark_slots)))
            cases.append((whole, fine_problem(lowered, of, CONTINUOUS, ticks_per_ms)))
    answers = solved_by_cpsat([problem for _, problem in cases], Limits(60.0))
    times_ms = [
        problem.tick_ms * answer.bound
        for (_, problem), answer in zip(cases, answers, strict=True)
        if answer.stopped_by == "proof"
    ]
    assert len(times_ms) == len(cases)
    for (whole, _), on_slots, at_any_time in zip(
        cases[::2], times_ms[::2], times_ms[1::2], strict=True
    ):
        if whole:
            assert at_any_time == pytest.approx(on_slots, rel=1e-9)
        assert at_any_time <= on_slots * (1 + 1e-9)
