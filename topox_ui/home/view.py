"""Home: what an optical circuit switch is, four questions, and a job to open: a sample, own files or a generated workload."""

import base64
from functools import partial
from pathlib import Path
from string import Template

import streamlit as st

from topox_core.figures.palette import Theme
from topox_core.model.cluster import Cluster
from topox_core.schema.fields import fields_of
from topox_core.text.numbers import plural
from topox_core.workloads.samples import SAMPLES, Sample
from topox_ui.answers.keeping import LINKED, open_linked
from topox_ui.home.generators import workloads
from topox_ui.home.job_facts import finding, job_section
from topox_ui.shell.charts import (
    as_label,
    chart_title,
    escape,
    file_box,
    headline,
    quiet,
    write_html,
)
from topox_ui.shell.menu import job_name, page_link, sample_link
from topox_ui.shell.pages import page_of
from topox_ui.state.choices import HomeState
from topox_ui.state.loading import (
    Box,
    Loaded,
    change_assumed,
    cluster_words,
    go_back,
    loaded,
    previous,
    scenario,
    suggested,
    take_file,
    upload_lines,
    use_suggested,
)
from topox_ui.state.session import show_line
from topox_ui.state.widgets import number_limits, pick

FIVE_WORDS = {
    "Iteration": "one training step of the job",
    "Collective": "servers exchange data together",
    "Circuit": "a light path between two servers",
    "Delay": "how long a changing port is dark: it carries no data",
    "Lower bound": "a time that no schedule can beat",
}
# Of each picture: its title and note, its file, what it shows, and two lines under it.
PICTURES = (
    (
        "Packet switch",
        "reads each packet and sends it anywhere",
        "packet_switch",
        "A packet switch: four servers send packets with different destinations; the switch reads each packet "
        "and puts it into the queue of its port.",
        "Any port to any port, at every moment.",
        "Each port needs a transceiver, which takes power.",
    ),
    (
        "Optical circuit switch",
        "reads nothing, steers light from fibre to fibre",
        "circuit_switch",
        "An optical circuit switch: mirrors join server 0 to server 2, server 1 to server 0 and server 2 to server 1; "
        "the mirror of server 3 is turning, and its port is dark.",
        "One port to one port, until its mirror turns.",
        "No transceiver in the switch: it costs little and takes little power.",
    ),
)
WAYS_IN = ("Schedule", "Compare", "Cost", "Papers")


def introduction(theme: Theme) -> None:
    """Draw the two switches beside each other, and five words with the way to the tour."""
    *pictures, words = st.columns([1.28, 1.28, 1.2], gap="medium")
    for column, (title, note, *picture) in zip(pictures, PICTURES, strict=True):
        chart_title(title, note, at=column)
        column.html(_picture(theme, *picture))
    with words:
        chart_title("Five words to begin with")
        rows = "".join(f"<dt>{word}</dt><dd>{text}</dd>" for word, text in FIVE_WORDS.items())
        write_html(f'<dl class="five">{rows}</dl>')
        with st.container(key="tour", width="stretch"):
            page_link(
                "Learn",
                "**Take the tour**",
                icon=":material/play_arrow:",
            )


def _picture(theme: Theme, name: str, alt: str, line: str, note: str) -> str:
    """Return a picture whose file names the colours of the theme, and two lines under it, as HTML."""
    drawing = Template(Path(__file__).with_name(f"{name}.svg").read_text(encoding="utf-8"))
    image = base64.b64encode(drawing.substitute(vars(theme)).encode()).decode()
    return (
        f'<img class="picture" src="data:image/svg+xml;base64,{image}" alt="{alt}"><p class="card">{line}<br>'
        f"<span>{note}</span></p>"
    )


def questions() -> None:
    """Draw the four questions, each with the page that answers it."""
    chart_title("Which question brings you here?")
    for column, title in zip(st.columns(len(WAYS_IN)), WAYS_IN, strict=True):
        with column.container(key=f"question_{title}"):
            st.html(f'<p class="question">{page_of(title).question}</p>')
            page_link(title, f"{title} →")


CARDS_A_ROW = 4
# What comes out of each; the bold figure is the one that its Schedule page opens with.
FINDINGS = {
    "blackboard": "Two transfers need the same port: the better order takes <b>10 ms</b>, the other 12 ms.",
    "patience": "Waiting before the first transfer cuts 17 ms to 14. Never switching is faster still: <b>13 ms</b>.",
    "race": "Simple rules reach <b>70.4 ms</b>. Press <em>Prove it</em> to search for a better schedule.",
    "llama3-8b": "Fixed circuits take <b>557 ms</b>; changing circuits saves no time.",
    "fsdp": "Two rings use both ports: <b>182 ms</b>, proved best, and no circuit ever has to change.",
    "moe": "Circuits that change take <b>106 ms</b>; the best fixed circuits found take 165 ms.",
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
    "cluster": "**Cluster**: a .cluster.json file, or InfraGraph's YAML or JSON",
}
NEXT = {"Schedule": "See its schedule", "Compare": "Does switching pay?"}
# What an assumed cluster asks for, and by how much a click changes it.
ASSUMED = {
    "servers": 1,
    "ports_per_server": 1,
    "switches": 1,
    "port_gbps": 100.0,
    "slot_ms": 0.5,
    "reconfiguration_ms": 1.0,
}


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
    if linked := LINKED.get():
        show_line(("success", f"{linked.file} is read. Schedule checks its schedule and shows it."))
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
    line = upload_lines().get(box)
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
        for column, (name, step) in zip(st.columns(len(ASSUMED)), ASSUMED.items(), strict=True):
            field, value = fields_of(Cluster)[name], getattr(now.cluster, name)
            column.number_input(
                field.label,
                value=value,
                step=step,
                key=f"assumed_{name}_{now.cluster.digest[:12]}",
                format="%d" if isinstance(value, int) else "%g",
                **number_limits(field),
            )
        digest = now.cluster.digest[:12]
        st.form_submit_button(
            "Use these values",
            on_click=lambda: change_assumed(
                **{name: st.session_state[f"assumed_{name}_{digest}"] for name in ASSUMED}
            ),
        )


def _back() -> None:
    """Offer the way back to what was loaded before."""
    before = previous()
    if before is not None:
        name = escape(before.graph.name or before.title)
        st.button(
            f"Back to the previous job: {as_label(name)}",
            key="go_back",
            icon=":material/undo:",
            on_click=go_back,
        )


WAYS = {"samples": "Samples", "files": "Your own files", "generate": "Generate"}


KICKER = "TOPO-X Workbench · what would optical circuit switches do for your training job?"
PROMISE = (
    "An optical circuit switch is cheap and takes little power, but is slow to change. "
    "Here you see whether <b>your job</b> gains from it, and how sure that is."
)


def draw(theme: Theme) -> None:
    """Draw the page."""
    opened = loaded()
    found = finding(opened) if opened else ""
    headline(KICKER, found or PROMISE)
    if found:
        quiet(PROMISE)
    top = st.container()  # drawn last: a verdict may take seconds
    introduction(theme)

    with st.container(horizontal=True, vertical_alignment="center", key="open_job"):
        chart_title(
            "Open a job",
            "a job is a task graph; one click shows its schedule, tested by a separate checker",
            beside=True,
        )
        pick(
            HomeState,
            "way",
            WAYS,
            label="Open a job",
            label_visibility="collapsed",
            width="content",
        )
    way = HomeState.now().way
    if way == "samples":
        cards(theme)
    elif way == "files":
        own_files()
    else:
        workloads()
    questions()
    if opened is not None:
        job_section(opened, top, theme)
