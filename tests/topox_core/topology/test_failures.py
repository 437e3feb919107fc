"""Failures: what breaks is what the element carried, the rest is rerouted, a ring borrows from model-parallel circuits."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from tests.conftest import examples
from tests.topox_core.small_graphs import (
    GBIT_MS,
    cluster,
    compute,
    graph,
    list_schedule,
    random_graph,
    transfer,
)
from tests.topox_core.topology.test_topology import demand, demands
from topox_core.check.checker import check
from topox_core.errors import InputError
from topox_core.model.cluster import Cluster
from topox_core.model.execution import Circuits, Execution, Layout
from topox_core.model.lowering.lowering import lower
from topox_core.model.task_graph import Task
from topox_core.schedule.results.result_file import to_record
from topox_core.schedule.settings import Settings
from topox_core.topology.failures import Failure, fail_layout, repair, whole_rings
from topox_core.topology.finder import VARIANTS, LayoutResult, demand_of, find_layout, ring_strides
from topox_core.topology.replanning import fail_cluster, remaining_graph
from topox_core.topology.ring_circuits import on_rings
from topox_core.topology.traffic import Demand, all_reduce_demand

SIX = tuple(range(6))


def both_ways(servers: int = 6) -> LayoutResult:
    """One ring in both directions: degree 2, released."""
    return find_layout(all_reduce_demand(servers), 2, "released")


def ring_and_matching() -> tuple[LayoutResult, Demand]:
    """A ring 0 > 1 > ... > 5 > 0 on switch 0, circuits 0-3, 1-4 and 2-5 both ways on switch 1."""
    traffic = demand(6, {SIX: 1.0}, {(0, 3): 5.0, (1, 4): 9.0, (2, 5): 7.0})
    return find_layout(traffic, 2), traffic


def or_why(way: Callable[[], Any]) -> Any:
    """Return what a way gives, or the line that says why not."""
    try:
        return way()
    except InputError as error:
        return str(error)


def valid(layout: Layout, degree: int) -> bool:
    """Tell whether ports suffice and every route runs on circuits that are there."""
    paths = (path for some in layout.routes.values() for path in some)
    whole = all(layout.circuits[pair] > 0 for path in paths for pair in pairwise(path))
    return whole and max(*layout.circuits.sum(axis=0), *layout.circuits.sum(axis=1)) <= degree


# -- a layout after a failure ----------------------------------------------------------------------


def test_a_cut_fibre_sends_its_bytes_the_other_way_round_the_ring():
    found = both_ways()
    after = fail_layout(found.layout, Failure.fibre(0, 1), found.wiring)
    assert after.circuits[0, 1] == 0
    assert after.routes == {**found.layout.routes, (0, 1): ((0, 5, 4, 3, 2, 1),)}


def test_one_of_two_parallel_circuits_leaves_the_route():
    found = find_layout(all_reduce_demand(2), 2)
    after = fail_layout(found.layout, Failure.fibre(0, 1), found.wiring)
    assert after.circuits.tolist() == [[0, 1], [2, 0]]
    assert after.routes == found.layout.routes


def test_a_port_takes_one_circuit_out_and_one_in():
    found = both_ways()
    after = fail_layout(found.layout, Failure.of_port(2, 0), found.wiring)
    lost = found.layout.circuits - after.circuits
    assert (lost.sum(), lost[2].sum(), lost[:, 2].sum()) == (2, 1, 1)


@pytest.mark.parametrize("ports_per_switch", [1, 2])
def test_a_switch_takes_a_whole_ring_for_each_port_of_a_server(ports_per_switch):
    found = find_layout(all_reduce_demand(16), 4)
    after = fail_layout(found.layout, Failure.of_switch(1), found.wiring, ports_per_switch)
    assert after.circuits.sum(axis=1).tolist() == [4 - ports_per_switch] * 16
    assert valid(after, 4 - ports_per_switch)


# -- repair ----------------------------------------------------------------------------------------


def test_a_broken_ring_borrows_the_model_parallel_circuits_of_its_ends():
    found, traffic = ring_and_matching()
    mended = repair(found, Failure.fibre(0, 1), traffic)
    # Through switch 1: the out-port of 0 held 0 > 3, the in-port of 1 held 4 > 1.
    ends = (0, 1), (0, 3), (4, 1), (3, 0), (1, 4)
    assert [mended.result.layout.circuits[pair] for pair in ends] == [1, 0, 0, 1, 1]
    assert mended.result.layout.routes[0, 1] == ((0, 1),)
    assert mended.result.layout.routes[0, 3] != ((0, 3),)
    assert mended.done == (
        "The ring circuit 0 → 1 is laid again through port 1, lent by the model-parallel 0 → 3 and 4 → 1.",
    )
    assert valid(mended.result.layout, 2)


def test_the_repaired_ring_carries_the_same_rings():
    whole = Task("sum", "all_reduce", dependencies=(), members=SIX, size_bytes=60.0)
    lowered = lower(graph(whole, transfer("act", 0, 3, 1.0)))
    traffic = demand_of(lowered, 6)
    mended = repair(find_layout(traffic, 2), Failure.fibre(0, 1), traffic)
    moved = on_rings(lowered, mended.result)
    ends = zip(moved.source.tolist(), moved.destination.tolist(), strict=True)
    assert set(ends) - {(-1, -1)} <= set(mended.result.layout.routes)


def test_ports_that_are_free_need_no_lending():
    # The second ports of 0, 2, 3 and 5 have no partner.
    traffic = demand(6, {SIX: 1.0}, {(1, 4): 9.0})
    mended = repair(find_layout(traffic, 2), Failure.fibre(2, 3), traffic)
    assert mended.done == ("The ring circuit 2 → 3 is laid again through port 1, which was free.",)
    assert (mended.result.layout.circuits[2, 3], mended.result.layout.circuits[1, 4]) == (1, 1)


def test_the_model_parallel_circuits_with_the_least_traffic_are_lent():
    pairs = {(0, 2): 30.0, (1, 3): 30.0, (0, 3): 20.0, (1, 2): 20.0}
    traffic = demand(4, {(0, 1, 2, 3): 1.0}, pairs)
    mended = repair(find_layout(traffic, 3), Failure.fibre(0, 1), traffic)
    assert mended.done[0].endswith("lent by the model-parallel 0 → 3 and 2 → 1.")


@pytest.mark.parametrize(
    ("failure", "degree", "circuits"),
    [(Failure.of_switch(0), 1, 6), (Failure.of_port(2, 0), 2, 8)],
)
def test_a_lost_ring_switch_or_port_takes_over_the_matching_s(failure, degree, circuits):
    found, traffic = ring_and_matching()
    laid = repair(found, failure, traffic).result.layout
    assert [laid.circuits[i, (i + 1) % 6] for i in SIX] == [1] * 6
    assert laid.circuits.sum() == circuits
    assert valid(laid, degree)


def test_a_lost_model_parallel_circuit_is_not_replaced():
    found, traffic = ring_and_matching()
    mended = repair(found, Failure.fibre(1, 4), traffic)
    assert "1 → 4 is lost" in mended.done[0]
    assert mended.result.layout.routes[1, 4] == ((1, 2, 3, 4),)


def test_where_nothing_can_be_lent_the_all_reduces_leave_the_broken_ring():
    found = both_ways()
    mended = repair(found, Failure.fibre(0, 1), all_reduce_demand(6))
    assert "No port can be lent" in mended.done[0]
    assert "their all-reduces run on stride 5 only" in mended.done[1]
    assert (ring_strides(found, SIX), ring_strides(mended.result, SIX)) == ((1, 5), (5,))
    # For a graph that still has the old ring.
    assert mended.result.layout.routes[0, 1] == ((0, 5, 4, 3, 2, 1),)


@pytest.mark.parametrize(
    ("servers", "degree", "failure", "strides"),
    [
        (16, 4, Failure.of_switch(1), (1, 5, 7)),
        (2, 4, Failure.fibre(0, 1), (1, 1, 1)),  # of parallel rings one goes with its circuit
    ],
)
def test_what_is_lost_costs_its_ring_once(servers, degree, failure, strides):
    traffic = all_reduce_demand(servers)
    mended = repair(find_layout(traffic, degree), failure, traffic)
    assert ring_strides(mended.result, range(servers)) == strides


def test_the_last_ring_of_a_group_is_kept_and_its_traffic_forwarded():
    # 0 -> 1 is gone, 0 -> 2 -> 1 is left.
    circuits = np.array([[0, 0, 1], [1, 0, 1], [1, 1, 0]])
    rings, told = whole_rings({(0, 1, 2): (1, 2), (0, 1): (1,)}, circuits)
    assert rings == {(0, 1, 2): (2,), (0, 1): (1,)}
    assert told[1].endswith("its traffic is forwarded.")


@pytest.mark.parametrize("variant", VARIANTS)
def test_after_a_server_the_circuits_are_found_anew_without_it(variant):
    traffic = demand(6, {SIX: 10.0}, {(0, 3): 5.0, (3, 4): 9.0})
    moved = demand(6, {(0, 1, 2, 4, 5): 10.0}, {(0, 4): 9.0})
    mended = repair(find_layout(traffic, 4, variant), Failure.of_server(3, 0), moved)
    assert (
        not mended.result.layout.circuits[3].any() and not mended.result.layout.circuits[:, 3].any()
    )
    assert (0, 1, 2, 4, 5) in mended.result.riding
    assert (0, 4) in mended.result.layout.routes and (0, 3) not in mended.result.layout.routes
    assert valid(mended.result.layout, 4)


@examples(80)
@given(demands(), st.integers(1, 4), st.data())
def test_a_repair_uses_no_more_ports_and_keeps_every_ring_circuit_that_was_left(
    traffic, degree, data
):
    found = find_layout(traffic, degree)
    source, destination, _ = found.layout.links
    assume(len(source))
    k = data.draw(st.integers(0, len(source) - 1))
    failure = Failure.fibre(int(source[k]), int(destination[k]))
    ways = (
        lambda: fail_layout(found.layout, failure, found.wiring),
        lambda: repair(found, failure, traffic),
    )
    rest, mended = map(or_why, ways)
    if isinstance(mended, str):
        assert isinstance(rest, str) and "no circuits lead" in mended
    else:
        rings = np.count_nonzero(found.wiring.for_rings)
        assert rings - 1 <= np.count_nonzero(mended.result.wiring.for_rings) <= rings
        assert valid(mended.result.layout, degree)
    if not isinstance(rest, str):
        assert valid(rest, degree)
        assert set(rest.routes) == set(found.layout.routes)


FOUR = cluster(4, ports_per_server=4, switches=2)


# -- a cluster after a failure ---------------------------------------------------------------------


def test_a_switch_takes_its_ports_from_every_server():
    without = fail_cluster(FOUR, Failure.of_switch(0))
    assert (without.switches, without.ports_per_server) == (1, 2)


def ran(
    job, times: dict[str, tuple[float, float]], circuits: Circuits | None = None, servers: int = 3
) -> Execution:
    lowered, of = lower(job), cluster(servers, switches=2, ports_per_server=2)
    start, end = np.array([times[name] for name in lowered.ids]).T
    return Execution(lowered, of, start, end, circuits or Circuits.none())


def on_switches(*rows: tuple[int, int, int, float, float, int]) -> Circuits:
    """Circuits (switch, source, destination, start, end, node), never dark."""
    switch, source, destination, start, end, node = map(np.array, zip(*rows, strict=True))
    port, dark = np.zeros(len(rows), np.int32), np.zeros(len(rows), np.bool_)
    return Circuits(node, switch, port, port, dark, source, destination, start, start, end)


# -- the graph that remains -------------------------------------------------------------------------

JOB = graph(
    compute("f0", 0, 4.0),
    transfer("act", 0, 1, 4.0, "f0"),
    transfer("side", 0, 2, 8.0, "f0"),
    compute("f1", 1, 2.0, "act"),
    compute("f2", 2, 2.0, "side"),
)
RUN = ran(
    JOB,
    {"f0": (0, 4), "act": (4, 8), "side": (4, 12), "f1": (8, 10), "f2": (12, 14)},
    on_switches((0, 0, 1, 4.0, 8.0, 1), (1, 0, 2, 4.0, 12.0, 2)),
)


UNUSED = Failure.fibre(1, 0)  # no transfer is on it


def left(at_ms: float, failure: Failure = UNUSED) -> dict[str, Task]:
    return {task.id: task for task in remaining_graph(JOB, RUN, at_ms, failure).tasks}


def test_what_ended_is_gone_and_what_runs_has_its_rest_to_do():
    assert remaining_graph(JOB, RUN, 0.0, UNUSED) == JOB
    assert left(1.0)["f0"].duration_ms == 3.0
    rest = left(6.0)
    assert list(rest) == ["act", "side", "f1", "f2"]
    assert (rest["act"].size_bytes, rest["side"].size_bytes) == (2 * GBIT_MS, 6 * GBIT_MS)
    assert (rest["act"].dependencies, rest["f1"].dependencies) == ((), ("act",))


@pytest.mark.parametrize(
    ("failure", "act_ms", "side_ms"),
    [
        (Failure.of_switch(0), 4, 6),
        (Failure.of_switch(1), 2, 8),
        (Failure.fibre(0, 2), 2, 8),
        (Failure.of_port(0, 0), 4, 6),
        (Failure.of_port(2, 1), 2, 8),
        (Failure.of_port(2, 0), 2, 6),
    ],
)
def test_transfers_on_the_failed_element_start_again(failure, act_ms, side_ms):
    rest = left(6.0, failure)
    sizes = rest["act"].size_bytes, rest["side"].size_bytes
    assert sizes == (act_ms * GBIT_MS, side_ms * GBIT_MS)


def test_a_failed_server_s_tasks_start_again_elsewhere():
    (again,) = left(13.0, Failure.of_server(2, 1)).values()
    assert (again.id, again.server, again.duration_ms) == ("f2", 1, 2.0)
    rest = left(6.0, Failure.of_server(2, 0))
    assert rest["side"].kind == "barrier"  # both of its ends are server 0 now
    assert (rest["f2"].server, rest["f2"].dependencies) == (0, ("side",))
    assert rest["act"].size_bytes == 2 * GBIT_MS


SUM = graph(
    compute("a", 0, 1.0),
    compute("b", 1, 1.0),
    Task("sum", "all_reduce", dependencies=("a", "b"), members=(0, 1, 2), size_bytes=3.0),
    compute("end", 0, 1.0, "sum"),
)
HALF = ran(
    SUM,
    {
        "a": (0, 1),
        "b": (0, 1),
        "": (1, 1),
        "sum/r0/0": (1, 3),
        "sum/r0/1": (1, 5),
        "sum/r0/2": (4, 6),
        "sum": (6, 6),
        "end": (6, 7),
    },
)


def test_a_collective_in_progress_becomes_its_transfers_unless_it_lost_a_member():
    rest = remaining_graph(SUM, HALF, 3.0, UNUSED).tasks
    assert [(task.id, task.size_bytes) for task in rest[:2]] == [
        ("sum/r0/1", 2.0),
        ("sum/r0/2", 4.0),
    ]
    assert (rest[0].source, rest[0].destination) == (1, 2)
    assert (rest[2].kind, rest[2].dependencies) == ("barrier", ("sum/r0/1", "sum/r0/2"))
    again = remaining_graph(SUM, HALF, 3.0, Failure.of_server(2, 0)).tasks
    whole = next(task for task in again if task.id == "sum")
    assert (whole.kind, whole.members, whole.size_bytes) == ("all_reduce", (0, 1), 3.0)


@pytest.mark.parametrize("seed", range(5))
def test_a_new_plan_from_any_moment_is_valid_and_conserves_what_is_left(seed):
    job, machines = random_graph(seed, tasks=20), cluster(4, ports_per_server=2, switches=2)
    execution = list_schedule(job, machines, Settings.of(tick=0.2)).execution
    at_ms, failure = execution.makespan_ms * (seed + 1) / 8, Failure.of_switch(0)
    rest = remaining_graph(job, execution, at_ms, failure)
    without = fail_cluster(machines, failure)
    again = list_schedule(rest, without, Settings.of(tick=0.2))
    assert check(rest, without, to_record(again)).ok
    ended = {execution.graph.ids[i] for i in np.flatnonzero(execution.end_ms <= at_ms)}
    assert {task.id for task in rest.tasks} & set(job.position) == set(job.position) - ended


# -- bad input --------------------------------------------------------------------------------------


def broken(failure: Failure, laid: LayoutResult | None = None) -> Callable[[], object]:
    found = laid or both_ways()
    return lambda: fail_layout(found.layout, failure, found.wiring)


def smaller(failure: Failure, of: Cluster = FOUR) -> Callable[[], object]:
    return lambda: fail_cluster(of, failure)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (broken(Failure.fibre(0, 3)), "fibre from server 0 to server 3: there is no such circuit"),
        (broken(Failure.of_port(0, 7)), "port 7 of server 0, field port: there is no such port"),
        (broken(Failure.of_port(9, 0)), "field server: there is no such server"),
        (broken(Failure.of_switch(2)), "field switch: there is no such switch"),
        (broken(Failure.of_server(6, 0)), "field server"),
        (broken(Failure.of_server(1, 1)), "field substitute: must be another server"),
        (broken(Failure("flood")), "must be one of fibre, port, switch, server"),
        (
            broken(Failure.fibre(2, 3), find_layout(all_reduce_demand(4), 1)),
            "from server 2 to server 3: server 2 talks to server 3, but no circuits lead",
        ),
        (smaller(Failure.of_switch(2)), "there is no such"),
        (smaller(Failure.of_switch(0), cluster(4)), "no switch would be left"),
        (lambda: left(14.0), "no task is left to run at 14 ms"),
        (lambda: left(-1.0), "at least 0 ms"),
        (lambda: left(float("nan")), "at least 0 ms"),
        (lambda: left(6.0, Failure.of_server(2)), "name the server that takes them over"),
    ],
)
def test_what_cannot_be_lost_is_named(asked: Callable[[], object], told: str) -> None:
    with pytest.raises(InputError, match=told):
        asked()
