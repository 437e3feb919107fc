"""Solve small instances on slots with set-up times, and say which are proved.

    python -m benchmarks.set_ups [--suite FOLDER] [--delays 1,3,10] [--seconds 60] [--only tiny,small]

One line a solve: ports of a server each way, pairs of transfers to be put in order, the plan by
rules, makespan and bound after the race of engines, the gap, how it ended and the seconds.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from benchmarks.side_by_side.instances import instances
from topox_core.api import load_cluster, load_graph
from topox_core.model.cluster import Cluster
from topox_core.schedule.bounds.windows import windows
from topox_core.schedule.circuits.held_ports import with_set_ups
from topox_core.schedule.engines.disjunctions import Disjunctions
from topox_core.schedule.planner import prepare
from topox_core.schedule.proof import Proof
from topox_core.schedule.settings import Settings

ROOT = Path(__file__).resolve().parents[1]


def line(name: str, graph, cluster: Cluster, settings: Settings) -> str:  # type: ignore[no-untyped-def]
    prepared = prepare(graph, cluster, settings)
    problem = prepared.reduction.problem
    plan = prepared.planner.best_plan()
    counted = with_set_ups(problem, prepared.reduction.dark_slots)
    pairs = Disjunctions(counted, windows(counted, plan.makespan)).count
    began = time.perf_counter()
    result = Proof(prepared, plan).finish()
    took_s = time.perf_counter() - began
    assert result.gap is not None
    return (
        f"{name:28} {cluster.reconfiguration_ms:6g} {cluster.ports_per_server:5} {pairs:6} {problem.ms(plan.makespan):9.4g} "
        f"{result.makespan_ms:9.6g} {result.bound_ms:9.6g} {result.gap:7.2%} {result.stopped_by:>11} {took_s:6.1f}  {result.message}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--suite", type=Path, default=ROOT.parent / "shared" / "bench" / "instances"
    )
    parser.add_argument("--delays", default="1,3,10", help="in ms")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", default="tiny,small", help="beginnings of names")
    parser.add_argument("--engine", default="auto")
    options = parser.parse_args()
    settings = Settings.of(clock="slots", engine=options.engine, time_limit_s=options.seconds)
    print(
        f"{'instance':28} {'delay':>6} {'ports':>5} {'pairs':>6} {'rules':>9} {'ms':>9} "
        f"{'bound':>9} {'gap':>7} {'ended by':>11} {'s':>6}"
    )
    for one in instances(options.suite):
        if not one.name.startswith(tuple(options.only.split(","))):
            continue
        graph, cluster = load_graph(one.graph), load_cluster(one.cluster)
        for delay_ms in map(float, options.delays.split(",")):
            delayed = cluster.changed(reconfiguration_ms=delay_ms)
            print(line(one.name, graph, delayed, settings), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
