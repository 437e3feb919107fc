"""Times of rival fabrics: the fluid simulator by hand and exactly, and what the reference of November 2026 states."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, strategies as st

from tests.conftest import examples, long_after
from tests.past import load_past
from tests.topox_core.fabrics.asked import FIRST, run
from tests.topox_core.small_graphs import cluster, compute, graph
from topox_core.check.checker import check
from topox_core.fabrics.fluid.simulator import FluidNetwork, Pairs, Simulation
from topox_core.fabrics.planning.scheduled import schedule
from topox_core.model.cluster import Cluster
from topox_core.model.lowering.lowering import lower
from topox_core.model.task_graph import Task
from topox_core.model.transfer_graph import (
    COMPUTE,
    FloatArray,
    TransferGraph,
    latency_ms,
    work_bytes,
)
from topox_core.schedule.results.result_file import to_record
from topox_core.schedule.settings import Settings

SERVERS = 5


def send(task: str, source: int, destination: int, size: float, *after: str) -> Task:
    return Task(
        task,
        "communication",
        dependencies=tuple(after),
        source=source,
        destination=destination,
        size_bytes=size,
    )


# By hand.


PORT = 100 * 1e6 / 8
TIMED = Task("timed", "communication", source=0, destination=1, duration_ms=3.0)
BY_HAND = {  # tasks, capacity of links, links of the paths of each pair; when what ends
    "a transfer that joins later takes its half from then on": (
        (compute("wait", 0, 1.0), send("early", 0, 1, 30), send("late", 2, 1, 10, "wait")),
        # early is alone for 1 ms, then both have half for 2 ms, then early has 10 bytes left.
        ([10.0], [[[0]], [[0]]]),
        {"wait": 1, "early": 4, "late": 3},
    ),
    "the long way has the share of its tightest link": (
        (
            *(send(f"a{i}", 0, 1, 12) for i in range(3)),
            *(send("long", 0, 3, 12), send("b", 1, 2, 12), send("c", 2, 3, 30)),
        ),
        # b is through after 4/3 ms, c after 10/3 ms; the long one keeps a quarter of link 0.
        ([12.0, 12.0, 12.0], [[[0]], [[0, 1, 2]], [[1]], [[2]]]),
        {"a0": 4, "a1": 4, "a2": 4, "long": 4, "b": 4 / 3, "c": 10 / 3},
    ),
    "bytes split over two paths arrive when the slower half does": (
        (send("split", 0, 1, 20),),
        ([10.0, 5.0], [[[0], [1]]]),
        {"split": 2},
    ),
    "a transfer given by its time takes it over a port": (
        (TIMED,),
        ([PORT], [[[0]]]),
        {"timed": 3},
    ),
    "and half of it over two": ((TIMED,), ([2 * PORT], [[[0]]]), {"timed": 1.5}),
    "a device takes who was ready first": (
        (
            *(compute("first", 0, 4.0), compute("ready3", 1, 3.0), compute("ready1", 2, 1.0)),
            *(compute("later", 0, 1.0, "ready3"), compute("earlier", 0, 1.0, "ready1")),
        ),
        ([], []),
        {"first": 4, "ready3": 3, "ready1": 1, "earlier": 5, "later": 6},
    ),
    # 0.1 + 0.2 and 0.3 are the same time: the tie falls to the file's order, not to the last bit.
    "rounding of floats does not decide who goes first": (
        (
            *(compute("a", 1, 0.1), compute("b", 1, 0.2, "a"), compute("c", 2, 0.3)),
            *(compute("first", 0, 1.0, "b"), compute("second", 0, 1.0, "c")),
        ),
        ([], []),
        {"a": 0.1, "b": 0.3, "c": 0.3, "first": 1.3, "second": 2.3},
    ),
}


def ends(run: Simulation) -> FloatArray:
    """Return the ends of all tasks of a run, taken to its end."""
    while run.advance(100):
        pass
    return run.state.end


@pytest.mark.parametrize("rule", BY_HAND)
def test_what_shares_links_and_devices_ends_when_counted_by_hand(rule):
    tasks, (capacity, paths), expected = BY_HAND[rule]
    lowered, machine = lower(graph(*tasks)), cluster(SERVERS)
    network = FluidNetwork.of(capacity, paths)
    end = ends(Simulation(lowered, machine, Pairs.of(lowered, machine), network))
    assert dict(zip(lowered.ids, end.tolist(), strict=True)) == pytest.approx(expected)


def test_devices_that_are_not_exclusive_run_everything_at_once():
    lowered, machine = lower(graph(*(compute(name, 0, 2.0) for name in "abc"))), cluster(SERVERS)
    network = FluidNetwork.of([], [])
    end = ends(Simulation(lowered, machine, Pairs.of(lowered, machine), network, False))
    assert end.tolist() == [2.0, 2.0, 2.0]


# Against an exact reference.


@dataclass
class Case:
    """A graph on a network, as the reference reads it."""

    graph: TransferGraph
    of: Cluster
    capacity: list[int]
    paths: list[list[list[int]]]


def fair_rates(flows: list[list[int]], capacity: list[int]) -> list[Fraction]:
    """Progressive filling, one bottleneck at a time, in fractions; a path may cross a link twice."""
    rates: list[Fraction | None] = [None] * len(flows)
    while None in rates:
        levels = {}
        for link, size in enumerate(capacity):
            times = [path.count(link) for path in flows]
            crossing = sum(n for n, rate in zip(times, rates, strict=True) if rate is None)
            used = sum(n * rate for n, rate in zip(times, rates, strict=True) if rate is not None)
            if crossing:
                levels[link] = (size - used) / Fraction(crossing)
        tightest = min(levels, key=levels.get)
        for i, path in enumerate(flows):
            if rates[i] is None and tightest in path:
                rates[i] = levels[tightest]
    return rates


def reference(case: Case) -> list[Fraction]:
    """Return the exact end of every node: one event at a time, nothing kept between events but what is left to do."""
    g, pairs = case.graph, Pairs.of(case.graph, case.of)
    n = len(g)
    preds = [set(g.pred_idx[a:b].tolist()) for a, b in pairwise(g.pred_ptr)]
    size = [Fraction(x) for x in work_bytes(g, case.of).tolist()]
    latency = [Fraction(round(1000 * x), 1000) for x in latency_ms(g, case.of).tolist()]
    now = Fraction(0)
    end, ready, until = ({} for _ in range(3))  # until: who ends at a known time
    queue, holder = [], {}
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
        lasting = [left / rate for (_, _, left), rate in zip(flows, rates, strict=True)]
        times = [*until.values(), *(now + ms for ms in lasting)]
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
            tasks.append(Task(f"t{j}", "barrier", dependencies=waits))
    lowered = lower(graph(*tasks))
    of = cluster(SERVERS, latency_us=draw(st.sampled_from((0, 0, 250))))
    capacity = draw(st.lists(st.integers(1, 12), min_size=1, max_size=5))
    path = st.lists(st.integers(0, len(capacity) - 1), min_size=1, max_size=4)
    pairs = range(len(Pairs.of(lowered, of)))
    return Case(
        lowered, of, capacity, [draw(st.lists(path, min_size=1, max_size=2)) for _ in pairs]
    )


@examples(120, suppress_health_check=[HealthCheck.too_slow])
@given(cases())
def test_every_task_ends_when_the_exact_reference_says(case):
    network = FluidNetwork.of([float(one) for one in case.capacity], case.paths)
    pairs = Pairs.of(case.graph, case.of)
    end = ends(Simulation(case.graph, case.of, pairs, network))
    assert end.tolist() == pytest.approx([float(t) for t in reference(case)], rel=1e-9, abs=1e-12)


PLANNED = Settings.of(engine="list", iteration="first", switching="planned")


@pytest.mark.parametrize(
    ("name", "delay_ms", "reactive_ms", "provisioned_ms"),
    [
        ("llama3-8b", 0.0, 647.119006, 647.119006),
        ("llama3-8b", 10.0, 657.119006, 647.119006),
        ("fsdp", 10.0, 313.446476, 313.446476),
        ("moe", 0.0, 211.397247, 211.397247),
        ("moe", 0.01, 209.551215, 209.521215),
        ("moe", 10.0, 884.865056, 874.865056),
        pytest.param("llama3-70b", 1.0, 3848.833053, 3848.833053, marks=pytest.mark.long),
    ],
)
def test_the_controllers_take_what_the_reference_says(
    name: str, delay_ms: float, reactive_ms: float, provisioned_ms: float
) -> None:
    for fabric, expected_ms in (("reactive", reactive_ms), ("provisioned", provisioned_ms)):
        found = run(fabric, *load_past(name, reconfiguration_ms=delay_ms), FIRST)
        assert found.iteration_ms == pytest.approx(expected_ms, abs=1e-6), fabric


@pytest.mark.parametrize(
    ("name", "ports", "expected_ms"),
    [
        ("moe-n8l4-seed0", 4, 445.351452),
        ("moe-n8l4-seed1", 2, 657.063570),
        ("moe-n8l4-seed1", 4, 398.704238),
        ("moe-n8l4-seed1", 8, 268.197638),
        ("moe-n16l4-seed0", 4, 521.081663),
        ("moe-n16l4-seed1", 4, 496.281203),
        ("llama3-8b", 2, 554.296437),
        ("moe", 2, 219.674657),
    ],
)
def test_a_packet_switch_shared_fairly_takes_what_the_reference_says(
    name: str, ports: int, expected_ms: float
) -> None:
    found = run("fat_tree", *load_past(name, ports_per_server=ports, switches=ports), FIRST)
    assert found.iteration_ms == pytest.approx(expected_ms, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "expected_ms"), [("llama3-8b", 647.119006), ("moe", 368.572939), ("fsdp", 244.741196)]
)
def test_fixed_circuits_take_what_the_reference_says(name: str, expected_ms: float) -> None:
    assert run("static", *load_past(name), FIRST).iteration_ms == pytest.approx(
        expected_ms, abs=1e-6
    )


@pytest.mark.parametrize(
    ("name", "delay_ms", "most_ms", "settings"),
    long_after(
        13,
        [
            ("moe", 0.001, 165.613004, PLANNED),
            ("moe", 0.1, 156.642695, PLANNED),
            ("moe", 1.0, 191.897945, PLANNED),
            ("llama3-8b", 10.0, 647.119006, PLANNED),
            ("fsdp", 10.0, 313.446476, PLANNED),
            # Paid less often phase by phase: by rules and the provisioned order alone it is 386, 608
            # and 123 ms.
            ("moe", 5.0, 358.0, PLANNED),
            ("moe", 10.0, 500.0, PLANNED),
            ("dlrm-16", 10.0, 112.0, PLANNED),
            # What the hardware allows a first answer, which may keep its circuits.
            ("race", 0, 70.5, FIRST),
            ("race", 1, 71.6, FIRST),
            ("moe", 1, 192, FIRST),
            ("fsdp", 0, 244.75, FIRST),
            ("dlrm-16", 0, 37.3, FIRST),
            ("llama3-8b", 0, 647.12, FIRST),
            ("moe", 0, 155, FIRST),
            ("dlrm-16", 1, 40.8, FIRST),
            ("moe", 10, 369, FIRST),
            ("dlrm-16", 10, 40.8, FIRST),
        ],
    ),
)
def test_plans_are_no_later_than_the_reference_says(
    name: str, delay_ms: float, most_ms: float, settings: Settings
) -> None:
    task_graph, of = load_past(name, reconfiguration_ms=delay_ms)
    result = schedule(task_graph, of, settings)
    assert result.makespan_ms <= most_ms + 1e-6
    assert check(task_graph, of, to_record(result)).ok


@pytest.mark.parametrize(
    ("name", "delay_ms", "stated_ms"),
    [
        ("moe", 0.0, 214.201621),
        ("moe", 0.1, 217.101621),
        ("moe", 1.0, 238.770864),
        ("moe", 10.0, 481.843193),
        ("dlrm-16", 0.0, 45.002229),
        ("dlrm-16", 0.1, 45.302229),
        ("dlrm-16", 1.0, 50.362924),
        ("dlrm-16", 10.0, 111.116514),
        ("race", 1.0, 89.890209),
        ("race", 10.0, 165.980086),
        ("fsdp", 0.0, 362.203057),
    ],
)
def test_no_iteration_phase_by_phase_is_later_than_the_reference_says(
    name: str, delay_ms: float, stated_ms: float
) -> None:
    """The reference leaves ties, and which transfers stay when a configuration is divided, open: ours are sooner."""
    found = run("phased", *load_past(name, reconfiguration_ms=delay_ms), FIRST)
    assert found.bound_ms <= found.iteration_ms <= stated_ms + 1e-6
    if name == "race":  # one port a server and one transfer a pair: nothing is left open
        assert found.iteration_ms == pytest.approx(stated_ms, abs=1e-6)
