"""Collectives on circuits: what each takes alone, which algorithm is chosen, and circuits that change inside it.

a is the latency of a message, b the tensor's time on one port, delta the reconfiguration delay; first
circuits are free (rivals of collectives, Thakur et al. 2005, with the delay added).
"""

import pytest
from hypothesis import given, strategies as st

from tests.conftest import examples
from topox_core.check.checker import check
from topox_core.fabrics.collective_choice import with_fastest_algorithms
from topox_core.fabrics.compare import compare, run_one
from topox_core.fabrics.one_collective import OneCollective, StepsOnPorts
from topox_core.fabrics.run import FabricRequest
from topox_core.fabrics.scheduled import schedule
from topox_core.fabrics.split_exact import shortest_split
from topox_core.model.cluster import Cluster
from topox_core.model.lowering import lower, transfers_of
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.model.transfer_graph import Lowering
from topox_core.schedule.result_file import to_record
from topox_core.schedule.settings import FREE, Settings

A, DELTA = 0.01, 0.1
BYTES_PER_MS = 100e6 / 8  # of a port of 100 Gbit/s


def alone(kind: str, n: int, size_bytes: float = 8 * BYTES_PER_MS) -> TaskGraph:
    root = 0 if kind == "broadcast" else None
    task = Task("c", kind, (), members=tuple(range(n)), size_bytes=size_bytes, root=root)
    return TaskGraph("one", (task,))


def cluster(n: int, ports: int, delay_ms: float = 0.0, latency_ms: float = 0.0) -> Cluster:
    of = Cluster(n, ports, 1, n * ports, 100.0)
    return of.changed(reconfiguration_ms=delay_ms, latency_us=1000 * latency_ms)


def time_ms(fabric: str, graph: TaskGraph, of: Cluster, lowering: Lowering) -> float:
    return run_one(fabric, FabricRequest(lower(graph, lowering), of, Settings.of())).iteration_ms


# What each takes alone.


EIGHT, SIX = cluster(8, 1, DELTA, A), cluster(6, 1, DELTA, A)
ALONE = [  # n ms of bytes on one port: the time of reactive circuits, and of provisioned ones
    # 2 (n - 1) (a + b / n); halving and doubling 2 k a + 2 (n - 1) / n b + 2 (k - 1) delta, k = log2 n
    ("all_reduce", "ring", 1, EIGHT, 14.14, 14.14),
    ("all_reduce", "ring", 1, SIX, 10.1, 10.1),
    ("all_reduce", "halving_doubling", 1, EIGHT, 14.46, 14.46),
    # Two more steps for members beyond the power of two p: (2 + 2 (p - 1) / p) b
    ("all_reduce", "halving_doubling", 1, SIX, 21.46, 21.46),
    # 2 (m - 1) (a + b / m) + 2 (n / m - 1) (a + b / n) + 2 delta
    ("all_reduce", "two_level(4)", 1, EIGHT, 14.28, 14.28),
    ("all_reduce", "two_level(2)", 1, SIX, 10.26, 10.26),
    # k a + (n - 1) / n b + (k - 1) delta, k = log2 n rounded up
    ("all_gather", "bruck", 1, EIGHT, 7.23, 7.23),
    ("all_gather", "bruck", 1, SIX, 5.23, 5.23),
    ("all_gather", "doubling", 1, EIGHT, 7.23, 7.23),
    ("reduce_scatter", "halving", 1, EIGHT, 7.23, 7.23),
    # k (a + b) + (k - 1) delta
    ("broadcast", "tree", 1, EIGHT, 24.23, 24.23),
    ("broadcast", "tree", 1, SIX, 18.23, 18.23),
    # 2 (n - 1) (a + b / n) + (n - 1) delta; of c parts (n - 2 + c) (a + b / c)
    ("broadcast", "scatter_gather", 1, EIGHT, 14.84, 14.84),
    ("broadcast", "chain(8)", 1, EIGHT, 14.14, 14.14),
    # (n - 1) (a + b / n) + (n - 2) delta; k (a + b / 2) + (k - 1) delta
    ("all_to_all", "pairwise", 1, EIGHT, 7.67, 7.67),
    ("all_to_all", "bruck", 1, EIGHT, 12.23, 12.23),
    # 3 (a + 2 b / n) + (a + 4 b / n) + 3 delta
    ("all_to_all", "two_level(4)", 1, EIGHT, 10.34, 10.34),
    # A tree waits for each change of peer, which provisioning cannot hide.
    ("all_reduce", "tree", 1, EIGHT, 48.56, 48.46),
    # With two ports the next circuit is set up while the other port sends.
    ("all_to_all", "pairwise", 1, cluster(8, 2, 1.0), 12.0, 7.0),
    ("all_reduce", "halving_doubling", 1, cluster(8, 2, 1.0), 16.0, 14.0),
    # Direct has no formula, but orders without conflicts and rings on all ports beat it.
    ("all_to_all", "direct", 1, cluster(8, 2, 1.0), None, 13.0),
    ("all_reduce", "direct", 1, cluster(8, 1), None, 21.0),
    ("all_to_all", "direct", 1, cluster(8, 1), None, 13.0),
    ("all_to_all", "pairwise", 1, cluster(8, 1), None, 7.0),
    ("all_reduce", "direct", 1, cluster(8, 2, DELTA), None, 12.0),
    ("all_reduce", "ring", 1, cluster(8, 2, DELTA), None, 14.0),
    ("all_reduce", "ring", 2, cluster(8, 2, DELTA), None, 7.0),
]


