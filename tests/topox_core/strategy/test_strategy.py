"""Strategies: the task graph they make, the search that finds them, the files that hold them."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import long_after
from tests.refusal import refusal
from tests.topox_core.strategy.strategy_graphs import (
    SAMPLES,
    chain_graph,
    operator,
    random_operator_graph,
    run_strategy,
)
from topox_core.io.task_graph_file import load_graph
from topox_core.model.execution import Layout
from topox_core.model.task_graph import TaskGraph
from topox_core.strategy.models import named
from topox_core.strategy.operators import OperatorGraph
from topox_core.strategy.recommenders import dlrm
from topox_core.strategy.search.evaluator import FastEvaluator, computing_ms, laid_out, non_blocking
from topox_core.strategy.search.moves import SearchSettings
from topox_core.strategy.search.search import alternate, first_strategy, search
from topox_core.strategy.strategy import (
    Placement,
    Strategy,
    check_strategy,
    data_parallel,
    dump_strategy,
    load_strategy,
    overlaps,
    server_bytes,
    spread,
    task_graph,
)


def placed(graph: OperatorGraph, servers: int, *configurations: tuple[int, int]) -> Strategy:
    """A strategy from (partitions, start) of each operator."""
    placements = (
        Placement(one.name, *where)
        for one, where in zip(graph.operators, configurations, strict=True)
    )
    return Strategy(graph.name, servers, tuple(placements))


def whole(graph: OperatorGraph) -> Strategy:
    """Every operator whole on one of four servers, in turn."""
    return placed(graph, 4, *((1, k % 4) for k in range(len(graph.operators))))


def brute_force_ms(graph: OperatorGraph, servers: int, evaluate: FastEvaluator) -> float:
    """The best of all strategies; rotating all servers changes nothing, so the first operator starts on server 0."""
    rows = [list(product(graph.choices(one, servers), range(servers))) for one in graph.operators]
    rows[0] = [where for where in rows[0] if where[1] == 0]
    return min(evaluate(placed(graph, servers, *wheres)) for wheres in product(*rows))


# The task graph.


def test_data_parallel_dlrm_is_the_published_task_graph(real_inputs: Path) -> None:
    graph = dlrm(16, 2)
    file = real_inputs / "flexnet" / "10dlrm_16.fbuf"
    theirs = load_graph(file.read_bytes(), file.name)
    ours = task_graph(graph, data_parallel(graph, 16))
    transfers = [
        (t.source, t.destination, t.size_bytes) for t in ours.tasks if t.source is not None
    ]
    assert set(Counter(transfers).values()) == {2} and len(set(transfers)) == 240
    found = []
    for tasks in (ours.tasks, theirs.tasks):
        passes = [t for t in tasks if t.server is not None]
        busy_ms = np.bincount([t.server for t in passes], [t.duration_ms for t in passes], 16)
        assert busy_ms == pytest.approx(np.full(16, 14.543), abs=5e-4)
        reduced = [t for t in tasks if t.kind == "all_reduce" and len(t.members or ()) > 1]
        moved = [t for t in tasks if t.kind == "nominal_communication"]
        found.append([sorted(t.size_bytes for t in of) for of in (moved, reduced)])
    assert found[0] == found[1]
    assert (len(reduced), sum(found[0][1])) == (46, pytest.approx(306.34e6, rel=1e-4))


@pytest.mark.parametrize(("producers", "consumers"), [(1, 4), (4, 4), (4, 6), (12, 8), (3, 16)])
def test_every_sample_goes_from_one_producer_to_one_consumer(
    producers: int, consumers: int
) -> None:
    table = np.zeros((producers, consumers))
    for i, j, shared in overlaps(SAMPLES, producers, consumers):
        assert shared > 0
        table[i, j] += shared
    assert set(table.sum(axis=1)) == {SAMPLES // producers}
    assert set(table.sum(axis=0)) == {SAMPLES // consumers}


@pytest.mark.parametrize("seed", range(5))
def test_bytes_between_partitions_are_conserved(seed: int) -> None:
    """Each consumer's partition gets its share of every edge, from the network or from its own server; as much comes back."""
    graph = random_operator_graph(seed, 5)
    settings = SearchSettings(20, alpha=0.0, seed=seed, exhaustive=0, reset_every=1000)
    found = search(graph, 4, FastEvaluator(graph, non_blocking(4)), settings).strategy
    for chosen in (found, data_parallel(graph, 4), whole(graph)):
        sent = np.zeros((4, 4))
        for task in task_graph(graph, chosen).tasks:
            if task.kind == "nominal_communication":
                sent[task.source, task.destination] += task.size_bytes
        assert np.array_equal(sent, sent.T)
        expected = 0.0
        for edge in graph.edges:
            there, here = (
                chosen.by_operator[name].servers(4) for name in (edge.producer, edge.consumer)
            )
            shares = overlaps(graph.samples, len(there), len(here))
            away = sum(shared for i, j, shared in shares if there[i] != here[j])
            expected += 2 * edge.bytes_per_sample * away
        assert sent.sum() == pytest.approx(expected)


