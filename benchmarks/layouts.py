"""Searched layouts beside what the first prototype of the search reached.

    python -m benchmarks.layouts [--suite FOLDER] [--only REGEX] [--steps N] [--seed N]

Each graph twice: the first answer, and a search of so many steps. Seconds are those of a core,
compiled code warm. Graphs of the suite are left out where its folder is not there.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from dataclasses import replace
from pathlib import Path

from tests.past import load_past
from tests.real_inputs import SUITE
from topox_core.api import load_cluster, load_graph
from topox_core.fabrics.fixed.layout_search import LayoutAnswer, layout_by_graph
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.run import FabricRequest
from topox_core.model.cluster import Cluster
from topox_core.model.lowering.lowering import lower
from topox_core.model.task_graph import TaskGraph
from topox_core.runs.run import never
from topox_core.schedule.settings import Settings

STEPS = 20_000
# What a prototype in Python reached in 40 s (November 2026), in ms. The first five are samples of then.
PROTOTYPE_MS = {
    "race": 86.192794,
    "llama3-8b": 581.589818,
    "moe": 263.049321,
    "dlrm-16": 40.712773,
    "fsdp": 244.741196,
    "small-1f1b-p4d2m6": 160.661987,
    "small-random-200": 149.984184,
    "small-dlrm-n8l3": 45.790454,
    "small-moe-n4l4": 176.356756,
    "medium-flexnet-dlrm16": 73.881964,
    "medium-1f1b-p8d2m16": 442.073686,
    "medium-moe-n8l4x2": 292.043206,
    "medium-dlrm-n16l8": 116.700600,
    "medium-fsdp-n16l12": 188.084207,
}
SAMPLES = tuple(PROTOTYPE_MS)[:5]
HEAD = (
    "| graph | nodes | best start (ms) | first answer (ms) | its core s | {steps:,} steps (ms) | their core s "
    "| prototype (ms) |\n" + "| --- " * 8 + "|"
)


def loaded(name: str, suite: Path) -> tuple[TaskGraph, Cluster] | None:
    """Return a graph with its cluster; None where it is not on this machine."""
    if name in SAMPLES:
        return load_past(name)
    files = sorted(suite.glob(f"{name}.taskgraph.json*"))
    return (load_graph(files[0]), load_cluster(suite / f"{name}.cluster.json")) if files else None


def timed(request: FabricRequest, steps: int) -> tuple[LayoutAnswer, float]:
    """Return a search's answer and its seconds of a core."""
    began = time.process_time()
    answer = layout_by_graph(replace(request, options=FabricOptions(layout_steps=steps)), never)
    return answer, time.process_time() - began


def row(name: str, task_graph: TaskGraph, of: Cluster, steps: int, seed: int) -> str:
    """Search one graph's layout twice, and return its row of the table."""
    order = FabricRequest(lower(task_graph), of, Settings.of(engine="list", seed=seed))
    first, first_s = timed(order, 0)
    longer, longer_s = timed(order, steps)
    start_ms = min(time_ms for _, time_ms in first.starts)
    return (
        f"| {name} | {len(order.graph):,} | {start_ms:.2f} | {first.best.time_ms:.2f} | {first_s:.1f} "
        f"| {longer.best.time_ms:.2f} | {longer_s:.0f} | {PROTOTYPE_MS[name]:.2f} |"
    )


def main() -> int:
    """Print a row for each graph."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--suite", type=Path, default=SUITE)
    parser.add_argument("--only", default="", help="names that match")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warm = load_past("patience")
    for steps in (0, 50):
        timed(FabricRequest(lower(warm[0]), warm[1], Settings.of(engine="list")), steps)
    print(HEAD.format(steps=options.steps))
    for name in PROTOTYPE_MS:
        there = loaded(name, options.suite) if re.search(options.only, name) else None
        if there is not None:
            print(row(name, *there, options.steps, options.seed), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
