"""The jobs that the page shares a fabric among: a sample, the paper's set-up, task graphs, or the reader's own file."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from topox_core.tdm.mixes.deployment import SetUp, deploy
from topox_core.tdm.mixes.from_graph import jobs_from_graphs
from topox_core.tdm.mixes.samples import JOB_SAMPLES, load_job_sample
from topox_core.tdm.model.jobs import Jobs, PodNetwork
from topox_core.tdm.model.jobs_file import load_jobs, validated
from topox_core.text.numbers import in_1024s
from topox_core.workloads.samples import load_sample
from topox_ui.jobs.state import OF_SOURCE, OWN_JOBS, JobsState
from topox_ui.runs.shared import once

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
    if now.source == "sample":
        jobs = once("job sample", now.sample, lambda: load_job_sample(now.sample))
        return jobs, JOB_SAMPLES[now.sample].title
    if now.source == "generator":
        set_up = SetUp(jobs=now.jobs, context=now.context, seed=now.seed)
        jobs = once("deployed jobs", repr(set_up), lambda: deploy(set_up))
        return (
            jobs,
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
