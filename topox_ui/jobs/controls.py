"""The sidebar of Sharing: where the jobs come from, what if the network were another, who shares it and how it is read."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from topox_core.model.cluster import DELAYS_MS, SPEEDS_GBPS
from topox_core.schema.fields import fields_of
from topox_core.tdm.algorithms.catalogue import ALGORITHMS
from topox_core.tdm.mixes.samples import JOB_SAMPLES
from topox_core.tdm.model.jobs import Jobs, Reading
from topox_core.text.numbers import delay_label
from topox_core.text.sentences import capitalised
from topox_core.workloads.samples import SAMPLES
from topox_ui.jobs.loading import take_upload
from topox_ui.jobs.state import OFFERED, SOURCES, JobsState, reset_what_ifs
from topox_ui.shell.page import escape, file_box, quiet
from topox_ui.state.widgets import control, menu, number, sidebar_part, slide, switch

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
    with sidebar_part("Jobs"):
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
                options=tuple(SAMPLES),
                help="Each graph becomes a job: what it computes is its training, what it sends its traffic.",
            )
            slide("Copies of each", JobsState, "copies", (1, 2, 3, 4, 6, 8))
        else:
            file_box(
                "Jobs: a .jobs.json file, may be gzipped",
                "up_jobs",
                take_upload,
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
    now = JobsState.now()
    network = replace(jobs.network, **now.network)
    with sidebar_part("What if"):
        slide(
            "Ports per pod",
            JobsState,
            "ports",
            PORTS,
            value=network.ports_per_pod,
            help=f"A link uses one port at both ends; {2 * (network.pods_per_group - 1)} ports suffice for links from every pod to "
            "every other pod of its group and back.",
        )
        slide(
            "Port speed",
            JobsState,
            "port_gbps",
            SPEEDS_GBPS,
            value=network.port_gbps,
            words=lambda v: f"{v:g}G",
            help="Gigabits per second of one link. The link into a pod changes in proportion.",
        )
        slide(
            "Reconfiguration delay",
            JobsState,
            "reconfiguration_ms",
            DELAYS_MS,
            value=network.reconfiguration_ms,
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
    if JobsState.now().network:
        st.button(
            "Reset what-ifs",
            key=f"jobs_reset_{place}",
            on_click=reset_what_ifs,
            width="stretch" if place == "sidebar" else "content",
            help="Back to the network of the file or of the paper.",
        )
