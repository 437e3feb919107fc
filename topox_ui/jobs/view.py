"""Sharing: several jobs on one optical fabric by time division: where they come from, the sidebar, the page."""

from dataclasses import replace
from functools import partial

import streamlit as st

from topox_core.figures.palette import Theme
from topox_core.model.quantities import SMALL_COUNTS
from topox_core.schema.fields import fields_of
from topox_core.tdm.algorithms.catalogue import ALGORITHMS
from topox_core.tdm.mixes.deployment import SetUp, deploy
from topox_core.tdm.mixes.from_graph import jobs_from_graphs, pods_of
from topox_core.tdm.model.jobs import Jobs, PodNetwork, Reading
from topox_core.tdm.model.jobs_file import JOB_SAMPLES, load_job_sample, load_jobs, validated
from topox_core.text.numbers import in_1024s
from topox_core.workloads.samples import SAMPLES, load_sample
from topox_ui.jobs.first_screen import (
    alone_and_shared,
    certificate,
    clock,
    first_lines,
    no_round_yet,
    searching,
)
from topox_ui.jobs.sections import files, sections, waits
from topox_ui.jobs.solving import Case, rounds_of
from topox_ui.jobs.state import (
    COPY,
    JOB,
    NETWORK,
    OF_SOURCE,
    OFFERED,
    OWN_JOBS,
    SOURCES,
    JobsState,
)
from topox_ui.runs.owner import once
from topox_ui.shell.charts import escape, file_box, headline, quiet, show_input_errors
from topox_ui.shell.menu import page_link
from topox_ui.state.loading import Loaded, loaded, scenario
from topox_ui.state.widgets import control, menu, number, sidebar_part, slide, switch

# What jobs made from task graphs share before any what-if: two groups of eight pods, every pod able
# to reach all of its group.
FOR_GRAPHS = PodNetwork(
    pod_groups=2,
    pods_per_group=8,
    ports_per_pod=16,
    port_gbps=100.0,
    tor_gbps=1600.0,
    reconfiguration_ms=0.5,
)


@st.cache_resource(max_entries=16, show_spinner="Deriving jobs from task graphs")
def _from_graphs(names: tuple[str, ...], copies: int) -> Jobs:
    return jobs_from_graphs([(load_sample(name)[0], copies) for name in names], FOR_GRAPHS)


def _own(opened: Loaded, now: JobsState) -> tuple[Jobs, str]:
    """Return the loaded job beside itself or a sample, on pods made of its servers, and their title."""
    graph, cluster = opened.graph, scenario().cluster(opened.cluster)
    partner = now.partner if now.partner in partners(opened) else ""
    times = {1: "alone", 2: "twice"}.get(now.copies, f"{now.copies} times")
    title = f"{opened.title} and {partner}" if partner else f"{opened.title}, {times}"

    def paired() -> Jobs:
        others = [(load_sample(partner)[0], 1)] if partner else []
        mix = [(replace(graph, name="your job"), 1 if partner else now.copies), *others]
        jobs = jobs_from_graphs(mix, pods_of(cluster), name=title)
        copies = (replace(job, id=COPY.format(n)) for n, job in enumerate(jobs.jobs, 1))
        return jobs if partner else replace(jobs, jobs=tuple(copies))

    return once("own jobs", f"{graph.digest}|{cluster.digest}|{title}", paired), title


def partners(opened: Loaded) -> dict[str, str]:
    """Return what the loaded job may share the fabric with: itself, or a sample."""
    return {"": "itself"} | {name: name for name in SAMPLES if name != opened.graph.name}


def take_upload(data: bytes, file: str) -> None:
    """Read the file that the reader brought."""
    OWN_JOBS.set(load_jobs(data, file))
    JobsState.choose(source="upload", **dict.fromkeys(OF_SOURCE))


def loaded_jobs(now: JobsState) -> tuple[Jobs, str] | None:
    """Return the jobs that are chosen, before any what-if, and their title; None where a file is still to come.

    Raises
    ------
    InputError
        If a link names no sample of ours, or a set-up cannot be deployed.
    """
    opened = loaded()
    if now.origin == JOB and opened is not None:
        return _own(opened, now)
    if now.origin == "sample":
        return (
            once("job sample", now.sample, lambda: load_job_sample(now.sample)),
            JOB_SAMPLES[now.sample].title,
        )
    if now.source == "generator":
        set_up = SetUp(jobs=now.jobs, context=now.context, seed=now.seed)
        return (
            once("deployed jobs", repr(set_up), lambda: deploy(set_up)),
            f"the paper’s set-up, {now.jobs} jobs, {in_1024s(now.context)} context, seed {now.seed}",
        )
    if now.source == "graphs":
        names = now.graphs
        return (_from_graphs(names, now.copies), "jobs from " + ", ".join(names)) if names else None
    upload = OWN_JOBS.get()
    return None if upload is None else (upload, upload.name or "your jobs")


def changed(jobs: Jobs, now: JobsState) -> Jobs:
    """Return the jobs on the network that the what-ifs make; the way into a pod keeps its share of what leaves it.

    Raises
    ------
    InputError
        If a value is out of range.
    """
    network = jobs.network
    new = replace(network, **now.network)
    share = network.tor_gbps / (network.ports_per_pod * network.port_gbps)
    new = replace(new, tor_gbps=share * new.ports_per_pod * new.port_gbps)
    return jobs if new == network else validated(jobs.name, new, jobs.jobs, "what-ifs")


FAMILIES = {
    "paper": "It is in the paper, a draft by Tang, Chen and Zhu.",
    "baseline": "It is there to compare with.",
    "exact": "It proves its answer.",
    "beyond": "It is added here, and not in the paper, a draft by Tang, Chen and Zhu.",
}


