"""The fluid simulator: hand calculations, an exact reference in fractions, and what max-min fairness promises."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.conftest import examples
from tests.topox_core.small_graphs import cluster, compute, graph
from topox_core.errors import InputError
from topox_core.fabrics.fluid import (
    FluidNetwork,
    Pairs,
    Simulation,
    Stopped,
    simulate,
)
from topox_core.model.durations import latency_ms, work_bytes
from topox_core.model.lowering import lower
from topox_core.model.task_graph import Task
from topox_core.model.transfer_graph import COMPUTE, TransferGraph

NEVER = bool
SERVERS = 5


def send(task: str, source: int, destination: int, size: float, *after: str) -> Task:
    return Task(
        task, "communication", tuple(after), source=source, destination=destination, size_bytes=size
    )


def ends(
    lowered: TransferGraph, network: FluidNetwork, latency_us: float = 0.0, exclusive: bool = True
) -> dict[str, float]:
    """Return when each task ends on links whose capacity is in bytes a millisecond."""
    machine = cluster(SERVERS, latency_us=latency_us)
    _, end = simulate(lowered, machine, Pairs.of(lowered, machine), network, exclusive, NEVER)
    return dict(zip(lowered.ids, end.tolist(), strict=True))


# By hand.


def test_two_transfers_share_a_link_until_the_shorter_is_through():
    lowered = lower(graph(send("short", 0, 1, 10), send("long", 0, 1, 30)))
    assert ends(lowered, FluidNetwork.of([10.0], [[[0]]])) == pytest.approx({"short": 2, "long": 4})


def test_a_transfer_that_joins_later_takes_its_half_from_then_on():
    lowered = lower(
        graph(compute("wait", 0, 1.0), send("early", 0, 1, 30), send("late", 2, 1, 10, "wait"))
    )
    # early is alone for 1 ms, then both have half for 2 ms, then early has 10 bytes left.
    assert ends(lowered, FluidNetwork.of([10.0], [[[0]], [[0]]])) == pytest.approx(
        {"wait": 1, "early": 4, "late": 3}
    )


def test_a_path_of_three_hops_is_as_fast_as_its_slowest_link():
    lowered = lower(graph(send("far", 0, 3, 20)))
    assert ends(lowered, FluidNetwork.of([10.0, 4.0, 10.0], [[[0, 1, 2]]]))["far"] == pytest.approx(
        5
    )


def test_latency_is_charged_once_whatever_the_hops_and_holds_no_link():
    lowered = lower(
        graph(send("far", 0, 3, 20), send("next", 0, 3, 20, "far"), send("empty", 0, 3, 0))
    )
    assert ends(
        lowered, FluidNetwork.of([10.0, 10.0], [[[0, 1]]]), latency_us=500.0
    ) == pytest.approx({"far": 2.5, "next": 5.0, "empty": 0.5})


def test_the_parking_lot_gives_the_long_way_the_share_of_its_tightest_link():
    """Link 0 carries the long transfer and three short ones, links 1 and 2 the long one and one short each."""
    lowered = lower(
        graph(
            *(send(f"a{i}", 0, 1, 12) for i in range(3)),
            send("long", 0, 3, 12),
            send("b", 1, 2, 12),
            send("c", 2, 3, 30),
        )
    )
    network = FluidNetwork.of(
        [12.0, 12.0, 12.0], [[[0]], [[0, 1, 2]], [[1]], [[2]]]
    )  # pairs by source, then destination
    simulation = Simulation(lowered, cluster(SERVERS), Pairs.of(lowered, cluster(SERVERS)), network)
    assert simulation.path_rates.tolist() == pytest.approx([3, 3, 9, 9])
    # b is through after 4/3 ms, c after 10/3 ms; the long one keeps a quarter of link 0 and ends
    # with the short ones.
    assert ends(lowered, network) == pytest.approx(
        {"a0": 4, "a1": 4, "a2": 4, "long": 4, "b": 4 / 3, "c": 10 / 3}
    )


def test_bytes_split_over_two_paths_arrive_when_the_slower_half_does():
    lowered = lower(graph(send("split", 0, 1, 20)))
    assert ends(lowered, FluidNetwork.of([10.0, 5.0], [[[0], [1]]]))["split"] == pytest.approx(2)


def test_a_transfer_given_by_its_time_is_what_a_port_moves_in_it():
    lowered = lower(graph(Task("timed", "communication", source=0, destination=1, duration_ms=3.0)))
    port = 100 * 1e6 / 8
    assert ends(lowered, FluidNetwork.of([port], [[[0]]]), latency_us=700.0)[
        "timed"
    ] == pytest.approx(3)
    assert ends(lowered, FluidNetwork.of([2 * port], [[[0]]]))["timed"] == pytest.approx(1.5)


def test_barriers_and_empty_tasks_take_no_time():
    lowered = lower(
        graph(
            compute("f", 0, 2.0),
            Task("join", "barrier", ("f",)),
            compute("nothing", 1, 0.0, "join"),
            send("empty", 0, 1, 0, "nothing"),
            compute("g", 1, 1.0, "empty"),
        )
    )
    assert ends(lowered, FluidNetwork.of([1.0], [[[0]]])) == {
        "f": 2,
        "join": 2,
        "nothing": 2,
        "empty": 2,
        "g": 3,
    }


# The order of readiness.


def test_a_device_takes_who_was_ready_first_and_is_never_interrupted():
    lowered = lower(
        graph(
            compute("first", 0, 4.0),
            compute("ready3", 1, 3.0),
            compute("ready1", 2, 1.0),
            compute("later", 0, 1.0, "ready3"),
            compute("earlier", 0, 1.0, "ready1"),
        )
    )
    found = ends(lowered, FluidNetwork.of([], []))
    assert (found["first"], found["earlier"], found["later"]) == (4, 5, 6)


def test_of_tasks_ready_together_the_one_earlier_in_the_file_goes_first():
    tasks = [compute(name, 0, 1.0) for name in "dbca"]
    found = ends(lower(graph(*tasks)), FluidNetwork.of([], []))
    assert sorted(found, key=found.get) == list("dbca")


def test_rounding_of_floats_does_not_decide_who_goes_first():
    """0.1 + 0.2 and 0.3 are the same time: the tie falls to the file's order, not to the last bit."""
    lowered = lower(
        graph(
            compute("a", 1, 0.1),
            compute("b", 1, 0.2, "a"),
            compute("c", 2, 0.3),
            compute("first", 0, 1.0, "b"),
            compute("second", 0, 1.0, "c"),
        )
    )
    found = ends(lowered, FluidNetwork.of([], []))
    assert found["first"] < found["second"]


