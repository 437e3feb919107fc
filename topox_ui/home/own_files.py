"""Jobs to open: samples, and the reader's own files."""

from __future__ import annotations

import streamlit as st

from topox_core.figures.palette import Theme
from topox_core.text.foreign import escape_untrusted
from topox_core.text.numbers import plural
from topox_core.workloads.samples import SAMPLES, Sample
from topox_ui.answers.linked import is_opened, open_linked
from topox_ui.shell.links import page_link, sample_link
from topox_ui.shell.menu import job_name
from topox_ui.shell.page import escape, quiet
from topox_ui.state.loading import Loaded, cluster_words, go_back, loaded, previous, scenario
from topox_ui.state.uploads import Box, change_assumed, line_of, suggested, take_file, use_suggested

CARDS_A_ROW = 4
# What comes out of each; the bold figure is the one that its Schedule page opens with.
FINDINGS = {
    "blackboard": "Two transfers want one port: the better order takes <b>10 ms</b>, the other 12 ms.",
    "patience": "A port left idle at first gives 14 ms, not 17; fixed circuits give <b>13 ms</b>.",
    "race": "Simple rules give <b>70.4 ms</b>; Prove it then finds a shorter schedule.",
    "llama3-8b": "Circuits that stay fixed, <b>557 ms</b>, are no worse than changing ones.",
    "fsdp": "Two rings use both ports: <b>182 ms</b>, proved best, and no circuit ever has to change.",
    "moe": "Circuits that change take <b>107 ms</b>, the best fixed ones that were found 165 ms.",
    "dlrm-16": "An iteration takes <b>36.8 ms</b>; without its all-reduce of 306 MB it would take 15.5 ms.",
    "llama3-70b": "Ten thousand tasks take <b>2.82 s</b>, within 2 % of the lower bound.",
}


def cards(theme: Theme) -> None:
    """Draw the samples, the one in use marked."""
    names = list(SAMPLES)
    now = scenario()
    for begin in range(0, len(names), CARDS_A_ROW):
        row = names[begin : begin + CARDS_A_ROW]
        for column, name in zip(st.columns(CARDS_A_ROW), row, strict=False):
            with column.container(border=True, key=f"card_{name}", height="stretch"):
                _card(SAMPLES[name])
            if now.source == "sample" and now.name == name:
                st.html(
                    f"<style>.st-key-card_{name} {{ border-color: {theme.primary}; "
                    f"box-shadow: inset 3px 0 0 {theme.primary}; }}</style>"
                )


def _card(sample: Sample) -> None:
    sample_link(sample.name, sample.title)
    sizes = f"{plural(sample.tasks, 'task')} · {plural(sample.servers, 'server')}"
    finding = FINDINGS.get(sample.name, sample.see)
    st.html(f'<p class="card">{finding}<span>{sizes}</span></p>')


BOXES: dict[Box, str] = {
    "graph": "**Task graph**: JSON, CSV or FlexNet .fbuf, each also gzipped; or a **training job**: .job.json",
    "cluster": "**Cluster**: a .cluster.json file",
}
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
            st.file_uploader(label, key=f"up_{box}", on_change=_uploaded, args=(box,))
            _line(box)
    now = loaded()
    if now is not None and now.assumed:
        _assumed(now)
    _back()
    open_linked("**Link with result**: a .link.json file from the page Schedule")
    if is_opened():
        page_link("Schedule", "Open its schedule", icon=":material/arrow_forward:")
    page_link(
        "A recorded run",
        "A recorded run: files of PyTorch's profiler, one a rank",
        icon=":material/arrow_forward:",
    )
    quiet(
        "Files stay in the memory of this server, for this tab alone: a reload keeps them, and a minute after "
        "the tab is closed they are gone. A graph alone keeps the cluster that is loaded, a cluster alone keeps the graph."
    )


def _uploaded(box: Box) -> None:
    file = st.session_state[f"up_{box}"]
    if file is not None:
        take_file(box, file.getvalue(), file.name)


def _line(box: Box) -> None:
    """Write what became of the last file in a box."""
    line = line_of(box)
    if line is not None:
        text = escape_untrusted(line.text, "markdown")
        {"error": st.error, "warning": st.warning, "success": st.success}[line.kind](text)
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
            '<p class="chart">Assumed cluster <span>No file said what the job runs on. '
            "These values are ours: put in your own, or add a cluster file.</span></p>"
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
        st.form_submit_button("Use these values", on_click=_change, args=(now.cluster.digest[:12],))


def _change(digest: str) -> None:
    change_assumed(
        **{field: st.session_state[f"assumed_{field}_{digest}"] for field, *_ in ASSUMED}
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
