"""What is loaded, in figures: tasks, transfers, bytes, critical path."""

from collections import Counter, defaultdict
from contextlib import suppress

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from topox_core.errors import InputError
from topox_core.fabrics.run import JobRequest
from topox_core.figures.iteration.facts import (
    bytes_by_parallelism,
    pieces_bars,
    tasks_by_kind,
    time_by_kind,
)
from topox_core.figures.palette import KIND_COLOURS, Theme, parallelism_colour, parallelism_word
from topox_core.io.cluster_file import dump_cluster
from topox_core.io.task_graph_file import dump_graph_csv, dump_graph_json
from topox_core.model.facts import GraphSummary, facts
from topox_core.model.task_graph import COMPUTE_KINDS
from topox_core.schedule.bounds.open_bound import least_chain
from topox_core.text.numbers import percent, plural, size, time
from topox_core.training.iteration import iteration, pieces
from topox_core.training.job import dump_job
from topox_core.training.measured.validation import trust
from topox_ui.answers.other_times import schedule_of_loaded
from topox_ui.answers.solving import job_of
from topox_ui.answers.verdicts import does_it_pay, verdict_line
from topox_ui.runs.owner import once
from topox_ui.shell.charts import chart, chart_title, escape, kpis, quiet, show_input_errors
from topox_ui.shell.downloads import download_menu, job_links, stem
from topox_ui.shell.menu import job_name, page_link
from topox_ui.state.loading import Loaded, cluster_words, loaded_job, scenario

# Why a schedule takes another time than the closed form, by whether exchanges of a microbatch overlap another's computing.
AGAINST_SCHEDULE = {
    False: "A schedule on circuits can take longer: there transfers wait for ports",
    True: "Here GPUs wait for every exchange of tokens; a schedule computes another microbatch meanwhile, and can be shorter",
}
EVENLY = ", as if tokens were spread evenly over experts"
# Length in ms and ids of the critical path.
Path = tuple[float, tuple[str, ...]]


def finding(opened: Loaded) -> str:
    """Return whether switching pays for what is loaded; empty until it is known, and where the input has a mistake."""
    with suppress(InputError):
        job = job_of(opened, scenario())
        # At a delay that was set elsewhere there may be no plan yet: then the page is drawn again.
        return does_it_pay(job) if schedule_of_loaded(soon=True) else ""
    return ""


def job_section(opened: Loaded, top: DeltaGenerator, theme: Theme) -> None:
    """Draw what is loaded and whether switching pays for it at the top of the page, and here what it is made of."""
    head = top.container(key="job_section")
    with head, st.container(horizontal=True, vertical_alignment="center"):
        assumed = ", assumed" if opened.assumed else ""
        words = f"{cluster_words(opened.cluster)}{assumed}"
        chart_title(f"Loaded: {job_name(opened)}", words, beside=True)
        with st.container(key="see", width="content"):
            page_link("Schedule", "**See the schedule**")
        take_away(opened)
    with show_input_errors():
        job = job_of(opened, scenario())
        path = once(
            "critical path",
            job.key,
            lambda: least_chain(job.task_graph, job.cluster, job.by_rules.settings),
        )
        with head:
            verdict_line(job)
            summary(opened, path)
        _pieces(theme)
        fact_charts(opened, job, path, theme)


def _pieces(theme: Theme) -> None:
    """Draw what the iteration of a training job consists of, in closed form."""
    job = loaded_job()
    if job is None:
        return
    one = iteration(job)
    found = pieces(one)
    chart(
        pieces_bars(found, theme),
        "pieces",
        "Pieces of the iteration: " + "; ".join(f"{p.name} {time(p.exposed_ms)}" for p in found),
        lambda: {
            "piece": [p.name for p in found],
            "adds (ms)": [p.exposed_ms for p in found],
            "hidden (ms)": [p.hidden_ms for p in found],
            "bytes per call": [p.size_bytes for p in found],
            "calls": [p.calls for p in found],
            "GPUs": [p.group.size if p.group else 1 for p in found],
        },
        title=(
            "Where the time of an iteration goes",
            f"in closed form, on the busiest rank{EVENLY * (job.plan.skew > 0)}: {time(one.total_ms)}, "
            f"{percent(one.utilisation)} of the GPUs' peak (MFU). "
            + AGAINST_SCHEDULE[job.schedule.overlap_exchanges],
        ),
    )
    quiet(f"{escape(job.machine.title)}: {trust(job.machine)}")
    job_links()


