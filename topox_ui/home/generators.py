"""The generators of task graphs, with their parameters."""

from __future__ import annotations

from typing import Any

import streamlit as st

from topox_core.workloads.catalogue import WORKLOADS, Parameter
from topox_ui.shell.page import escape
from topox_ui.state.loading import open_source
from topox_ui.state.scenario import Scenario


def workloads() -> None:
    """Draw the generators with their parameters."""
    left, right = st.columns([1, 2.2], gap="medium")
    name = left.selectbox(
        "Workload", list(WORKLOADS), format_func=lambda n: WORKLOADS[n].title, key="workload"
    )
    workload = WORKLOADS[name]
    left.html(
        f'<p class="quiet">{escape(workload.meaning)}<br><br>Numbers: {escape(workload.source)}</p>'
    )
    with right.form(f"form_{name}", border=False):
        columns = st.columns(3)
        for i, parameter in enumerate(workload.parameters):
            with columns[i % 3]:
                _parameter(name, parameter)
        st.form_submit_button("Generate", type="primary", on_click=_generate, args=(name,))


def _parameter(workload: str, parameter: Parameter) -> None:
    key = f"p_{workload}_{parameter.key}"
    bare = parameter.key
    for suffix in ("_gbps", "_bytes", "_ms", "_mb", "_gb"):
        bare = bare.removesuffix(suffix)
    label = bare.replace("_", " ")
    label = label[:1].upper() + label[1:] + (f" ({parameter.unit})" if parameter.unit else "")
    if parameter.choices:
        options = list(parameter.choices)
        st.selectbox(
            label, options, index=options.index(parameter.default), key=key, help=parameter.meaning
        )  # type: ignore[arg-type]
        return
    whole = isinstance(parameter.default, int)
    limits: dict[str, Any] = {"min_value": parameter.least, "step": 1.0}
    if parameter.most != float("inf"):
        limits["max_value"] = parameter.most
    limits = {k: int(v) if whole else float(v) for k, v in limits.items()}
    st.number_input(
        label,
        value=parameter.default,
        key=key,
        help=parameter.meaning,
        format=None if whole else "%g",
        **limits,
    )


def _generate(name: str) -> None:
    changed = tuple(
        (p.key, str(st.session_state[f"p_{name}_{p.key}"]))
        for p in WORKLOADS[name].parameters
        if st.session_state.get(f"p_{name}_{p.key}", p.default) != p.default
    )
    open_source(Scenario(source="workload", name=name, parameters=changed))
