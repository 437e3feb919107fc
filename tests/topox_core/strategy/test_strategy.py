"""Strategies: the task graph they make, the search that finds them, the files that hold them."""

from __future__ import annotations

import itertools
import json
from collections import Counter, defaultdict
from math import comb
from pathlib import Path

import pytest

from tests.topox_core.strategy.strategy_graphs import (
    SAMPLES,
    chain_graph,
    operator,
    random_operator_graph,
)
from topox_core.cli import strategy as strategy_command
from topox_core.cli.files import write_what_waits
from topox_core.cli.main import OneLineParser
from topox_core.errors import InputError
from topox_core.io.task_graph_file import load_graph
from topox_core.model.layout import Layout
from topox_core.model.task_graph import TaskGraph
from topox_core.strategy.alternation import Topologies, alternate
from topox_core.strategy.evaluator import FastEvaluator
from topox_core.strategy.load import computing_ms
from topox_core.strategy.models import MODELS, named
from topox_core.strategy.moves import MoveProgress, SearchSettings
from topox_core.strategy.network import laid_out, non_blocking
from topox_core.strategy.operators import OperatorGraph
from topox_core.strategy.recommenders import dlrm
from topox_core.strategy.search import first_strategy, search
from topox_core.strategy.strategy import (
    Placement,
    Strategy,
    blocks,
    check_strategy,
    data_parallel,
    server_bytes,
    spread,
)
from topox_core.strategy.strategy_file import dump_strategy, load_strategy
from topox_core.strategy.task_graph import overlaps, task_graph


def placed(graph: OperatorGraph, servers: int, *configurations: tuple[int, int]) -> Strategy:
    """A strategy from (partitions, start) of each operator."""
    return Strategy(
        graph.name,
        servers,
        tuple(
            Placement(o.name, p, start)
            for o, (p, start) in zip(graph.operators, configurations, strict=True)
        ),
    )


def brute_force_ms(graph: OperatorGraph, servers: int, evaluate: FastEvaluator) -> float:
    """The best of all strategies; rotating all servers changes nothing, so the first operator starts on server 0."""
    rows = [
        [Placement(o.name, p, start) for p in graph.choices(o, servers) for start in range(servers)]
        for o in graph.operators
    ]
    rows[0] = [placement for placement in rows[0] if placement.start == 0]
    return min(
        evaluate(Strategy(graph.name, servers, placements))
        for placements in itertools.product(*rows)
    )


# The task graph.


def test_data_parallel_dlrm_is_the_published_task_graph(real_inputs: Path) -> None:
    graph = dlrm(16, 2)
    ours = task_graph(graph, data_parallel(graph, 16))
    file = real_inputs / "flexnet" / "10dlrm_16.fbuf"
    theirs = load_graph(file.read_bytes(), file.name)

    def transfers(tasks: TaskGraph) -> Counter[tuple[int | None, int | None, float | None]]:
        return Counter(
            (t.source, t.destination, t.size_bytes)
            for t in tasks.tasks
            if t.kind == "nominal_communication"
        )

    assert len(transfers(ours)) == 240
    assert set(transfers(ours).values()) == {2}
    assert {size for _, _, size in transfers(ours)} == {2_097_152}
    ours_sizes, theirs_sizes = (
        Counter(size for _, _, size in transfers(g).elements()) for g in (ours, theirs)
    )
    assert ours_sizes == theirs_sizes
    reduced = [
        sorted(
            t.size_bytes or 0.0
            for t in g.tasks
            if t.kind == "all_reduce" and len(t.members or ()) > 1
        )
        for g in (ours, theirs)
    ]
    assert reduced[0] == reduced[1]
    assert len(reduced[0]) == 46
    assert sum(reduced[0]) == pytest.approx(306.34e6, rel=1e-4)
    for tasks in (ours, theirs):
        busy: defaultdict[int, float] = defaultdict(float)
        for task in tasks.tasks:
            if task.server is not None:
                busy[task.server] += task.duration_ms or 0.0
        assert len(busy) == 16
        assert all(ms == pytest.approx(14.543, abs=5e-4) for ms in busy.values())


