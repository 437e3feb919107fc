"""What is loaded in this session: a sample, a workload (a large one is generated beside the page) or the reader's own files.

Of own files, graph and cluster, either may come first, and what does not fit waits for the other.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

import streamlit as st

from topox_core.errors import InputError
from topox_core.io.cluster_file import read_cluster
from topox_core.io.task_graph_file import check_fits, load_graph
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import COMPUTE_KINDS, TaskGraph
from topox_core.rails.window_lengths import WindowList
from topox_core.schema.fields import text_of
from topox_core.text.numbers import and_more, plural, short
from topox_core.training.job import Job, is_job, load_job
from topox_core.training.plan import DEGREES
from topox_core.workloads.catalogue import count_tasks, generate, workload_of
from topox_core.workloads.samples import SAMPLES, load_sample
from topox_core.workloads.workload import as_workload, job_of
from topox_ui.runs.limits import server_limits
from topox_ui.runs.owner import RunKind, run_owner, worker_run
from topox_ui.state.scenario import Scenario
from topox_ui.state.session import (
    ADDRESS_DUE,
    CARRIED,
    NOTICE,
    Lasting,
    Line,
    PageState,
    Passing,
    notify,
    notify_errors,
    put,
    states,
)

AT_ONCE = 20_000  # tasks; more take longer than anybody would look at a page that does not answer
GENERATE = RunKind("generate", 1, cancel_help="Stops at once; what was loaded stays.")
Parameters = tuple[tuple[str, str], ...]
Generated = tuple[TaskGraph, Cluster]


class NotYet(Exception):
    """The task graph is being generated beside the page."""


def generated(name: str, parameters: Parameters) -> Generated | None:
    """Return a large workload's task graph, or None if the workload is small; raises InputError where it cannot be.

    Raises
    ------
    NotYet
        If it is being generated; the run begins with the first call.
    """
    owner, key = run_owner(), (name, parameters)
    if key in owner.results(GENERATE):
        graph: Generated = owner.results(GENERATE)[key]
        return graph
    if key in owner.refusals(GENERATE):
        raise owner.refusals(GENERATE)[key]
    if count_tasks(name, dict(parameters), server_limits().most_tasks) <= AT_ONCE:
        return None
    if owner.run(GENERATE, key) is None:
        given = name, dict(parameters), server_limits().most_tasks
        begin = worker_run("was not generated", f"workload {name}", generate, *given)
        owner.start(GENERATE, key, begin)
    raise NotYet


# What a page shows that is opened without a job: on it circuits change a thousand times.
FIRST_SAMPLE = "moe"


@dataclass(frozen=True)
class Loaded:
    """A task graph with a cluster that has all its servers, as the files have them.

    Attributes
    ----------
    assumed
        Whether no file gave the cluster: its values are ours, or were typed in.
    by_itself
        Whether it is a sample that nobody asked for.
    """

    graph: TaskGraph
    cluster: Cluster
    title: str
    assumed: bool = False
    by_itself: bool = False


_LOADED = Lasting[Loaded]("loaded")
_PREVIOUS = Lasting[tuple[Loaded | None, list[PageState]]]("previous")
# The scenario whose large graph is being generated; None where a link asked for it.
AWAITED = Lasting[Scenario | None]("awaited")
# The choices that the menus which the page in view has offered carry.
MENUS = Passing[list[dict[str, PageState]]]("menus")


@st.cache_resource(max_entries=16, show_spinner=False)
def _sample(name: str) -> tuple[TaskGraph, Cluster]:
    return load_sample(name)


@st.cache_resource(max_entries=8, show_spinner="Generating the task graph")
def _workload(name: str, parameters: tuple[tuple[str, str], ...]) -> tuple[TaskGraph, Cluster]:
    return generate(name, dict(parameters), server_limits().most_tasks)


def scenario() -> Scenario:
    """Return the scenario of this session."""
    return Scenario.now()


def choose_what_if(**changes: Any) -> None:
    """Take what-ifs of the reader on what is loaded; None takes one back."""
    now = loaded()
    if now is not None:
        with suppress(ValueError), notify_errors():  # no value of ours: the control is drawn again
            put(scenario().with_what_if(now.cluster, **changes))


def has_what_ifs() -> bool:
    """Return whether what the page in view counts with differs from the files and from how fabrics are built first."""
    carried = CARRIED.get_or(tuple)
    return any(one != one.without_what_ifs() for name, one in states().items() if name in carried)


def reset_what_ifs() -> None:
    """Go back to the values of the files, and build every fabric as pages begin with it."""
    put(*(one.without_what_ifs() for one in states().values()))


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
    _take(Loaded(graph, cluster, scenario.name + _changed(scenario)))
    return True


# What plans call their degrees and their sharding.
SHORT_WORDS = {**DEGREES, "sequence_parallel": "SP", "zero": "ZeRO"}
DIFFERS = " with "  # between the name of a workload and what was changed of it


def _changed(scenario: Scenario) -> str:
    """Return in what a generated workload differs from the sample made of it, or else from its own values; empty of a sample."""
    if not scenario.parameters:
        return ""
    known, sample = workload_of(scenario.name), SAMPLES.get(scenario.name)
    usual, now = map(
        known.chosen, (sample.made_by["set"] if sample else {}, dict(scenario.parameters))
    )
    told = [
        f"{SHORT_WORDS.get(key, key.replace('_', ' '))} {text_of(value) if isinstance(value, str | bool) else short(value)}"
        for key, value in now.items()
        if value != usual[key]
    ]
    return f"{DIFFERS}{', '.join(told[:6])}{and_more(len(told), 6)}" if told else ""


def _take(new: Loaded) -> None:
    """Make a graph and cluster the loaded ones; what the reader had before can be gone back to."""
    old = loaded()
    if old is not None and old != new and not opened_by_itself():
        _PREVIOUS.set((old, _of_graph()))
    _LOADED.set(new)


def _of_graph() -> list[PageState]:
    """Return the scenario and all choices that belong to the graph in view."""
    return [scenario(), *(state for state in states().values() if state.of_graph)]


def previous() -> Loaded | None:
    """Return what the reader had before it was replaced."""
    before = _PREVIOUS.get()
    return before[0] if before else None


def go_back() -> None:
    """Return to what was loaded before, with its what-ifs; the same once more undoes it."""
    before = _PREVIOUS.get()
    if before is None or before[0] is None:
        return
    _PREVIOUS.set((loaded(), _of_graph()))
    _LOADED.set(before[0])
    _begin_with(*before[1])


def open_source(new: Scenario) -> None:
    """Load a sample or a workload; if it cannot be loaded, say so and keep what was there."""
    try:
        with notify_errors():
            if load(new):
                _begin_with(new)
    except NotYet:
        AWAITED.set(new)


def adopt(new: Loaded) -> None:
    """Make a reader's own graph and cluster the loaded ones."""
    _take(new)
    _begin_with(Scenario(source="upload", name=new.title))


