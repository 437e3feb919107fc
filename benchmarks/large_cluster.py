"""Take an iteration on thousands of servers from generator to verdict and say where the time goes.

    python -m benchmarks.large_cluster [--servers 2048] [--engine list] [--only pipeline]

For each workload: the seconds to generate its task graph, to lower, reduce and bound it, to fold,
to schedule it (once with circuits per slot, once with continuous circuits) and to check the result,
and the largest memory so far.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable
from typing import TypeVar

from topox_core.check.checker import check
from topox_core.model.cluster import Cluster
from topox_core.model.lowering.lowering import lower
from topox_core.model.task_graph import TaskGraph
from topox_core.schedule.planning.fold import fold
from topox_core.schedule.rcpsp.reduction import reduce
from topox_core.schedule.results.result_file import to_record
from topox_core.schedule.settings import Settings
from topox_core.schedule.solve import solve
from topox_core.warm_up import warm_up
from topox_core.workloads.catalogue import generate

T = TypeVar("T")


def workloads(servers: int) -> dict[str, tuple[str, dict[str, int]]]:
    """Return the workloads by name: Llama 3 70B in pipelines of 16 (1F1B, rings over replicas), tokens to experts, 8B sharded."""
    return {
        "pipeline": ("llama3-70b", {"pipeline": 16, "data": servers // 16, "microbatches": 16}),
        "experts": ("moe", {"data": max(8, servers // 32), "expert": 8}),
        "sharded": ("fsdp", {"data": max(2, servers // 4)}),
    }


def timed(call: Callable[[], T]) -> tuple[T, float]:
    began = time.perf_counter()
    value = call()
    return value, time.perf_counter() - began


def memory_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def row(
    name: str, graph: TaskGraph, cluster: Cluster, settings: Settings, generated_s: float
) -> str:
    lowered, lower_s = timed(lambda: lower(graph, settings.lowering))
    reduction, reduce_s = timed(lambda: reduce(lowered, cluster, settings))
    dark = reduction.dark_slots if settings.circuits == "continuous" else None
    folding, fold_s = timed(lambda: fold(reduction.problem, dark_slots=dark))
    result, solve_s = timed(lambda: solve(graph, cluster, settings))
    report, check_s = timed(lambda: check(graph, cluster, to_record(result)))
    folded = "-" if folding is None else f"{folding.problem.n:,}"
    return (
        f"{name:9} {settings.circuits:10} {cluster.servers:7,} {reduction.problem.n:8,} {folded:>7} {generated_s:10.2f} "
        f"{lower_s:7.2f} {reduce_s:8.2f} {fold_s:6.2f} {solve_s:7.2f} {check_s:7.2f} {generated_s + solve_s + check_s:7.2f} "
        f"{memory_mb():6.0f} {result.makespan_ms:11.1f} {result.gap or 0.0:6.2%} {'yes' if report.ok else 'NO'}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--servers",
        type=int,
        default=2048,
        help="of the pipeline; the others have a 32nd and a quarter",
    )
    parser.add_argument("--engine", default="list", help="list, auto, highs or cpsat")
    parser.add_argument("--time-limit", type=float, default=10.0, help="of a solve, in seconds")
    parser.add_argument("--only", choices=tuple(workloads(2048)), help="one workload")
    options = parser.parse_args()
    warm_up()
    print(
        "workload  circuits   servers    nodes  folded generate s lower s reduce s fold s solve s check s total s     MB "
        "makespan ms    gap checked"
    )
    for name, (workload, values) in workloads(options.servers).items():
        if options.only in (None, name):
            (graph, cluster), generated_s = timed(lambda w=workload, v=values: generate(w, v))
            for circuits in ("per-slot", "continuous"):
                settings = Settings.of(
                    circuits=circuits, engine=options.engine, time_limit_s=options.time_limit
                )
                print(row(name, graph, cluster, settings, generated_s), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
