"""The Jobs page's sidebar: where the jobs come from, what if the network were another, who shares it and how it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import streamlit as st

from topox_core.tdm.algorithms.catalogue import ALGORITHMS
from topox_core.tdm.model.jobs import Jobs
from topox_core.workloads.samples import SAMPLES
from topox_ui.jobs.choices import OFFERED, SOURCES, Choices, choices, choose, chosen, widget
from topox_ui.jobs.loading import JOB_SAMPLES, take_upload
from topox_ui.shell.page import escape

JOBS = (16, 32, 64, 128, 256, 512, 1024)
CONTEXTS = tuple(1024 * 2**k for k in range(8))
PORTS = (2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20, 24, 32, 48, 64)
SPEEDS_GBPS = (25.0, 50.0, 100.0, 150.0, 200.0, 400.0, 800.0)
DELAYS_MS = (0.0, 0.01, 0.1, 0.5, 1.0, 10.0, 25.0, 100.0, 1000.0)
FAMILIES = {
    "paper": "The draft’s own.",
    "baseline": "To compare with.",
    "exact": "Proves its answer.",
    "beyond": "Beyond the draft.",
}
READING_WORDS = {
    "eq3_literal": (
        "Eq. 3 as printed",
        "A parameter-server job then trains in both stages of the other group, though it has only one iteration a round.",
    ),
    "physical_ring": (
        "Rings carry 2 (N − 1)/N",
        "What a ring all-reduce over N pods really carries on each arc; the draft counts the volume once.",
    ),
    "delay_inside": (
        "Switching counts as communication",
        "Section II.C: a stage is the longer of switching with communication and training. Algorithm 1 adds it to the stage.",
    ),
}


def pick_source() -> Choices:
    """Draw where the jobs come from; return what is chosen."""
    now = choices()
    with st.sidebar:
        st.divider()
        st.html('<p class="side">Jobs</p>')
        key = widget("source", now.source)
        st.selectbox(
            "Jobs from",
            list(SOURCES),
            format_func=SOURCES.__getitem__,
            key=key,
            on_change=chosen,
            args=("source", key),
            label_visibility="collapsed",
        )
        if now.source == "sample":
            names = list(JOB_SAMPLES)
            key = widget("sample", now.sample if now.sample in JOB_SAMPLES else names[0])
            st.selectbox(
                "Sample",
                names,
                format_func=_in_short,
                key=key,
                on_change=chosen,
                args=("sample", key),
                label_visibility="collapsed",
            )
            st.html(f'<p class="quiet">{escape(JOB_SAMPLES[str(st.session_state[key])].see)}</p>')
        elif now.source == "generator":
            _generator(now)
        elif now.source == "graphs":
            _graphs(now)
        else:
            st.file_uploader(
                "Jobs: a .jobs.json file, may be gzipped",
                key="up_jobs",
                on_change=take_upload,
                max_upload_size=50,
            )
    return choices()


def _in_short(sample: str) -> str:
    """Return a sample's title up to its colon: all that the sidebar has room for."""
    return JOB_SAMPLES[sample].title.split(":")[0]


def _generator(now: Choices) -> None:
    st.html(
        '<p class="quiet">256 pods in 32 groups of 8, Llama 3 models of Table III, placed by section IV.B.</p>'
    )
    _slide(
        "Number of jobs",
        "jobs",
        now.jobs,
        JOBS,
        lambda v: f"{v:,}",
        help="Models, collectives and parallel degrees are drawn at random.",
    )
    _slide(
        "Context length",
        "context",
        now.context,
        CONTEXTS,
        lambda v: f"{v // 1024}k",
        help="Tokens of a unit in one iteration: training time grows with it.",
    )
    key = widget("seed", now.seed)
    st.number_input(
        "Seed",
        min_value=0,
        max_value=1_000_000,
        step=1,
        key=key,
        on_change=chosen,
        args=("seed", key),
    )


