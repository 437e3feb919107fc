"""Samples and generated graphs as they were in November 2026, before one builder made every transformer.

Times that were published, or checked by hand, against these graphs are asserted on them; the samples of today may change.
"""

from pathlib import Path

from topox_core.api import load_cluster, load_graph
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph
from topox_core.workloads.samples import load_sample

FOLDER = Path(__file__).parent
NAMES = tuple(sorted(file.name.partition(".")[0] for file in FOLDER.glob("*.gz")))


def load_past(name: str) -> tuple[TaskGraph, Cluster]:
    """Return a graph of then with its cluster; samples that no transformer is in have not changed since."""
    if name not in NAMES:
        return load_sample(name)
    return (
        load_graph(FOLDER / f"{name}.taskgraph.json.gz"),
        load_cluster(FOLDER / f"{name}.cluster.json"),
    )