def pick_source() -> None:
    """Draw where the jobs come from."""
    with sidebar_part("Jobs"):
        opened, origin = loaded(), JobsState.now().origin
        listed = {name: words for name, words in SOURCES.items() if opened or name != JOB}
        source = menu(
            JobsState,
            "source",
            listed,
            label="Jobs from",
            value=origin,
            label_visibility="collapsed",
        )
        if source == JOB and opened is not None:
            partner = menu(JobsState, "partner", partners(opened), label="Shares the fabric with")
            if not partner:
                slide(
                    JobsState,
                    "copies",
                    SMALL_COUNTS[1:],
                    label="Copies",
                    help="How many of it run at once.",
                )
        elif source == "sample":
            # A sample's title up to its colon: all that the sidebar has room for.
            titles = {name: one.title.split(":")[0] for name, one in JOB_SAMPLES.items()}
            name = menu(JobsState, "sample", titles, label="Sample", label_visibility="collapsed")
            quiet(f"{escape(JOB_SAMPLES[name].see)}")
        elif source == "generator":
            _generator()
        elif source == "graphs":
            control(
                "multiselect",
                JobsState,
                "graphs",
                label="Task graphs",
                options=tuple(SAMPLES),
                help="Each graph becomes a job: what it computes is its training, what it sends its traffic.",
            )
            slide(JobsState, "copies", label="Copies of each")
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
        JobsState,
        "jobs",
        label="Number of jobs",
        words=lambda v: f"{v:,}",
        help="Models, collectives and parallel degrees are drawn at random.",
    )
    slide(
        JobsState,
        "context",
        words=lambda v: f"{v / 1024:g}k",
        help="Tokens of a unit in one iteration: training time grows with it.",
    )
    number(JobsState, "seed", step=1)


def what_ifs(jobs: Jobs) -> None:
    """Draw what may be changed about the network of the jobs, and who shares it."""
    now = JobsState.now()
    network = replace(jobs.network, **now.network)
    with sidebar_part("What if"):
        slide(
            JobsState,
            "ports",
            value=network.ports_per_pod,
            help="Ports are one-way: a link takes one where it begins and one where it ends; "
            f"{2 * (network.pods_per_group - 1)} ports suffice for links from every pod to every other pod of its group and back.",
        )
        slide(
            JobsState,
            "port_gbps",
            value=network.port_gbps,
            help="Gigabits per second of one link. The link into a pod changes in proportion.",
        )
        slide(
            JobsState,
            "reconfiguration_ms",
            value=network.reconfiguration_ms,
            help="All optical switches change at once between stages.",
        )
        entry = ALGORITHMS[now.algorithm]
        menu(
            JobsState,
            "algorithm",
            {name: ALGORITHMS[name].title for name in OFFERED},
            label="Method",
            help=entry.explanation,
        )
        extends = ""
        if entry.extends is not None:
            other = ALGORITHMS[entry.extends]
            what = other.explanation.split(". ")[0]
            extends = f" Its round is never longer than that of “{other.title}”: {what[:1].lower()}{what[1:]}."
        first, _, more = entry.explanation.partition(". ")
        quiet(f"{escape(first.rstrip('.'))}.")
        with st.expander("More about this method", key="jobs_algorithm", type="compact"):
            quiet(escape(f"{more} {FAMILIES[entry.family]}{extends}".strip()))
        with st.expander("How Tang, Chen and Zhu are read", key="jobs_reading", type="compact"):
            quiet(
                "Tang, Chen and Zhu, “Scheduling Multiple AI models in Optical Data Center Networks”, "
                "is a draft without results. Where it can be read in two ways:"
            )
            for name in fields_of(Reading):
                if name == "physical_ring" and now.origin == JOB:
                    continue  # a job of the reader's moves what a ring really moves
                switch(JobsState, name)
        reset("sidebar")


def reset(place: str = "here") -> None:
    """Offer to go back to the network as it came, where something about it was changed."""
    if JobsState.now().network:
        st.button(
            "Reset what-ifs",
            key=f"jobs_reset_{place}",
            on_click=partial(JobsState.choose, **dict.fromkeys(NETWORK)),
            width="stretch" if place == "sidebar" else "content",
            help="Back to the network of the file or of the paper.",
        )


CANNOT_SHARE = "These jobs <b>cannot share</b> this network. Change a what-if on the left, or choose other jobs."


def draw(theme: Theme) -> None:
    """Draw the page."""
    pick_source()
    now = JobsState.now()
    with show_input_errors("Sharing", CANNOT_SHARE, None):
        opened = loaded_jobs(now)
    if opened is None:
        headline(
            "Sharing · several jobs on one optical fabric",
            "No jobs yet: load <b>a jobs file</b> on the left, or choose a sample or the paper’s set-up.",
        )
        page_link(
            "Sharing",
            "Open a sample",
            icon=":material/arrow_forward:",
            **{"jobs.source": "sample"},
        )
        return
    jobs, title = opened
    what_ifs(jobs)
    with show_input_errors(f"Sharing · {title}", CANNOT_SHARE, None):
        case = Case(changed(jobs, now), now.reading)
        rounds = rounds_of(case, now.algorithm)

    if not rounds.known:
        no_round_yet(rounds, title, theme)
        reset()
        return
    view = rounds.by_iteration()
    first_lines(view, title)
    searching(rounds, theme)
    main, rail = st.columns([2.55, 1], gap="medium")
    with main:
        clock(view, now, theme)
        alone_and_shared(view)
    with rail:
        certificate(view, rounds.best)
        waits(view, now)
        files(rounds, now, title)
    sections(rounds, now, theme)
