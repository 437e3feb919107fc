"""The samples: small inputs, each with what to see in it; some with a proved optimum."""

from dataclasses import dataclass, field
from typing import Any

from topox_core.io.cluster_file import load_cluster
from topox_core.io.content import read
from topox_core.io.sample_folder import SAMPLE_FOLDER, named_sample, samples_of
from topox_core.io.task_graph_file import check_fits, load_graph
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph


@dataclass(frozen=True)
class Sample:
    """One sample as ``sample_data/index.json`` describes it.

    Attributes
    ----------
    name, title, see
        Its key, a heading, and one line on what to see in it.
    tasks, transfers, servers
        Tasks in the file, point-to-point transfers once collectives are lowered, servers.
    graph_file, cluster_file
        File names within :data:`SAMPLE_FOLDER`.
    optimum_ms
        The proved optimum, or None; it belongs to ``optimum_settings`` (keywords of
        :meth:`topox_core.schedule.settings.Settings.of`), and ``proof`` says in a line why it
        holds.
    first_come_ms
        What serving transfers as soon as they are ready and their ports idle gives, where that is
        worse; or None.
    made_by
        Workload and parameters that made it; empty if written by hand.
    """

    name: str
    title: str
    see: str
    tasks: int
    transfers: int
    servers: int
    graph_file: str
    cluster_file: str
    optimum_ms: float | None = None
    optimum_settings: dict[str, Any] = field(default_factory=dict)
    first_come_ms: float | None = None
    proof: str = ""
    made_by: dict[str, Any] = field(default_factory=dict)


SAMPLES = samples_of("samples", Sample)


def load_sample(name: str) -> tuple[TaskGraph, Cluster]:
    """Return a sample's task graph and cluster.

    Raises
    ------
    InputError
        If there is no sample of that name.
    """
    sample = named_sample(SAMPLES, name)
    graph = load_graph(read(SAMPLE_FOLDER / sample.graph_file), sample.graph_file)
    cluster = load_cluster(read(SAMPLE_FOLDER / sample.cluster_file), sample.cluster_file)
    check_fits(graph, cluster, sample.graph_file)
    return graph, cluster
