"""Where the time goes: shares along the chain, measures of an execution and of each moment, facts of a task graph."""

from dataclasses import asdict, replace
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.conftest import examples, long_after, some
from tests.topox_core.conftest import build
from tests.topox_core.small_graphs import (
    cluster,
    compute,
    graph,
    list_schedule,
    random_graph,
    transfer,
)
from topox_core.fabrics.comparison.compare import compare
from topox_core.fabrics.run import Breakdown
from topox_core.io.exports import task_rows
from topox_core.model.cluster import Cluster
from topox_core.model.critical_path import critical_path
from topox_core.model.execution import (
    Circuits,
    Execution,
    busiest_slot,
    circuit_lives_ms,
    covered_ms,
    measures,
    port_table,
    ports_busy,
    ports_carrying_a_slot,
    ports_in_use,
    slot_state,
    slots,
)
from topox_core.model.facts import facts
from topox_core.model.lowering.lowering import lower
from topox_core.model.lowering_choices import Lowering
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.model.transfer_graph import durations_ms, latency_ms, work_bytes
from topox_core.schedule.settings import Settings
from topox_core.workloads.catalogue import generate
from topox_core.workloads.samples import load_sample


def execution(
    tasks: TaskGraph, times: dict[str, tuple[float, float]], *rows: tuple[str, float, float, float]
) -> Execution:
    """Return an execution from (start, end) of each task and circuits (task, setup, start, end) on one switch."""
    lowered = lower(tasks)
    node = np.array([lowered.ids.index(row[0]) for row in rows], np.int32)
    setup, start, end = np.array([row[1:] for row in rows], np.float64).reshape(-1, 3).T
    zero, ends = np.zeros(len(rows), np.int32), (lowered.source[node], lowered.destination[node])
    circuits = Circuits(node, zero, zero, zero, setup < start, *ends, setup, start, end)
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


# -- measures ---------------------------------------------------------------------------------------


def test_shares_are_of_the_whole_cluster_over_the_whole_iteration(pipeline):
    now = measures(pipeline)
    assert (now.makespan_ms, now.circuits_changed) == (37, 4)
    found = now.device_busy, now.port_carrying, now.port_dark
    assert found == pytest.approx(((9 + 8 + 16) / (3 * 37), 14 / (6 * 37), 2 / (6 * 37)))


def test_a_kept_circuit_lives_from_its_first_use_to_its_last(pipeline):
    circuits = pipeline.circuits
    assert sorted(circuit_lives_ms(circuits)) == [3, 3, 6, 6]
    assert measures(pipeline).mean_life_ms == 4.5
    # One that stood before the iteration has a life of its own on each port.
    standing = replace(circuits, changed=np.zeros(len(circuits), bool))
    assert sorted(circuit_lives_ms(standing)) == [3, 3, 6, 6]


def test_tasks_that_share_a_device_are_counted_once():
    both = build(
        [("a", "forward", "", 0, 0, 6, []), ("b", "forward", "", 0, 3, 10, [])], [], cluster(1)
    )
    assert measures(both).device_busy == 1.0


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 9)), max_size=25))
def test_covered_time_is_the_measure_of_the_union(rows):
    group, start, length = np.array(rows, float).reshape(-1, 3).T
    cells = {(g, t) for g, s, n in rows for t in range(s, s + n)}
    assert covered_ms(group.astype(np.int64), start, start + length) == pytest.approx(len(cells))


def test_the_critical_chain_has_no_hole_and_ends_with_the_iteration(pipeline):
    chain = critical_path(pipeline)
    names = [pipeline.graph.ids[i] for i in chain.nodes]
    assert names == ["f0s0", "f1s0", "a1", "f1s1", "b1", "f1s2", "B2", "g2", "g1", "u0"]
    ends = [0, *pipeline.end_ms[chain.nodes]]
    assert ends[-1] == pipeline.makespan_ms
    assert chain.begin_ms.tolist() == ends[:-1]
    # The dark stretch lies on the chain where the port was what held up: from g1's set-up at 31.
    assert (chain.waits[-2], chain.begin_ms[-2]) == ("port", 31)


