"""The picture on the Home page: what a packet switch does, and what an optical circuit switch does."""

from __future__ import annotations

import base64

from topox_core.figures.palette import Theme

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
