"""The generators of task graphs: their parameters, and what a training job comes to before it is generated."""

import math
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import streamlit as st

from topox_core.errors import InputError
from topox_core.text.numbers import capitalised, percent, plural, short, time
from topox_core.training.costs.memory import memory
from topox_core.training.iteration import iteration
from topox_core.training.job import Job, dump_job
from topox_core.training.machine import MACHINES
from topox_core.workloads.catalogue import WORKLOADS, count_tasks
from topox_core.workloads.workload import Parameter, Workload, job_of
from topox_ui.runs.limits import server_limits
from topox_ui.shell.charts import escape, quiet, show_error
from topox_ui.shell.downloads import offer
from topox_ui.state.loading import open_source, scenario
from topox_ui.state.scenario import Scenario
from topox_ui.state.session import Passing
from topox_ui.state.widgets import bound

GROUPS = {"plan": "Plan", "schedule": "Order", "shape": "Model", "machine": "Machine"}
OWN = "own"
# What the name of a field alone does not say, or says with other letters.
LABELS = {
    "zero": "ZeRO stage",
    "tensor": "tensor (TP)",
    "pipeline": "pipeline (PP)",
    "data": "data (DP)",
    "context": "context (CP)",
    "expert": "expert (EP)",
    "nic": "network card",
    "tflops": "peak",
    "virtual": "virtual stages",
    "matrices": "matrices of the block",
}
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
            keys = [one.key for one in workload.parameters if hasattr(known, one.key)]
            chosen.update({key: getattr(known, key) for key in keys})

    st.selectbox(
        "Machine",
        list(titles),
        format_func=titles.__getitem__,
        key=f"machine_{workload.name}",
        on_change=take,
        help="Speeds of the GPU and its links. Their sources: python -m topox_core iteration machines NAME",
    )


def _parameter(workload: str, parameter: Parameter, chosen: dict[str, Any]) -> None:
    key, label = f"p_{workload}_{parameter.key}", _label(parameter)
    kind, more = "selectbox", {"options": parameter.choices}
    if not parameter.choices:
        whole = isinstance(parameter.default, int)
        limits = {"min_value": parameter.least, "max_value": parameter.most, "step": 1.0}
        limits = {name: one for name, one in limits.items() if one != math.inf}
        kind, more = "number_input", {k: int(v) if whole else float(v) for k, v in limits.items()}
        more["format"] = None if whole else "%g"
    value = chosen.get(parameter.key, parameter.default)
    bound(
        kind,
        label,
        key,
        value,
        partial(chosen.__setitem__, parameter.key),
        help=parameter.meaning,
        **more,
    )


def _label(parameter: Parameter) -> str:
    """Return a parameter's name as words, with its unit."""
    bare = parameter.key
    for suffix in ("_gbps", "_bytes", "_ms", "_mb", "_gb", "_us", "_gb_per_s"):
        bare = bare.removesuffix(suffix)
    label = LABELS.get(bare, bare).replace("_", " ")
    return capitalised(label) + (f" ({parameter.unit})" if parameter.unit else "")


def _before(workload: Workload, chosen: dict[str, Any]) -> None:
    """Say what the chosen parameters come to, and offer to generate it; or say why it cannot be."""
    parameters = tuple(
        (one.key, str(chosen[one.key]))
        for one in workload.parameters
        if chosen.get(one.key, one.default) != one.default
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