def test_weights_are_reduced_over_the_servers_that_share_them() -> None:
    graph = chain_graph(
        *(operator(name, 1.0, elements=n) for name, n in (("a", 10), ("b", 20), ("c", 30)))
    )
    tasks = task_graph(graph, placed(graph, 4, (4, 1), (2, 1), (1, 3))).tasks
    found = {t.id: (t.members, t.size_bytes) for t in tasks if t.kind == "all_reduce"}
    assert found == {"sum.a.weight": ((1, 2, 3, 0), 40.0), "sum.b.weight": ((1, 3), 80.0)}


# The simulator.


def circuits(*strides: int) -> Layout:
    """Circuits of four servers, one from each server for every stride."""
    rings = [np.roll(np.eye(4, dtype=np.int32), stride, axis=1) for stride in strides]
    return Layout(sum(rings), {}, str(strides))


EACH_MS = 0.1 + 0.9 / 4  # a quarter of an operator of 1 ms
RING_MS = 2 * 3 / 4 * 4e7 * 8 / 100e6  # a weight of 10 million elements over four servers
FAR = chain_graph(operator("a", 2.0), operator("b", 4.0), bytes_per_sample=1.25e8 / SAMPLES)
NEAR = chain_graph(operator("a", 1.0), operator("b", 1.0), bytes_per_sample=1.25e8 / SAMPLES)
HEAVY = chain_graph(operator("a", 1.0, elements=10**7))
BY_HAND = {
    "one server does all the work": (
        chain_graph(operator("a", 3.0, elements=100), operator("b", 5.0)),
        ((1, 0), (1, 0)),
        non_blocking(4),
        3 * (3.0 + 5.0),
    ),
    "two servers take turns over the link, 10 ms at 100 Gbit/s": (
        FAR,
        ((1, 0), (1, 2)),
        non_blocking(4, 1, 100.0),
        2 + 10 + 4 + 8 + 10 + 4,
    ),
    "and over two ports": (
        FAR,
        ((1, 0), (1, 2)),
        non_blocking(4, 2, 100.0),
        2 + 5 + 4 + 8 + 5 + 4,
    ),
    "an all-reduce takes the time of a ring": (
        HEAVY,
        ((4, 0),),
        non_blocking(4, 1, 100.0),
        3 * EACH_MS + RING_MS,
    ),
    # Three of four quarters come over the network into server 0, and go back out of it.
    "incast shares the receiver's link": (
        NEAR,
        ((4, 0), (1, 0)),
        non_blocking(4, 1, 100.0),
        EACH_MS + 7.5 + 1 + 2 + 7.5 + 2 * EACH_MS,
    ),
    "two hops over circuits, cut through, take the time of one": (
        FAR,
        ((1, 0), (1, 2)),
        laid_out(circuits(1), 100.0),
        2 + 10 + 4 + 8 + 10 + 4,
    ),
    "a hop of latency each is charged if asked for": (
        FAR,
        ((1, 0), (1, 2)),
        laid_out(circuits(1), 100.0, latency_us=1000.0),
        2 + 12 + 4 + 8 + 12 + 4,
    ),
    "parallel circuits add up": (
        FAR,
        ((1, 0), (1, 2)),
        laid_out(circuits(1, 1), 100.0),
        2 + 5 + 4 + 8 + 5 + 4,
    ),
    "an all-reduce on the ring of circuits": (
        HEAVY,
        ((4, 0),),
        laid_out(circuits(1), 100.0),
        3 * EACH_MS + RING_MS,
    ),
    "and on two rings": (
        HEAVY,
        ((4, 0),),
        laid_out(circuits(1, 3), 100.0),
        3 * EACH_MS + RING_MS / 2,
    ),
}