@pytest.mark.parametrize(("kind", "name", "rings", "of", "reactive", "provisioned"), ALONE)
def test_a_collective_alone_takes_its_formula_or_what_was_counted_by_hand(
    kind: str, name: str, rings: int, of: Cluster, reactive: float | None, provisioned: float
) -> None:
    graph = alone(kind, of.servers, of.servers * BYTES_PER_MS)
    lowering = Lowering(algorithm={kind: name}, rings=rings)
    for fabric, expected in (("reactive", reactive), ("provisioned", provisioned)):
        if expected is not None:
            assert time_ms(fabric, graph, of, lowering) == pytest.approx(expected, abs=1e-6)


# Which is chosen.


def chosen(
    fabric: str, graph: TaskGraph, of: Cluster, lowering: Lowering
) -> tuple[str, float, float]:
    """Return the chosen word, and the times of choice and default."""
    choice = with_fastest_algorithms(fabric, graph, of, Settings.of(lowering=lowering))
    times = (time_ms(fabric, graph, of, one) for one in (choice, lowering))
    return next((word for _, word in choice.algorithm), "default"), *times


@pytest.mark.parametrize(
    ("size_bytes", "latency_us", "delay_ms", "name", "expected_ms"),
    [
        (1e4, 1.0, 0.0, "halving_doubling", 0.0087),
        (1e4, 1.0, 0.01, "two_level(4)", 0.0135),
        (1e4, 20.0, 0.01, "halving_doubling", 0.1615),
        (1e4, 20.0, 0.1, "two_level(4)", 0.2415),
        (1e6, 1.0, 0.1, "two_level(4)", 0.162),
    ],
)
def test_what_wins_an_all_reduce_step_by_step_depends_on_latency_and_delay(
    size_bytes: float, latency_us: float, delay_ms: float, name: str, expected_ms: float
) -> None:
    """n = 16, two ports of 100G, provisioned; a ring of lock steps is the default here."""
    of = cluster(16, 2, delay_ms, latency_us / 1000)
    stepwise = Lowering(steps="stepwise")
    word, time, default = chosen("provisioned", alone("all_reduce", 16, size_bytes), of, stepwise)
    assert word.split("*")[0] == name
    assert time == pytest.approx(expected_ms, abs=1e-4)
    assert time < default


