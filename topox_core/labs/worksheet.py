"""A lab on paper: predictions on page 1, worked answers on page 2, the seed at the foot, keys on pages of their own.

One HTML file without a script, for A4 and Letter.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from html import escape
from types import MappingProxyType
from typing import Any

from topox_core.labs.generators.board import Board
from topox_core.labs.generators.fan_out import FanOut
from topox_core.labs.generators.four_jobs import NAMES, FourJobs
from topox_core.labs.generators.mix import Mix
from topox_core.labs.generators.pairs import Pairs
from topox_core.labs.generators.patience import Patience
from topox_core.labs.generators.turns import Turns
from topox_core.labs.generators.windows import Windows
from topox_core.labs.keys import (
    filled,
    given_table,
    instance_of,
    key_of,
    matrix_of,
    names_a_value,
    option_texts,
    written,
)
from topox_core.labs.lab import Lab, Question, Screen
from topox_core.labs.paper import on_paper
from topox_core.labs.texts_in import Texts, texts_in
from topox_core.model.task_graph import TaskGraph

# Sizes in tenths of a mm.
WIDE, LANE, NAME = 860, 62, 105
THIN, THICK = 1.5, 3.0
TYPE = 27
# Axes to draw on reach so far for every seed, so that they tell nothing.
DELAYS_MS, ITERATION_MS = 20, 140


def given_figure(lab: Lab, screen: Screen, seed: int) -> str:
    """Return the figure of what is given on a screen; empty where it has none."""
    instance = instance_of(lab, screen, seed)
    draw = _GIVEN.get(type(instance))
    return "" if draw is None else draw(instance)


def answer_grid(lab: Lab, screen: Screen, seed: int) -> str:
    """Return a grid of lanes over time to draw a schedule on; empty where a screen asks for none."""
    if "hand_gantt" not in screen.show:
        return ""
    instance = instance_of(lab, screen, seed)
    if isinstance(instance, FanOut):
        lanes = ["port 1", "port 2", *(f"server {k}" for k in range(1, 5))]
        return _grid(lanes, instance.first_ms + sum(instance.sent_mb) + max(instance.computed_ms))
    if isinstance(instance, Board | Patience):
        return _grid(_lanes_of(instance.graph()), _serial_ms(instance.graph()))
    return ""


def _lanes_of(graph: TaskGraph) -> list[str]:
    """Return a lane for each server that computes and each port that sends."""
    lanes: list[str] = []
    for server in range(graph.servers):
        if any(task.server == server for task in graph.tasks):
            lanes.append(f"server {server}")
        if any(task.source == server for task in graph.tasks):
            lanes.append(f"port of {server}")
    return lanes


def _serial_ms(graph: TaskGraph) -> int:
    """Return how long everything takes one after another: longer than any answer."""
    computed = sum(task.duration_ms or 0 for task in graph.tasks)
    return math.ceil(computed + sum((task.size_bytes or 0) / 1e6 for task in graph.tasks))


def _svg(height: float, title: str, parts: Sequence[str], width: float = WIDE) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(title)}" '
        f'viewBox="0 0 {width:g} {height:g}" style="width:{width / 10:g}mm;height:{height / 10:g}mm" '
        f'font-family="sans-serif" font-size="{TYPE}" fill="#000">{"".join(parts)}</svg>'
    )


def _line(x1: float, y1: float, x2: float, y2: float, width: float = THIN, dash: str = "") -> str:
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#000" '
        f'stroke-width="{width:g}"{dashes}/>'
    )


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _grid(lanes: Sequence[str], until_ms: int) -> str:
    """Return empty lanes with a line a millisecond, numbered every five."""
    step = (WIDE - NAME - 10) / until_ms
    bottom = LANE * len(lanes)
    parts = [_text(NAME - 8, LANE * (at + 0.65), name, "end") for at, name in enumerate(lanes)]
    parts += [_line(NAME, LANE * at, WIDE - 10, LANE * at) for at in range(len(lanes) + 1)]
    for ms in range(until_ms + 1):
        x = NAME + ms * step
        parts.append(
            _line(x, 0, x, bottom, THICK if ms % 5 == 0 else THIN, "" if ms % 5 == 0 else "2 6")
        )
        if ms % 5 == 0:
            parts.append(_text(x, bottom + TYPE + 4, str(ms)))
    parts.append(_text(NAME - 8, bottom + TYPE + 4, "ms", "end"))
    return _svg(bottom + TYPE + 14, "empty lanes over time", parts)


def _axes(across: str, up: str, x_most: int, y_most: int, x_step: int, y_step: int) -> str:
    """Return empty axes with a grid to draw straight lines on."""
    left, top, right, bottom = 90, 12, WIDE - 40, 380
    parts = []
    for x_value in range(0, x_most + 1, x_step):
        x = left + (right - left) * x_value / x_most
        parts += [_line(x, top, x, bottom, THIN, "2 6"), _text(x, bottom + TYPE + 2, f"{x_value}")]
    for y_value in range(0, y_most + 1, y_step):
        y = bottom - (bottom - top) * y_value / y_most
        parts += [
            _line(left, y, right, y, THIN, "2 6"),
            _text(left - 8, y + 9, f"{y_value}", "end"),
        ]
    parts += [_line(left, bottom, right, bottom, THICK), _line(left, top, left, bottom, THICK)]
    parts += [
        _text((left + right) / 2, bottom + 2 * TYPE + 8, across),
        _text(left + 12, top + 24, up, "start"),
    ]
    return _svg(bottom + 2 * TYPE + 20, f"empty axes: {across}, {up}", parts)


def _circle(n: int, pairs: Mapping[tuple[int, int], str]) -> str:
    """Return servers in a circle, with lines between pairs that have a name."""
    centre, radius, width = 230.0, 180.0, 460.0
    places = [
        (
            centre + radius * math.sin(2 * math.pi * k / n),
            centre - radius * math.cos(2 * math.pi * k / n),
        )
        for k in range(n)
    ]
    parts = []
    for (a, b), name in pairs.items():
        (x1, y1), (x2, y2) = places[a], places[b]
        parts.append(_line(x1, y1, x2, y2, THIN, "8 6"))
        # Off the middle, where lines cross.
        x, y = x1 + 0.36 * (x2 - x1), y1 + 0.36 * (y2 - y1)
        parts.append(
            f'<rect x="{x - 44:.1f}" y="{y - 18:.1f}" width="88" height="32" fill="#fff"/>'
        )
        parts.append(_text(x, y + 9, name))
    for k, (x, y) in enumerate(places):
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="26" fill="#fff" stroke="#000" stroke-width="{THICK}"/>'
        )
        parts.append(_text(x, y + 10, str(k)))
    named = "; ".join(f"{a} and {b}: {name}" for (a, b), name in pairs.items())
    return _svg(width, f"{n} servers in a circle" + (f"; {named}" if named else ""), parts, width)


def _bars(
    rows: Sequence[tuple[str, float, str]], title: str, mark: tuple[float, str] | None
) -> str:
    """Return horizontal bars from 0 with what they say; ``mark`` is a place across all, with its name."""
    left, most = 150.0, max(value for _, value, _ in rows)
    scale = (WIDE - left - 140) / most
    parts = []
    for at, (name, value, words) in enumerate(rows):
        y = 44 * at + 6
        parts.append(_text(left - 8, y + 26, name, "end"))
        parts.append(
            f'<rect x="{left}" y="{y}" width="{value * scale:.1f}" height="32" fill="#fff" stroke="#000" '
            f'stroke-width="{THIN}"/>'
        )
        parts.append(_text(left + value * scale + 10, y + 26, words, "start"))
    bottom = 44.0 * len(rows) + 6
    if mark is not None:
        x = left + mark[0] * scale
        parts += [_line(x, 0, x, bottom, THICK, "10 6"), _text(x, bottom + TYPE, mark[1])]
        bottom += TYPE + 6
    content = "; ".join(f"{name} {words}" for name, _, words in rows)
    return _svg(bottom + 4, f"{title}: {content}", parts)


def _of_windows(one: Windows) -> str:
    """Return the windows by length on a logarithmic scale, so that short ones are seen beside long ones."""
    rows = [(f"{k}", math.log10(1 + ms), f"{ms} ms") for k, ms in enumerate(one.lengths_ms, 1)]
    return _bars(rows, "windows, logarithmic", (math.log10(26), "25 ms"))


def _of_jobs(one: FourJobs) -> str:
    rows = [
        row
        for k, name in enumerate(NAMES)
        for row in (
            (name, float(one.sending_s[k]), f"sends {one.sending_s[k]} s"),
            ("", float(one.training_s[k]), f"trains {one.training_s[k]} s"),
        )
    ]
    return _bars(rows, "jobs", None)


def _of_pairs(one: Pairs) -> str:
    named = {pair: f"{2 * mb} MB" for pair, mb in zip(one.pairs, one.each_way_mb, strict=True)}
    return _circle(one.servers, named)


def _of_turns(_: Turns) -> str:
    return _axes("reconfiguration delay (ms)", "iteration (ms)", DELAYS_MS, ITERATION_MS, 2, 20)


def _of_mix(one: Mix) -> str:
    return _circle(one.servers, {})


_GIVEN: Mapping[type, Callable[[Any], str]] = MappingProxyType(
    {Windows: _of_windows, FourJobs: _of_jobs, Pairs: _of_pairs, Turns: _of_turns, Mix: _of_mix}
)


# Options of at most so many characters in all stand in one line.
ONE_LINE = 34


def check_digits(lab: Lab, seed: int) -> str:
    """Return six digits of lab and seed, so that a sheet of paper can be told from another."""
    text = f"topox-sheet/1|{lab.digest}|{seed}"
    return f"{int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], 'big') % 1_000_000:06d}"


def worksheets(
    lab: Lab, seeds: Sequence[tuple[str, int]], with_key: bool = False, language: str = ""
) -> str:
    """Return the sheets of students as one HTML document.

    Parameters
    ----------
    seeds
        Name (empty: a line to write on) and seed of each.
    with_key
        Whether pages with the keys follow after all sheets.
    """
    words = texts_in(language or lab.language)
    return on_paper(
        "worksheet.html",
        lab=lab,
        words=words,
        title=words.resolved(lab.title),
        seeds=seeds,
        with_key=with_key,
        check_digits=check_digits,
        screens_of=partial(_screens, lab, words),
        key_words=partial(_key_words, lab),
    )


def _key_words(lab: Lab, question: Question, seed: int) -> str:
    truth = key_of(lab, question, seed)
    number = isinstance(truth, int | float)
    return f"{written(truth, question.digits if number else None)} {question.unit}".strip()


def _screens(lab: Lab, words: Texts, stage: str, seed: int) -> Iterator[dict[str, Any]]:
    """Yield what the template needs of the screens of a stage; an instance is tabulated where it is first asked about."""
    tabled = set()
    for screen in lab.screens:
        if screen.stage != stage:
            continue
        table = None
        if screen.instance not in tabled:
            table = given_table(lab, screen, seed)
            tabled.add(screen.instance)
        yield {
            # Paper shows everything at once: a text with a computed value is for after its reveal.
            "text": ""
            if names_a_value(lab, screen)
            else filled(lab, screen, screen.text, seed, words),
            "table": table,
            "figure": given_figure(lab, screen, seed),
            "asked": [_asked(lab, screen, question, seed, words) for question in screen.questions],
        }


def _asked(lab: Lab, screen: Screen, question: Question, seed: int, words: Texts) -> dict[str, Any]:
    """Return a question in words with the form of its answer: options, an empty matrix, the names of a table."""
    options = [*option_texts(lab, question, seed, words).values()]
    matrix = matrix_of(lab, question, seed) if question.type == "matrix" else None
    table = given_table(lab, screen, seed)
    return {
        "question": question,
        "text": filled(lab, screen, question.text, seed, words),
        "grid": answer_grid(lab, screen, seed) if question is screen.questions[0] else "",
        "options": options,
        "short": sum(map(len, options)) <= ONE_LINE,
        "matrix": matrix,
        "empty": [(row, *[""] * len(matrix.columns)) for row in matrix.rows] if matrix else [],
        "names": [row[0] for row in table.rows] if table else [],
    }
