"""A lab on paper: predictions on page 1, worked answers on page 2, the seed at the foot, keys on pages of their own.

One HTML file without a script, for A4 and Letter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from html import escape

from topox_core.labs.generators.generator import GivenTable
from topox_core.labs.keys import (
    filled,
    given_table,
    key_of,
    matrix_of,
    names_a_value,
    options_of,
    written,
)
from topox_core.labs.lab import Lab, Question, Screen
from topox_core.labs.paper_figures import answer_grid, given_figure
from topox_core.labs.texts_in import Texts, texts_in

_STYLE = """
@page { size: auto; margin: 11mm 12mm; }
* { box-sizing: border-box; }
body { font: 11pt/1.28 Georgia, serif; color: #000; background: #fff; margin: 0 auto; max-width: 186mm; }
h1 { font-size: 14pt; margin: 0; } h2 { font-size: 11.5pt; margin: 2mm 0 1mm; } h3 { font-size: 11pt; margin: 0; display: inline; }
p { margin: .8mm 0; } ol { margin: 1mm 0; padding-left: 6mm; }
header { display: flex; justify-content: space-between; align-items: baseline; border-bottom: 0.3mm solid #000; padding-bottom: 1mm; }
section.page { break-after: page; break-inside: avoid; } section.page:last-child { break-after: auto; }
.columns { columns: 2; column-gap: 8mm; } .columns > * { break-inside: avoid; }
article { break-inside: avoid; margin: 0 0 2.4mm; } article h3 + p { display: inline; }
svg { display: block; max-width: 100%; height: auto; margin: 1mm 0; }
table { border-collapse: collapse; margin: 1mm 0; break-inside: avoid; font-size: 10pt; line-height: 1.15; }
th, td { border: 0.3mm solid #000; padding: 0.4mm 1.4mm; text-align: left; min-width: 6.5mm; height: 5.4mm; }
.box { display: inline-block; border: 0.3mm solid #000; height: 7.5mm; width: 34mm; margin: .6mm 1mm 0 0; vertical-align: middle; }
.tall { display: block; height: 27mm; width: 100%; }
ul { list-style: "\\2610  "; margin: .5mm 0; padding-left: 7mm; } ul.short li { display: inline-block; margin-right: 5mm; }
ul.short li::before { content: "\\2610  "; } ul.short { list-style: none; padding: 0; }
footer { border-top: 0.3mm solid #000; margin-top: 2mm; font-size: 9pt; }
"""
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
    pages = [page for name, seed in seeds for page in _sheet(lab, name, seed, words)]
    if with_key:
        pages += [_key_page(lab, name, seed, words) for name, seed in seeds]
    title = escape(words.resolved(lab.title))
    return (
        f'<!DOCTYPE html>\n<html lang="{escape(words.language)}"><head><meta charset="utf-8">'
        f"<title>{title}</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(pages)
        + "\n</body></html>\n"
    )


def _sheet(lab: Lab, name: str, seed: int, words: Texts) -> list[str]:
    head = _head(lab, name, words)
    goals = "".join(f"<li>{escape(words.resolved(goal))}</li>" for goal in lab.goals)
    first = f"{head}<p>{_say(words, 'sheet.goals')}</p><ol>{goals}</ol>"
    first += f"<h2>{_say(words, 'sheet.predictions')}</h2>" + _screens(
        lab, ("predict",), seed, words
    )
    worked = _screens(lab, ("work",), seed, words)
    second = f"{head}<h2>{_say(words, 'sheet.page_two')}</h2>"
    second += f'<div class="columns">{worked}</div>' + _screens(lab, ("explain",), seed, words)
    return [_page(lab, seed, words, body) for body in (first, second)]


def _key_page(lab: Lab, name: str, seed: int, words: Texts) -> str:
    rows = "".join(
        f"<tr><th scope='row'>{question.id}</th><td>{escape(_key_words(lab, question, seed))}</td></tr>"
        for question in lab.questions
        if question.key is not None
    )
    body = f"{_head(lab, name, words)}<h2>{_say(words, 'sheet.key')}</h2><table>{rows}</table>"
    return _page(lab, seed, words, body)


def _key_words(lab: Lab, question: Question, seed: int) -> str:
    truth = key_of(lab, question, seed)
    number = isinstance(truth, int | float)
    return f"{written(truth, question.digits if number else None)} {question.unit}".strip()


def _head(lab: Lab, name: str, words: Texts) -> str:
    line = escape(name) or "_" * 40
    title = escape(words.resolved(lab.title))
    student = f"<span>{_say(words, 'sheet.student')}: {line}</span>"
    return f"<header><h1>{title}</h1>{student}</header>"


def _page(lab: Lab, seed: int, words: Texts, body: str) -> str:
    foot = words.say("sheet.seed", seed=f"{seed:08d}", check=check_digits(lab, seed))
    return (
        f'<section class="page">{body}<footer>{escape(lab.id)} · {escape(foot)}</footer></section>'
    )


def _screens(lab: Lab, stages: tuple[str, ...], seed: int, words: Texts) -> str:
    """Return the screens of some stages; an instance is tabulated where it is first asked about."""
    parts, tabled = [], set()
    for screen in lab.screens:
        if screen.stage not in stages:
            continue
        # Paper shows everything at once: a text with a computed value is for after its reveal.
        text = "" if names_a_value(lab, screen) else filled(lab, screen, screen.text, seed, words)
        if text:
            parts.append(f"<p>{escape(text)}</p>")
        table = given_table(lab, screen, seed)
        if table is not None and screen.instance not in tabled:
            tabled.add(screen.instance)
            parts += [_table(table), given_figure(lab, screen, seed)]
        parts += [_asked(lab, screen, question, seed, words) for question in screen.questions]
    return "".join(parts)


def _asked(lab: Lab, screen: Screen, question: Question, seed: int, words: Texts) -> str:
    text = escape(filled(lab, screen, question.text, seed, words))
    count = "point" if question.points == 1 else "points"
    points = words.say(f"sheet.{count}", points=f"{question.points:g}")
    grid = answer_grid(lab, screen, seed) if question is screen.questions[0] else ""
    return (
        f"<article><h3>{question.id} ({escape(points)})</h3> <p>{text}</p>"
        f"{grid}{_field(lab, screen, question, seed, words)}</article>"
    )


def _field(lab: Lab, screen: Screen, question: Question, seed: int, words: Texts) -> str:
    kind = question.type
    if kind in ("choice", "multi", "order"):
        texts = {one.id: filled(lab, screen, one.text, seed, words) for one in question.options}
        ids = options_of(lab, question, seed)
        said = [texts.get(one, one) for one in ids]
        items = "".join(f"<li>{escape(one)}</li>" for one in said)
        ask = "" if kind == "choice" else f"<p>{_say(words, 'sheet.several')}</p>"
        short = ' class="short"' if sum(map(len, said)) <= ONE_LINE else ""
        return f"{ask}<ul{short}>{items}</ul>"
    if kind == "matrix":
        matrix = matrix_of(lab, question, seed)
        empty = tuple((row, *[""] * len(matrix.columns)) for row in matrix.rows)
        return (
            f"<p>{_say(words, 'sheet.rows')}</p>{_table(GivenTable(('', *matrix.columns), empty))}"
        )
    if kind in ("schedule", "grouping"):
        table = given_table(lab, screen, seed)
        names = [row[0] for row in table.rows] if table else []
        ask = "sheet.starts" if kind == "schedule" else "sheet.groups"
        blank = GivenTable(tuple(names), (("",) * len(names),))
        return f"<p>{_say(words, ask)}</p>{_table(blank)}"
    if kind == "text":
        ask = words.say("sheet.text", least=question.least, most=question.most)
        return f'<p>{escape(ask)}</p><div class="box tall"></div>'
    unit = escape(question.unit)
    return f'<div><span class="box" role="img" aria-label="{_say(words, "sheet.answer")}"></span>{unit}</div>'


def _table(table: GivenTable) -> str:
    head = "".join(f"<th scope='col'>{escape(column)}</th>" for column in table.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell) or '&nbsp;'}</td>" for cell in row) + "</tr>"
        for row in table.rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _say(words: Texts, key: str) -> str:
    return escape(words.say(key))