def open_first() -> None:
    """Open a sample on a page that would be blank without one; the line that is kept for the page stays.

    The address does not name what nobody chose: a reload comes here before it finds own files
    again, and Back would lead to the sample.
    """
    new = Scenario(source="sample", name=FIRST_SAMPLE)
    try:
        load(new)
    except InputError as error:
        if NOTICE.get() is None:
            notify("error", str(error))
        return
    put(new)
    ADDRESS_DUE.pop()
    MENUS.set([])
    _LOADED.set(replace(loaded(), by_itself=True))


def opened_by_itself() -> bool:
    """Return whether what is loaded is a sample that nobody asked for."""
    now = loaded()
    return now is not None and now.by_itself


def _begin_with(*new: PageState) -> None:
    """Begin anew with what-ifs, and with all choices that belong to the graph in view, but for those given."""
    NOTICE.pop()
    MENUS.set([])  # their links are those of another graph
    put(*(type(state)() for state in states().values() if state.of_graph), *new)


def loaded() -> Loaded | None:
    """Return what is loaded in this session."""
    return _LOADED.get()


def loaded_job() -> Job | None:
    """Return the training job whose task graph is loaded; None where it is no training job's."""
    now = scenario()
    made = SAMPLES[now.name].made_by if now.source == "sample" and now.name in SAMPLES else {}
    if made:
        return job_of(made["workload"], made["set"])
    return job_of(now.name, dict(now.parameters)) if now.source == "workload" else None


def scenario_of(job: Job) -> Scenario:
    """Return the scenario that opens a job; one of the loaded model and machine keeps the ports of its servers."""
    name, parameters = as_workload(job)
    now, ports = loaded_job(), dict(scenario().parameters).get("ports")
    if now and ports and (now.shape, now.machine) == (job.shape, job.machine):
        parameters += (("ports", ports),)
    return Scenario(source="workload", name=name, parameters=parameters)