def test_what_becomes_ready_as_a_device_falls_idle_takes_part_in_the_choice():
    lowered = lower(
        graph(
            compute("early", 0, 1.0, "hold2"),
            compute("hold", 0, 2.0),
            compute("hold2", 1, 2.0),
            compute("late", 0, 1.0, "hold2"),
        )
    )
    found = ends(lowered, FluidNetwork.of([], []))
    assert (found["early"], found["late"]) == (3, 4)


def test_devices_that_are_not_exclusive_run_everything_at_once():
    lowered = lower(graph(*(compute(name, 0, 2.0) for name in "abc")))
    assert set(ends(lowered, FluidNetwork.of([], []), exclusive=False).values()) == {2.0}


def test_a_run_that_is_told_to_stop_does():
    lowered = lower(graph(*(compute(f"t{i}", 0, 1.0) for i in range(2000))))
    machine = cluster(SERVERS)
    with pytest.raises(Stopped):
        simulate(
            lowered,
            machine,
            Pairs.of(lowered, machine),
            FluidNetwork.of([], []),
            True,
            lambda: True,
        )


def test_a_server_that_the_cluster_does_not_have_is_named():
    with pytest.raises(InputError, match="names server 7"):
        Pairs.of(lower(graph(compute("a", 7, 1.0))), cluster(3))


# Against an exact reference.


@dataclass
class Case:
    """A graph on a network, as the reference reads it."""

    lowered: TransferGraph
    capacity: list[int]
    paths: list[list[list[int]]]
    latency_us: int

    @property
    def machine(self):
        return cluster(SERVERS, latency_us=self.latency_us)

    @property
    def network(self) -> FluidNetwork:
        return FluidNetwork.of([float(c) for c in self.capacity], self.paths)

    @property
    def pairs(self) -> Pairs:
        return Pairs.of(self.lowered, self.machine)


def fair_rates(flows: list[list[int]], capacity: list[int]) -> list[Fraction]:
    """Progressive filling, one bottleneck at a time, in fractions; a path may cross a link twice."""
    rates: list[Fraction | None] = [None] * len(flows)
    while None in rates:
        levels = {}
        for link, size in enumerate(capacity):
            crossing = sum(
                path.count(link) for path, rate in zip(flows, rates, strict=True) if rate is None
            )
            if crossing:
                used = sum(
                    path.count(link) * rate
                    for path, rate in zip(flows, rates, strict=True)
                    if rate is not None
                )
                levels[link] = (size - used) / Fraction(crossing)
        tightest = min(levels, key=levels.get)
        for i, path in enumerate(flows):
            if rates[i] is None and tightest in path:
                rates[i] = levels[tightest]
    return rates


