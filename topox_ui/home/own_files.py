"""A reader's own files: two boxes, what became of each file under its box, and the cluster that was assumed."""

from __future__ import annotations

from functools import partial

import streamlit as st

from topox_core.text.foreign import escape_untrusted
from topox_ui.answers.linked import open_linked, opened_file
from topox_ui.shell.links import page_link
from topox_ui.shell.menu import job_name
from topox_ui.shell.page import escape, file_box, quiet
from topox_ui.state.loading import Loaded, cluster_words, go_back, loaded, previous, scenario
from topox_ui.state.notices import show_line
from topox_ui.state.uploads import (
    Box,
    change_assumed,
    line_of,
    suggested,
    take_file,
    use_suggested,
)

BOXES: dict[Box, str] = {
    "graph": "**Task graph**: JSON, CSV or FlexNet .fbuf, each also gzipped; or a **training job**: .job.json",
    "cluster": "**Cluster**: a .cluster.json file",
}
NEXT = {"Schedule": "See its schedule", "Compare": "Does switching pay?"}
# Of a cluster: its field, the label, the least value and the step.
ASSUMED = (
    ("servers", "Servers", 1, 1),
    ("ports_per_server", "Ports per server", 1, 1),
    ("switches", "Circuit switches", 1, 1),
    ("port_gbps", "Port speed, Gbit/s", 0.1, 100.0),
    ("slot_ms", "Slot, ms", 0.001, 0.5),
    ("reconfiguration_ms", "Reconfiguration delay, ms", 0.0, 1.0),
)


def own_files() -> None:
    """Draw the two boxes; a file that cannot be used costs nothing but a line."""
    for column, (box, label) in zip(st.columns(2, gap="medium"), BOXES.items(), strict=True):
        with column:
            file_box(label, f"up_{box}", partial(take_file, box))
            _line(box)
    now = loaded()
    if now is not None and now.assumed:
        _assumed(now)
    _back()
    open_linked("**Link with result**: a .link.json file from the page Schedule")
    if (file := opened_file()) is not None:
        show_line(("success", f"{file} is read. Schedule checks its schedule and shows it."))
        page_link("Schedule", "Open its schedule", icon=":material/arrow_forward:")
    page_link(
        "Your trace",
        "A recorded run: files of PyTorch's profiler, one per rank",
        icon=":material/arrow_forward:",
    )
    quiet(
        "Files stay in the memory of this server, for this tab alone: a reload keeps them, and a minute after "
        "the tab is closed they are deleted. A new graph keeps the loaded cluster, a new cluster keeps the graph."
    )


def _line(box: Box) -> None:
    """Write what became of the last file in a box, and where to go on with what it loaded."""
    line = line_of(box)
    show_line(line)
    if line is not None and line[0] == "success" and scenario().source != "none":
        with st.container(horizontal=True, key=f"next_{box}"):
            for title, words in NEXT.items():
                page_link(title, words, icon=":material/arrow_forward:")
    bigger = suggested() if box == "graph" else None
    if bigger is not None:
        now = loaded()
        if now is not None:
            quiet(f"Until then {job_name(now)} stays loaded.")
        st.button(
            f"Use a cluster that fits: {cluster_words(bigger)}",
            key="use_fitting",
            type="primary",
            on_click=use_suggested,
        )


def _assumed(now: Loaded) -> None:
    """Show the values of a cluster that no file gave, to be changed here."""
    with st.form("assumed", border=True):
        st.html(
            '<p class="chart">Assumed cluster <span>No file describes the cluster of this job. '
            "These values are assumed: change them, or add a cluster file.</span></p>"
        )
        for column, (field, label, least, step) in zip(
            st.columns(len(ASSUMED)), ASSUMED, strict=True
        ):
            value = getattr(now.cluster, field)
            column.number_input(
                label,
                value=value,
                min_value=least,
                step=step,
                key=f"assumed_{field}_{now.cluster.digest[:12]}",
                format="%d" if isinstance(value, int) else "%g",
            )
        digest = now.cluster.digest[:12]
        st.form_submit_button(
            "Use these values",
            on_click=lambda: change_assumed(
                **{field: st.session_state[f"assumed_{field}_{digest}"] for field, *_ in ASSUMED}
            ),
        )


def _back() -> None:
    """Offer the way back to what was loaded before."""
    before = previous()
    if before is not None:
        name = escape(before.graph.name or before.title)
        st.button(
            f"Back to the previous job: {escape_untrusted(name, 'markdown')}",
            key="go_back",
            icon=":material/undo:",
            on_click=go_back,
        )
