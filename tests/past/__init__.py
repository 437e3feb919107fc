"""Samples and generated graphs as they were in November 2026, before one builder made every transformer.

Times that were published, or checked by hand, against these graphs are asserted on them; the samples of today may change.
"""

from pathlib import Path
from typing import Any

from tests.topox_core.small_graphs import sample_with
from topox_core.api import load_cluster, load_graph
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph

FOLDER = Path(__file__).parent
NAMES = tuple(sorted(file.name.partition(".")[0] for file in FOLDER.glob("*.gz")))


def load_past(name: str, **changes: Any) -> tuple[TaskGraph, Cluster]:
    """Return a graph of then on its cluster, with other values; samples that no transformer is in have not changed since."""
    if name not in NAMES:
        return sample_with(name, **changes)
    cluster = load_cluster(FOLDER / f"{name}.cluster.json")
    return load_graph(FOLDER / f"{name}.taskgraph.json.gz"), cluster.changed(**changes)
