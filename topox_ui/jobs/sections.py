"""The jobs, what may be chosen of them, and the views below the answer."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from topox_core.figures.jobs import lasting, pod_gantt, pod_view, stage_name
from topox_core.figures.palette import Theme
from topox_core.io.exports import TASK_COLUMNS, task_rows
from topox_core.model.cluster import DELAYS_MS, SPEEDS_GBPS
from topox_core.model.execution import Execution
from topox_core.schema.fields import fields_of
from topox_core.tdm.algorithms.catalogue import ALGORITHMS
from topox_core.tdm.mixes.samples import JOB_SAMPLES
from topox_core.tdm.model.as_execution import execution_of
from topox_core.tdm.model.bottleneck import link_view
from topox_core.tdm.model.jobs import Jobs, Reading
from topox_core.tdm.model.round import Cycle, Round
from topox_core.text.numbers import delay_label, plural
from topox_core.text.sentences import capitalised
from topox_core.workloads.samples import SAMPLES
from topox_ui.jobs.loading import take_upload
from topox_ui.jobs.solving import Rounds, token
from topox_ui.jobs.state import OFFERED, SECTIONS, SOURCES, JobsState, choices, reset_what_ifs
from topox_ui.jobs.study import study
from topox_ui.jobs.views import how_found, job_table, links, pod_groups, view_of
from topox_ui.shell.charts import chart
from topox_ui.shell.page import chart_title, escape, quiet
from topox_ui.state.address import keep_address
from topox_ui.state.widgets import control, menu, number, pick, slide, switch

JOBS = (16, 32, 64, 128, 256, 512, 1024)
CONTEXTS = tuple(1024 * 2**k for k in range(8))
PORTS = (2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20, 24, 32, 48, 64)
FAMILIES = {
    "paper": "The paper’s own.",
    "baseline": "To compare with.",
    "exact": "Proves its answer.",
    "beyond": "Not in the paper: added here.",
}


def pick_source() -> None:
    """Draw where the jobs come from."""
    with st.sidebar:
        st.divider()
        st.html('<p class="side">Jobs</p>')
        source = menu("Jobs from", JobsState, "source", SOURCES, label_visibility="collapsed")
        if source == "sample":
            # A sample's title up to its colon: all that the sidebar has room for.
            titles = {name: one.title.split(":")[0] for name, one in JOB_SAMPLES.items()}
            name = menu("Sample", JobsState, "sample", titles, label_visibility="collapsed")
            quiet(f"{escape(JOB_SAMPLES[name].see)}")
        elif source == "generator":
            _generator()
        elif source == "graphs":
            control(
                "multiselect",
                "Task graphs",
                JobsState,
                "graphs",
                options=SAMPLES,
                help="Each graph becomes a job: what it computes is its training, what it sends its traffic.",
            )
            slide("Copies of each", JobsState, "copies", (1, 2, 3, 4, 6, 8))
        else:
            st.file_uploader(
                "Jobs: a .jobs.json file, may be gzipped",
                key="up_jobs",
                on_change=take_upload,
                max_upload_size=50,
            )


def _generator() -> None:
    quiet("256 pods in 32 groups of 8, Llama 3 models of Table III, placed by section IV.B.")
    slide(
        "Number of jobs",
        JobsState,
        "jobs",
        JOBS,
        words=lambda v: f"{v:,}",
        help="Models, collectives and parallel degrees are drawn at random.",
    )
    slide(
        "Context length",
        JobsState,
        "context",
        CONTEXTS,
        words=lambda v: f"{v / 1024:g}k",
        help="Tokens of a unit in one iteration: training time grows with it.",
    )
    number("Seed", JobsState, "seed", 0, 1_000_000, step=1)


def what_ifs(jobs: Jobs) -> None:
    """Draw what may be changed about the network of the jobs, and who shares it."""
    now, network = choices(), jobs.network
    with st.sidebar:
        st.divider()
        st.html('<p class="side">What if</p>')
        slide(
            "Ports per pod",
            JobsState,
            "ports",
            PORTS,
            value=network.ports_per_pod if now.ports is None else now.ports,
            help=f"A link takes one port at both ends; {2 * (network.pods_per_group - 1)} reach from every pod to every other "
            "of its group and back.",
        )
        slide(
            "Port speed",
            JobsState,
            "port_gbps",
            SPEEDS_GBPS,
            value=network.port_gbps if now.port_gbps is None else now.port_gbps,
            words=lambda v: f"{v:g}G",
            help="Gigabits a second of one link; the way into a pod keeps its share of all of them.",
        )
        delay_ms = now.reconfiguration_ms
        slide(
            "Reconfiguration delay",
            JobsState,
            "reconfiguration_ms",
            DELAYS_MS,
            value=network.reconfiguration_ms if delay_ms is None else delay_ms,
            words=delay_label,
            help="All optical switches change at once between stages.",
        )
        entry = ALGORITHMS[now.algorithm]
        menu(
            "Method, beside hill climbing",
            JobsState,
            "algorithm",
            {name: ALGORITHMS[name].title for name in OFFERED},
            help=entry.explanation,
        )
        extends = (
            ""
            if entry.extends is None
            else f" Never longer than {ALGORITHMS[entry.extends].title.lower()}."
        )
        quiet(f"{escape(FAMILIES[entry.family])}{escape(extends)}")
        with st.expander("What it does", key="jobs_algorithm", type="compact"):
            quiet(f"{escape(entry.explanation)}")
        with st.expander("How the paper is read", key="jobs_reading", type="compact"):
            quiet(
                "Tang, Chen and Zhu, “Scheduling Multiple AI models in Optical Data Center Networks”, "
                "is a draft without results. Where it can be read in two ways:"
            )
            for name, field in fields_of(Reading).items():
                switch(field.title, JobsState, name, help=f"{capitalised(field.description)}.")
        reset("sidebar")


def reset(place: str = "here") -> None:
    """Offer to go back to the network as it came, where something about it was changed."""
    if choices().has_what_ifs:
        st.button(
            "Reset what-ifs",
            key=f"jobs_reset_{place}",
            on_click=reset_what_ifs,
            width="stretch" if place == "sidebar" else "content",
            help="Back to the network of the file or of the paper.",
        )


WHOLE = -1


@st.cache_resource(max_entries=12, show_spinner=False)
def _execution(key: str, _round: Round, pod_group: int) -> Execution:  # noqa: ARG001
    return execution_of(_round, pod_group)


def pods(rounds: Rounds, theme: Theme) -> None:
    """Offer one pod of the pod group in view on the common clock; drawn only when it is opened."""
    box = st.expander("One pod on the clock, port by port", key="jobs_pods", on_change="rerun")
    if box.open:
        with box:
            _pod(rounds, theme)


@st.fragment
def _pod(rounds: Rounds, theme: Theme) -> None:
    """Draw the Gantt chart of one pod; its controls redraw nothing else."""
    best = rounds.best
    now = choices()
    shown = view_of(best, now)
    members = best.jobs.of_group(shown.pod_group)
    cycle = best.cycle_of(shown.pod_group)
    execution = _execution(token(rounds.case, best), best, shown.pod_group)
    title, left, right = st.columns([2, 0.6, 2], vertical_alignment="bottom")
    with title:
        chart_title(
            f"One pod of pod group {shown.pod_group}",
            "Its jobs, then its ports; in a port’s bar: the pod at the other end. Dotted: all wait",
        )
    everyone = {p: f"pod {p}" for p in range(best.jobs.network.pods_per_group)}
    busiest = int(link_view(best, shown.pod_group, shown.group, shown.way).ports.argmax())
    pod = menu(
        "Pod",
        JobsState,
        "pod",
        everyone,
        value=now.pod if now.pod in everyone else busiest,
        at=left,
        label_visibility="collapsed",
    )
    window = _window(cycle, right)
    keep_address()
    view = pod_view(execution, pod, [best.jobs.jobs[n].id for n in members])
    if not len(view.bars):
        quiet(f"No job of this pod group has anything in pod {pod}.")
        return
    chart(
        pod_gantt(view, window, theme),
        "pod_gantt",
        f"Pod {pod} of pod group {shown.pod_group} in a round of {lasting(cycle.round_s)}: "
        f"{plural(len(view.lanes.jobs), 'job')}, {plural(len(view.lanes.ports), 'port')} in use. The table has every task.",
        lambda: _tasks(execution, pod),
        "Every task of this pod",
    )


def _window(cycle: Cycle, place: st.delta_generator.DeltaGenerator) -> tuple[float, float]:
    """Draw which stage fills the axis; return its begin and end in ms."""
    stages = {n: phase for n, phase in enumerate(cycle.phases) if phase.end_s > phase.start_s}
    words = {n: stage_name(one.group, one.way) for n, one in stages.items()}
    stage = pick(
        "Time",
        JobsState,
        "pod_stage",
        {WHOLE: "whole round", **words},
        at=place,
        label_visibility="collapsed",
    )
    if stage == WHOLE:
        return 0.0, 1000 * cycle.round_s
    return 1000 * stages[stage].start_s, 1000 * stages[stage].end_s


def _tasks(execution: Execution, pod: int) -> pd.DataFrame:
    rows = pd.DataFrame(task_rows(execution), columns=list(TASK_COLUMNS))
    return rows[
        (rows["server"] == pod) | (rows["source"] == pod) | (rows["destination"] == pod)
    ].drop(columns=["device", "switch", "critical"])


def section(rounds: Rounds, now: JobsState, theme: Theme) -> None:
    """Draw the choice of a section, and that section."""
    several = rounds.best.jobs.network.pod_groups > 1
    have = {name: words for name, words in SECTIONS.items() if several or name != "groups"}
    see = pick("Look closer", JobsState, "see", have, label_visibility="collapsed")
    if see == "groups" and several:
        pod_groups(rounds, theme)
    elif see == "search":
        how_found(rounds, theme)
    elif see == "study":
        study(now, theme)
    elif see == "jobs":
        job_table(rounds)
    else:
        links(rounds, now, theme)
        pods(rounds, theme)