@pytest.mark.parametrize("rule", BY_HAND)
def test_an_iteration_takes_what_was_counted_by_hand(rule: str) -> None:
    graph, configurations, network, expected_ms = BY_HAND[rule]
    strategy = placed(graph, 4, *configurations)
    assert FastEvaluator(graph, network)(strategy) == pytest.approx(expected_ms)


@pytest.mark.parametrize("seed", range(4))
def test_no_iteration_is_shorter_than_its_busiest_server_or_link(seed: int) -> None:
    graph = random_operator_graph(seed, 5)
    evaluate = FastEvaluator(graph, non_blocking(4, 1, 100.0))
    for chosen in (data_parallel(graph, 4), whole(graph)):
        sent = np.zeros(4)
        for task in task_graph(graph, chosen).tasks:
            if task.kind == "all_reduce":
                n = len(task.members)
                sent[list(task.members)] += 2 * (n - 1) / n * task.size_bytes
            elif task.source is not None:
                sent[task.source] += task.size_bytes
        busiest_ms = max(*computing_ms(graph, chosen), *(sent * 8 / 100e6))
        assert evaluate(chosen) >= busiest_ms - 1e-9


# The search.


@pytest.mark.parametrize(
    ("seed", "operators"), long_after(3, [(0, 4), (1, 4), (11, 5), (2, 4), (3, 4), (4, 4), (5, 4)])
)
def test_the_search_finds_the_optimum_by_proof_and_without(seed: int, operators: int) -> None:
    graph = random_operator_graph(seed, operators)
    evaluate = FastEvaluator(graph, non_blocking(4, 1, 100.0))
    best_ms = brute_force_ms(graph, 4, evaluate)
    found = search(graph, 4, evaluate, SearchSettings(300, seed=seed))
    assert (found.proved, found.stopped_by) == (True, "proof")
    assert found.iteration_ms == pytest.approx(best_ms, rel=1e-12)
    walk = SearchSettings(5000, alpha=0.2, seed=seed, exhaustive=0)
    walked = search(graph, 4, evaluate, walk)
    assert (walked.proved, walked.iteration_ms) == (False, pytest.approx(best_ms, rel=1e-9))


@pytest.mark.parametrize(
    "name", long_after(3, ["dlrm-16", "candle-16", "llama3-8b", "bert-16", "vgg16", "resnet50"])
)
def test_no_search_returns_something_slower_than_data_parallel(name: str) -> None:
    graph = named(name).build(8)
    evaluate = FastEvaluator(graph, non_blocking(8, 4, 25.0))
    for alpha in (0.0, 1.0):
        found = search(graph, 8, evaluate, SearchSettings(60, alpha=alpha, seed=4))
        assert found.start == data_parallel(graph, 8)
        assert evaluate(found.strategy) == found.iteration_ms <= found.start_ms
        check_strategy(found.strategy, graph)


def test_candle_gains_by_towers_on_shares_of_the_servers_and_a_seed_has_one_answer() -> None:
    graph = named("candle").build(8)
    evaluate = FastEvaluator(graph, non_blocking(8))
    found, same, other = (
        search(graph, 8, evaluate, SearchSettings(120, seed=seed)) for seed in (5, 5, 6)
    )
    assert found.speed_up > 1.1
    assert found == same
    assert found.moves != other.moves
    # A given start is used if it is faster.
    again = search(graph, 8, evaluate, SearchSettings(0), start=found.strategy)
    assert again.iteration_ms == evaluate(found.strategy) < again.start_ms


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1e9])
def test_the_trace_leads_from_the_start_to_the_end_and_follows_the_rule(alpha: float) -> None:
    """With alpha 0 every proposal that changes something is accepted, with a steep one nothing slower."""
    graph = random_operator_graph(2, 5)
    evaluate = FastEvaluator(graph, non_blocking(4))
    settings = SearchSettings(300, alpha=alpha, exhaustive=0, reset_every=10**6)
    found = search(graph, 4, evaluate, settings)
    at, ms = found.start, found.start_ms
    for move in found.moves:
        assert move.before_ms == ms
        assert all(at.by_operator[old.operator] == old for old in move.before)
        at, ms = at.changed(move.after), move.after_ms
        assert evaluate(at) == pytest.approx(ms, rel=1e-12)
        change = np.sign(move.after_ms - move.before_ms)
        assert {"better": -1, "equal": 0, "chance": 1}.get(move.reason, change) == change
    assert min(move.after_ms for move in found.moves) == found.iteration_ms
    reasons = Counter(move.reason for move in found.moves)
    assert found.accepted == reasons["better"] + reasons["equal"] + reasons["chance"] > 0
    assert (alpha == 0) == (found.accepted > 200)
    assert alpha < 1e9 or not reasons["chance"]