@pytest.mark.parametrize(
    ("producers", "consumers"), [(1, 1), (1, 4), (4, 1), (4, 4), (4, 6), (6, 4), (12, 8), (3, 16)]
)
def test_every_sample_goes_from_one_producer_to_one_consumer(
    producers: int, consumers: int
) -> None:
    out, into = [0] * producers, [0] * consumers
    for i, j, shared in overlaps(SAMPLES, producers, consumers):
        assert shared > 0
        out[i] += shared
        into[j] += shared
    assert out == [SAMPLES // producers] * producers
    assert into == [SAMPLES // consumers] * consumers


@pytest.mark.parametrize("seed", range(8))
def test_bytes_between_partitions_are_conserved(seed: int) -> None:
    """Each consumer's partition gets its share of every edge, from the network or from its own server; as much comes back."""
    graph = random_operator_graph(seed, 5)
    servers = 4
    settings = SearchSettings(20, alpha=0.0, seed=seed, exhaustive=0, reset_every=1000)
    strategy = search(
        graph, servers, FastEvaluator(graph, non_blocking(servers)), settings
    ).strategy
    for chosen in (
        strategy,
        data_parallel(graph, servers),
        placed(graph, servers, *[(1, k % 4) for k in range(5)]),
    ):
        tasks = task_graph(graph, chosen)
        sent: defaultdict[tuple[int | None, int | None], float] = defaultdict(float)
        for task in tasks.tasks:
            if task.kind == "nominal_communication":
                sent[task.source, task.destination] += task.size_bytes or 0.0
        for (a, b), size in sent.items():
            assert sent[b, a] == size
        expected = 0.0
        for edge in graph.edges:
            there, here = (
                chosen.by_operator[name].servers(servers) for name in (edge.producer, edge.consumer)
            )
            at_home = sum(
                shared
                for i, j, shared in overlaps(graph.samples, len(there), len(here))
                if there[i] == here[j]
            )
            expected += 2 * edge.bytes_per_sample * (graph.samples - at_home)
        assert sum(sent.values()) == pytest.approx(expected)


def test_weights_are_reduced_over_the_servers_that_share_them() -> None:
    graph = chain_graph(
        operator("a", 1.0, elements=10),
        operator("b", 1.0, elements=20),
        operator("c", 1.0, elements=30),
    )
    tasks = task_graph(graph, placed(graph, 4, (4, 1), (2, 1), (1, 3)))
    found = {
        task.id: (task.members, task.size_bytes)
        for task in tasks.tasks
        if task.kind == "all_reduce"
    }
    assert found == {"sum.a.weight": ((1, 2, 3, 0), 40.0), "sum.b.weight": ((1, 3), 80.0)}


def test_partitions_on_one_server_need_no_network() -> None:
    graph = chain_graph(operator("a", 1.0), operator("b", 1.0))
    tasks = task_graph(graph, placed(graph, 4, (2, 1), (2, 1)))
    assert {task.kind for task in tasks.tasks} == {"forward", "backward"}
    waits = {task.id: set(task.dependencies) for task in tasks.tasks}
    assert waits["f.b.1"] == {"f.a.1"}
    assert waits["b.a.0"] == {"f.a.0", "b.b.0"}


# The simulator.


def test_an_iteration_on_one_server_is_all_its_work() -> None:
    graph = chain_graph(operator("a", 3.0, elements=100), operator("b", 5.0))
    assert FastEvaluator(graph, non_blocking(1))(data_parallel(graph, 1)) == pytest.approx(
        3 * (3.0 + 5.0)
    )


def test_two_operators_on_two_servers_take_turns_over_the_link() -> None:
    graph = chain_graph(
        operator("a", 2.0), operator("b", 4.0), bytes_per_sample=1.25e8 / SAMPLES
    )  # 10 ms at 100 Gbit/s
    evaluate = FastEvaluator(graph, non_blocking(4, 1, 100.0))
    assert evaluate(placed(graph, 4, (1, 0), (1, 2))) == pytest.approx(2 + 10 + 4 + 8 + 10 + 4)
    evaluate = FastEvaluator(graph, non_blocking(4, 2, 100.0))
    assert evaluate(placed(graph, 4, (1, 0), (1, 2))) == pytest.approx(2 + 5 + 4 + 8 + 5 + 4)


def test_an_all_reduce_takes_the_time_of_a_ring() -> None:
    size = 4 * 10**7
    graph = chain_graph(operator("a", 1.0, elements=10**7))
    each = 0.1 + 0.9 / 4
    ring_ms = 2 * 3 / 4 * size * 8 / 100e6
    assert FastEvaluator(graph, non_blocking(4, 1, 100.0))(
        data_parallel(graph, 4)
    ) == pytest.approx(3 * each + ring_ms)


def test_incast_shares_the_receiver_s_link() -> None:
    graph = chain_graph(operator("a", 1.0), operator("b", 1.0), bytes_per_sample=1.25e8 / SAMPLES)
    each = 0.1 + 0.9 / 4
    # Three of four quarters come over the network into server 0, and go back out of it.
    assert FastEvaluator(graph, non_blocking(4, 1, 100.0))(
        placed(graph, 4, (4, 0), (1, 0))
    ) == pytest.approx(each + 7.5 + 1 + 2 + 7.5 + 2 * each)


@pytest.mark.parametrize("seed", range(5))
def test_no_iteration_is_shorter_than_its_busiest_server_or_link(seed: int) -> None:
    graph = random_operator_graph(seed, 5)
    evaluate = FastEvaluator(graph, non_blocking(4, 1, 100.0))
    for chosen in (data_parallel(graph, 4), placed(graph, 4, *[(1, k % 4) for k in range(5)])):
        busy, sent = [0.0] * 4, [0.0] * 4
        for task in task_graph(graph, chosen).tasks:
            if task.server is not None:
                busy[task.server] += task.duration_ms or 0.0
            elif task.kind == "all_reduce":
                n = len(task.members or ())
                for member in task.members or ():
                    sent[member] += 2 * (n - 1) / n * (task.size_bytes or 0.0)
            else:
                sent[task.source or 0] += task.size_bytes or 0.0
        assert evaluate(chosen) >= max(*busy, *(size * 8 / 100e6 for size in sent)) - 1e-9


def test_rotating_all_servers_changes_nothing() -> None:
    graph = random_operator_graph(3, 5)
    evaluate = FastEvaluator(graph, non_blocking(4))
    for turn in range(4):
        chosen = placed(
            graph,
            4,
            *[
                (max(graph.choices(o, 4)) if k % 2 else 1, (k + turn) % 4)
                for k, o in enumerate(graph.operators)
            ],
        )
        assert evaluate(chosen) == pytest.approx(
            evaluate(
                placed(graph, 4, *[(p.partitions, (p.start - turn) % 4) for p in chosen.placements])
            ),
            rel=1e-12,
        )


def test_faster_ports_never_slow_a_data_parallel_chain_down() -> None:
    graph = dlrm(16, 2)
    times = [
        FastEvaluator(graph, non_blocking(16, 4, speed))(data_parallel(graph, 16))
        for speed in (10.0, 25.0, 100.0, 400.0, 1e9)
    ]
    assert times == sorted(times, reverse=True)
    # Endless bandwidth leaves the compute of a server; the tables' servers may wait for each other
    # a little.
    assert 14.543 <= times[-1] < 16


def test_static_circuits_forward_over_hosts_and_use_their_rings() -> None:
    one_way = Layout(_circuits(4, (1,)), {}, "one ring")
    graph = chain_graph(operator("a", 2.0), operator("b", 4.0), bytes_per_sample=1.25e8 / SAMPLES)
    evaluate = FastEvaluator(graph, laid_out(one_way, 100.0))
    # Two hops there and two back, cut through: the time of one; a hop of latency each is charged if
    # asked for.
    assert evaluate(placed(graph, 4, (1, 0), (1, 2))) == pytest.approx(2 + 10 + 4 + 8 + 10 + 4)
    late = FastEvaluator(graph, laid_out(one_way, 100.0, latency_us=1000.0))
    assert late(placed(graph, 4, (1, 0), (1, 2))) == pytest.approx(2 + 12 + 4 + 8 + 12 + 4)
    size_ms = 2 * 3 / 4 * 4e7 * 8 / 100e6
    reduced = chain_graph(operator("a", 1.0, elements=10**7))
    one, two = (
        FastEvaluator(reduced, laid_out(Layout(_circuits(4, strides), {}), 100.0))(
            data_parallel(reduced, 4)
        )
        for strides in ((1,), (1, 3))
    )
    assert one - two == pytest.approx(size_ms / 2)


def _circuits(servers: int, strides: tuple[int, ...]):
    import numpy as np

    circuits = np.zeros((servers, servers), np.int32)
    for stride in strides:
        for a in range(servers):
            circuits[a, (a + stride) % servers] += 1
    return circuits


def test_servers_that_no_circuit_joins_are_named() -> None:
    circuits = _circuits(4, (2,))
    with pytest.raises(InputError, match="no circuits lead from server 0 to server 1"):
        laid_out(Layout(circuits, {}))


# The search.


@pytest.mark.parametrize("seed", range(6))
def test_on_small_models_the_search_finds_the_brute_force_optimum(seed: int) -> None:
    graph = random_operator_graph(seed, 4)
    evaluate = FastEvaluator(graph, non_blocking(4, 1, 100.0))
    best_ms = brute_force_ms(graph, 4, evaluate)
    found = search(graph, 4, evaluate, SearchSettings(300, seed=seed))
    assert found.proved
    assert found.stopped_by == "proof"
    assert found.iteration_ms == pytest.approx(best_ms, rel=1e-12)


def test_with_five_operators_on_four_servers_too() -> None:
    graph = random_operator_graph(11, 5)
    evaluate = FastEvaluator(graph, non_blocking(4, 1, 100.0))
    found = search(graph, 4, evaluate, SearchSettings(300))
    assert found.proved
    assert found.iteration_ms == pytest.approx(brute_force_ms(graph, 4, evaluate), rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_chain_blocks_and_descent_find_it_on_small_models_without_a_proof(seed: int) -> None:
    graph = random_operator_graph(seed, 4)
    evaluate = FastEvaluator(graph, non_blocking(4, 1, 100.0))
    found = search(graph, 4, evaluate, SearchSettings(5000, alpha=0.2, seed=seed, exhaustive=0))
    assert not found.proved
    assert found.iteration_ms == pytest.approx(brute_force_ms(graph, 4, evaluate), rel=1e-9)


@pytest.mark.parametrize(
    "name", ["dlrm-16", "bert-16", "candle-16", "vgg16", "resnet50", "llama3-8b"]
)
def test_no_search_returns_something_slower_than_data_parallel(name: str) -> None:
    graph = named(name).build(8)
    evaluate = FastEvaluator(graph, non_blocking(8, 4, 25.0))
    for alpha in (0.0, 1.0):
        found = search(graph, 8, evaluate, SearchSettings(60, alpha=alpha, seed=4))
        assert found.start == data_parallel(graph, 8)
        assert found.iteration_ms <= found.start_ms == evaluate(data_parallel(graph, 8))
        assert evaluate(found.strategy) == found.iteration_ms
        check_strategy(found.strategy, graph)


def test_candle_gains_by_towers_on_shares_of_the_servers() -> None:
    graph = named("candle").build(16)
    found = search(graph, 16, FastEvaluator(graph, non_blocking(16, 4, 100.0)), SearchSettings(200))
    assert found.speed_up > 1.2
    numbers = [move.proposal for move in found.moves]
    assert numbers == sorted(numbers)
    after = [n for n, move in zip(numbers, found.moves, strict=True) if move.reason == "descent"]
    assert found.proposals < after[0] < after[-1] <= found.tried


def test_the_same_seed_gives_the_same_answer_and_another_seed_another_walk() -> None:
    graph = named("candle").build(8)

    def run(seed: int):
        return search(
            graph, 8, FastEvaluator(graph, non_blocking(8)), SearchSettings(120, seed=seed)
        )

    assert run(5) == run(5)
    assert run(5).moves != run(6).moves


def test_the_trace_leads_from_the_start_to_the_end_and_follows_the_rule() -> None:
    graph = random_operator_graph(2, 5)
    evaluate = FastEvaluator(graph, non_blocking(4))
    found = search(graph, 4, evaluate, SearchSettings(200, alpha=0.3, exhaustive=0))
    at, ms = found.start, found.start_ms
    for move in found.moves:
        assert move.before_ms == ms
        assert all(at.by_operator[old.operator] == old for old in move.before)
        at, ms = at.changed(move.after), move.after_ms
        assert evaluate(at) == pytest.approx(ms, rel=1e-12)
        slower = move.after_ms - move.before_ms
        assert {"better": slower < 0, "equal": slower == 0, "chance": slower > 0}.get(
            move.reason, True
        )
    assert min(move.after_ms for move in found.moves) == found.iteration_ms


def test_with_a_steep_alpha_nothing_slower_is_accepted() -> None:
    graph = random_operator_graph(2, 5)
    found = search(
        graph,
        4,
        FastEvaluator(graph, non_blocking(4)),
        SearchSettings(300, alpha=1e9, exhaustive=0),
    )
    assert found.accepted > 0
    assert all(move.after_ms <= move.before_ms for move in found.moves)


def test_alpha_zero_accepts_every_proposal_that_changes_something() -> None:
    graph = random_operator_graph(2, 5)
    settings = SearchSettings(300, alpha=0.0, exhaustive=0, reset_every=10**6)
    found = search(graph, 4, FastEvaluator(graph, non_blocking(4)), settings)
    assert found.accepted == sum(
        move.reason in ("better", "equal", "chance") for move in found.moves
    )
    assert found.accepted > 200


def test_the_published_patience_is_a_hundredth_of_the_budget_and_at_most_a_thousand() -> None:
    assert [SearchSettings(n).patience for n in (0, 50, 1000, 8000, 10**6)] == [1, 1, 10, 80, 1000]


def test_fixed_operators_stay_and_the_rest_is_searched() -> None:
    graph = random_operator_graph(1, 4)
    evaluate = FastEvaluator(graph, non_blocking(4))
    pinned = Placement("op1", 1, 3)
    found = search(graph, 4, evaluate, SearchSettings(100), fixed=(pinned,))
    assert found.strategy.by_operator["op1"] == pinned == found.start.by_operator["op1"]
    everything = search(graph, 4, evaluate, SearchSettings(100), fixed=found.strategy.placements)
    assert (everything.iteration_ms, everything.proposals, everything.stopped_by) == (
        found.iteration_ms,
        0,
        "fixed",
    )


def test_a_given_start_is_used_if_it_is_faster() -> None:
    graph = named("candle").build(8)
    evaluate = FastEvaluator(graph, non_blocking(8))
    good = search(graph, 8, evaluate, SearchSettings(300)).strategy
    again = search(graph, 8, evaluate, SearchSettings(0), start=good)
    assert again.strategy == good
    assert again.iteration_ms == evaluate(good) < again.start_ms


def test_a_search_can_be_stopped_and_tells_its_progress() -> None:
    graph = named("candle").build(8)
    evaluate = FastEvaluator(graph, non_blocking(8))
    told: list[MoveProgress] = []
    found = search(
        graph,
        8,
        evaluate,
        SearchSettings(1000),
        stop=lambda: len(told) >= 3,
        on_progress=told.append,
    )
    assert found.stopped_by == "cancelled"
    assert [progress.proposals for progress in told] == [10, 20, 30]
    assert found.proposals == 30
    assert found.iteration_ms <= found.start_ms


def test_any_other_simulator_can_judge_the_task_graph() -> None:
    graph = chain_graph(operator("a", 4.0), operator("b", 4.0), operator("c", 4.0))
    seen: list[TaskGraph] = []

    def fabric(tasks: TaskGraph) -> float:
        seen.append(tasks)
        return float(
            sum(task.kind == "nominal_communication" for task in tasks.tasks)
            + len(tasks.tasks) / 100
        )

    found = search(
        graph, 4, lambda plan: fabric(task_graph(graph, plan)), SearchSettings(1500, alpha=0.1)
    )
    # It counts transfers and tasks: best is everything whole on one server.
    assert {placement.partitions for placement in found.strategy.placements} == {1}
    assert found.iteration_ms == pytest.approx(0.06)
    assert len(seen) > 10


def test_alternating_keeps_topologies_that_help_and_never_ends_worse_than_it_began() -> None:
    graph = random_operator_graph(3, 5)
    made: list[tuple[int, ...]] = []

    def find(tasks: TaskGraph) -> Layout:
        """One ring for data parallel; as soon as partitions exchange anything, one in each direction."""
        made.append(
            (1, 3) if any(task.kind == "nominal_communication" for task in tasks.tasks) else (1,)
        )
        return Layout(_circuits(4, made[-1]), {}, str(made[-1]))

    def evaluator(layout: Layout) -> FastEvaluator:
        return FastEvaluator(graph, laid_out(layout, 100.0))

    found, again = (
        alternate(graph, 4, Topologies(find, evaluator), SearchSettings(300, alpha=0.1, seed=1))
        for _ in range(2)
    )
    assert found.iteration_ms < found.start_ms
    assert evaluator(found.topology)(found.strategy) == pytest.approx(found.iteration_ms)
    assert len(made) == 2 * (found.topologies + 1)
    assert found.kept == sum(move.reason == "topology" for move in found.moves) > 0
    assert all(move.after_ms < move.before_ms for move in found.moves if move.reason == "topology")
    assert (again.strategy, again.iteration_ms, again.moves) == (
        found.strategy,
        found.iteration_ms,
        found.moves,
    )


# Memory and where a search begins.


def test_memory_is_added_up_by_server() -> None:
    graph = chain_graph(operator("a", 1.0, memory=3.0), operator("b", 1.0, memory=5.0))
    assert server_bytes(placed(graph, 4, (2, 1), (1, 3)), graph) == [0.0, 3.0, 0.0, 8.0]


def test_where_data_parallel_does_not_fit_the_search_begins_with_whole_operators() -> None:
    graph = chain_graph(*(operator(f"op{k}", 1.0, memory=30e9) for k in range(4)))
    assert first_strategy(graph, 4, 60.0) == spread(graph, 4)
    found = search(
        graph,
        4,
        FastEvaluator(graph, non_blocking(4)),
        SearchSettings(300, alpha=0.0, memory_gb=60.0),
    )
    assert max(server_bytes(found.strategy, graph)) <= 60e9
    assert found.too_large > 0
    with pytest.raises(
        InputError,
        match="field memory_gb: neither data parallel nor whole operators spread evenly fit",
    ):
        search(graph, 4, FastEvaluator(graph, non_blocking(4)), SearchSettings(10, memory_gb=20.0))


def test_blocks_are_neighbours_on_disjoint_shares() -> None:
    graph = chain_graph(*(operator(f"op{k}", 2.0, elements=100) for k in range(4)))
    assert [(p.partitions, p.start) for p in blocks(graph, 4, 2).placements] == [
        (2, 0),
        (2, 0),
        (2, 1),
        (2, 1),
    ]
    assert blocks(graph, 4, 1) == data_parallel(graph, 4)


def test_tables_go_round_robin_in_data_parallel() -> None:
    starts = [
        p.start for p in data_parallel(dlrm(6, 2), 6).placements if p.operator.startswith("table")
    ]
    assert starts == [k % 6 for k in range(16)]


# Files and bad input.


def test_a_strategy_survives_its_file() -> None:
    graph = random_operator_graph(4, 5)
    strategy = search(graph, 4, FastEvaluator(graph, non_blocking(4)), SearchSettings(50)).strategy
    data = dump_strategy(strategy)
    assert load_strategy(data, "s.strategy.json", graph) == strategy
    assert dump_strategy(load_strategy(data, "s.strategy.json")) == data


def record(**changes) -> dict:
    whole = {
        "format": "topox-strategy",
        "version": 1,
        "model": "chain",
        "servers": 4,
        "operators": [
            {"operator": "a", "partitions": 4, "start": 1},
            {"operator": "b", "partitions": 2},
        ],
    }
    return {key: value for key, value in {**whole, **changes}.items() if value is not ...}


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
    graph = chain_graph(operator("a", 1.0), operator("b", 1.0), operator("c", 1.0, splits=(1,)))
    with pytest.raises(InputError) as caught:
        load_strategy(json.dumps(record(**changes)).encode(), "my.strategy.json", graph)
    assert words in str(caught.value)
    assert str(caught.value).startswith("my.strategy.json")
    assert "\n" not in str(caught.value)


def test_a_strategy_that_leaves_an_operator_out_makes_no_task_graph() -> None:
    graph = chain_graph(operator("a", 1.0), operator("b", 1.0))
    with pytest.raises(InputError, match="operator b: is not configured"):
        task_graph(graph, Strategy("chain", 4, (Placement("a", 4),)))


def test_a_strategy_that_does_not_fit_memory_names_the_fullest_server() -> None:
    graph = chain_graph(operator("a", 1.0, memory=50e9), operator("b", 1.0, memory=50e9))
    with pytest.raises(
        InputError, match=r"field memory_gb: server 2 needs 100\.0 GB and its 1 GPUs have 80\.0 GB"
    ):
        task_graph(graph, placed(graph, 4, (1, 2), (1, 2)))


def test_operators_without_a_cost_for_these_servers_are_named() -> None:
    graph = chain_graph(operator("a", 1.0, splits=(3,)))
    with pytest.raises(
        InputError,
        match="chain, operator a, field costs: has no cost for a number of partitions that divides 4",
    ):
        data_parallel(graph, 4)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"alpha": -0.1}, "field alpha: must be a number of at least 0 (got -0.1)"),
        ({"alpha": float("nan")}, "field alpha"),
        ({"proposals": -1}, "field proposals"),
        ({"proposals": 1.5}, "field proposals"),
        ({"seed": -1}, "field seed"),
        ({"reset_every": 0}, "field reset_every"),
        ({"exhaustive": True}, "field exhaustive"),
    ],
)
def test_a_setting_out_of_range_is_named(settings: dict, words: str) -> None:
    with pytest.raises(InputError) as caught:
        SearchSettings(**settings)
    assert words in str(caught.value)