def test_a_transfer_that_waits_for_its_slot_still_hangs_on_its_predecessor():
    run = build(
        [("f", "forward", "", 0, 0, 2.25, []), ("x", "communication", "pp", (0, 1), 3, 5, ["f"])],
        [(0, 0, 1, 3, 3, 5, "x", False)],
        cluster(2, slot_ms=1.0),
    )
    chain = critical_path(run)
    assert chain.waits == ("start", "dependency")
    assert chain.slack_ms[1] == pytest.approx(0.75)


def test_ports_in_use_is_exact_between_edges(pipeline):
    circuits = pipeline.circuits
    mean = ports_in_use(circuits.start_ms, circuits.end_ms, np.array([0.0, 4, 6, 28, 31, 37]))
    assert mean == pytest.approx([0, 1, 6 / 22, 1, 0.5])


def test_the_port_table_adds_up_to_the_measures(pipeline):
    table, now = port_table(pipeline), measures(pipeline)
    assert sum(table["carrying (ms)"]) == pytest.approx(now.port_carrying * 3 * 2 * 37)
    assert sum(table["dark (ms)"]) == pytest.approx(now.dark_ms)
    assert sum(table["circuit changes"]) == now.circuits_changed


def test_a_moment_shows_one_circuit_a_port_where_two_follow_one_another_within_the_slot(pipeline):
    """Shown together they would look as if the port had two partners at a time."""
    start_ms = np.array([0.0, 0.3, 0.6, 10.0, 10.3, 10.6])
    moved = replace(
        pipeline.circuits,
        source=np.zeros(6, np.int32),
        switch=np.zeros(6, np.int32),
        setup_ms=start_ms,
        start_ms=start_ms,
        end_ms=start_ms + 0.3,
    )
    state = slot_state(replace(pipeline, circuits=moved), 0)
    assert state.at_ms == 0.5 and state.all.tolist() == [1]


def test_a_port_counts_once_at_every_moment_in_which_it_carries_whatever_lies_on_it(pipeline):
    circuits, rng = pipeline.circuits, np.random.default_rng(0)
    for start in (circuits.start_ms, rng.uniform(0, 30, 6)):
        moved = replace(circuits, start_ms=start, end_ms=start + rng.uniform(0, 7, 6))
        run = replace(pipeline, circuits=moved)
        states = [slot_state(run, slot) for slot in range(slots(run))]
        busy = [ports_busy(moved, state.carrying) for state in states]
        assert ports_carrying_a_slot(run).tolist() == busy
        unchanged = replace(run, circuits=replace(moved, changed=np.zeros(6, bool)))
        assert busy[busiest_slot(unchanged)] == max(busy) > 0


def test_the_busiest_slot_is_that_of_the_traffic_that_changes_most_circuits(pipeline):
    """An all-reduce fills every port with circuits that stay: at its height both switches look alike."""
    circuits, changes = pipeline.circuits, np.array([False] * 5 + [True])
    start_ms = np.where(changes, 7.2, 0.2)
    moved = replace(
        circuits, setup_ms=start_ms, start_ms=start_ms, end_ms=start_ms + 0.5, changed=changes
    )
    kinds = ["dp"] * len(pipeline.graph)
    kinds[circuits.node[5]] = "ep"
    run = replace(pipeline, circuits=moved, graph=replace(pipeline.graph, parallelism=tuple(kinds)))
    busy = ports_carrying_a_slot(run)
    assert busiest_slot(run) == 7 and busy[0] > busy[7] == 1


# 8 Gbit/s: a megabyte a millisecond.
SLOW = Cluster(servers=8, ports_per_server=1, switches=1, ports_per_switch=8, port_gbps=8.0)


def test_the_blackboard_sample_by_hand() -> None:
    found = facts(*load_sample("blackboard"))
    assert (found.tasks, found.transfers, found.dependencies) == (6, 3, 5)
    assert (found.servers, found.devices) == (3, 3)
    assert found.bytes_by_parallelism == {"pp": found.bytes_total} == {"pp": 6e6}
    assert (found.busiest_server, found.busiest_out_bytes) == (0, 5e6)
    assert (found.critical_path, found.critical_path_ms) == (("a", "x", "b", "z"), 10)
    assert (found.compute_ms_max, found.compute_ms_mean) == (4, pytest.approx(8 / 3))


