"""How long the first answer of each fabric that is run where it is named takes, and whether within its goal.

    python -m benchmarks.first_answers [--suite FOLDER] [--only REGEX] [--delay-ms X]

Graphs of about 1,000 nodes (goal 1 s) and of about 10,000 (goal 5 s), compiled code warm; a fabric
that makes choices twice, with nothing and with everything open. The goal is held against seconds of
a core. All run in one process: collectives that one fabric tried alone serve those after it.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path

from tests.past import load_past
from tests.real_inputs import SUITE
from topox_core.api import load_cluster, load_graph
from topox_core.fabrics.comparison.compare import default_options, run_with_best_lowering
from topox_core.fabrics.registry import CHOOSES, ENTRIES
from topox_core.fabrics.run import JobRequest
from topox_core.model.cluster import Cluster
from topox_core.model.lowering.lowering import lower
from topox_core.model.task_graph import TaskGraph
from topox_core.schedule.settings import FREE, Settings
from topox_core.warm_up import warm_up_fabrics

NAMED = tuple(name for name, one in ENTRIES.items() if not one.usual)
GRAPHS = ("moe", "dlrm-16", "medium-1f1b-p8d2m16", "llama3-70b", "large-1f1b-p16d8m16")
GRAPHS += ("large-moe-n24l4", "large-fsdp-n64l24", "large-random-12k")
MANY_NODES, GOAL_S, GOAL_MANY_S = 3_000, 1.0, 5.0


def loaded(name: str, suite: Path) -> tuple[TaskGraph, Cluster] | None:
    """Return a graph with its cluster; None where it is not on this machine."""
    if not name.startswith(("medium-", "large-")):
        return load_past(name)
    files = sorted(suite.glob(f"{name}.taskgraph.json*"))
    return (load_graph(files[0]), load_cluster(suite / f"{name}.cluster.json")) if files else None


def main() -> int:
    """Print a row for each graph and fabric."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--suite", type=Path, default=SUITE)
    parser.add_argument("--only", default="", help="graphs whose names match")
    parser.add_argument("--delay-ms", type=float, default=1.0)
    options = parser.parse_args()
    warm_up_fabrics()
    print("| graph | nodes | fabric | open | seconds | of a core | goal | iteration (ms) |")
    print("| --- " * 8 + "|")
    for name in GRAPHS:
        there = loaded(name, options.suite) if re.search(options.only, name) else None
        if there is None:
            continue
        task_graph, of = there[0], there[1].changed(reconfiguration_ms=options.delay_ms)
        nodes = len(lower(task_graph).ids)
        goal_s = GOAL_MANY_S if nodes > MANY_NODES else GOAL_S
        for fabric in NAMED:
            chooses = fabric in CHOOSES or fabric == "static_graph"
            for free in ((), FREE) if chooses else ((),):
                settings = Settings.of(engine="list", free=free)
                job = JobRequest(task_graph, of, settings, default_options(of))
                began, busy = time.perf_counter(), time.process_time()
                run = run_with_best_lowering(fabric, job)
                wall_s, core_s = time.perf_counter() - began, time.process_time() - busy
                words = "missed" if core_s > goal_s else "met"
                print(
                    f"| {name} | {nodes:,} | {fabric} | {'all' if free else 'nothing'} | {wall_s:.2f} "
                    f"| {core_s:.2f} | {goal_s:g} s {words} | {run.iteration_ms:.2f} |",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
