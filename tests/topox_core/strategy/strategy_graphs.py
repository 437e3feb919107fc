"""Small operator graphs for tests, made by hand or at random, and the command."""

import random
from itertools import pairwise

from topox_core.cli.main import OneLineParser
from topox_core.cli.shared.files import write_what_waits
from topox_core.cli.training import strategy as strategy_command
from topox_core.strategy.operators import Cost, Edge, Operator, OperatorGraph, Weight

SAMPLES = 48


def operator(
    name: str,
    work_ms: float,
    *,
    elements: int = 0,
    splits: tuple[int, ...] = (1, 2, 4),
    memory: float = 0.0,
) -> Operator:
    """An operator whose time shrinks with its partitions, plus a tenth that does not."""
    costs = {
        p: Cost(work_ms * (0.1 + 0.9 / p), 2 * work_ms * (0.1 + 0.9 / p), memory, "roofline")
        for p in splits
    }
    return Operator(name, "dense", costs, (Weight("weight", elements),) if elements else ())


def chain_graph(*operators: Operator, bytes_per_sample: float = 1e5) -> OperatorGraph:
    edges = tuple(Edge(a.name, b.name, bytes_per_sample) for a, b in pairwise(operators))
    return OperatorGraph("chain", SAMPLES, operators, edges)


def random_operator_graph(seed: int, count: int = 4) -> OperatorGraph:
    """A random acyclic model: light and heavy weights, cheap and dear edges, now and then a table that is not split."""
    rng = random.Random(seed)
    operators = [
        operator(
            f"op{k}",
            rng.uniform(0.5, 20.0),
            elements=rng.choice((0, 10**5, 10**7, 6 * 10**7)),
            splits=(1,) if rng.random() < 0.25 else (1, 2, 4),
        )
        for k in range(count)
    ]
    edges = [
        Edge(f"op{i}", f"op{j}", rng.choice((0.0, 1e3, 1e5, 2e6)))
        for j in range(count)
        for i in range(j)
        if rng.random() < 0.6
    ]
    return OperatorGraph("random", SAMPLES, tuple(operators), tuple(edges))


def run_strategy(*arguments: str) -> int:
    """Run the command as a program does, errors raised."""
    top = OneLineParser(prog="topox")
    strategy_command.run.add_to(top.add_subparsers(required=True).add_parser("strategy"))
    options = top.parse_args(["strategy", *arguments])
    status = int(options.run(options))
    write_what_waits()
    return status
