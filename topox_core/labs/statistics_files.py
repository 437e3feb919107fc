"""Statistics of a class as files: a table (CSV), and a page for print (HTML) without a script; no names in either."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from topox_core.io.tables import table_bytes
from topox_core.labs.keys import filled
from topox_core.labs.lab import Lab, Question
from topox_core.labs.lesson import CLASS_SEED
from topox_core.labs.statistics import QuestionStatistics, bin_words, share_words
from topox_core.labs.texts_in import Texts, texts_in
from topox_core.text.numbers import short

COLUMNS = ("question", "answers", "right", "right_again", "mistake", "times")
_WIDEST = 320  # px, of the longest bar
_STYLE = """
body { font: 11pt/1.45 system-ui, sans-serif; color: #000; background: #fff; max-width: 180mm; margin: 10mm auto; }
h1 { font-size: 16pt; } h2 { font-size: 12pt; margin: 6mm 0 1mm; } section { break-inside: avoid; }
table { border-collapse: collapse; } th, td { text-align: left; font-weight: 400; padding: .6mm 2mm; vertical-align: middle; }
.bar { display: inline-block; height: 4mm; background: #0072B2; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
"""


def statistics_rows(
    lab: Lab, every: Sequence[QuestionStatistics], language: str = ""
) -> list[tuple[str, int, float | None, float | None, str, int | None]]:
    """Return a row a question, as :data:`COLUMNS`; shares from 0 to 1, the mistake in its sentence."""
    words = texts_in(language or lab.language)
    rows = []
    for one in every:
        mistake = one.mistakes[0] if one.mistakes else None
        say = "" if mistake is None else words.resolved(mistake[0])
        times = None if mistake is None else mistake[1]
        rows.append((one.question, one.count, one.right, one.right_again, say, times))
    return rows


def statistics_csv(lab: Lab, every: Sequence[QuestionStatistics], language: str = "") -> bytes:
    """Return the statistics as a CSV file."""
    return table_bytes(COLUMNS, statistics_rows(lab, every, language))


def statistics_html(lab: Lab, every: Sequence[QuestionStatistics], language: str = "") -> str:
    """Return the statistics as one HTML document for any printer."""
    words = texts_in(language or lab.language)
    title = escape(f"{words.resolved(lab.title)} · {words.say('stats.title')}")
    parts = [_section(lab, lab.question(one.question), one, words) for one in every]
    return (
        f'<!DOCTYPE html>\n<html lang="{escape(words.language)}"><head><meta charset="utf-8">'
        f"<title>{title}</title><style>{_STYLE}</style></head>\n<body><h1>{title}</h1>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _section(lab: Lab, question: Question, one: QuestionStatistics, words: Texts) -> str:
    screen = lab.screens[lab.screen_of(question.id)]
    text = escape(filled(lab, screen, question.text, CLASS_SEED, words))
    parts = [f"<section><h2>{question.id}. {text}</h2>"]
    line = words.say("stats.answered", count=one.count)
    if one.right is not None:
        line += f" · {words.say('stats.right', share=share_words(one.right))}"
    if one.right is not None and one.right_again is not None:
        before, after = share_words(one.right), share_words(one.right_again)
        line += f" · {words.say('stats.again', before=before, after=after)}"
    parts.append(f"<p>{escape(line)}</p>")
    parts.append(_bars(_spread(lab, question, one, words)))
    said = "".join(
        f"<li>{escape(words.resolved(mistake))} ({count})</li>" for mistake, count in one.mistakes
    )
    parts.append(f"<ul>{said}</ul>" if said else "")
    return "".join(parts) + "</section>"


def _spread(
    lab: Lab, question: Question, one: QuestionStatistics, words: Texts
) -> list[tuple[str, int]]:
    """Return what was answered and how often: options, intervals, or the numbers themselves where they are few."""
    if one.options:
        screen = lab.screens[lab.screen_of(question.id)]
        texts = {o.id: filled(lab, screen, o.text, CLASS_SEED, words) for o in question.options}
        return [(texts[name], count) for name, count in one.options]
    if one.bins:
        return [(bin_words(one.bins, at, words.language), b.count) for at, b in enumerate(one.bins)]
    return [(short(value), 1) for value in one.values]


def _bars(rows: Sequence[tuple[str, int]]) -> str:
    most = max((count for _, count in rows), default=0)
    if not most:
        return ""
    lines = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td><span class="bar" '
        f'style="width:{round(_WIDEST * count / most)}px"></span> {count}</td></tr>'
        for name, count in rows
    )
    return f"<table>{lines}</table>"
