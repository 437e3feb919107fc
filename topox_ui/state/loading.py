"""What is loaded in this session: from a sample, a workload or the user's own files."""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from topox_core.errors import InputError
from topox_core.io.cluster_file import load_cluster
from topox_core.io.task_graph_file import check_fits, load_graph
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import COMPUTE_KINDS, TaskGraph
from topox_core.text.numbers import plural
from topox_core.workloads.catalogue import WORKLOADS, generate
from topox_core.workloads.samples import SAMPLES, load_sample
from topox_ui.state.scenario import Choices, Scenario


@dataclass(frozen=True)
class Loaded:
    """A task graph with a cluster that has all its servers, as the files have them."""

    graph: TaskGraph
    cluster: Cluster
    title: str


@st.cache_resource(max_entries=16, show_spinner=False)
def _sample(name: str) -> tuple[TaskGraph, Cluster]:
    return load_sample(name)


@st.cache_resource(max_entries=8, show_spinner="Generating the task graph")
def _workload(name: str, parameters: Choices) -> tuple[TaskGraph, Cluster]:
    return generate(name, dict(parameters))


def known_names() -> dict[str, object]:
    """Return the names that a link may use."""
    return {
        "sample": list(SAMPLES),
        "workload": {w.name: [p.key for p in w.parameters] for w in WORKLOADS.values()},
    }


def load(scenario: Scenario) -> Loaded | None:
    """Return what the scenario names, or None if it names nothing; raises InputError."""
    if scenario.source == "sample":
        graph, cluster = _sample(scenario.name)
        return Loaded(graph, cluster, scenario.name)
    if scenario.source == "workload":
        graph, cluster = _workload(scenario.name, scenario.parameters)
        return Loaded(graph, cluster, scenario.name)
    return None


def loaded() -> Loaded | None:
    """Return what is loaded in this session."""
    return st.session_state.get("loaded")


def read_upload(data: bytes, file: str, what: str) -> Loaded | None:
    """Return what is loaded after an upload of a ``graph`` or a ``cluster``; raises InputError and changes nothing.

    A graph alone keeps the cluster if it fits; without a cluster it gets one that does. A cluster
    that comes first waits for its graph (None).
    """
    now = loaded()
    if what == "cluster":
        cluster = load_cluster(data, file)
        if now is None:
            st.session_state["waiting_cluster"] = cluster
            return None
        check_fits(now.graph, cluster, now.graph.name)
        return Loaded(now.graph, cluster, now.title)
    graph = load_graph(data, file)
    known: Cluster | None = now.cluster if now else st.session_state.get("waiting_cluster")
    if known is None:
        return Loaded(graph, fitting(graph, None), graph.name)
    try:
        check_fits(graph, known, file)
    except InputError:
        st.session_state["misfit"] = graph
        raise
    return Loaded(graph, known, graph.name)


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
            name=f"{plural(servers, 'server')}, 4 optical switches, 100 Gbit/s ports",
        )
    return replace(
        cluster,
        servers=max(servers, cluster.servers),
        devices_per_server=max(devices, cluster.devices_per_server),
        ports_per_switch=max(servers, cluster.ports_per_switch),
        name="",
    )


def cluster_words(cluster: Cluster) -> str:
    """Return a cluster in a line: 8 servers, 2 switches, 100G ports."""
    return f"{plural(cluster.servers, 'server')}, {plural(cluster.switches, 'switch', 'switches')}, {cluster.port_gbps:g}G ports"
