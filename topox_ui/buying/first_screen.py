"""The first screen of What to buy: the answer in a sentence, and every network by price and time."""

from __future__ import annotations

import re

import pandas as pd

from topox_core.figures.buying import Drawn, buying_figure
from topox_core.figures.palette import Theme
from topox_core.figures.study_axes import MeasureWords
from topox_core.studies.buying import Question, Row
from topox_core.studies.buying_answer import steps_of_rows
from topox_core.studies.buying_run import Answer
from topox_core.studies.buying_words import (
    finding,
    network_rows,
    short_usd,
    unfit_words,
)
from topox_core.studies.offers import offer_of
from topox_core.text.numbers import plural, short, time
from topox_ui.shell.charts import chart
from topox_ui.shell.page import chart_title, escape, headline, quiet

PRICE = MeasureWords("price of the network", lambda usd: f"${usd / 1000:,.3g}k")
TIME = MeasureWords("iteration time", time)
SO_FAR = "So far: "


def bold(words: str) -> str:
    """Return words with their marked parts in bold, as HTML."""
    return re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", escape(words)).replace("\u00a0", "&nbsp;")


def buying_headline(answer: Answer) -> None:
    """Write what to buy."""
    question = answer.question
    cluster = question.cluster
    kicker = (
        f"What to buy · {escape(question.resolved.title)} · {plural(cluster.servers, 'server')}, "
        f"{plural(question.gpus, 'GPU')}, {cluster.port_gbps:g}G ports"
    )
    words = finding(answer)
    if not answer.rows:
        words = (
            "Which **optical switch** is worth buying for this job, and when would it no longer be?"
        )
    elif not answer.complete:
        words = SO_FAR + words
    headline(kicker, bold(words))


def networks(answer: Answer, theme: Theme) -> None:
    """Draw every network by price and time, with its table."""
    usual = [row for row in answer.rows if row.choice.level == "usual" and row.known]
    if not usual:
        return
    chart_title(
        "Time against price",
        "each network at its usual figures, with the ends of their ranges; step line: nothing beats these in time and price",
    )
    found = answer.verdict
    choices = [row.choice for row in found.best] if found else []
    best = [k for k, row in enumerate(usual) if row.choice in choices]
    drawn = [_drawn(answer.question, row, answer.rows) for row in usual]
    steps = steps_of_rows(usual)
    drawn = [
        Drawn(one.name, one.price, one.time, one.rival, k in steps, one.words)
        for k, one in enumerate(drawn)
    ]
    alt = "; ".join(f"{one.name}: {time(one.time[1])}, {short_usd(one.price[1])}" for one in drawn)
    chart(
        buying_figure(drawn, PRICE, TIME, theme, best, steps),
        "buying_networks",
        f"Iteration time against price of the network. {alt}.",
        lambda: pd.DataFrame(network_rows(answer)),
        "Every network",
    )
    for line in unfit_words(answer.question.unfits):
        quiet(escape(line))


def _drawn(question: Question, row: Row, rows: tuple[Row, ...]) -> Drawn:
    same = [
        one
        for one in rows
        if (one.choice.key, one.choice.degree) == (row.choice.key, row.choice.degree) and one.known
    ]
    prices = [one.network_usd or 0.0 for one in same]
    times = [one.iteration_ms or 0.0 for one in same]
    usd, ms, watts = row.network_usd or 0.0, row.iteration_ms or 0.0, row.network_w or 0.0
    several = len(question.degrees) > 1
    name, vendor = row.choice.name, ""
    if not row.choice.rival:
        one = offer_of(question.offers, row.choice.key)
        name, vendor = one.name, f"{one.vendor}, " if one.vendor else ""
    if several:
        name = f"{name}, {row.choice.degree}"
    spent = question.usd_per_iteration(ms, usd, watts)
    return Drawn(
        escape(name),
        (min(prices), usd, max(prices)),
        (min(times), ms, max(times)),
        row.choice.rival,
        words=f"{escape(vendor)}{short_usd(spent)} per iteration, {short(watts)} W",
    )