@pytest.mark.parametrize("memory_gb", [0.0, -1.0, float("inf"), True])
def test_a_memory_that_is_none_is_named(memory_gb: float) -> None:
    graph = chain_graph(operator("a", 1.0))
    with pytest.raises(InputError, match="field memory_gb: must be a number above 0"):
        search(
            graph, 4, FastEvaluator(graph, non_blocking(4)), SearchSettings(10, memory_gb=memory_gb)
        )


@pytest.mark.parametrize(
    ("values", "field"),
    [((0, 4, 100.0), "servers"), ((4, 0, 100.0), "ports"), ((4, 4, 0.0), "port_gbps")],
)
def test_a_network_of_nothing_is_named(values: tuple[int, int, float], field: str) -> None:
    with pytest.raises(InputError, match=f"field {field}: must be"):
        non_blocking(*values)


def test_a_strategy_for_another_number_of_servers_is_refused() -> None:
    graph = chain_graph(operator("a", 1.0))
    with pytest.raises(InputError, match="field servers: has 2 servers and the network 4"):
        FastEvaluator(graph, non_blocking(4))(data_parallel(graph, 2))


def test_a_whole_number_of_strategies_is_tried_for_a_proof() -> None:
    from topox_core.strategy import exhaustive
    from topox_core.strategy.chain import Chain

    graph = chain_graph(operator("a", 1.0), operator("b", 1.0), operator("c", 1.0, splits=(1,)))
    chain = Chain(
        graph, data_parallel(graph, 4), FastEvaluator(graph, non_blocking(4)), SearchSettings()
    )
    assert exhaustive.count(
        exhaustive.space(chain.proposer, chain.best, symmetric=True)
    ) == 3 * comb(4, 1) * 3 * comb(4, 1)
    assert (
        exhaustive.count(exhaustive.space(chain.proposer, chain.best, symmetric=False))
        == 12 * 12 * 4
    )


