"""Write the suite again: ``python -m benchmarks.suite.generate``; the same code writes the same bytes.

One line an instance: a workload of ours, its parameters, and what of its cluster is changed. Slots
are chosen so that a transfer lasts a few of them. The instances of transformers are older than the
model of an iteration that builds them today; they stay as they are.
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

from topox_core.io.cluster_file import dump_cluster
from topox_core.io.task_graph_file import dump_graph_json
from topox_core.workloads.catalogue import generate

FOLDER = Path(__file__).parent

INSTANCES: dict[str, tuple[str, dict[str, object], dict[str, object]]] = {
    "tiny-random-30": (
        "random-layered",
        {"servers": 3, "layers": 6, "width": 3},
        {"ports_per_server": 1, "switches": 1},
    ),
    "tiny-random-half-30": (
        "random-layered",
        {"servers": 4, "layers": 5, "width": 3, "seed": 1},
        {"ports_per_server": 1, "switches": 1, "duplex": "half"},
    ),
    "small-random-160": (
        "random-layered",
        {"servers": 6, "layers": 12, "width": 6, "mean_mb": 30.0, "seed": 2},
        {},
    ),
    "small-random-total-160": (
        "random-layered",
        {"servers": 8, "layers": 12, "width": 6, "mean_mb": 30.0, "seed": 3},
        {"ports_per_switch": 4},
    ),
    "medium-dlrm-n16": ("dlrm", {"configuration": 2}, {"slot_ms": 1.0}),
    "medium-random-1200": (
        "random-layered",
        {"servers": 16, "layers": 30, "width": 16, "mean_mb": 30.0, "seed": 4},
        {},
    ),
    "large-dlrm-n128": ("dlrm", {"configuration": 1}, {"slot_ms": 1.0}),
}


def main() -> int:
    for name, (workload, parameters, changes) in INSTANCES.items():
        graph, cluster = generate(workload, parameters)
        (FOLDER / f"{name}.taskgraph.json.gz").write_bytes(
            gzip.compress(dump_graph_json(graph), mtime=0)
        )
        (FOLDER / f"{name}.cluster.json").write_bytes(dump_cluster(cluster.changed(**changes)))
        print(f"{name:28} {len(graph.tasks):6} tasks on {cluster.servers} servers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
