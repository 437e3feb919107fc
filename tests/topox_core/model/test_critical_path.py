"""Where the time goes: compute, exposed transfer, dark and waiting along the chain add up to the iteration."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest

from tests.conftest import long_after, some
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


F, ACT, ALONE = compute("f", 0, 3.0), transfer("act", 0, 1, 1.0, "f"), transfer("act", 0, 1, 1.0)
A, B = transfer("a", 0, 1, 4.0), transfer("b", 0, 2, 2.0)
LATE, AFTER = compute("f", 0, 5.0), transfer("b", 0, 2, 2.0, "f")
BY_HAND = {
    "a chain of compute and transfer": (
        execution(
            graph(F, ACT, compute("g", 1, 2.0, "act")), {"f": (0, 3), "act": (3, 4), "g": (4, 6)}
        ),
        (5, 1, 0, 0),
    ),
    "a transfer behind compute is not exposed": (
        execution(
            graph(F, ALONE, compute("g", 1, 2.0, "act", "f")),
            {"f": (0, 3), "act": (0, 1), "g": (3, 5)},
        ),
        (5, 0, 0, 0),
    ),
    "a circuit asked for when its transfer is ready: the whole delay is dark": (
        execution(graph(F, ACT), {"f": (0, 3), "act": (5, 6)}, ("act", 3, 5, 6)),
        (3, 1, 2, 0),
    ),
    "a circuit asked for 1.5 ms before its transfer is ready: only the rest of the delay is felt": (
        execution(graph(F, ACT), {"f": (0, 3), "act": (3.5, 4.5)}, ("act", 1.5, 3.5, 4.5)),
        (3, 1, 0.5, 0),
    ),
    "b is ready at 0 and waits for a on the out-port of server 0, then for its circuit": (
        execution(graph(A, B), {"a": (0, 4), "b": (5, 7)}, ("a", 0, 0, 4), ("b", 4, 5, 7)),
        (0, 6, 1, 0),
    ),
    "the in-port counts as well": (
        execution(
            graph(transfer("a", 1, 0, 4.0), transfer("b", 2, 0, 2.0)),
            {"a": (0, 4), "b": (5, 7)},
            ("a", 0, 0, 4),
            ("b", 4, 5, 7),
        ),
        (0, 6, 1, 0),
    ),
    "all of the delay is dark where f ends while the circuit is being set up": (
        execution(
            graph(A, LATE, AFTER),
            {"a": (0, 4), "f": (0, 5), "b": (7, 9)},
            ("a", 0, 0, 4),
            ("b", 4, 7, 9),
        ),
        (0, 6, 3, 0),
    ),
    "the port was free at 4, but nobody asked for the circuit until f ended at 5": (
        execution(
            graph(A, LATE, AFTER),
            {"a": (0, 4), "f": (0, 5), "b": (8, 10)},
            ("a", 0, 0, 4),
            ("b", 5, 8, 10),
        ),
        (5, 2, 3, 0),
    ),
    "what nothing explains is waiting: ready at 3, the slot begins at 3.5": (
        execution(graph(F, ACT), {"f": (0, 3), "act": (3.5, 4.5)}, ("act", 3.5, 3.5, 4.5)),
        (3, 1, 0, 0.5),
    ),
    "circuits of no length at one time do not turn the chain in a circle": (
        execution(
            graph(transfer("b", 0, 1, 0.0), transfer("a", 0, 2, 0.0, "b")),
            {"b": (3, 3), "a": (3, 3)},
            ("a", 3, 3, 3),
            ("b", 3, 3, 3),
        ),
        (0, 0, 0, 3),
    ),
    "an empty iteration": (execution(graph(compute("f", 0, 0.0)), {"f": (0, 0)}), (0, 0, 0, 0)),
}


@pytest.mark.parametrize("case", BY_HAND)
def test_compute_exposed_transfer_dark_and_waiting_by_hand(case):
    one, parts = BY_HAND[case]
    assert shares(one) == parts


def test_the_chain_goes_on_through_the_task_before_on_the_device():
    one = execution(graph(F, compute("g", 0, 2.0)), {"f": (0, 3), "g": (3, 5)})
    assert shares(one) == (5, 0, 0, 0)
    assert shares(one, exclusive=False) == (2, 0, 0, 3)


@pytest.mark.parametrize("delay", [0.0, 1.0, 3.0])
def test_the_four_add_up_on_every_schedule_with_circuits(delay):
    for seed in some(range(20), quick=6):
        machine = cluster(4, reconfiguration_ms=delay)
        result = list_schedule(random_graph(seed, tasks=40), machine, Settings.of())
        parts = shares(result.execution)
        assert sum(parts) == pytest.approx(result.execution.makespan_ms, abs=1e-6)
        assert min(parts) >= 0
        assert delay or parts[2] == 0


@pytest.mark.parametrize(("name", "delay_ms"), long_after(1, [("race", 5.0), ("moe", 1.0)]))
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
