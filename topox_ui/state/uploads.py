"""A reader's own graph and cluster: either may come first, and what does not fit waits for the other."""

from dataclasses import replace
from typing import Literal

from topox_core.errors import InputError
from topox_core.io.cluster_file import read_cluster
from topox_core.io.task_graph_file import check_fits, load_graph
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import COMPUTE_KINDS, TaskGraph
from topox_core.rails.window_lengths import WindowList
from topox_core.training.job import is_job, load_job
from topox_core.workloads.catalogue import count_tasks
from topox_core.workloads.training_jobs import as_workload
from topox_ui.runs.limits import server_limits
from topox_ui.state.loading import Loaded, adopt, loaded, open_source, opened_by_itself
from topox_ui.state.scenario import Scenario
from topox_ui.state.session import Lasting, Line

OWN_WINDOWS = Lasting[WindowList]("rails_windows")


Box = Literal["graph", "cluster"]

# What became of the last file in each box.
_LINES = Lasting[dict[Box, Line]]("upload_lines")
# The graph that waits for a cluster that has all its servers, the cluster that waits for its graph.
_GRAPH = Lasting[TaskGraph]("waiting_graph")
_CLUSTER = Lasting[Cluster]("waiting_cluster")


def line_of(box: Box) -> Line | None:
    """Return what is written under a box."""
    return _lines().get(box)


def _lines() -> dict[Box, Line]:
    return _LINES.get_or(dict)


def take_file(box: Box, data: bytes, file: str) -> None:
    """Read a file that was put into a box; a mistake in it changes nothing that was there before."""
    lines = _lines()
    lines.pop(box, None)
    try:
        if box == "graph" and is_job(data):
            _open_job(data, file)
        elif box == "graph":
            graph = load_graph(data, file)
            server_limits().check_tasks(len(graph.tasks), file)
            _try_graph(graph, file)
        else:
            found = read_cluster(data, file)
            _try_cluster(found.cluster, file)
            kind, words = lines["cluster"]
            lines["cluster"] = kind, " ".join((words, *(f"It {note}." for note in found.notes)))
    except InputError as error:
        lines[box] = "error", str(error)


def _open_job(data: bytes, file: str) -> None:
    """Generate the task graph of a training job, on the cluster that suits it."""
    name, parameters = as_workload(load_job(data, file))
    server_limits().check_tasks(
        count_tasks(name, dict(parameters), server_limits().most_tasks), file
    )
    open_source(Scenario(source="workload", name=name, parameters=parameters))
    _lines()["graph"] = "success", f"{file} is opened: its task graph, on a cluster for it."


def _try_graph(graph: TaskGraph, file: str) -> None:
    """Load a graph on the cluster that waits, else on the reader's, else on one that is assumed; or let it wait."""
    now = None if opened_by_itself() else loaded()
    cluster = _CLUSTER.get() or (now.cluster if now else None)
    if cluster is None:
        _load(Loaded(graph, fitting(graph, None), graph.name, assumed=True))
        _lines()["graph"] = "success", f"{file} is loaded, on a cluster that is assumed."
        return
    problem = _misfit(graph, cluster, file)
    if problem:
        _GRAPH.set(graph)
        _lines()["graph"] = "warning", f"{problem}. {file} waits for a cluster that fits."
        return
    same = now is not None and now.cluster is cluster
    assumed = same and now is not None and now.assumed
    _load(Loaded(graph, cluster, graph.name, assumed))
    where = "on the cluster that was loaded before" if same else "on your cluster"
    _lines()["graph"] = "success", f"{file} is loaded, {where}."


def _try_cluster(cluster: Cluster, file: str) -> None:
    """Put the graph that waits on a cluster, else the one that is loaded; or let the cluster wait."""
    graph, now = _GRAPH.get(), None if opened_by_itself() else loaded()
    target = graph or (now.graph if now else None)
    problem = "" if target is None else _misfit(target, cluster, target.name)
    if target is None or problem:
        _CLUSTER.set(cluster)
        waits = f"{file} is kept: now add the task graph that should run on it."
        if problem:
            waits = f"{problem}. {'The graph still waits' if graph else waits}"
        _lines()["cluster"] = "warning" if problem else "success", waits
        return
    _load(Loaded(target, cluster, graph.name if graph or now is None else now.title))
    _lines()["cluster"] = "success", f"{file} is the cluster now."


def _misfit(graph: TaskGraph, cluster: Cluster, file: str) -> str:
    try:
        check_fits(graph, cluster, file)
    except InputError as error:
        return str(error)
    return ""


def _load(new: Loaded) -> None:
    """Load what has come together; nothing waits any more."""
    _GRAPH.pop()
    _CLUSTER.pop()
    _lines().clear()
    adopt(new)


def suggested() -> Cluster | None:
    """Return a cluster on which the waiting graph would fit: the nearest one, made larger."""
    graph, now = _GRAPH.get(), loaded()
    if graph is None:
        return None
    return fitting(graph, _CLUSTER.get() or (now.cluster if now else None))


def use_suggested() -> None:
    """Load the waiting graph on the cluster that is suggested for it."""
    graph, cluster = _GRAPH.get(), suggested()
    if graph is not None and cluster is not None:
        _load(Loaded(graph, cluster, graph.name, assumed=True))


def change_assumed(**values: float) -> None:
    """Put other values into the cluster that was assumed."""
    now = loaded()
    if now is None:
        return
    try:
        cluster = replace(now.cluster.changed(**values), name="")
        if cluster.ports_per_switch < cluster.servers:
            cluster = replace(cluster, ports_per_switch=cluster.servers)
        check_fits(now.graph, cluster, now.title)
    except InputError as error:
        _lines()["cluster"] = "error", str(error)
        return
    _lines().pop("cluster", None)
    adopt(replace(now, cluster=cluster))


def fitting(graph: TaskGraph, cluster: Cluster | None) -> Cluster:
    """Return a cluster that has every server and device the graph names: the given one enlarged, or a plain one."""
    servers = max(graph.servers, 1)
    devices = (
        max((task.device or 0 for task in graph.tasks if task.kind in COMPUTE_KINDS), default=0) + 1
    )
    if cluster is None:
        return Cluster(
            servers=servers,
            devices_per_server=devices,
            ports_per_server=4,
            switches=4,
            ports_per_switch=servers,
            port_gbps=100.0,
            name=f"{servers} server{'s' * (servers > 1)}, 4 optical switches, 100 Gbit/s ports",
        )
    return replace(
        cluster,
        servers=max(servers, cluster.servers),
        devices_per_server=max(devices, cluster.devices_per_server),
        ports_per_switch=max(servers, cluster.ports_per_switch),
        name="",
    )