def test_circuits_prefer_an_order_without_conflicts_for_an_all_to_all_and_keep_fluid_rings() -> (
    None
):
    for fabric in ("reactive", "provisioned"):
        word, time, default = chosen(fabric, alone("all_to_all", 8), cluster(8, 1), Lowering())
        assert (word, time / default) == ("pairwise", pytest.approx(7 / 13))
    for kind in ("all_reduce", "all_gather", "reduce_scatter"):
        graph, of = alone(kind, 8, 1e6), Cluster(8, 2, 2, 8, 100.0, latency_us=5.0)
        assert chosen("provisioned", graph, of, Lowering(rings=2))[0] == "default"
    fixed = Lowering(algorithm={"all_to_all": "bruck"})  # what a user names stays
    assert chosen("provisioned", alone("all_to_all", 8), cluster(8, 1), fixed)[0] == "bruck"


# Inside one collective: circuits that change between steps while other ports send.


def of_steps(
    n: int, c: int, delay: float, kind: str = "all_reduce", latency: float = 0.0
) -> OneCollective:
    name = "halving_doubling" if kind == "all_reduce" else "pairwise"
    return OneCollective(kind, name, n, c, 8.0, latency, delay)


def assert_carried_out(one: OneCollective, way: StepsOnPorts) -> None:
    """Every step sends all it has, after the step before, and no port changes faster than it can."""
    busy, circuits = one.steps.busy, one.steps.circuits
    assert way.share_ms.sum(axis=1) == pytest.approx(busy, abs=1e-6)
    used = way.share_ms > 1e-9
    end = way.start_ms + way.share_ms + one.latency_ms
    before = 0.0
    for q in range(len(busy)):
        assert (way.start_ms[q, used[q]] >= before - 1e-6).all()
        before = max(before, end[q, used[q]].max())
        for r in used[q].nonzero()[0].tolist():
            for p in used[:q, r].nonzero()[0].tolist():
                dark = one.delay_ms if circuits[p] != circuits[q] else 0.0
                assert way.start_ms[q, r] >= end[p, r] + dark - 1e-6
    assert way.makespan_ms == pytest.approx(before, abs=1e-6)


STATED = [  # members, ports, delay; together, one port a step, the optimum, a ring on each port
    (8, 2, 1.0, 11.0, 14.0, 11.0, 7.0),
    (8, 2, 2.0, 15.0, 14.0, 12.0, 7.0),
    (8, 2, 5.0, 27.0, 20.0, 18.0, 7.0),
    (8, 4, 0.5, 5.5, 14.0, 5.333333, 3.5),
    (8, 4, 1.0, 7.5, 14.0, 6.0, 3.5),
    (8, 4, 2.0, 11.5, 14.0, 7.333333, 3.5),
    (8, 4, 5.0, 23.5, 14.0, 10.0, 3.5),
    (8, 4, 20.0, 83.5, 14.0, 10.0, 3.5),
    (16, 2, 1.0, 13.5, 15.0, 12.0, 7.5),
    (16, 2, 2.0, 19.5, 17.0, 15.0, 7.5),
    (16, 2, 5.0, 37.5, 23.0, 23.0, 7.5),
]


@pytest.mark.parametrize(("n", "c", "delay", "together", "one_port", "optimum", "rings"), STATED)
def test_halving_and_doubling_takes_what_was_computed_beforehand(
    n: int, c: int, delay: float, together: float, one_port: float, optimum: float, rings: float
) -> None:
    one = of_steps(n, c, delay)
    times = one.together().makespan_ms, one.one_port_a_step().makespan_ms, one.rings_ms
    assert times == pytest.approx((together, one_port, rings))
    found = one.split().makespan_ms
    assert optimum - 1e-6 <= found <= min(together, one_port, optimum * 1.1) + 1e-9


@pytest.mark.parametrize(
    ("n", "c", "delay", "optimum", "proved"),
    [
        (8, 2, 2.0, 12.0, True),
        (8, 2, 5.0, 18.0, True),
        *(pytest.param(*(*row[:3], row[5], False), marks=pytest.mark.long) for row in STATED),
    ],
)
def test_the_programme_reaches_every_stated_optimum(
    n: int, c: int, delay: float, optimum: float, proved: bool
) -> None:
    one = of_steps(n, c, delay)
    best = shortest_split(one, 30.0)
    assert best.makespan_ms <= optimum + 1e-5
    assert not proved or best.proved_ms == pytest.approx(optimum, abs=1e-4)
    assert_carried_out(one, best)


