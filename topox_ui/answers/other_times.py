"""Why pages show different times for one loaded job: what each of them models, said once for all of them."""

from contextlib import suppress

import streamlit as st

from topox_core.errors import InputError
from topox_core.fabrics.run import JobRequest
from topox_core.schedule.results.result import Result
from topox_core.text.numbers import time
from topox_core.training.job import Job
from topox_core.workloads.catalogue import generate
from topox_ui.answers.solving import (
    MAX_TASKS,
    best,
    job_of,
    result_shown,
    scheduled_beside,
    settled,
)
from topox_ui.classroom.held import shows
from topox_ui.shell.charts import quiet
from topox_ui.shell.menu import page_link
from topox_ui.shell.preparing import prepared
from topox_ui.state.loading import (
    Parameters,
    has_what_ifs,
    loaded,
    loaded_job,
    scenario,
    scenario_of,
)
from topox_ui.state.scenario import Scenario

TITLE = "Why other pages show other times for this job"
RAILS_OF_MODEL = (
    "Your job's model, parallelism and machine are simulated, not its task graph: each GPU of a server has a rail of its own, "
    "with rings only; on Schedule they share the server's ports."
)
RAILS_OF_GRAPH = (
    "Your task graph as a fabric ran it, run again on one rail, where a server takes part in one communication "
    "at a time."
)


def schedule_of_loaded(soon: bool = False) -> Result | None:
    """Return what Schedule shows for the loaded job; None until it is known.

    ``soon``: it is made beside the page, which is drawn again once it is known.
    """
    opened = loaded()
    with suppress(InputError):
        job = job_of(opened, scenario()) if opened else None
        if job is not None and (shown := result_shown(job)) is not None:
            return shown
        if soon and job and prepared():
            scheduled_beside(job)
    return None


def on_schedule() -> str:
    """Return the time that Schedule shows for the loaded job; empty until it is known."""
    known = schedule_of_loaded()
    return time(known.makespan_ms or 0.0) if known else ""


@st.cache_resource(max_entries=24, show_spinner=False)
def _of_workload(name: str, parameters: Parameters) -> JobRequest:
    """Return the job of a workload as Schedule has it once it is used; raises InputError of one that is too large."""
    return JobRequest(*generate(name, dict(parameters), MAX_TASKS), Scenario().settings())


def once_used(training: Job) -> tuple[float, bool]:
    """Return the time in ms that Schedule shows for a job once it is used, and whether it is still computed, for the page drawn again.

    0 until it is known, and beside what-ifs, which a new job does not have.
    """
    if prepared() and not has_what_ifs():
        with suppress(InputError):
            used = scenario_of(training)
            job = _of_workload(used.name, used.parameters)
            if settled(job):
                return best(job).makespan_ms or 0.0, False
            return 0.0, scheduled_beside(job)
    return 0.0, False


def what_pages_model(generated: bool) -> dict[str, str]:
    """Return what each page that shows a time for the loaded job models, by its title; ``generated``: from a model's numbers."""
    return {
        "Schedule": "This job on these circuits, by the best plan known so far: Compare's planned circuits.",
        "Cost": "The same times as Compare.",
        "Rails": RAILS_OF_MODEL if generated else RAILS_OF_GRAPH,
        "Sharing": "What ports allow copies of this job; then a model where each first computes, then sends all as one collective.",
    } | (
        {
            "Plans": "Splits of the model by a closed form, without a task graph; of yours and the fastest also Schedule's time."
        }
        if generated
        else {}
    )


def other_times() -> None:
    """Offer a line for each page: what it models differently."""
    with st.expander(TITLE, key="other_times", type="compact"):
        for title, words in what_pages_model(loaded_job() is not None).items():
            if shows(title):
                with st.container(horizontal=True, vertical_alignment="center"):
                    page_link(title, title)
                    quiet(words)
