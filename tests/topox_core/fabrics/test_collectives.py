"""Collectives on circuits: what each takes alone, which algorithm is chosen, and circuits that change inside it.

a is the latency of a message, b the tensor's time on one port, delta the reconfiguration delay; first
circuits are free (rivals of collectives, Thakur et al. 2005, with the delay added).
"""

import re
from itertools import pairwise, product
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from tests.conftest import examples
from tests.topox_core.small_graphs import collective
from topox_core.check.checker import check
from topox_core.fabrics.comparison.compare import compare, run_one
from topox_core.fabrics.controllers.one_collective import (
    OneCollective,
    StepsOnPorts,
    largest_collective,
    shortest_split,
)
from topox_core.fabrics.planning.collective_choice import with_fastest_algorithms
from topox_core.fabrics.planning.scheduled import schedule
from topox_core.fabrics.run import FabricRequest
from topox_core.model.cluster import Cluster
from topox_core.model.lowering.collective_steps import ALGORITHMS
from topox_core.model.lowering.lowering import lower, transfers_of
from topox_core.model.lowering_choices import Lowering
from topox_core.model.task_graph import TaskGraph
from topox_core.schedule.results.result_file import to_record
from topox_core.schedule.settings import FREE, Settings

ROOT = Path(__file__).parents[3]
A, DELTA = 0.01, 0.1
BYTES_PER_MS = 100e6 / 8  # of a port of 100 Gbit/s


def alone(kind: str, n: int, size_bytes: float = 8 * BYTES_PER_MS) -> TaskGraph:
    return TaskGraph("one", (collective(kind, n, size_bytes),))


def cluster(n: int, ports: int, delay_ms: float = 0.0, latency_ms: float = 0.0) -> Cluster:
    of = Cluster(n, ports, 1, n * ports, 100.0)
    return of.changed(reconfiguration_ms=delay_ms, latency_us=1000 * latency_ms)


def time_ms(fabric: str, graph: TaskGraph, of: Cluster, lowering: Lowering) -> float:
    return run_one(
        fabric, FabricRequest(lower(graph, lowering), of, Settings.of(iteration="first"))
    ).iteration_ms


# What each takes alone.


MEMBERS = range(2, 19)
POWERS = (2, 4, 8, 16)
STATED_FOR = {  # a row of the document: what takes each of its times, and with how many members
    "ring all-reduce; all-gather, reduce-scatter": (
        (("all_reduce=ring",), MEMBERS),
        (("all_gather=ring", "reduce_scatter=ring"), MEMBERS),
    ),
    "halving, doubling, bruck all-gather": (
        (("reduce_scatter=halving", "all_gather=doubling", "all_gather=bruck"), MEMBERS),
    ),
    "halving_doubling, n = p; n >= 3p/2": (
        (("all_reduce=halving_doubling",), POWERS),
        (("all_reduce=halving_doubling",), (3, 6, 7, 12, 13, 14, 15)),
    ),
    "two_level all-reduce": ((("all_reduce=two_level",), MEMBERS),),
    "broadcast tree; scatter_gather, n > 2; chain(C)": (
        (("broadcast=tree",), MEMBERS),
        (("broadcast=scatter_gather",), MEMBERS[1:]),
        (("broadcast=chain",), MEMBERS),
    ),
    "all_to_all pairwise; bruck, n = p": (
        (("all_to_all=pairwise",), MEMBERS),
        (("all_to_all=bruck",), POWERS),
    ),
    "all_to_all two_level": ((("all_to_all=two_level",), MEMBERS),),
}
TABLE = re.compile(r"## What they take.*?\| --- \| --- \|\n(.*?)\n\n", re.S)
STATED = dict(
    row.strip("| ").split(" | ")
    for row in TABLE.search((ROOT / "docs" / "collectives.md").read_text())[1].splitlines()
)


def by_formula(formula: str, **value: float) -> float:
    """The value of a formula as it is printed: letters are numbers, and what stands side by side is multiplied."""
    tokens = re.findall(r"\d+|[a-zC]|\S", formula)
    factors = [
        "*" + one if before[-1] not in "(+-/" and one not in ")+-/" else one
        for before, one in pairwise(["(", *tokens])
    ]
    return eval("".join(factors), {}, value)