@pytest.mark.parametrize(
    ("c", "delay", "together", "optimum"),
    [(2, 0.1, 4.1, 4.1), (2, 1.0, 9.5, 7.0), (2, 5.0, 33.5, 19.0), (4, 5.0, 31.75, 9.0)],
)
def test_an_exchange_in_pairs_hides_set_ups_behind_other_ports(
    c: int, delay: float, together: float, optimum: float
) -> None:
    one = of_steps(8, c, delay, "all_to_all")
    times = one.together().makespan_ms, one.split().makespan_ms
    assert times == pytest.approx((together, optimum))


@given(
    st.sampled_from([("all_reduce", 4), ("all_reduce", 8), ("all_to_all", 5), ("all_to_all", 8)]),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.3, 1.0, 7.0]),
    st.sampled_from([0.0, 0.05]),
)
@examples(30)
def test_no_way_is_shorter_than_the_bound_and_the_split_is_behind_none(
    of_kind: tuple[str, int], c: int, delay: float, latency: float
) -> None:
    one = of_steps(of_kind[1], c, delay, of_kind[0], latency)
    ways = [one.together(), one.one_port_a_step(), one.split()]
    for way in ways:
        assert_carried_out(one, way)
        assert way.makespan_ms >= one.bound_ms - 1e-9
    assert ways[2].makespan_ms <= min(way.makespan_ms for way in ways) + 1e-9
    if delay == 0:
        assert ways[2].makespan_ms == pytest.approx(one.bound_ms)


@pytest.mark.parametrize(
    ("kind", "n", "ports", "delay_ms", "latency_ms", "expected_ms"),
    [
        ("all_to_all", 8, 2, 0.8, 0.0, 6.9),
        ("all_to_all", 8, 4, 0.8, 0.0, 4 + 1 / 3),
        ("all_to_all", 8, 4, 1.6, 0.0, 5.6),
        ("all_reduce", 8, 4, 0.4, 0.5, 8.083333),
    ],
)
def test_uneven_parts_hide_set_ups_that_whole_and_equal_parts_do_not(
    kind: str, n: int, ports: int, delay_ms: float, latency_ms: float, expected_ms: float
) -> None:
    """What the controller carries out is what the model of one collective says."""
    graph, of = alone(kind, n), cluster(n, ports, delay_ms, latency_ms)
    settings = Settings.of(engine="list", free=FREE, lowering=Lowering(steps="stepwise"))
    runs = compare(graph, of, settings, ["provisioned", "in_collective", "scheduled"])
    assert runs["in_collective"].iteration_ms == pytest.approx(expected_ms, abs=1e-4)
    assert "uneven parts" in runs["in_collective"].chosen_words
    assert runs["provisioned"].iteration_ms > expected_ms + 0.01
    assert runs["scheduled"].iteration_ms <= runs["in_collective"].iteration_ms * (1 + 1e-9)
    assert check(graph, of, to_record(runs["scheduled"].result)).lines() == ()


@pytest.mark.parametrize(
    ("kind", "word", "n"),
    [
        ("all_to_all", "pairwise[3:1|1|1:1|2:1]", 5),
        ("all_reduce", "halving_doubling[2:1|1|1:1:1|1]", 4),
        ("all_gather", "bruck[5:3|1|1:1]", 6),
        ("all_reduce", "two_level(2)[1:1|1|1|2:1]", 4),
    ],
)
def test_a_message_in_uneven_parts_moves_its_bytes_and_waits_for_all_parts_before(
    kind: str, word: str, n: int
) -> None:
    graph, of = alone(kind, n), Cluster(n, 2, 2, n, 100.0)
    uneven, whole = (
        lower(graph, Lowering(algorithm={kind: name})) for name in (word, word.partition("[")[0])
    )
    moved, expected = (one.size_bytes[one.kind == 1].sum() for one in (uneven, whole))
    assert moved == pytest.approx(expected)
    assert len(uneven.lowered) == transfers_of(graph, uneven.lowering)
    settings = Settings.of(engine="list", lowering=uneven.lowering)
    assert check(graph, of, to_record(schedule(graph, of, settings))).lines() == ()
