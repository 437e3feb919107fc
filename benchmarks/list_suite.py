"""Time the list scheduler on a folder of instances and compare with the best values known.

    python -m benchmarks.list_suite [--suite FOLDER] [--command]

Prints, for each instance, seconds to the first schedule and to the best of all rules (compiled code
warm), the makespan in slots, its ratio to the best known value (if the folder's README.md lists
one) and the independent checker's verdict. With ``--command`` also the wall time of the whole
command in a new process.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from topox_core.check.checker import check
from topox_core.io.cluster_file import load_cluster
from topox_core.io.task_graph_file import load_graph
from topox_core.schedule.result_file import to_record
from topox_core.schedule.settings import Settings
from topox_core.schedule.solve import solve

SETTINGS = Settings.of(circuits="per-slot", tick="slot", engine="list")
OPTIONS = ("--engine=list", "--circuits=per-slot", "--tick-ms=slot", "--json")
ROOT = Path(__file__).resolve().parents[1]


def best_known(suite: Path) -> dict[str, int]:
    readme = suite.parent / "README.md"
    if not readme.is_file():
        return {}
    rows = [line.split("|") for line in readme.read_text().splitlines() if line.startswith("| ")]
    return {row[1].strip(): int(row[4]) for row in rows if row[2].strip().isdigit()}


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
    parser.add_argument(
        "--suite", type=Path, default=ROOT.parent / "shared" / "bench" / "instances"
    )
    parser.add_argument(
        "--command", action="store_true", help="also time the whole command in a new process"
    )
    options = parser.parse_args()
    known = best_known(options.suite)
    print(
        f"{'instance':32} {'tasks':>6} {'first s':>8} {'list s':>7} {'slots':>6} {'bound':>6} {'ratio':>6} checked"
        + ("  command s" if options.command else "")
    )
    worst = 0.0
    for path in sorted(options.suite.glob("*.taskgraph.json*")):
        name = path.name.split(".")[0]
        cluster_path = options.suite / f"{name}.cluster.json"
        graph, cluster = (
            load_graph(path.read_bytes(), path.name),
            load_cluster(cluster_path.read_bytes(), cluster_path.name),
        )
        solve(graph, cluster, SETTINGS)  # warm
        result = solve(graph, cluster, SETTINGS)
        ratio = (
            result.makespan_ms / cluster.slot_ms / known[name] if name in known else float("nan")
        )
        worst = max(worst, ratio)
        verdict = "yes" if check(graph, cluster, to_record(result)).ok else "NO"
        line = (
            f"{name:32} {len(graph.tasks):6} {result.trace[0].elapsed_s:8.3f} {result.wall_s:7.3f} "
            f"{result.makespan_ms / cluster.slot_ms:6.0f} {result.bound_ms / cluster.slot_ms:6.0f} {ratio:6.3f} {verdict:>7}"
        )
        print(
            line + (f"  {command_s(path, cluster_path):9.2f}" if options.command else ""),
            flush=True,
        )
    print(f"worst ratio to the best known value: {worst:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
