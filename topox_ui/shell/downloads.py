"""Everything a page shows, as files built when asked for, and a link that restores the state."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from urllib.parse import urlencode

import plotly.graph_objects as go
import streamlit as st

from topox_core.figures.template import standalone
from topox_core.io import exports
from topox_core.model.critical_path import critical_path
from topox_core.schedule.result import Result
from topox_core.schedule.result_file import to_record
from topox_ui.shell.page import PageStyle
from topox_ui.state.loading import Loaded, scenario
from topox_ui.state.store import link_query

Figures = dict[str, Callable[[], go.Figure]]


def stem(loaded: Loaded) -> str:
    """Return a file name that any system takes."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", loaded.title).strip("-.")[:60] or "topox"


def offer(label: str, data: Callable[[], bytes], file: str, mime: str) -> None:
    """Offer one file; it is built when it is asked for, and the page does not run again."""
    st.download_button(
        label,
        data=data,
        file_name=file,
        mime=mime,
        on_click="ignore",
        key=f"get_{label}",
        width="stretch",
        type="tertiary",
        icon=":material/download:",
    )


def result_files(loaded: Loaded, result: Result, figures: Figures, style: PageStyle) -> None:
    """Draw the two menus: files, and the link."""
    execution, name = result.execution, stem(loaded)
    assert execution is not None
    exclusive = result.settings.exclusive_devices
    with st.container(horizontal=True, key="take_away"):
        with st.popover("Download", icon=":material/download:"):
            offer(
                "Result (JSON)",
                lambda: json.dumps(to_record(result, loaded.cluster), allow_nan=False).encode(),
                f"{name}.schedule.json",
                "application/json",
            )
            offer(
                "Tasks (CSV)",
                lambda: exports.tasks_csv(execution, critical_path(execution, exclusive)),
                f"{name}.tasks.csv",
                "text/csv",
            )
            offer(
                "Cross-connect program (JSON)",
                lambda: exports.cross_connects_json(execution),
                f"{name}.cross-connects.json",
                "application/json",
            )
            offer(
                "Cross-connect program (CSV)",
                lambda: exports.cross_connects_csv(execution),
                f"{name}.cross-connects.csv",
                "text/csv",
            )
            offer(
                "Trace for ui.perfetto.dev",
                lambda: exports.perfetto_trace(
                    execution, loaded.graph.name, critical_path(execution, exclusive)
                ),
                f"{name}.perfetto.json",
                "application/json",
            )
            for title, build in figures.items():
                offer(
                    f"{title} (HTML)",
                    lambda build=build: standalone(build(), style.theme),  # type: ignore[misc]
                    f"{name}.{title.lower().replace(' ', '-')}.html",
                    "text/html",
                )
        with st.popover("Link", icon=":material/link:"):
            graph_link()


def graph_link() -> None:
    """Show the address that restores this state, or say why there is none."""
    if scenario().source in ("none", "upload"):
        st.caption(
            "A link can carry a sample or a workload with every slider. Your own files stay on this machine: "
            "send the files, or download the result."
        )
    else:
        link()


def link(more: str = "") -> None:
    """Show the address that restores every choice of this session."""
    query, base = link_query(), (st.context.url or "").split("?")[0]
    st.caption(f"Opens this very state: what is loaded and every choice that was made.{more}")
    st.code(f"{base}?{urlencode(query)}" if query else base, language=None, wrap_lines=True)