def test_collectives_count_the_bytes_that_cross_the_network() -> None:
    members = (0, 1, 2, 3)
    graph = TaskGraph(
        "collectives",
        (
            Task(
                "sum",
                "all_reduce",
                dependencies=(),
                members=members,
                size_bytes=8e6,
                parallelism="dp",
            ),
            Task(
                "swap",
                "all_to_all",
                dependencies=("sum",),
                members=members,
                size_bytes=4e6,
                parallelism="ep",
            ),
            Task("alone", "all_gather", dependencies=(), members=(2,), size_bytes=9e9),
        ),
    )
    found = facts(graph, SLOW)
    assert found.bytes_by_parallelism == {"dp": 48e6, "ep": 12e6}
    assert (found.critical_path_ms, len(found.critical_path)) == (pytest.approx(12 + 1), 2)
    assert facts(graph, SLOW, Lowering(rings=2)).critical_path_ms == pytest.approx(6 + 1)


def test_a_transfer_given_by_its_time_has_no_bytes_and_pays_no_latency() -> None:
    timed = Task("t", "communication", dependencies=(), source=0, destination=1, duration_ms=3.0)
    sized = Task("s", "communication", dependencies=("t",), source=1, destination=2, size_bytes=1e6)
    graph = TaskGraph("timed", (timed, sized))
    found = facts(graph, SLOW.changed(latency_us=500.0))
    assert found.bytes_total == 1e6
    assert found.critical_path_ms == pytest.approx(3 + 0.5 + 1)
    # On a shared link bytes and latency are charged apart: the given time is all bytes.
    lowered = lower(graph)
    assert list(latency_ms(lowered, SLOW.changed(latency_us=500.0))) == [0.0, 0.5]
    assert list(work_bytes(lowered, SLOW)) == [3e6, 1e6]


def test_a_graph_of_barriers_takes_no_time() -> None:
    found = facts(
        TaskGraph("empty", (Task("a", "barrier"), Task("b", "barrier", dependencies=("a",)))), SLOW
    )
    assert (found.critical_path, found.critical_path_ms) == ((), 0)
    assert (found.busiest_server, found.devices, found.compute_ms_max) == (-1, 0, 0)


@given(seed=st.integers(0, 10_000), width=st.integers(1, 6), layers=st.integers(1, 8))
@examples(40)
def test_the_critical_path_agrees_with_networkx(seed: int, width: int, layers: int) -> None:
    graph, cluster = generate(
        "random-layered", {"seed": seed, "width": width, "layers": layers, "fan_in": 3}
    )
    lowered = lower(graph)
    duration = durations_ms(lowered, cluster)
    oracle = nx.DiGraph()
    for i in range(len(lowered)):
        oracle.add_edge(i, len(lowered), ms=duration[i])
        for p in lowered.pred_idx[lowered.pred_ptr[i] : lowered.pred_ptr[i + 1]].tolist():
            oracle.add_edge(p, i, ms=duration[p])
    found = facts(graph, cluster)
    assert found.critical_path_ms == pytest.approx(nx.dag_longest_path_length(oracle, "ms"))
    path = [lowered.ids.index(name) for name in found.critical_path]
    assert float(np.sum(duration[path])) == pytest.approx(found.critical_path_ms)
    assert all(oracle.has_edge(a, b) for a, b in pairwise(path))


@pytest.mark.parametrize("kind", ["all_reduce", "all_gather", "reduce_scatter"])
@pytest.mark.parametrize("rings", [1, 2])
def test_a_fluid_ring_takes_as_long_as_its_lock_steps_when_nothing_is_in_the_way(
    kind: str, rings: int
) -> None:
    graph = TaskGraph(
        "ring", (Task("c", kind, dependencies=(), members=(0, 1, 2, 3, 4), size_bytes=1e7),)
    )
    fluid, steps = (
        facts(graph, SLOW, Lowering(rings=rings, steps=word)) for word in ("fluid", "stepwise")
    )
    assert fluid.critical_path_ms == pytest.approx(steps.critical_path_ms)
    assert fluid.bytes_total == pytest.approx(steps.bytes_total)
