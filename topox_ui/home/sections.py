"""The home page's parts: sample cards, uploads, generated workloads, facts of what is loaded."""

from __future__ import annotations

from typing import Any

import streamlit as st

from topox_core.errors import InputError
from topox_core.figures.facts import bytes_by_parallelism, tasks_by_kind, time_by_kind
from topox_core.figures.palette import Theme, parallelism_colour, parallelism_word
from topox_core.io.cluster_file import dump_cluster
from topox_core.io.task_graph_file import dump_graph_csv, dump_graph_json
from topox_core.model.facts import Facts, facts
from topox_core.model.task_graph import COMPUTE_KINDS, Task
from topox_core.text.foreign import as_text
from topox_core.text.numbers import plural, size, time
from topox_core.workloads.catalogue import WORKLOADS, Parameter
from topox_core.workloads.samples import SAMPLES
from topox_ui.shell.charts import chart, kpis, show_error
from topox_ui.shell.downloads import download_menu, stem
from topox_ui.shell.page import chart_title, escape, quiet
from topox_ui.state.loading import (
    Loaded,
    adopt,
    cluster_words,
    fitting,
    loaded,
    open_source,
    read_upload,
    scenario,
)
from topox_ui.state.notices import notify
from topox_ui.state.scenario import Scenario

CARDS_A_ROW = 4


def cards(theme: Theme) -> None:
    """Draw the samples, the one in use marked."""
    names = list(SAMPLES)
    now = scenario()
    for begin in range(0, len(names), CARDS_A_ROW):
        for column, name in zip(
            st.columns(CARDS_A_ROW), names[begin : begin + CARDS_A_ROW], strict=False
        ):
            sample = SAMPLES[name]
            in_use = now.source == "sample" and now.name == name
            with column.container(border=True, key=f"card_{name}", height="stretch"):
                st.button(
                    sample.title,
                    key=f"open_{name}",
                    on_click=open_source,
                    args=(Scenario(source="sample", name=name),),
                    type="tertiary",
                )
                proved = (
                    ' · <span class="good">proved optimum</span>'
                    if sample.optimum_ms is not None
                    else ""
                )
                st.html(
                    f'<p class="card"><span>{plural(sample.tasks, "task")} · {plural(sample.servers, "server")}{proved}</span>'
                    f"{escape(sample.see)}</p>"
                )
            if in_use:
                st.html(
                    f"<style>.st-key-card_{name} {{ border-color: {theme.primary}; "
                    f"box-shadow: inset 3px 0 0 {theme.primary}; }}</style>"
                )


def welcome() -> None:
    """Say in three short paragraphs what the pages do, while nothing is loaded."""
    texts = (
        (
            "Slide",
            "Port speed, ports, switches, slot, reconfiguration delay: every move answers at once with a schedule, a lower bound "
            "and what binds it.",
        ),
        (
            "Prove",
            "An exact engine works beside the page, from the schedule you see, until the gap is closed or you stop it. An "
            "independent checker goes through the paper's equations.",
        ),
        (
            "Look",
            "Gantt chart and critical path, circuits slot by slot, and the cross-connects that each switch must make. "
            "Everything downloads; a link restores what you see.",
        ),
    )
    for column, (title, text) in zip(st.columns(3, gap="medium"), texts, strict=True):
        column.html(
            f'<p class="chart">{title}</p><p class="quiet" style="margin-top:.2rem;max-width:26rem">{text}</p>'
        )


def uploads() -> None:
    """Draw the two uploaders; a file that cannot be used costs nothing but a line."""
    left, right = st.columns(2)
    left.file_uploader(
        "**Task graph**: JSON, CSV or FlexNet .fbuf, each also gzipped",
        key="up_graph",
        on_change=_uploaded,
        args=("graph",),
    )
    right.file_uploader(
        "**Cluster**: a .cluster.json file",
        key="up_cluster",
        on_change=_uploaded,
        args=("cluster",),
    )
    if "upload_error" in st.session_state:
        show_error(st.session_state["upload_error"])
        if loaded() is not None:
            st.caption(f"Still loaded: {as_text(loaded().title, 'markdown')}.")  # type: ignore[union-attr]
    misfit = st.session_state.get("misfit")
    if misfit is not None:
        now = loaded()
        bigger = fitting(misfit, now.cluster if now else st.session_state.get("waiting_cluster"))
        st.button(
            f"Use a cluster that fits: {cluster_words(bigger)}",
            key="use_fitting",
            type="primary",
            on_click=_use_fitting,
        )
    quiet(
        "Files stay in this session's memory and are gone when the tab closes. A graph alone keeps the cluster "
        "that is loaded, a cluster alone keeps the graph."
    )


