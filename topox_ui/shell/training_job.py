"""A training job from page to page: opened from where it was chosen, looked at on the pages that know jobs."""

import streamlit as st

from topox_core.text.numbers import plural
from topox_core.training.job import Job
from topox_core.workloads.training_jobs import as_workload
from topox_ui.shell.charts import button
from topox_ui.shell.menu import page_link
from topox_ui.state.loading import loaded, loaded_job, open_source
from topox_ui.state.notices import notify
from topox_ui.state.scenario import Scenario


def use_job(key: str, job: Job) -> None:
    """Offer to load a job: its task graph on the cluster that suits it, for all pages."""
    button(
        "Use this job",
        key,
        "arrow_forward",
        _open,
        job,
        help="Load this job: Schedule, Compare, Plans and Rails then show the same iteration.",
    )


def _open(job: Job) -> None:
    name, parameters = as_workload(job)
    before = loaded()
    open_source(Scenario(source="workload", name=name, parameters=parameters))
    now = loaded()
    if now is not None and now is not before:
        notify(
            "info",
            f"{now.graph.name} is loaded: {plural(len(now.graph.tasks), 'task')}. Schedule, Compare, Plans "
            "and Rails show it.",
        )


def job_links() -> None:
    """Draw the ways on of the loaded training job: its rails, and other plans of its model."""
    job = loaded_job()
    if job is None:
        return
    with st.container(horizontal=True):
        page_link(
            "Rails",
            "Its windows on rails",
            icon=":material/arrow_forward:",
            **{"rails.source": "job"},
        )
        page_link(
            "Plans",
            "Other plans of this job",
            icon=":material/arrow_forward:",
            **{"strategy.model": "loaded"},
        )
