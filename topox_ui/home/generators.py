"""The generators of task graphs: their parameters, and what a training job comes to before it is generated."""

from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import streamlit as st

from topox_core.errors import InputError
from topox_core.schema.fields import Field, text_of
from topox_core.text.numbers import percent, plural, short, time
from topox_core.training.costs.memory import memory
from topox_core.training.iteration import iteration
from topox_core.training.job import Job, dump_job
from topox_core.training.machine import MACHINES
from topox_core.workloads.catalogue import WORKLOADS, count_tasks
from topox_core.workloads.workload import Workload, job_of
from topox_ui.runs.limits import server_limits
from topox_ui.shell.charts import escape, quiet, show_error
from topox_ui.shell.downloads import offer
from topox_ui.state.loading import open_source, scenario
from topox_ui.state.scenario import Scenario
from topox_ui.state.session import Passing
from topox_ui.state.widgets import bound, number_limits

GROUPS = {"plan": "Plan", "schedule": "Order", "shape": "Model", "machine": "Machine"}
OWN = "own"
Parameters = tuple[tuple[str, str], ...]


@dataclass
class _Form:
    """The workload in view, what was loaded when it was shown, and by workload the parameters that were chosen."""

    workload: str
    loaded: Scenario | None = None
    chosen: defaultdict[str, dict[str, Any]] = field(default_factory=lambda: defaultdict(dict))


_FORM = Passing[_Form]("generator_form")


def workloads() -> None:
    """Draw the generators with their parameters, at first of the workload that was loaded last."""
    form, now = _FORM.get_or(lambda: _Form(next(iter(WORKLOADS)))), scenario()
    opened = now.without_what_ifs()
    if now.source == "workload" and form.loaded != opened:
        form.workload, form.loaded = opened.name, opened
        form.chosen[opened.name] = opened.typed_parameters
    left, right = st.columns([1, 2.2], gap="medium")
    titles = {name: one.title for name, one in WORKLOADS.items()}
    bound(
        "selectbox",
        "Workload",
        "workload",
        form.workload,
        partial(setattr, form, "workload"),
        options=titles,
        at=left,
    )
    workload, chosen = WORKLOADS[form.workload], form.chosen[form.workload]
    with right:
        _parameters(workload, chosen)
    with left:
        _before(workload, chosen)


def _parameters(workload: Workload, chosen: dict[str, Any]) -> None:
    groups = list(dict.fromkeys(one.group for one in workload.parameters))
    tabs = st.tabs([GROUPS[group] for group in groups]) if len(groups) > 1 else [st.container()]
    for tab, group in zip(tabs, groups, strict=True):
        with tab:
            if group == "machine":
                _machine(workload, chosen)
            columns = st.columns(3)
            shown = [one for one in workload.parameters if one.group == group]
            for i, parameter in enumerate(shown):
                with columns[i % 3]:
                    _parameter(workload.name, parameter, chosen)


def _machine(workload: Workload, chosen: dict[str, Any]) -> None:
    """Offer the known machines: picking one puts its figures into the fields below."""
    titles = {OWN: "as below"} | {name: one.title for name, one in MACHINES.items()}

    def take() -> None:
        known = MACHINES.get(st.session_state[f"machine_{workload.name}"])
        if known is not None:
            keys = [one.name for one in workload.parameters if hasattr(known, one.name)]
            chosen.update({key: getattr(known, key) for key in keys})

    st.selectbox(
        "Machine",
        list(titles),
        format_func=titles.__getitem__,
        key=f"machine_{workload.name}",
        on_change=take,
        help="Speeds of the GPU and its links. Their sources: python -m topox_core iteration machines NAME",
    )


def _parameter(workload: str, parameter: Field, chosen: dict[str, Any]) -> None:
    more: dict[str, Any]
    if parameter.choices:
        kind, more = "selectbox", {"options": parameter.choices}
    elif parameter.kind is bool:
        kind, more = "toggle", {}
    else:
        kind, more = "number_input", number_limits(parameter) | {"step": parameter.kind(1)}
        more["format"] = None if parameter.kind is int else "%g"
    bound(
        kind,
        parameter.label,
        f"p_{workload}_{parameter.name}",
        chosen.get(parameter.name, parameter.default),
        partial(chosen.__setitem__, parameter.name),
        help=parameter.description,
        **more,
    )


def _before(workload: Workload, chosen: dict[str, Any]) -> None:
    """Say what the chosen parameters come to, and offer to generate it; or say why it cannot be."""
    parameters = tuple(
        (one.name, text_of(chosen[one.name]))
        for one in workload.parameters
        if chosen.get(one.name, one.default) != one.default
    )
    try:
        job, words = _come_to(workload.name, parameters)
    except InputError as error:
        show_error(error)
        job, words = None, []
    quiet("<br>".join(words))
    with st.container(horizontal=True):
        st.button(
            "Generate",
            type="primary",
            key="generate",
            disabled=not words,
            on_click=open_source,
            args=(Scenario(source="workload", name=workload.name, parameters=parameters),),
        )
        if parameters:
            st.button("Reset", key="reset_parameters", on_click=chosen.clear)
        if job is not None:
            known = job
            offer(workload.name, [("Save this job", ".job.json", lambda: dump_job(known))])
    quiet(f"{escape(workload.meaning)}<br><br>Numbers: {escape(workload.source)}")


@st.cache_data(max_entries=256, show_spinner=False)
def _come_to(name: str, parameters: Parameters) -> tuple[Job | None, list[str]]:
    """Return the job, and in a few lines its size, time and memory; raises InputError where it cannot be."""
    job = job_of(name, dict(parameters))
    tasks = plural(count_tasks(name, dict(parameters), server_limits().most_tasks), "task")
    if job is None:
        return None, [f"About {tasks}."]
    one, held = iteration(job), memory(job)
    servers = -(-job.plan.gpus // job.machine.gpus_per_server)
    used_gb, has_gb = held.total_bytes / 1e9, job.machine.memory_gb
    fits = (
        f"The fullest GPU holds {short(used_gb)} of {short(has_gb)} GB."
        if used_gb <= has_gb
        else f"<b>Does not fit</b>: the fullest GPU would hold {short(used_gb)} GB and has {short(has_gb)}. "
        "More tensor or pipeline parallelism, ZeRO or recomputing would help."
    )
    return job, [
        f"<b>{time(one.total_ms)}</b> per iteration in closed form, {percent(one.utilisation)} of the GPUs' peak (MFU)",
        f"{plural(job.plan.gpus, 'GPU')} in {plural(servers, 'server')}, {tasks}",
        fits,
    ]