def _uploaded(what: str) -> None:
    file = st.session_state[f"up_{what}"]
    for key in ("upload_error", "misfit"):
        st.session_state.pop(key, None)
    if file is None:
        return
    try:
        loaded = read_upload(file.getvalue(), file.name, what)
    except InputError as error:
        st.session_state["upload_error"] = str(error)
        return
    if loaded is None:
        notify("info", f"{file.name} is kept: now add the task graph that should run on it.")
        return
    adopt(loaded)


def _use_fitting() -> None:
    graph, now = st.session_state.pop("misfit"), loaded()
    st.session_state.pop("upload_error", None)
    adopt(
        Loaded(
            graph,
            fitting(graph, now.cluster if now else st.session_state.get("waiting_cluster")),
            graph.name,
        )
    )


def workloads() -> None:
    """Draw the generators with their parameters."""
    left, right = st.columns([1, 2.2], gap="medium")
    name = left.selectbox(
        "Workload", list(WORKLOADS), format_func=lambda n: WORKLOADS[n].title, key="workload"
    )
    workload = WORKLOADS[name]
    left.html(
        f'<p class="quiet">{escape(workload.meaning)}<br><br>Numbers: {escape(workload.source)}</p>'
    )
    with right.form(f"form_{name}", border=False):
        columns = st.columns(3)
        for i, parameter in enumerate(workload.parameters):
            with columns[i % 3]:
                _parameter(name, parameter)
        st.form_submit_button("Generate", type="primary", on_click=_generate, args=(name,))


def _parameter(workload: str, parameter: Parameter) -> None:
    key = f"p_{workload}_{parameter.key}"
    bare = parameter.key
    for suffix in ("_gbps", "_bytes", "_ms", "_mb", "_gb"):
        bare = bare.removesuffix(suffix)
    label = bare.replace("_", " ")
    label = label[:1].upper() + label[1:] + (f" ({parameter.unit})" if parameter.unit else "")
    if parameter.choices:
        options = list(parameter.choices)
        st.selectbox(
            label, options, index=options.index(parameter.default), key=key, help=parameter.meaning
        )  # type: ignore[arg-type]
        return
    whole = isinstance(parameter.default, int)
    limits: dict[str, Any] = {"min_value": parameter.least, "step": 1.0}
    if parameter.most != float("inf"):
        limits["max_value"] = parameter.most
    limits = {k: int(v) if whole else float(v) for k, v in limits.items()}
    st.number_input(
        label,
        value=parameter.default,
        key=key,
        help=parameter.meaning,
        format=None if whole else "%g",
        **limits,
    )


def _generate(name: str) -> None:
    changed = tuple(
        (p.key, str(st.session_state[f"p_{name}_{p.key}"]))
        for p in WORKLOADS[name].parameters
        if st.session_state.get(f"p_{name}_{p.key}", p.default) != p.default
    )
    open_source(Scenario(source="workload", name=name, parameters=changed))


@st.cache_resource(max_entries=16, show_spinner=False)
def _facts(key: str, _loaded: Loaded) -> Facts:  # noqa: ARG001 (the key is what the cache goes by)
    return facts(_loaded.graph, _loaded.cluster)


def facts_of(loaded: Loaded) -> Facts:
    """Return the facts of what is loaded, computed once."""
    names = (loaded.graph.name, loaded.cluster.name)
    return _facts(f"{loaded.graph.digest}|{loaded.cluster.digest}|{names!r}", loaded)


