"""The paper's figures beside those here, what a rank moves, which parallelism suits a model; and what can be taken away."""

from collections import Counter
from dataclasses import replace
from functools import partial

import streamlit as st

from topox_core.errors import InputError
from topox_core.io.task_graph_file import dump_graph_json
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph
from topox_core.rails.advice import TABLE_1, TABLE_2, advise, byte_classes
from topox_core.rails.builder import as_task_graph
from topox_core.rails.delay import BOTH, UNDISTURBED, Question, answer
from topox_core.rails.iteration import Rail, RailRun
from topox_core.rails.measured import WINDOWS
from topox_core.rails.window_lengths import dump_windows_csv, dump_windows_json, mib, share_above
from topox_core.text.numbers import capitalised, percent, time
from topox_core.training.job import Job, dump_job
from topox_core.training.plan import REDUCTIONS
from topox_ui.rails.delay import BESIDE, authors_job, curves_of, measured_curves
from topox_ui.rails.state import CONTROLS, JOB, UPLOAD, RailsState, preset_of
from topox_ui.rails.subject import Simulated, Subject, known
from topox_ui.shell.charts import (
    chart_title,
    escape,
    frame,
    html_table,
    quiet,
    show_error,
    table_under,
)
from topox_ui.shell.downloads import (
    Figures,
    File,
    offer_task_graph,
    result_json,
    stem,
    take_away,
    use_job,
)
from topox_ui.state.widgets import number

KEPT_HERE = "A link can carry a preset or a sample with every choice. Your own windows stay on this machine: send the file."


def bytes_section(job: Job) -> None:
    """Draw the byte classes of every stage that differs."""
    last = job.plan.pipeline - 1
    frame(
        [
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
            for stage in sorted({0, min(1, last), last})
            for one in byte_classes(job, stage)
        ],
        column_config={
            name: st.column_config.NumberColumn(format="localized")
            for name in ("counted (bytes)", "tensors (bytes)", "sent (bytes)")
        },
        title=(
            "Bytes of one rank on its rail",
            "each kind of traffic of one pass, counted in its program. The paper's preset has "
            "3,829 MiB reduce-scatter, 957 MiB all-gather, messages of 64 MiB",
        ),
    )
    quiet(
        "MiB are 2²⁰ bytes, which the paper writes as MB. The paper counts a gather by the shard of one rank and "
        "everything else by the whole tensor. Sent: what one rank sends on rings, of an all-to-all the pieces that it forwards "
        "as well."
    )