# The command.


def run(*arguments: str) -> int:
    top = OneLineParser(prog="topox")
    strategy_command.add(top.add_subparsers(required=True))
    options = top.parse_args(["strategy", *arguments])
    status = int(options.run(options))
    write_what_waits()
    return status


def test_the_command_searches_writes_and_takes_up_what_it_wrote(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, tasks = tmp_path / "c.strategy.json", tmp_path / "c.taskgraph.json"
    arguments = ("candle", "--servers", "8", "--proposals", "50", "--json")
    assert run(*arguments, "--output", str(file), "--graph", str(tasks)) == 0
    first = json.loads(capsys.readouterr().out)
    assert first["iteration_ms"] <= first["start_ms"]
    assert {entry["cost_source"] for entry in first["operators"]} <= {"measured", "roofline"}
    assert load_graph(tasks.read_bytes(), tasks.name).servers == 8
    assert run(*arguments, "--fix", str(file)) == 0
    again = json.loads(capsys.readouterr().out)
    assert (again["iteration_ms"], again["stopped_by"], again["fixed"]) == (
        first["iteration_ms"],
        "fixed",
        71,
    )
    assert run("candle", "--servers", "8", "--proposals", "50", "--seed", "3") == 0
    assert "data parallel" in capsys.readouterr().out


def test_the_command_searches_on_static_circuits(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("bert", "--servers", "8", "--proposals", "20", "--alternate", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["iteration_ms"] <= found["start_ms"]
    assert found["network"] == "static circuits"


def test_the_command_ranks_plans_of_a_language_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, tasks = tmp_path / "l.job.json", tmp_path / "l.taskgraph.json"
    assert (
        run(
            "llama3-8b",
            "--servers",
            "2",
            "--batch",
            "32",
            "--json",
            "--output",
            str(file),
            "--graph",
            str(tasks),
        )
        == 0
    )
    found = json.loads(capsys.readouterr().out)
    assert (
        found["iteration_ms"]
        == found["plans"][0]["iteration_ms"]
        == min(plan["iteration_ms"] for plan in found["plans"])
    )
    assert load_graph(tasks.read_bytes(), tasks.name).servers == 2
    assert run("llama3-8b", "--servers", "2", "--fix", str(file)) == 0
    assert "1 suit" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("dlmr",), "field model: 'dlmr' is an unknown model (did you mean 'dlrm'?)"),
        ((), "command line, field MODEL: a model must be named"),
        (("dlrm", "--alpha", "-1"), "field alpha: must be a number of at least 0 (got -1)"),
        (("dlrm", "--memory-gb", "1"), "field memory_gb: neither data parallel nor"),
        (("dlrm", "--method", "plans"), "field --method"),
        (("llama3-405b", "--servers", "1"), "field memory_gb: none of"),
        (("dlrm", "--fix", "missing.json"), "missing.json: cannot be read"),
    ],
)
def test_the_command_tells_a_mistake_in_one_line(arguments: tuple[str, ...], words: str) -> None:
    with pytest.raises(InputError) as caught:
        run(*arguments)
    assert words in str(caught.value)


def test_the_command_lists_the_models(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--list", "--json") == 0
    assert {entry["name"] for entry in json.loads(capsys.readouterr().out)["models"]} == set(MODELS)


@pytest.mark.parametrize("seed", range(6))
def test_no_iteration_is_shorter_than_what_its_busiest_server_computes(seed):
    graph = random_operator_graph(seed)
    for strategy in (
        data_parallel(graph, 4),
        search(graph, 4, FastEvaluator(graph, non_blocking(4)), SearchSettings(20)).strategy,
    ):
        busy = computing_ms(graph, strategy)
        assert FastEvaluator(graph, non_blocking(4))(strategy) >= busy.max() * (1 - 1e-9)
        costs = [graph.operator(p.operator).costs[p.partitions] for p in strategy.placements]
        every = sum(
            (c.forward_ms + c.backward_ms) * p.partitions
            for c, p in zip(costs, strategy.placements, strict=True)
        )
        assert busy.sum() == pytest.approx(every)