def test_fixed_operators_stay_and_the_rest_is_searched() -> None:
    graph = random_operator_graph(1, 4)
    evaluate, settings = FastEvaluator(graph, non_blocking(4)), SearchSettings(100)
    pinned = Placement("op1", 1, 3)
    found = search(graph, 4, evaluate, settings, fixed=(pinned,))
    assert found.strategy.by_operator["op1"] == pinned == found.start.by_operator["op1"]
    everything = search(graph, 4, evaluate, settings, fixed=found.strategy.placements)
    assert (everything.proposals, everything.stopped_by) == (0, "fixed")
    assert everything.iteration_ms == found.iteration_ms


def test_alternating_keeps_topologies_that_help_and_never_ends_worse_than_it_began() -> None:
    graph = random_operator_graph(3, 5)

    def find(tasks: TaskGraph) -> Layout:
        """One ring for data parallel; as soon as partitions exchange anything, one in each direction."""
        exchange = any(task.kind == "nominal_communication" for task in tasks.tasks)
        return circuits(1, 3) if exchange else circuits(1)

    def evaluator(layout: Layout) -> FastEvaluator:
        return FastEvaluator(graph, laid_out(layout, 100.0))

    settings = SearchSettings(300, alpha=0.1, seed=1)
    found = alternate(graph, 4, find, evaluator, settings)
    assert found.iteration_ms < found.start_ms
    assert evaluator(found.topology)(found.strategy) == pytest.approx(found.iteration_ms)
    kept = [move for move in found.moves if move.reason == "topology"]
    assert found.kept == len(kept) > 0
    assert all(move.after_ms < move.before_ms for move in kept)


# Memory and where a search begins.


def test_memory_is_added_up_by_server_over_all_gpus_of_an_operator() -> None:
    two = replace(operator("b", 1.0, memory=5.0), gpus=2)
    graph = chain_graph(operator("a", 1.0, memory=3.0), two)
    assert server_bytes(placed(graph, 4, (2, 1), (1, 3)), graph) == [0.0, 3.0, 0.0, 13.0]


def test_where_data_parallel_does_not_fit_the_search_begins_with_whole_operators() -> None:
    graph = chain_graph(*(operator(f"op{k}", 1.0, memory=30e9) for k in range(4)))
    assert first_strategy(graph, 4, 60.0) == spread(graph, 4)
    settings = SearchSettings(300, alpha=0.0, memory_gb=60.0)
    found = search(graph, 4, FastEvaluator(graph, non_blocking(4)), settings)
    assert max(server_bytes(found.strategy, graph)) <= 60e9
    assert found.too_large > 0


# Files and bad input.

ABC = chain_graph(operator("a", 1.0), operator("b", 1.0), operator("c", 1.0, splits=(1,)))
FILE = {"format": "topox-strategy", "version": 1, "model": "chain", "servers": 4}
A_AND_B = [{"operator": "a", "partitions": 4, "start": 1}, {"operator": "b", "partitions": 2}]


