"""A lab on paper: predictions on page 1, worked answers on page 2, the seed at the foot, keys on pages of their own.

One HTML file without a script, for A4 and Letter. Pages for any printer come from the templates in
``paper/``: all that is filled in is escaped.
"""

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from topox_core.labs.generators.fixed_circuits import Mix, Pairs
from topox_core.labs.generators.four_jobs import NAMES, FourJobs
from topox_core.labs.generators.one_port import FanOut, Ordered
from topox_core.labs.generators.rails import Windows
from topox_core.labs.generators.turns import Turns
from topox_core.labs.hand_schedule import lane_names
from topox_core.labs.keys import (
    filled,
    given_table,
    in_words,
    instance_of,
    key_of,
    matrix_of,
    names_a_value,
    option_texts,
)
from topox_core.labs.lab import Lab, Screen, Texts, texts_in

# Axes to draw on reach so far for every seed, so that they tell nothing.
DELAYS_MS, ITERATION_MS = 20, 140


def given_figure(lab: Lab, screen: Screen, seed: int) -> str:
    """Return the figure of what is given on a screen; empty where it has none."""
    instance = instance_of(lab, screen, seed)
    draw = _GIVEN.get(type(instance))
    return "" if draw is None else draw(instance)


def answer_grid(lab: Lab, screen: Screen, seed: int) -> str:
    """Return a grid of lanes over time to draw a schedule on; empty where a screen asks for none."""
    instance = instance_of(lab, screen, seed) if "hand_gantt" in screen.show else None
    if isinstance(instance, FanOut):
        lanes = ["port 1", "port 2", *(f"server {k}" for k in range(1, 5))]
        until_ms = instance.first_ms + sum(instance.sent_mb) + max(instance.computed_ms)
        return on_paper("grid.svg", lanes=lanes, until_ms=until_ms)
    if isinstance(instance, Ordered):
        lanes = [
            f"server {server}" if port < 0 else f"port of {server}"
            for server, port, _ in lane_names(instance.graph(), instance.cluster())
        ]
        return on_paper("grid.svg", lanes=lanes, until_ms=instance.sum_ms)
    return ""


def _circle(n: int, pairs: Mapping[tuple[int, int], str]) -> str:
    """Return servers in a circle, with lines between pairs that have a name."""
    centre, radius = 230.0, 180.0
    angles = [2 * math.pi * k / n for k in range(n)]
    places = [(centre + radius * math.sin(at), centre - radius * math.cos(at)) for at in angles]
    return on_paper("circle.svg", places=places, pairs=pairs, width=2 * centre)


def _of_windows(one: Windows) -> str:
    """Return the windows by length on a logarithmic scale, so that short ones are seen beside long ones."""
    rows = [(f"{k}", math.log10(1 + ms), f"{ms} ms") for k, ms in enumerate(one.lengths_ms, 1)]
    mark = (math.log10(26), "25 ms")
    return on_paper("bars.svg", rows=rows, title="windows, logarithmic", mark=mark)


def _of_jobs(one: FourJobs) -> str:
    rows = [
        row
        for k, name in enumerate(NAMES)
        for row in (
            (name, float(one.sending_s[k]), f"sends {one.sending_s[k]} s"),
            ("", float(one.training_s[k]), f"trains {one.training_s[k]} s"),
        )
    ]
    return on_paper("bars.svg", rows=rows, title="jobs", mark=None)


def _of_pairs(one: Pairs) -> str:
    named = {pair: f"{2 * mb} MB" for pair, mb in zip(one.pairs, one.each_way_mb, strict=True)}
    return _circle(one.servers, named)


_GIVEN: Mapping[type, Callable[[Any], str]] = MappingProxyType(
    {
        Windows: _of_windows,
        FourJobs: _of_jobs,
        Pairs: _of_pairs,
        Turns: lambda _: on_paper(
            "axes.svg",
            across="reconfiguration delay (ms)",
            up="iteration (ms)",
            x_most=DELAYS_MS,
            y_most=ITERATION_MS,
            x_step=2,
            y_step=20,
        ),
        Mix: lambda one: _circle(one.servers, {}),
    }
)


# Options of at most so many characters in all stand in one line.
ONE_LINE = 34


def check_digits(lab: Lab, seed: int) -> str:
    """Return six digits of lab and seed, so that a sheet of paper can be told from another."""
    text = f"topox-sheet/1|{lab.digest}|{seed}"
    return f"{int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], 'big') % 1_000_000:06d}"


def worksheets(lab: Lab, seeds: Sequence[tuple[str, int]], with_key: bool = False) -> str:
    """Return the sheets of students as one HTML document.

    Parameters
    ----------
    seeds
        Name (empty: a line to write on) and seed of each.
    with_key
        Whether pages with the keys follow after all sheets.
    """
    words = texts_in(lab.language)
    return on_paper(
        "worksheet.html",
        lab=lab,
        words=words,
        title=words.resolved(lab.title),
        seeds=seeds,
        with_key=with_key,
        check_digits=check_digits,
        screens_of=partial(_screens, lab, words),
        options_of=partial(option_texts, lab),
        matrix_of=partial(matrix_of, lab),
        one_line=ONE_LINE,
        key_words=lambda question, seed: in_words(question, key_of(lab, question, seed)),
    )


def _screens(lab: Lab, words: Texts, stage: str, seed: int) -> Iterator[dict[str, Any]]:
    """Yield what the template needs of the screens of a stage; an instance is tabulated where it is first asked about."""
    tabled = set()
    for screen in (one for one in lab.screens if one.stage == stage):
        given = given_table(lab, screen, seed)
        yield {
            # Paper shows everything at once: a text with a computed value is for after its reveal.
            "text": "" if names_a_value(lab, screen) else screen.text,
            "screen": screen,
            "table": None if screen.instance in tabled else given,
            "names": [row[0] for row in given.rows] if given else [],
            "figure": given_figure(lab, screen, seed),
            "grid": answer_grid(lab, screen, seed),
            "say": partial(filled, lab, screen, seed=seed, words=words),
        }
        tabled.add(screen.instance)


@cache
def _templates() -> Environment:
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent / "paper"),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def on_paper(template: str, **facts: Any) -> str:
    """Return a template of ``paper/`` with what it names filled in."""
    return _templates().get_template(template).render(facts)
