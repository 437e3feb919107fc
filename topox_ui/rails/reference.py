"""What a rank moves, class by class; which parallelism suits a model; files and the iteration for the other pages."""

from dataclasses import replace
from functools import partial

import streamlit as st

from topox_core.errors import InputError
from topox_core.io.task_graph_file import dump_graph_json
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph
from topox_core.rails.advice import TABLE_1, TABLE_2, advise, byte_classes
from topox_core.rails.builder import as_task_graph
from topox_core.rails.iteration import RailRun
from topox_core.rails.window_lengths import dump_windows_csv, dump_windows_json, mib
from topox_core.training.job import Job, dump_job
from topox_ui.rails.runs import known
from topox_ui.rails.state import UPLOAD, RailsState
from topox_ui.rails.subject import Pattern, Simulated, Subject
from topox_ui.shell.charts import chart_title, escape, frame, quiet, show_error
from topox_ui.shell.downloads import Figures, File, offer_task_graph, result_json, stem, take_away
from topox_ui.shell.training_job import use_job
from topox_ui.state.widgets import number

KEPT_HERE = "A link can carry a preset or a sample with every choice. Your own windows stay on this machine: send the file."


def bytes_section(job: Job) -> None:
    """Draw the byte classes of every stage that differs."""
    stages = (
        [0]
        if job.plan.pipeline == 1
        else [0, job.plan.pipeline - 1]
        if job.plan.pipeline == 2
        else [0, 1, job.plan.pipeline - 1]
    )
    rows = []
    for stage in stages:
        rows += [
            {
                "stage": stage,
                "traffic": one.parallelism,
                "operation": one.operation.replace("_", " "),
                "when": one.when,
                "calls a pass": one.calls,
                "passes": one.times,
                "as the paper counts": mib(one.counted_bytes),
                "counted (bytes)": one.counted_bytes,
                "tensors (bytes)": one.size_bytes,
                "sent (bytes)": one.wire_bytes,
            }
            for one in byte_classes(job, stage)
        ]
    chart_title(
        "Bytes of one rank on its rail",
        "each kind of traffic of one pass, counted in its program. The paper's preset has "
        "3,829 MiB reduce-scatter, 957 MiB all-gather, messages of 64 MiB",
    )
    frame(
        rows,
        column_config={
            name: st.column_config.NumberColumn(format="localized")
            for name in ("counted (bytes)", "tensors (bytes)", "sent (bytes)")
        },
    )
    quiet(
        "MiB are 2²⁰ bytes, which the paper writes as MB. The paper counts a gather by the shard of one rank and "
        "everything else by the whole tensor. Sent: what one rank sends on rings."
    )


def advice_section(job: Job | None) -> None:
    """Draw Tables 1 and 2 of the paper as an adviser."""
    left, right = st.columns([1, 1.5], gap="medium")
    with left:
        chart_title("Parallelism by number of GPUs", "rules of thumb (Table 1 of the paper)")
        billions, gpus = st.columns(2)
        parameters = job.shape.parameters / 1e9 if job else 70.0
        size = number(
            "Parameters, 10^9",
            RailsState,
            "billions",
            0.0,
            1e6,
            value=RailsState.now().billions or parameters,
            at=billions,
            step=1.0,
            format="%.4g",
        )
        many = number(
            "GPUs",
            RailsState,
            "advice_gpus",
            0,
            10_000_000,
            value=RailsState.now().advice_gpus or (job.plan.gpus if job else 1024),
            at=gpus,
            step=8,
        )
        try:
            advice = advise(size * 1e9, many)
            st.html(f'<p class="note">{escape(advice.note[0].upper() + advice.note[1:])}.</p>')
        except InputError as error:
            show_error(error)
        frame(
            {
                "model": [row.model for row in TABLE_1],
                "GPUs": [row.gpus for row in TABLE_1],
                "parallelism used": [" or ".join(row.strategies) for row in TABLE_1],
            }
        )
    with right:
        chart_title(
            "Communication of each parallelism",
            "Table 2 of the paper; tensor parallelism stays inside the server",
        )
        frame(
            {
                "": [row.title for row in TABLE_2],
                "splits the memory of": [row.memory for row in TABLE_2],
                "operation": [row.collective for row in TABLE_2],
                "how often": [row.frequency for row in TABLE_2],
            }
        )
        if job is not None:
            titles = {row.key: row.title for row in TABLE_2}
            mine: dict[str, float] = {}
            for one in byte_classes(job):
                title = titles[one.parallelism]
                mine[title] = mine.get(title, 0.0) + one.iteration_bytes
            words = "; ".join(f"{title} {mib(value)}" for title, value in mine.items())
            quiet(f"Here, rank 0 in an iteration: {words or 'nothing on the rail'}.")


def files_of_rail(subject: Subject, pattern: Pattern, figures: Figures) -> None:
    """Offer files, the link, and the iteration as the scenario of the other pages."""
    job = subject.training
    run = known(subject.switched()) if isinstance(subject, Simulated) else None
    windows = pattern.windows
    files: list[File] = [
        (
            "Windows (JSON)",
            ".windows.json",
            lambda: dump_windows_json(subject.title, pattern.iteration_ms, windows),
        ),
        ("Windows (CSV)", ".windows.csv", lambda: dump_windows_csv(windows)),
    ]
    if isinstance(run, RailRun):
        files.append(
            (
                "Run with its control plane (JSON)",
                ".rail-run.json",
                result_json(run.as_record, subject.inputs),
            )
        )
    if job is not None:
        files += [
            (
                "Task graph (JSON)",
                ".taskgraph.json",
                lambda: dump_graph_json(as_task_graph(job)[0]),
            ),
            ("Job (JSON)", ".job.json", lambda: dump_job(job)),
        ]
    take_away(
        f"rails-{stem(subject.title)[:50]}",
        files,
        figures,
        KEPT_HERE if RailsState.now().runs == UPLOAD else "",
        keep=None if job is None else partial(_use, job),
    )


def _use(job: Job) -> None:
    use_job("use_job", job)
    offer_task_graph(
        "use_rail",
        partial(_on_a_rail, job),
        "Load one rail of this job: the other pages then show this iteration.",
        " on one rail",
    )


def _on_a_rail(job: Job) -> tuple[TaskGraph, Cluster]:
    tasks, cluster = as_task_graph(job)
    return tasks, replace(cluster, reconfiguration_ms=RailsState.now().delay_ms)