def summary(loaded: Loaded) -> None:
    """Draw what was loaded and checked as KPIs."""
    facts = facts_of(loaded)
    collectives = facts.tasks - sum(
        n for kind, n in facts.tasks_by_kind.items() if kind in (*COMPUTE_KINDS, "barrier")
    )
    kpis(
        (
            "Tasks",
            f"{facts.tasks:,}",
            f"{plural(facts.dependencies, 'dependency', 'dependencies')}, no cycle",
        ),
        ("Transfers", f"{facts.transfers:,}", f"from {plural(collectives, 'network task')}"),
        (
            "Bytes to move",
            size(facts.bytes_total) if facts.bytes_total else "–",
            f"most leave S{facts.busiest_server}: {size(facts.busiest_out_bytes)}"
            if facts.busiest_server >= 0
            else "none by size",
        ),
        (
            "Critical path",
            time(facts.critical_path_ms),
            f"{plural(len(facts.critical_path), 'task')} in line",
        ),
        (
            "Busiest device",
            time(facts.compute_ms_max),
            f"mean of {plural(facts.devices, 'device')}: {time(facts.compute_ms_mean)}",
        ),
    )


def fact_charts(loaded: Loaded, theme: Theme) -> None:
    """Draw what the graph is made of."""
    facts = facts_of(loaded)
    left, middle, right = st.columns(3, gap="medium")
    with left:
        chart_title("Tasks by kind", "as in the file")
        chart(
            tasks_by_kind(facts.tasks_by_kind, theme),
            "kinds",
            f"Tasks by kind: {facts.tasks_by_kind}",
            lambda: {
                "kind": list(facts.tasks_by_kind),
                "tasks": list(facts.tasks_by_kind.values()),
            },
        )
    with middle:
        chart_title("Bytes by parallelism", "over the network, collectives lowered to transfers")
        sizes = {use: value for use, value in facts.bytes_by_parallelism.items() if value}
        if sizes:
            chart(
                bytes_by_parallelism(sizes, theme),
                "bytes",
                f"Bytes by parallelism: {sizes}",
                lambda: {
                    "parallelism": [parallelism_word(use) for use in sizes],
                    "bytes": list(sizes.values()),
                },
            )
        else:
            quiet("No transfer is given by its size.")
    with right:
        chart_title("Critical path", f"where its {time(facts.critical_path_ms)} go")
        spent = path_times(loaded, facts, theme)
        if spent:
            chart(
                time_by_kind(spent, theme),
                "path",
                f"Critical path by kind of work: {spent}",
                lambda: {"task": list(facts.critical_path)},
                "Tasks on the path",
            )


def path_times(loaded: Loaded, facts: Facts, theme: Theme) -> dict[str, tuple[float, str]]:
    """Return what the critical path spends on each kind of compute, and on the network: words -> (ms, colour)."""
    from topox_core.figures.facts import KIND_COLOURS

    tasks, position = loaded.graph.tasks, loaded.graph.position
    spent: dict[str, tuple[float, str]] = {}
    rest = facts.critical_path_ms
    uses: list[str] = []
    for name in facts.critical_path:
        # A transfer that a collective was lowered to is named after it: ring/r0/3.
        while name not in position and "/" in name:
            name = name.rpartition("/")[0]
        task: Task | None = tasks[position[name]] if name in position else None
        if task is not None and task.kind in COMPUTE_KINDS:
            before = spent.get(task.kind, (0.0, ""))[0]
            spent[task.kind] = (
                before + (task.duration_ms or 0.0),
                KIND_COLOURS.get(task.kind, theme.muted),
            )
            rest -= task.duration_ms or 0.0
        elif task is not None:
            uses.append(task.parallelism or "")
    if rest > 1e-9:
        use = max(set(uses), key=uses.count) if uses else ""
        spent["on the network" if len(set(uses)) != 1 else parallelism_word(use)] = (
            rest,
            parallelism_colour(use),
        )
    return spent


def take_away(loaded: Loaded) -> None:
    """Offer the loaded files."""
    graph, cluster = loaded.graph, loaded.cluster
    download_menu(
        stem(loaded.title),
        [
            ("Task graph (JSON)", ".taskgraph.json", lambda: dump_graph_json(graph)),
            ("Task graph (CSV)", ".csv", lambda: dump_graph_csv(graph)),
            ("Cluster (JSON)", ".cluster.json", lambda: dump_cluster(cluster)),
        ],
    )