def reference(case: Case) -> list[Fraction]:
    """Return the exact end of every node: one event at a time, nothing kept between events but what is left to do."""
    g, pairs = case.lowered, case.pairs
    n = len(g)
    preds = [set(g.pred_idx[g.pred_ptr[i] : g.pred_ptr[i + 1]].tolist()) for i in range(n)]
    size = [Fraction(x) for x in work_bytes(g, case.machine).tolist()]
    latency = [
        Fraction(case.latency_us, 1000) if x > 0 else Fraction(0)
        for x in latency_ms(g, case.machine)
    ]
    now = Fraction(0)
    end: dict[int, Fraction] = {}
    ready: dict[int, Fraction] = {}
    until: dict[int, Fraction] = {}  # ends at a known time
    queue: list[int] = []
    holder: dict[int, int] = {}
    flows: list[list] = []  # [node, path, bytes left]
    while len(end) < n:
        progress = True
        while progress:
            progress = False
            for i in range(n):
                if i not in ready and preds[i] <= end.keys():
                    ready[i], progress = now, True
                    if g.kind[i] == COMPUTE and g.duration_ms[i] > 0:
                        queue.append(i)
                    elif size[i] > 0:
                        routes = case.paths[pairs.of_node[i]]
                        flows += [[i, path, size[i] / len(routes)] for path in routes]
                    else:
                        until[i] = now + latency[i]
            for i in [i for i, t in until.items() if t <= now]:
                end[i], progress = until.pop(i), True
                holder = {device: j for device, j in holder.items() if j != i}
        for i in sorted(queue, key=lambda i: (ready[i], i)):
            if int(g.server[i]) not in holder:
                holder[int(g.server[i])] = i
                until[i] = now + Fraction(float(g.duration_ms[i]))
                queue.remove(i)
        rates = fair_rates([path for _, path, _ in flows], case.capacity)
        times = [
            *until.values(),
            *(now + left / rate for (_, _, left), rate in zip(flows, rates, strict=True)),
        ]
        if not times:
            break
        step = min(times) - now
        now += step
        for flow, rate in zip(flows, rates, strict=True):
            flow[2] -= rate * step
        through = {flow[0] for flow in flows if flow[2] == 0}
        flows = [flow for flow in flows if flow[2] > 0]
        for i in through - {flow[0] for flow in flows}:
            until[i] = now + latency[i]
    return [end[i] for i in range(n)]


@st.composite
def cases(draw) -> Case:
    """Random small graphs whose transfers have random paths over a few links, up to two paths a pair."""
    tasks: list[Task] = []
    for j in range(draw(st.integers(1, 14))):
        after = draw(st.lists(st.integers(0, j - 1), max_size=2, unique=True)) if j else []
        waits = tuple(f"t{i}" for i in after)
        what = draw(st.integers(0, 9))
        if what < 6:
            source, destination = draw(st.permutations(range(SERVERS)))[:2]
            tasks.append(send(f"t{j}", source, destination, draw(st.integers(0, 40)), *waits))
        elif what < 9:
            tasks.append(
                compute(f"t{j}", draw(st.integers(0, 1)), float(draw(st.integers(0, 4))), *waits)
            )
        else:
            tasks.append(Task(f"t{j}", "barrier", waits))
    lowered = lower(graph(*tasks))
    capacity = draw(st.lists(st.integers(1, 12), min_size=1, max_size=5))
    path = st.lists(st.integers(0, len(capacity) - 1), min_size=1, max_size=4)
    pairs = Pairs.of(lowered, cluster(SERVERS))
    paths = [draw(st.lists(path, min_size=1, max_size=2)) for _ in range(len(pairs))]
    return Case(lowered, capacity, paths, draw(st.sampled_from((0, 0, 250))))


many = examples(150, suppress_health_check=[HealthCheck.too_slow])


@many
@given(cases())
def test_every_task_ends_when_the_exact_reference_says(case):
    _, end = simulate(case.lowered, case.machine, case.pairs, case.network, True, NEVER)
    assert end.tolist() == pytest.approx([float(t) for t in reference(case)], rel=1e-9, abs=1e-12)


@many
@given(cases())
def test_no_link_is_above_capacity_and_every_transfer_has_its_bottleneck_at_every_event(case):
    """Max-min fair: each transfer crosses a full link on which nobody is faster (Bertsekas and Gallager)."""
    simulation = Simulation(case.lowered, case.machine, case.pairs, case.network)
    flat = [path for of_pair in case.paths for path in of_pair]
    more = True
    while more:
        rate, flows = simulation.path_rates, simulation.path_flows
        for link, capacity in enumerate(case.capacity):
            assert sum(
                f * r * p.count(link) for f, r, p in zip(flows, rate, flat, strict=True)
            ) <= capacity * (1 + 1e-9)
        for i in np.flatnonzero(flows):
            assert any(
                _is_bottleneck(link, i, case.capacity, flat, rate, flows) for link in flat[i]
            )
        more = simulation.advance(1)
    assert not simulation.path_flows.any()


