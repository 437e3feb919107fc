"""Where the time goes: compute, exposed transfer, dark and waiting along the chain add up to the iteration."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest

from tests.topox_core.small_graphs import (
    cluster,
    compute,
    graph,
    list_schedule,
    random_graph,
    transfer,
)
from topox_core.fabrics.compare import compare
from topox_core.fabrics.run import Breakdown
from topox_core.io.exports import task_rows
from topox_core.model.critical_path import critical_path
from topox_core.model.execution import Circuits, Execution
from topox_core.model.lowering import lower
from topox_core.model.task_graph import TaskGraph
from topox_core.schedule.settings import Settings
from topox_core.workloads.samples import load_sample


def execution(
    tasks: TaskGraph, times: dict[str, tuple[float, float]], *rows: tuple[str, float, float, float]
) -> Execution:
    """Return an execution from (start, end) of each task and circuits (task, setup, start, end) on one switch."""
    lowered = lower(tasks)
    node = np.array([lowered.ids.index(row[0]) for row in rows], np.int32)
    setup, start, end = np.array([row[1:] for row in rows], np.float64).reshape(-1, 3).T
    zero = np.zeros(len(rows), np.int32)
    circuits = Circuits(
        zero,
        lowered.source[node],
        lowered.destination[node],
        zero,
        zero,
        setup,
        start,
        end,
        node,
        setup < start,
    )
    begin, done = np.array([times[name] for name in lowered.ids]).T
    return Execution(lowered, cluster(4), begin, done, circuits)


def shares(one: Execution, exclusive: bool = True) -> tuple[float, float, float, float]:
    parts = Breakdown.of(one.graph, critical_path(one, exclusive))
    return parts.compute_ms, parts.exposed_ms, parts.dark_ms, parts.waiting_ms


def test_a_chain_of_compute_and_transfer():
    tasks = graph(
        compute("f", 0, 3.0), transfer("act", 0, 1, 1.0, "f"), compute("g", 1, 2.0, "act")
    )
    assert shares(execution(tasks, {"f": (0, 3), "act": (3, 4), "g": (4, 6)})) == (5, 1, 0, 0)


def test_a_transfer_behind_compute_is_not_exposed():
    tasks = graph(
        compute("f", 0, 3.0), transfer("act", 0, 1, 1.0), compute("g", 1, 2.0, "act", "f")
    )
    assert shares(execution(tasks, {"f": (0, 3), "act": (0, 1), "g": (3, 5)})) == (5, 0, 0, 0)


def test_dark_time_after_the_last_reason_to_wait_counts():
    """A circuit asked for when its transfer is ready: the whole delay is dark."""
    tasks = graph(compute("f", 0, 3.0), transfer("act", 0, 1, 1.0, "f"))
    assert shares(execution(tasks, {"f": (0, 3), "act": (5, 6)}, ("act", 3, 5, 6))) == (3, 1, 2, 0)


def test_dark_time_behind_compute_does_not_count():
    """A circuit asked for 1.5 ms before its transfer is ready: only the rest of the delay is felt."""
    tasks = graph(compute("f", 0, 3.0), transfer("act", 0, 1, 1.0, "f"))
    assert shares(execution(tasks, {"f": (0, 3), "act": (3.5, 4.5)}, ("act", 1.5, 3.5, 4.5))) == (
        3,
        1,
        0.5,
        0,
    )


def test_the_chain_goes_on_through_whoever_held_the_port_before():
    """``b`` is ready at 0 and waits for ``a`` on the out-port of server 0, then for its circuit."""
    tasks = graph(transfer("a", 0, 1, 4.0), transfer("b", 0, 2, 2.0))
    one = execution(tasks, {"a": (0, 4), "b": (5, 7)}, ("a", 0, 0, 4), ("b", 4, 5, 7))
    assert shares(one) == (0, 6, 1, 0)


def test_the_in_port_counts_as_well():
    tasks = graph(transfer("a", 1, 0, 4.0), transfer("b", 2, 0, 2.0))
    one = execution(tasks, {"a": (0, 4), "b": (5, 7)}, ("a", 0, 0, 4), ("b", 4, 5, 7))
    assert shares(one) == (0, 6, 1, 0)


def test_the_chain_goes_on_through_the_task_before_on_the_device():
    tasks = graph(compute("f", 0, 3.0), compute("g", 0, 2.0))
    one = execution(tasks, {"f": (0, 3), "g": (3, 5)})
    assert shares(one) == (5, 0, 0, 0)
    assert shares(one, exclusive=False) == (2, 0, 0, 3)


def test_all_of_the_delay_is_dark_where_the_port_decided_the_start():
    """``f`` ends while the circuit of ``b`` is being set up; ``b`` could not have started earlier without it."""
    tasks = graph(transfer("a", 0, 1, 4.0), compute("f", 0, 5.0), transfer("b", 0, 2, 2.0, "f"))
    one = execution(tasks, {"a": (0, 4), "f": (0, 5), "b": (7, 9)}, ("a", 0, 0, 4), ("b", 4, 7, 9))
    assert shares(one) == (0, 6, 3, 0)


def test_a_circuit_asked_for_when_its_transfer_is_ready_hangs_on_the_predecessor():
    """The port was free at 4, but nobody asked for the circuit until ``f`` ended at 5."""
    tasks = graph(transfer("a", 0, 1, 4.0), compute("f", 0, 5.0), transfer("b", 0, 2, 2.0, "f"))
    one = execution(
        tasks, {"a": (0, 4), "f": (0, 5), "b": (8, 10)}, ("a", 0, 0, 4), ("b", 5, 8, 10)
    )
    assert shares(one) == (5, 2, 3, 0)


def test_what_nothing_explains_is_waiting():
    """A slot boundary: ready at 2.5, the slot begins at 3."""
    tasks = graph(compute("f", 0, 2.5), transfer("act", 0, 1, 1.0, "f"))
    assert shares(execution(tasks, {"f": (0, 2.5), "act": (3, 4)}, ("act", 3, 3, 4))) == (
        2.5,
        1,
        0,
        0.5,
    )


def test_circuits_of_no_length_at_one_time_do_not_turn_the_chain_in_a_circle():
    tasks = graph(transfer("b", 0, 1, 0.0), transfer("a", 0, 2, 0.0, "b"))
    one = execution(tasks, {"b": (3, 3), "a": (3, 3)}, ("a", 3, 3, 3), ("b", 3, 3, 3))
    assert shares(one) == (0, 0, 0, 3)


def test_an_empty_iteration_has_no_time_to_spend():
    assert shares(execution(graph(compute("f", 0, 0.0)), {"f": (0, 0)})) == (0, 0, 0, 0)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("delay", [0.0, 1.0, 3.0])
def test_the_four_add_up_on_every_schedule_with_circuits(seed, delay):
    machine = cluster(4, reconfiguration_ms=delay)
    result = list_schedule(random_graph(seed, tasks=40), machine, Settings.of(engine="list"))
    parts = shares(result.execution)
    assert sum(parts) == pytest.approx(result.execution.makespan_ms, abs=1e-6)
    assert min(parts) >= 0
    if delay == 0:
        assert parts[2] == 0


@pytest.mark.parametrize(("name", "delay_ms"), [("race", 5.0), ("moe", 1.0)])
def test_the_exported_critical_tasks_take_the_time_that_the_comparison_shows(name, delay_ms):
    sample, machine = load_sample(name)
    settings = Settings.of(engine="list")
    slow = machine.changed(reconfiguration_ms=delay_ms)
    for run in compare(sample, slow, settings, ["reactive", "scheduled"]).values():
        critical = [row for row in task_rows(run.execution) if row["critical"]]
        compute_ms = sum(row["duration_ms"] for row in critical if row["device"] is not None)
        assert compute_ms == pytest.approx(run.breakdown.compute_ms)
        parts = asdict(run.breakdown).values()
        assert sum(parts) == pytest.approx(run.iteration_ms, abs=1e-9)