def test_a_strategy_survives_its_file() -> None:
    strategy = data_parallel(random_operator_graph(4, 5), 4)
    data = dump_strategy(strategy)
    assert load_strategy(data, "s.strategy.json", random_operator_graph(4, 5)) == strategy
    assert dump_strategy(load_strategy(data, "s.strategy.json")) == data


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"format": "topox-cluster"},
            "field format: must be 'topox-strategy' (got 'topox-cluster': this is a cluster file)",
        ),
        ({"version": 2}, "field version: 2 is newer"),
        ({"model": "dlrm-16"}, "field model: must be chain (got dlrm-16)"),
        ({"servers": 0}, "field servers: must be at least 1 (got 0)"),
        ({"servers": "4"}, "field servers: must be a whole number (got '4')"),
        ({"server": 4}, "field server: unknown key (did you mean 'servers'?)"),
        ({"operators": ...}, "field operators: is missing"),
        ({"operators": [{"operator": "z", "partitions": 4}]}, "operator z: is an unknown operator"),
        (
            {"operators": [{"operator": "a", "partition": 4}]},
            "operator a, field partition: unknown key (did you mean 'partitions'?)",
        ),
        (
            {"operators": [{"operator": "a", "partitions": 4, "stride": 2}]},
            "operator a, field stride: unknown key",
        ),
        (
            {"operators": [{"operator": "a", "partitions": 3}]},
            "operator a, field partitions: must divide the number of servers, 4 (got 3)",
        ),
        (
            {"operators": [{"operator": "a", "partitions": 8}]},
            "field partitions: 8 partitions do not fit on 4 servers",
        ),
        (
            {"operators": [{"operator": "a", "partitions": 0}]},
            "field partitions: must be a whole number of at least 1 (got 0)",
        ),
        (
            {"operators": [{"operator": "c", "partitions": 2}]},
            "operator c, field partitions: has no cost for 2 partitions (it has 1)",
        ),
        (
            {"operators": [{"operator": "a", "partitions": 4, "start": 4}]},
            "field start: must be a server from 0 to 3 (got 4)",
        ),
        (
            {"operators": [{"operator": "a", "partitions": 4}] * 2},
            "operator a: is configured twice",
        ),
        ({"operators": [3]}, "must be an object"),
        ({"operators": [], "plan": {"tensor": 1}}, "field plan: is no longer read here"),
    ],
)
def test_a_wrong_file_gets_one_line_that_names_it(changes: dict, words: str) -> None:
    record = {**FILE, "operators": A_AND_B, **changes}
    data = json.dumps({key: value for key, value in record.items() if value is not ...}).encode()
    line = refusal(load_strategy, data, "my.strategy.json", ABC)
    assert words in line and line.startswith("my.strategy.json")


AB = chain_graph(operator("a", 1.0), operator("b", 1.0))
LARGE = chain_graph(operator("a", 1.0, memory=50e9), operator("b", 1.0, memory=50e9))


def searched(memory_gb: float) -> object:
    settings = SearchSettings(10, memory_gb=memory_gb)
    return search(LARGE, 4, FastEvaluator(LARGE, non_blocking(4)), settings)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            lambda: task_graph(AB, Strategy("chain", 4, (Placement("a", 4),))),
            "operator b: is not configured",
        ),
        (
            lambda: task_graph(LARGE, placed(LARGE, 4, (1, 2), (1, 2))),
            "field memory_gb: server 2 needs 100.0 GB and its 1 GPUs have 80.0 GB",
        ),
        (
            lambda: FastEvaluator(AB, non_blocking(4))(data_parallel(AB, 2)),
            "field servers: has 2 servers and the network 4",
        ),
        (
            lambda: laid_out(circuits(2)),
            "server 0 talks to server 1, but no circuits lead from one to the other",
        ),
        (lambda: non_blocking(0, 4, 100.0), "field servers: must be"),
        (lambda: non_blocking(4, 0, 100.0), "field ports: must be"),
        (lambda: non_blocking(4, 4, 0.0), "field port_gbps: must be"),
        (lambda: searched(20.0), "memory_gb: neither data parallel nor whole operators"),
        (lambda: searched(0.0), "field memory_gb: must be a number above 0"),
        (lambda: searched(float("inf")), "field memory_gb: must be a finite number"),
        (lambda: searched(True), "field memory_gb: must be a number (got True)"),
        (lambda: SearchSettings(alpha=-0.1), "alpha: must be at least 0 (got -0.1)"),
        (lambda: SearchSettings(alpha=float("nan")), "field alpha"),
        (lambda: SearchSettings(proposals=-1), "field proposals"),
        (lambda: SearchSettings(proposals=1.5), "field proposals"),
        (lambda: SearchSettings(seed=-1), "field seed"),
        (lambda: SearchSettings(reset_every=0), "field reset_every"),
        (lambda: SearchSettings(exhaustive=True), "field exhaustive"),
        (
            lambda: run_strategy("dlmr"),
            "field MODEL: 'dlmr' is an unknown model (did you mean 'dlrm'?)",
        ),
        (lambda: run_strategy(), "command line, field MODEL: a model must be named"),
        (
            lambda: run_strategy("dlrm", "--alpha", "-1"),
            "field --alpha: must be at least 0",
        ),
        (
            lambda: run_strategy("dlrm", "--memory-gb", "1"),
            "field memory_gb: neither data parallel nor",
        ),
        (lambda: run_strategy("dlrm", "--method", "plans"), "field --method"),
        (lambda: run_strategy("llama3-405b", "--servers", "1"), "field memory_gb: none of"),
        (lambda: run_strategy("dlrm", "--fix", "missing.json"), "missing.json: cannot be read"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(asked: Callable[[], object], words: str) -> None:
    assert words in refusal(asked)


# The command.