def own_job() -> Job | None:
    """Return the training job that the reader loaded; None of a sample that opened by itself."""
    return None if opened_by_itself() else loaded_job()


def cluster_words(cluster: Cluster) -> str:
    """Return a cluster in a line: 8 servers, 2 switches, 100G ports."""
    return f"{plural(cluster.servers, 'server')}, {plural(cluster.switches, 'switch', 'switches')}, {cluster.port_gbps:g}G ports"


def setting_words(cluster: Cluster) -> str:
    """Return the same with the reconfiguration delay: 8 servers, 2 switches, 100G ports, 1 ms delay."""
    delay_ms = cluster.reconfiguration_ms
    return f"{cluster_words(cluster)}, {f'{short(delay_ms)}&nbsp;ms' if delay_ms else 'no'} delay"


OWN_WINDOWS = Lasting[WindowList]("rails_windows")


Box = Literal["graph", "cluster"]

# What became of the last file in each box.
_LINES = Lasting[dict[Box, Line]]("upload_lines")
# The graph that waits for a cluster that has all its servers, the cluster that waits for its graph.
_GRAPH = Lasting[TaskGraph]("waiting_graph")
_CLUSTER = Lasting[Cluster]("waiting_cluster")


def upload_lines() -> dict[Box, Line]:
    """Return what is written under each box."""
    return _LINES.get_or(dict)


def take_file(box: Box, data: bytes, file: str) -> None:
    """Read a file that was put into a box; a mistake in it changes nothing that was there before."""
    try:
        line = _taken(box, data, file)
    except InputError as error:
        line = "error", str(error)
    upload_lines()[box] = line


def _taken(box: Box, data: bytes, file: str) -> Line:
    if box == "cluster":
        found = read_cluster(data, file)
        kind, words = _try_cluster(found.cluster, file)
        return kind, " ".join((words, *(f"It {note}." for note in found.notes)))
    if is_job(data):
        return _open_job(data, file)
    graph = load_graph(data, file)
    server_limits().check_tasks(len(graph.tasks), file)
    return _try_graph(graph, file)


def _open_job(data: bytes, file: str) -> Line:
    """Generate the task graph of a training job, on the cluster that suits it."""
    name, parameters = as_workload(load_job(data, file))
    server_limits().check_tasks(
        count_tasks(name, dict(parameters), server_limits().most_tasks), file
    )
    open_source(Scenario(source="workload", name=name, parameters=parameters))
    return "success", f"{file} is opened: its task graph, on a cluster for it."


def _try_graph(graph: TaskGraph, file: str) -> Line:
    """Load a graph on the cluster that waits, else on the reader's, else on one that is assumed; or let it wait."""
    now = None if opened_by_itself() else loaded()
    cluster = _CLUSTER.get() or (now.cluster if now else None)
    if cluster is None:
        _load(Loaded(graph, fitting(graph, None), graph.name, assumed=True))
        return "success", f"{file} is loaded, on a cluster that is assumed."
    problem = _misfit(graph, cluster, file)
    if problem:
        _GRAPH.set(graph)
        return "warning", f"{problem}. {file} waits for a cluster that fits."
    same = now is not None and now.cluster is cluster
    _load(Loaded(graph, cluster, graph.name, assumed=same and now is not None and now.assumed))
    where = "on the cluster that was loaded before" if same else "on your cluster"
    return "success", f"{file} is loaded, {where}."


def _try_cluster(cluster: Cluster, file: str) -> Line:
    """Put the graph that waits on a cluster, else the one that is loaded; or let the cluster wait."""
    graph, now = _GRAPH.get(), None if opened_by_itself() else loaded()
    target = graph or (now.graph if now else None)
    problem = "" if target is None else _misfit(target, cluster, target.name)
    if target is None or problem:
        _CLUSTER.set(cluster)
        waits = f"{file} is kept: now add the task graph that should run on it."
        if problem:
            waits = f"{problem}. {'The graph still waits' if graph else waits}"
        return "warning" if problem else "success", waits
    _load(Loaded(target, cluster, graph.name if graph or now is None else now.title))
    return "success", f"{file} is the cluster now."


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
    upload_lines().clear()
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
        upload_lines()["cluster"] = "error", str(error)
        return
    upload_lines().pop("cluster", None)
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
