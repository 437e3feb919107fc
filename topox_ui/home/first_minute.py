"""The first minute: what an optical circuit switch is, five words, and four questions as ways in."""

from __future__ import annotations

import base64
from pathlib import Path
from string import Template

import streamlit as st

from topox_core.figures.palette import Theme
from topox_ui.shell.links import page_link
from topox_ui.shell.page import chart_title, write_html
from topox_ui.shell.pages import page_of

FIVE_WORDS = {
    "Iteration": "one training step of the job",
    "Collective": "servers exchange data together",
    "Circuit": "a light path between two servers",
    "Delay": "how long a changing port is dark: it carries no data",
    "Lower bound": "a time that no schedule can beat",
}
PACKETS_ALT = (
    "A packet switch: four servers send packets with different destinations; the switch reads each packet "
    "and puts it into the queue of its port."
)
CIRCUITS_ALT = (
    "An optical circuit switch: mirrors join server 0 to server 2, server 1 to server 0 and server 2 to server 1; "
    "the mirror of server 3 is turning, and its port is dark."
)
WAYS_IN = ("Schedule", "Compare", "Cost", "Papers")


def introduction(theme: Theme) -> None:
    """Draw the two switches beside each other, and five words with the way to the tour."""
    packets, circuits, words = st.columns([1.28, 1.28, 1.2], gap="medium")
    with packets:
        chart_title("Packet switch", "reads each packet and sends it anywhere")
        _picture(
            "packet_switch",
            theme,
            PACKETS_ALT,
            "Any port to any port, at every moment.",
            "Each port needs a transceiver, which takes power.",
        )
    with circuits:
        chart_title("Optical circuit switch", "reads nothing, steers light from fibre to fibre")
        _picture(
            "circuit_switch",
            theme,
            CIRCUITS_ALT,
            "One port to one port, until its mirror turns.",
            "No transceiver in the switch: it costs little and takes little power.",
        )
    with words:
        chart_title("Five words to begin with")
        rows = "".join(f"<dt>{word}</dt><dd>{text}</dd>" for word, text in FIVE_WORDS.items())
        write_html(f'<dl class="five">{rows}</dl>')
        with st.container(key="tour", width="stretch"):
            page_link(
                "Learn",
                "**Take the tour: six screens**",
                icon=":material/play_arrow:",
            )


def _picture(name: str, theme: Theme, alt: str, line: str, note: str) -> None:
    """Draw a picture whose file names the colours of the theme, and two lines under it."""
    drawing = Template(Path(__file__).with_name(f"{name}.svg").read_text(encoding="utf-8"))
    image = base64.b64encode(drawing.substitute(vars(theme)).encode()).decode()
    st.html(
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