def parameters(name: str, n: int) -> tuple[int, ...]:
    if name == "chain":
        return (1, 3, 8)
    return tuple(m for m in range(2, n) if n % m == 0) if name == "two_level" else (0,)


def on_demand_and_provisioned(
    word: str, n: int, a: float, b: float, d: float, parameter: int = 0
) -> tuple[float, float]:
    kind, name = word.split("=")
    lowering = Lowering(algorithm={kind: f"{name}({parameter})" if parameter else name})
    graph, of = alone(kind, n, b * BYTES_PER_MS), cluster(n, 1, d, a)
    reactive, provisioned = (
        time_ms(one, graph, of, lowering) for one in ("reactive", "provisioned")
    )
    return reactive, provisioned


def test_every_formula_of_the_document_is_checked() -> None:
    assert STATED.keys() == STATED_FOR.keys()
    assert by_formula("(2 + 2(n-1)/n) b + 2k d", n=4, b=8.0, k=2, d=0.5) == 3.5 * 8 + 2


@pytest.mark.parametrize("row", STATED_FOR)
@pytest.mark.parametrize(("a", "b", "d"), [(A, 8.0, DELTA), (0.1, 10.0, 3.0)])
def test_a_collective_alone_takes_its_formula(row: str, a: float, b: float, d: float) -> None:
    for formula, (words, members) in zip(STATED[row].split("; "), STATED_FOR[row], strict=True):
        for word, n in product(words, members):
            kind, name = word.split("=")
            if ALGORITHMS[kind][name].power_of_two and n not in POWERS:
                continue
            for m in parameters(name, n):
                k, p = (n - 1).bit_length(), 1 << n.bit_length() - 1
                expected = by_formula(
                    formula, a=a, b=b, d=d, n=n, k=k, p=p, m=m, C=m, g=n // max(m, 1)
                )
                for time in on_demand_and_provisioned(word, n, a, b, d, m):
                    assert time == pytest.approx(expected, abs=1e-6), (word, n, m)


@pytest.mark.parametrize("n", [5, 9, 10, 11, 17, 18])
def test_where_few_fold_halving_and_doubling_takes_no_less_than_its_formula(n: int) -> None:
    formula = STATED["halving_doubling, n = p; n >= 3p/2"].split("; ")[1]
    k, p = (n - 1).bit_length(), 1 << n.bit_length() - 1
    least = by_formula(formula, a=0.1, b=10.0, d=3.0, n=n, k=k, p=p)
    times = on_demand_and_provisioned("all_reduce=halving_doubling", n, 0.1, 10.0, 3.0)
    assert min(times) > least + 0.1
    if n == 5:
        assert (*times, least) == pytest.approx((51.2, 48.2, 47.6))


EIGHT = cluster(8, 1, DELTA, A)
ALONE = [  # n ms of bytes on one port: the time of reactive circuits, and of provisioned ones
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
def test_a_collective_alone_takes_what_was_counted_by_hand(
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


OPTIMA = [  # members, ports, delay; together, one port a step, the optimum, a ring on each port
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


@pytest.mark.parametrize(("n", "c", "delay", "together", "one_port", "optimum", "rings"), OPTIMA)
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
        *(pytest.param(*(*row[:3], row[5], False), marks=pytest.mark.long) for row in OPTIMA),
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


def test_the_largest_collective_is_of_those_whose_steps_are_permutations() -> None:
    six, four, two = (alone("reduce_scatter", n, 1e6 * n).tasks[0] for n in (6, 4, 2))
    graph = TaskGraph("three", (two, four, six))
    # Halving needs 2, 4, 8 members; an exchange of six runs pair by pair.
    assert largest_collective(graph, ("reduce_scatter",), 64) is four
    assert largest_collective(graph, ("reduce_scatter",), 3) is two
    assert largest_collective(graph, ("all_gather",), 64) is None
    exchange = alone("all_to_all", 6)
    assert largest_collective(exchange, ("all_to_all",), 64) is exchange.tasks[0]


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
    settings = Settings.of(
        engine="list", iteration="first", free=FREE, lowering=Lowering(steps="stepwise")
    )
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
    settings = Settings.of(engine="list", iteration="first", lowering=uneven.lowering)
    assert check(graph, of, to_record(schedule(graph, of, settings))).lines() == ()
