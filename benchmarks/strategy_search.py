"""Time the strategy search on the catalogue's models and say what it gains over data parallel.

    python benchmarks/strategy_search.py [--proposals N] [--seed N] [--servers N] [MODEL ...]

Prints, for each model and port speed, milliseconds of one simulated iteration in compiled code
(warm), seconds for the whole search, and iteration times of data parallel and of the best strategy
found. With ``--small`` it also compares the search without its proof with the proved optimum on
small random models.
"""

from __future__ import annotations

import argparse
import random
import sys
import time

from topox_core.strategy.models import named
from topox_core.strategy.operators import Cost, Edge, Operator, OperatorGraph, Weight
from topox_core.strategy.search.evaluator import FastEvaluator, non_blocking
from topox_core.strategy.search.moves import SearchSettings
from topox_core.strategy.search.search import search
from topox_core.strategy.strategy import data_parallel

DEFAULT = ["dlrm-16", "candle-16", "bert-16", "vgg16"]
SPEEDS_GBPS = (10.0, 100.0)


def small_model(seed: int) -> OperatorGraph:
    rng = random.Random(seed)
    operators = []
    for k in range(5):
        work = rng.uniform(0.5, 20.0)
        costs = {
            p: Cost(work * (0.1 + 0.9 / p), 2 * work * (0.1 + 0.9 / p), 0.0, "roofline")
            for p in (1, 2, 4)
        }
        operators.append(
            Operator(
                f"op{k}", "dense", costs, (Weight("weight", rng.choice((10**5, 10**7, 6 * 10**7))),)
            )
        )
    edges = [
        Edge(f"op{i}", f"op{j}", rng.choice((1e3, 1e5, 2e6)))
        for j in range(5)
        for i in range(j)
        if rng.random() < 0.6
    ]
    return OperatorGraph(f"small {seed}", 48, tuple(operators), tuple(edges))


def compare_small(count: int) -> None:
    network = non_blocking(4, 1, 100.0)
    reached = 0
    began = time.perf_counter()
    for seed in range(count):
        graph = small_model(seed)
        proved = search(graph, 4, FastEvaluator(graph, network), SearchSettings(1000))
        chain = search(graph, 4, FastEvaluator(graph, network), SearchSettings(1000, exhaustive=0))
        assert proved.proved
        reached += chain.iteration_ms <= proved.iteration_ms * (1 + 1e-12)
    each = (time.perf_counter() - began) / count
    print(
        "5 operators, 4 servers: "
        f"without the proof the search reaches the optimum on {reached} of {count} models; {each:.2f} s a model"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=DEFAULT, metavar="MODEL")
    parser.add_argument("--proposals", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--servers", type=int, help="instead of each model's own")
    parser.add_argument(
        "--small", type=int, default=0, metavar="N", help="also N small random models"
    )
    options = parser.parse_args()
    print(
        f"{'model':16} {'servers':>7} {'Gbit/s':>6} {'simulate ms':>11} {'search s':>8} {'data parallel ms':>16} "
        f"{'found ms':>9} {'speed-up':>8} ended"
    )
    for name in options.models:
        model = named(name)
        servers = options.servers or model.servers
        graph = model.build(servers)
        for speed in SPEEDS_GBPS:
            evaluate = FastEvaluator(graph, non_blocking(servers, 4, speed))
            start = data_parallel(graph, servers)
            evaluate(start)  # warm
            began = time.perf_counter()
            for _ in range(20):
                evaluate(start)
            simulate_ms = (time.perf_counter() - began) / 20 * 1e3
            began = time.perf_counter()
            result = search(
                graph, servers, evaluate, SearchSettings(options.proposals, seed=options.seed)
            )
            search_s = time.perf_counter() - began
            print(
                f"{name:16} {servers:7} {speed:6.0f} {simulate_ms:11.2f} {search_s:8.2f} {result.start_ms:16.2f} "
                f"{result.iteration_ms:9.2f} {result.speed_up:8.3f} {result.stopped_by}",
                flush=True,
            )
    if options.small:
        compare_small(options.small)
    return 0


if __name__ == "__main__":
    sys.exit(main())