def facts_of(loaded: Loaded) -> GraphSummary:
    """Return the facts of what is loaded, computed once."""
    graph, cluster = loaded.graph, loaded.cluster
    key = f"{graph.digest}|{cluster.digest}|{(graph.name, cluster.name)!r}"
    return once("facts", key, lambda: facts(graph, cluster))


def summary(loaded: Loaded, path: Path) -> None:
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
            else "the file gives durations only",
        ),
        (
            "Longest chain",
            time(path[0]),
            f"{plural(len(path[1]), 'task')} in sequence, none waiting for a port",
        ),
        (
            "Busiest device",
            time(facts.compute_ms_max),
            f"mean of {plural(facts.devices, 'device')}: {time(facts.compute_ms_mean)}",
        ),
    )


def fact_charts(loaded: Loaded, job: JobRequest, path: Path, theme: Theme) -> None:
    """Draw what the graph is made of."""
    facts = facts_of(loaded)
    left, middle, right = st.columns(3, gap="medium")
    with left:
        chart(
            tasks_by_kind(facts.tasks_by_kind, theme),
            "kinds",
            f"Tasks by kind: {facts.tasks_by_kind}",
            lambda: {
                "kind": list(facts.tasks_by_kind),
                "tasks": list(facts.tasks_by_kind.values()),
            },
            title=("Tasks by kind", "as in the file"),
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
            quiet("The file gives transfers by duration, so their bytes are unknown.")
    with right:
        chart_title(
            "Longest chain",
            f"its {time(path[0])} by kind of work, transfers on all of a server's "
            f"{plural(job.cluster.ports_per_server, 'port')}; a schedule takes longer where other tasks hold a device or a port",
        )
        spent = path_times(loaded, path, theme)
        if spent:
            chart(
                time_by_kind(spent, theme),
                "path",
                f"Longest chain by kind of work: {spent}",
                lambda: {"task": list(path[1])},
                "Tasks of the chain",
            )


def path_times(loaded: Loaded, path: Path, theme: Theme) -> dict[str, tuple[float, str]]:
    """Return what the critical path spends on each kind of compute, and on the network: words -> (ms, colour)."""
    tasks, position = loaded.graph.tasks, loaded.graph.position
    compute_ms, uses = defaultdict[str, float](float), Counter[str]()
    for name in path[1]:
        # A transfer that a collective was lowered to is named after it: ring/r0/3.
        while name not in position and "/" in name:
            name = name.rpartition("/")[0]
        if name in position:
            task = tasks[position[name]]
            if task.kind in COMPUTE_KINDS:
                compute_ms[task.kind] += task.duration_ms or 0.0
            else:
                uses[task.parallelism or ""] += 1
    spent = {kind: (ms, KIND_COLOURS.get(kind, theme.muted)) for kind, ms in compute_ms.items()}
    rest_ms = path[0] - sum(compute_ms.values())
    if rest_ms > 1e-9:
        use = max(uses, key=uses.__getitem__, default="")
        words = parallelism_word(use) if len(uses) == 1 else "on the network"
        spent[words] = (rest_ms, parallelism_colour(use))
    return spent


def take_away(loaded: Loaded) -> None:
    """Offer the loaded files."""
    graph, cluster, job = loaded.graph, loaded.cluster, loaded_job()
    download_menu(
        stem(loaded.title),
        [
            *([("Job (JSON)", ".job.json", lambda: dump_job(job))] if job else []),
            ("Task graph (JSON)", ".taskgraph.json", lambda: dump_graph_json(graph)),
            ("Task graph (CSV)", ".csv", lambda: dump_graph_csv(graph)),
            ("Cluster (JSON)", ".cluster.json", lambda: dump_cluster(cluster)),
        ],
    )
