"""What is loaded in this session: from a sample, a workload or the user's own files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from topox_core.errors import InputError
from topox_core.io.cluster_file import load_cluster
from topox_core.io.task_graph_file import check_fits, load_graph
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import COMPUTE_KINDS, TaskGraph
from topox_core.text.numbers import plural
from topox_core.workloads.catalogue import generate
from topox_core.workloads.samples import load_sample
from topox_ui.runs.limits import server_limits
from topox_ui.state.generating import NotYet, generated
from topox_ui.state.notices import notify
from topox_ui.state.scenario import Scenario
from topox_ui.state.store import put, state_of, states


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
def _workload(name: str, parameters: tuple[tuple[str, str], ...]) -> tuple[TaskGraph, Cluster]:
    return generate(name, dict(parameters), server_limits().most_tasks)


def scenario() -> Scenario:
    """Return the scenario of this session."""
    return state_of(Scenario)


def choose_what_if(**changes: Any) -> None:
    """Take what-ifs of the reader on what is loaded; None takes one back."""
    now = loaded()
    if now is not None:
        try:
            put(scenario().with_what_if(now.cluster, **changes))
        except InputError as error:
            notify("error", str(error))
        except ValueError:  # No value of ours: the control is drawn again.
            return


def reset_what_ifs() -> None:
    """Go back to the values of the files."""
    put(scenario().without_what_ifs())


def load(scenario: Scenario) -> bool:
    """Load the sample or workload that a scenario names; return False if it names none.

    Raises
    ------
    InputError
        If it cannot be loaded.
    NotYet
        If it is being generated beside the page.
    """
    if scenario.source == "sample":
        graph, cluster = _sample(scenario.name)
        server_limits().check_tasks(len(graph.tasks), scenario.name)
    elif scenario.source == "workload":
        large = generated(scenario.name, scenario.parameters)
        graph, cluster = large or _workload(scenario.name, scenario.parameters)
    else:
        return False
    st.session_state["loaded"] = Loaded(graph, cluster, scenario.name)
    return True


def open_source(new: Scenario) -> None:
    """Load a sample or a workload; if it cannot be loaded, say so and keep what was there."""
    try:
        if load(new):
            _begin_with(new)
    except NotYet:
        st.session_state["awaited"] = new
    except InputError as error:
        notify("error", str(error))


def adopt(graph: Loaded) -> None:
    """Make a reader's own graph and cluster the loaded ones."""
    st.session_state["loaded"] = graph
    _begin_with(Scenario(source="upload", name=graph.title))


def _begin_with(new: Scenario) -> None:
    """Begin anew with what-ifs, and with all choices that belong to the graph in view."""
    for key in ("misfit", "notice"):
        st.session_state.pop(key, None)
    put(new, *(type(state)() for state in states().values() if state.of_graph))


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
    server_limits().check_tasks(len(graph.tasks), file)
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