def _is_bottleneck(link, i, capacity, flat, rate, flows) -> bool:
    crossing = [j for j in np.flatnonzero(flows) if link in flat[j]]
    load = sum(flows[j] * rate[j] * flat[j].count(link) for j in crossing)
    return load >= capacity[link] * (1 - 1e-9) and all(
        rate[i] >= rate[j] * (1 - 1e-9) for j in crossing
    )


@many
@given(cases())
def test_every_byte_is_carried_once_over_every_hop_of_its_path(case):
    simulation = Simulation(case.lowered, case.machine, case.pairs, case.network)
    flat = [path for of_pair in case.paths for path in of_pair]
    carried = np.zeros(len(flat))
    more = True
    while more:
        before, rate, flows = simulation.now_ms, simulation.path_rates, simulation.path_flows
        more = simulation.advance(1)
        carried += rate * flows * (simulation.now_ms - before)
    due = np.zeros(len(flat))
    work = work_bytes(case.lowered, case.machine)
    first = np.cumsum([0, *(len(of_pair) for of_pair in case.paths)])
    for node, pair in enumerate(case.pairs.of_node):
        if pair >= 0:
            due[first[pair] : first[pair + 1]] += work[node] / len(case.paths[pair])
    assert carried.tolist() == pytest.approx(due.tolist(), rel=1e-9, abs=1e-9)


@many
@given(cases(), st.permutations(range(SERVERS)))
def test_relabelling_the_servers_changes_nothing(case, label):
    tasks = graph(
        *(
            Task(case.lowered.ids[i], *_fields(case.lowered, i, label))
            for i in range(len(case.lowered))
        )
    )
    moved = lower(tasks)
    old, new = case.pairs, Pairs.of(moved, case.machine)
    where = {
        (int(s), int(d)): i
        for i, (s, d) in enumerate(zip(old.source, old.destination, strict=True))
    }
    back = {new_label: server for server, new_label in enumerate(label)}
    paths = [
        case.paths[where[back[int(s)], back[int(d)]]]
        for s, d in zip(new.source, new.destination, strict=True)
    ]
    relabelled = Case(moved, case.capacity, paths, case.latency_us)
    one, other = (
        simulate(c.lowered, c.machine, c.pairs, c.network, True, NEVER)[1]
        for c in (case, relabelled)
    )
    assert one.tolist() == pytest.approx(other.tolist(), rel=1e-9)


def _fields(g: TransferGraph, i: int, label: list[int]) -> tuple:
    """The fields of a task after its id, with servers relabelled; on another server a task keeps its device to itself."""
    after = tuple(g.ids[p] for p in g.pred_idx[g.pred_ptr[i] : g.pred_ptr[i + 1]])
    kind = ("forward", "communication", "barrier")[g.kind[i]]
    if kind == "forward":
        return kind, after, label[g.server[i]], 0, float(g.duration_ms[i])
    if kind == "communication":
        return (
            kind,
            after,
            None,
            None,
            None,
            label[g.source[i]],
            label[g.destination[i]],
            float(g.size_bytes[i]),
        )
    return kind, after


@many
@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 6)), min_size=1, max_size=8),
    st.integers(1, 9),
    st.integers(1, 9),
)
def test_over_a_single_bottleneck_more_bandwidth_never_hurts(transfers, slower, more):
    """Transfers that start at fixed times and share one link: all of them end no later on a faster one.

    It does not hold for every graph. Faster links change who becomes ready first, a device then
    takes its tasks in another order, and the iteration may become longer (Graham's anomalies,
    1966); likewise a transfer that is through earlier lets another one start, which takes its share
    from a third.
    """
    tasks = [compute(f"wait{i}", i, float(start)) for i, (_, start) in enumerate(transfers)]
    tasks += [send(f"t{i}", 0, 1, size, f"wait{i}") for i, (size, _) in enumerate(transfers)]
    lowered = lower(graph(*tasks))
    machine = cluster(10)
    slow, fast = (
        simulate(
            lowered,
            machine,
            Pairs.of(lowered, machine),
            FluidNetwork.of([float(c)], [[[0]]]),
            True,
            NEVER,
        )[1]
        for c in (slower, slower + more)
    )
    assert (fast <= slow * (1 + 1e-12)).all()