def _graphs(now: Choices) -> None:
    names = [name for name in now.graphs.split(",") if name in SAMPLES]
    key = widget("graph_names", names)
    st.multiselect(
        "Task graphs",
        list(SAMPLES),
        key=key,
        on_change=_graphs_chosen,
        args=(key,),
        help="Each graph becomes a job: what it computes is its training, what it sends its traffic.",
    )
    _slide("Copies of each", "copies", now.copies, (1, 2, 3, 4, 6, 8), str)


def _graphs_chosen(key: str) -> None:
    choose(graphs=",".join(st.session_state[key]))


def what_ifs(jobs: Jobs) -> None:
    """Draw what may be changed about the network of the jobs, and who shares it."""
    now, network = choices(), jobs.network
    with st.sidebar:
        st.divider()
        st.html('<p class="side">What if</p>')
        _slide(
            "Ports per pod",
            "ports",
            network.ports_per_pod if now.ports is None else now.ports,
            PORTS,
            str,
            help=f"A link takes one port at both ends; {2 * (network.pods_per_group - 1)} reach from every pod to every other "
            "of its group and back.",
        )
        _slide(
            "Port speed",
            "port_gbps",
            network.port_gbps if now.port_gbps is None else now.port_gbps,
            SPEEDS_GBPS,
            lambda v: f"{v:g}G",
            help="Gigabits a second of one link; the way into a pod keeps its share of all of them.",
        )
        delay = (
            network.reconfiguration_ms if now.reconfiguration_ms is None else now.reconfiguration_ms
        )
        _slide(
            "Reconfiguration",
            "reconfiguration_ms",
            delay,
            DELAYS_MS,
            lambda v: f"{v:g} ms",
            help="All optical switches change at once between stages.",
        )
        key = widget("algorithm", now.algorithm)
        entry = ALGORITHMS[now.algorithm]
        st.selectbox(
            "Beside the draft’s algorithm",
            OFFERED,
            format_func=lambda name: ALGORITHMS[name].title,
            key=key,
            on_change=chosen,
            args=("algorithm", key),
            help=entry.explanation,
        )
        extends = (
            ""
            if entry.extends is None
            else f" Never longer than {ALGORITHMS[entry.extends].title.lower()}."
        )
        st.html(f'<p class="quiet">{escape(FAMILIES[entry.family])}{escape(extends)}</p>')
        with st.expander("What it does", key="jobs_algorithm", type="compact"):
            st.html(f'<p class="quiet">{escape(entry.explanation)}</p>')
        with st.expander("How the draft is read", key="jobs_reading", type="compact"):
            st.html(
                '<p class="quiet">Tang, Chen and Zhu, “Scheduling Multiple AI models in Optical Data Center Networks”: '
                "a draft without results. Where it can be read in two ways:</p>"
            )
            for field, (words, meaning) in READING_WORDS.items():
                key = widget(field, getattr(now, field))
                st.toggle(words, key=key, on_change=chosen, args=(field, key), help=meaning)
        reset("sidebar")


def reset(place: str = "here") -> None:
    """Offer to go back to the network as it came, where something about it was changed."""
    now = choices()
    if any(value is not None for value in (now.ports, now.port_gbps, now.reconfiguration_ms)):
        st.button(
            "Reset what-ifs",
            key=f"jobs_reset_{place}",
            on_click=choose,
            kwargs={"ports": None, "port_gbps": None, "reconfiguration_ms": None},
            width="stretch" if place == "sidebar" else "content",
            help="Back to the network of the file or of the draft.",
        )


def _slide(
    label: str,
    field: str,
    value: Any,
    values: Iterable[Any],
    words: Callable[[Any], str],
    help: str = "",
) -> None:
    key = widget(field, value)
    st.select_slider(
        label,
        sorted({*values, value}),
        format_func=words,
        key=key,
        on_change=chosen,
        args=(field, key),
        help=help or None,
    )