def advice_section(job: Job | None) -> None:
    """Draw Tables 1 and 2 of the paper as an adviser."""
    left, right = st.columns([1, 1.5], gap="medium")
    with left:
        chart_title("Parallelism by number of GPUs", "rules of thumb (Table 1 of the paper)")
        billions, gpus = st.columns(2)
        parameters = job.shape.parameters / 1e9 if job else 70.0
        size = number(
            RailsState,
            "billions",
            label="Parameters, 10^9",
            value=RailsState.now().billions or parameters,
            at=billions,
            step=1.0,
            format="%.4g",
        )
        many = number(
            RailsState,
            "advice_gpus",
            label="GPUs",
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
        frame(
            {
                "": [row.title for row in TABLE_2],
                "splits the memory of": [row.memory for row in TABLE_2],
                "operation": [row.collective for row in TABLE_2],
                "how often": [row.frequency for row in TABLE_2],
            },
            title=(
                "Communication of each parallelism",
                "Table 2 of the paper; tensor parallelism stays inside the server",
            ),
        )
        if job is not None:
            titles = {row.key: row.title for row in TABLE_2}
            mine = Counter[str]()
            for one in byte_classes(job):
                mine[titles[one.parallelism]] += one.iteration_bytes
            words = "; ".join(f"{title} {mib(value)}" for title, value in mine.items())
            quiet(f"Here, rank 0 in an iteration: {words or 'nothing on the rail'}.")


def files_of_rail(subject: Subject, figures: Figures) -> None:
    """Offer files, the link, and the iteration as the scenario of the other pages."""
    job, windows = subject.training, subject.pattern.windows
    run = known(subject.switched()) if isinstance(subject, Simulated) else None
    files: list[File] = [
        (
            "Windows (JSON)",
            ".windows.json",
            lambda: dump_windows_json(subject.title, subject.pattern.iteration_ms, windows),
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
    return tasks, replace(cluster, reconfiguration_ms=RailsState.now().switch_ms)


# What the paper's first version says of its own job: windows above 1 ms (Fig. 4a), and at 100 ms
# (Fig. 8), as shares.
ABOVE_1_MS, AT_MS = "> 75\u00a0%", 100.0
PUBLISHED = {"on_demand": 0.065, "provisioned": 0.035}
ORDERS = {"layer": "layer by layer", "pass": "after each pass", "last": "after the last"}


def source_words(subject: Subject) -> str:
    """Return where a job or a list of windows is from, in HTML; empty where nobody said."""
    if subject.note:
        return f"{escape(capitalised(subject.note))}."
    known = preset_of(RailsState.now().runs)
    if known is None:
        return ""
    of = "yours" if RailsState.now().runs == JOB else escape(known.source)
    changed = "" if subject.training == known else " You changed its degrees on the left."
    return f"Job: {of}.{changed}"


def against_the_paper(subject: Subject) -> None:
    """Put here, paper and later measurement side by side, of the authors' own job; say that the match was selected, and why."""
    job = subject.training
    if job is None or not authors_job(subject):
        return
    windows, curves = subject.pattern.windows, curves_of(subject)
    measured = sum(one.length_ms > 1 for one in WINDOWS) / len(WINDOWS)
    above = (percent(share_above(windows, 1.0)), ABOVE_1_MS, percent(measured))
    rows = [("windows above 1\u00a0ms", *above)]
    theirs = {one.control: one.overhead[one.delay_ms.index(AT_MS)] for one in measured_curves()}
    for control, words in CONTROLS.items():
        at = dict(zip(curves[control].delay_ms, curves[control].overhead, strict=True))
        here = percent(at[AT_MS]) if AT_MS in at else "–"
        published, later = percent(PUBLISHED[control]), percent(theirs[control])
        rows.append((f"{time(AT_MS)}, {words}", here, published, later))
    st.html(BESIDE + html_table(("", "here", "paper", "measured later"), rows, "beside ours"))
    longest = max(windows, key=lambda one: one.length_ms)
    quiet(
        "<b>A selected match</b>: the paper does not print in which order FSDP sends; of six orders this "
        "one matches its Table 2. The share above 1\u00a0ms rests on an assumption, the "
        f"{job.machine.host_ms:g}\u00a0ms that the host takes to launch a pass; computing is scaled until the iteration lasts the "
        f"measured {time(job.schedule.iteration_ms or 0.0)}. On average the longest windows come before the reduce-scatter, as "
        f"published; the longest single one, {time(longest.length_ms)}, comes before a {longest.operation.replace('_', ' ')}."
    )
    table_under("orders", lambda: _orders(repr(job), job), "Results of the other orders")


@st.cache_data(max_entries=4, show_spinner="Simulating six orders")
def _orders(digest: str, _job: Job) -> list[dict[str, object]]:  # noqa: ARG001
    """Return what every order of FSDP's traffic gives: windows above 1 ms, with and without the host, overhead at 100 ms."""
    rail, rows = Rail(nic_gbps=_job.machine.network_gbps), []
    for regather in (False, True):
        for reduce in REDUCTIONS:
            job = _job.changed(regather=regather, reduce=reduce)
            base, prompt = (
                answer(Question(UNDISTURBED, job, rail)),
                answer(Question(UNDISTURBED, job.changed(host_ms=0.0), rail)),
            )
            both = answer(Question(BOTH, job, rail, AT_MS))
            on_demand, provisioned = (100 * (value / base.iteration_ms - 1) for value in both)
            rows.append(
                {
                    "gathers again": "yes" if regather else "no",
                    "scatters": ORDERS[reduce] + (" (here)" if job == _job else ""),
                    "above 1 ms (%)": round(100 * share_above(base.windows, 1.0), 2),
                    "host 0 ms (%)": round(100 * share_above(prompt.windows, 1.0), 2),
                    "on demand (%)": round(on_demand, 2),
                    "provisioned (%)": round(provisioned, 2),
                }
            )
    return rows
