"""Time the list scheduler on a folder of instances and compare with the best values known.

    python -m benchmarks.list_suite [--suite FOLDER] [--command]

Prints, for each instance, seconds to the first schedule and to the best of all rules (compiled code
warm), the makespan in slots, its ratio to the best known value (if the folder's README.md lists
one) and the independent checker's verdict. With ``--command`` also the wall time of the whole
command in a new process.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.side_by_side.instances import instances
from tests.real_inputs import SUITE
from topox_core.api import load_cluster, load_graph
from topox_core.check.checker import check
from topox_core.schedule.results.result_file import to_record
from topox_core.schedule.settings import Settings
from topox_core.schedule.solve import solve

SETTINGS = Settings.of(circuits="per-slot", tick="slot", engine="list")
OPTIONS = ("--engine=list", "--circuits=per-slot", "--tick-ms=slot", "--json")
ROOT = Path(__file__).resolve().parents[1]


def command_s(graph: Path, cluster: Path) -> float:
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "topox_core", "schedule", str(graph), str(cluster), *OPTIONS],
        check=True,
        capture_output=True,
        cwd=ROOT,
    )
    return time.perf_counter() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", type=Path, default=SUITE)
    parser.add_argument(
        "--command", action="store_true", help="also time the whole command in a new process"
    )
    options = parser.parse_args()
    print(
        f"{'instance':32} {'tasks':>6} {'first s':>8} {'list s':>7} {'slots':>6} {'bound':>6} {'ratio':>6} checked"
        + ("  command s" if options.command else "")
    )
    worst = 0.0
    for one in instances(options.suite):
        graph, cluster = load_graph(one.graph), load_cluster(one.cluster)
        solve(graph, cluster, SETTINGS)  # warm
        result = solve(graph, cluster, SETTINGS)
        slots = result.makespan_ms / cluster.slot_ms
        ratio = slots / one.best_known if one.best_known else math.nan
        worst = max(worst, ratio)
        verdict = "yes" if check(graph, cluster, to_record(result)).ok else "NO"
        line = (
            f"{one.name:32} {len(graph.tasks):6} {result.trace[0].elapsed_s:8.3f} {result.wall_s:7.3f} "
            f"{slots:6.0f} {result.bound_ms / cluster.slot_ms:6.0f} {ratio:6.3f} {verdict:>7}"
        )
        print(
            line + (f"  {command_s(one.graph, one.cluster):9.2f}" if options.command else ""),
            flush=True,
        )
    print(f"worst ratio to the best known value: {worst:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
