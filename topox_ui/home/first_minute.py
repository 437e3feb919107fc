"""The first minute: what an optical circuit switch is, five words, and four questions as ways in."""

from __future__ import annotations

import base64

import streamlit as st

from topox_core.figures.palette import Theme
from topox_ui.shell.links import page_link
from topox_ui.shell.page import chart_title, write_html

WIDTH, HEIGHT, ROW = 318, 172, 45
TOP = 16  # of the first server's line
LEFT, RIGHT = 94, 223  # edges of the switch
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")
TEXT_ON = ("#FFFFFF", "#10151C", "#10151C", "#10151C")
# What each server sends, by destination, and what then leaves for each.
PACKETS = ((2, 1, 3), (2, 0), (3, 2, 0), (1, 2))
QUEUES, OUT = (1, 2, 4, 1), (2, 2, 3, 2)
CIRCUITS = {0: 2, 1: 0, 2: 1}  # input to output; the mirror of the fourth is turning


def packet_switch(theme: Theme) -> str:
    """Return the picture of a switch that reads every packet, as an address for an image."""
    marks = [_servers(theme)]
    for row, destinations in enumerate(PACKETS):
        y = _y(row)
        marks += [_line(35, y, LEFT, y, theme.line), _line(RIGHT, y, 283, y, theme.line)]
        marks += [_packet(41 + 17 * i, y, to) for i, to in enumerate(destinations)]
        marks += [_packet(229 + 17 * i, y, row) for i in range(OUT[row])]
    marks.append(_box(LEFT, theme.panel, theme.muted))
    for row in range(4):
        y = _y(row)
        marks.append(
            f'<path d="M137 82 C150 82 146 {y} 160 {y}" fill="none" stroke="{theme.line}" stroke-width="1.3"/>'
        )
        marks.append(
            f'<rect x="161" y="{y - 9}" width="58" height="18" rx="2" fill="{theme.page}" stroke="{theme.line}"/>'
        )
        for i in range(QUEUES[row]):
            marks.append(
                f'<rect x="{204 - 13 * i}" y="{y - 6}" width="11" height="12" rx="1" fill="{COLOURS[row]}"/>'
            )
    marks.append(_text(102, 86, "read", theme.muted))
    return _image(marks)


def circuit_switch(theme: Theme) -> str:
    """Return the picture of a switch that steers light, as an address for an image."""
    marks = [_servers(theme), _box(LEFT, theme.page, theme.ink)]
    mirror = 'stroke-width="2.6" stroke-linecap="round"'
    for row in range(4):
        y = _y(row)
        if row in CIRCUITS:
            end, colour = _y(CIRCUITS[row]), COLOURS[CIRCUITS[row]]
            points = f"35,{y} 122,{y} 197,{end} 283,{end}"
            marks.append(
                f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="3.4"/>'
            )
            marks.append(
                f'<path d="M113 {y - 8} L130 {y + 8} M188 {end + 8} L206 {end - 8}" stroke="{theme.ink}" {mirror}/>'
            )
        else:
            dark = theme.bad
            marks += [
                f'<path d="M35 {y} H112" stroke="{dark}" stroke-width="2" stroke-dasharray="4 3"/>',
                f'<path d="M114 {y - 8} L128 {y + 8}" stroke="{dark}" {mirror}/>',
                f'<path d="M126 {y - 9} q10 6 6 15 m-5 -3 l5 4 l4 -6" fill="none" stroke="{dark}" stroke-width="1.5"/>',
                _text(141, y + 4, "dark: turning", dark, size=11.5),
                _line(RIGHT, y, 283, y, theme.line),
            ]
    return _image(marks)


def _y(row: int) -> int:
    return TOP + ROW * row


def _servers(theme: Theme) -> str:
    return "".join(
        f'<rect x="{x}" y="{_y(row) - 11}" width="34" height="22" rx="3" fill="{theme.panel}" stroke="{theme.line}"/>'
        + _text(x + 17, _y(row) + 4.5, f"S{row}", theme.ink, "middle")
        for row in range(4)
        for x in (0.5, 283)
    )


def _box(x: int, fill: str, stroke: str) -> str:
    return (
        f'<rect x="{x}" y="1" width="{RIGHT - LEFT}" height="{HEIGHT - 4}" rx="6" fill="{fill}" '
        f'stroke="{stroke}" stroke-width="1.4"/>'
    )


def _packet(x: int, y: int, destination: int) -> str:
    colour, ink = COLOURS[destination], TEXT_ON[destination]
    square = f'<rect x="{x}" y="{y - 7}" width="14" height="14" rx="2" fill="{colour}"/>'
    return square + _text(x + 7, y + 4, str(destination), ink, "middle", 10.5, bold=True)


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<path d="M{x1} {y1} L{x2} {y2}" stroke="{colour}" stroke-width="1.3"/>'


def _text(
    x: float,
    y: float,
    words: str,
    colour: str,
    anchor: str = "start",
    size: float = 12.5,
    *,
    bold: bool = False,
) -> str:
    weight = ' font-weight="700"' if bold else ""
    return (
        f'<text x="{x}" y="{y}" fill="{colour}" text-anchor="{anchor}" font-size="{size}" '
        f'font-family="Source Sans 3, Source Sans Pro, Segoe UI, Arial, sans-serif"{weight}>{words}</text>'
    )


def _image(marks: list[str]) -> str:
    drawing = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}">{"".join(marks)}</svg>'
    )
    return "data:image/svg+xml;base64," + base64.b64encode(drawing.encode()).decode()


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
QUESTIONS = (
    ("How fast can my job get, and is that proved?", "Schedule"),
    ("Does switching pay, and against which network?", "Compare"),
    ("What does it cost, and what does it save?", "Cost"),
    ("Do the published speed-ups hold?", "Published results"),
)


def introduction(theme: Theme) -> None:
    """Draw the two switches beside each other, and five words with the way to the tour."""
    packets, circuits, words = st.columns([1.28, 1.28, 1.2], gap="medium")
    with packets:
        chart_title("Packet switch", "reads each packet and sends it anywhere")
        _picture(
            packet_switch(theme),
            PACKETS_ALT,
            "Any port to any port, at every moment.",
            "Each port needs a transceiver, which takes power.",
        )
    with circuits:
        chart_title("Optical circuit switch", "reads nothing, steers light from fibre to fibre")
        _picture(
            circuit_switch(theme),
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
                "**60-second tour**",
                icon=":material/play_arrow:",
                **{"learn.short": "yes"},
            )


def _picture(address: str, alt: str, line: str, note: str) -> None:
    st.html(
        f'<img class="picture" src="{address}" alt="{alt}"><p class="card">{line}<br><span>{note}</span></p>'
    )


def questions() -> None:
    """Draw the four questions, each with the page that answers it."""
    chart_title("Which question brings you here?")
    for column, (question, title) in zip(st.columns(len(QUESTIONS)), QUESTIONS, strict=True):
        with column.container(key=f"question_{title.split()[0]}"):
            st.html(f'<p class="question">{question}</p>')
            page_link(title, f"{title} →")
