"""Facts of a task graph, against sums done by hand and against networkx."""

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.conftest import examples
from topox_core.model.cluster import Cluster
from topox_core.model.facts import facts
from topox_core.model.lowering import lower
from topox_core.model.lowering_choices import Lowering
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.model.transfer_graph import durations_ms, latency_ms, work_bytes
from topox_core.workloads.catalogue import generate
from topox_core.workloads.samples import load_sample

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
            Task("sum", "all_reduce", (), members=members, size_bytes=8e6, parallelism="dp"),
            Task("swap", "all_to_all", ("sum",), members=members, size_bytes=4e6, parallelism="ep"),
            Task("alone", "all_gather", (), members=(2,), size_bytes=9e9),
        ),
    )
    found = facts(graph, SLOW)
    assert found.bytes_by_parallelism == {"dp": 48e6, "ep": 12e6}
    assert (found.critical_path_ms, len(found.critical_path)) == (pytest.approx(12 + 1), 2)
    assert facts(graph, SLOW, Lowering(rings=2)).critical_path_ms == pytest.approx(6 + 1)


def test_a_transfer_given_by_its_time_has_no_bytes_and_pays_no_latency() -> None:
    timed = Task("t", "communication", (), source=0, destination=1, duration_ms=3.0)
    sized = Task("s", "communication", ("t",), source=1, destination=2, size_bytes=1e6)
    graph = TaskGraph("timed", (timed, sized))
    found = facts(graph, SLOW.changed(latency_us=500.0))
    assert found.bytes_total == 1e6
    assert found.critical_path_ms == pytest.approx(3 + 0.5 + 1)
    # On a shared link bytes and latency are charged apart: the given time is all bytes.
    lowered = lower(graph)
    assert list(latency_ms(lowered, SLOW.changed(latency_us=500.0))) == [0.0, 0.5]
    assert list(work_bytes(lowered, SLOW)) == [3e6, 1e6]


def test_a_graph_of_barriers_takes_no_time() -> None:
    found = facts(TaskGraph("empty", (Task("a", "barrier"), Task("b", "barrier", ("a",)))), SLOW)
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
    graph = TaskGraph("ring", (Task("c", kind, (), members=(0, 1, 2, 3, 4), size_bytes=1e7),))
    fluid, steps = (
        facts(graph, SLOW, Lowering(rings=rings, steps=word)) for word in ("fluid", "stepwise")
    )
    assert fluid.critical_path_ms == pytest.approx(steps.critical_path_ms)
    assert fluid.bytes_total == pytest.approx(steps.bytes_total)
