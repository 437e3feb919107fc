"""The first screen of Which switch: the answer in a sentence, and every network by price and time."""

from __future__ import annotations

import re

import streamlit as st

from topox_core.figures.buying import Drawn, Swinging, buying_figure, tornado
from topox_core.figures.palette import Theme
from topox_core.figures.study_axes import MeasureWords
from topox_core.studies.buying import Question, Row
from topox_core.studies.buying_answer import steps_of_rows
from topox_core.studies.buying_run import Answer, base_lead
from topox_core.studies.buying_words import (
    caveats,
    finding,
    network_rows,
    questions_turned,
    short_usd,
    swing_rows,
    unfit_words,
)
from topox_core.studies.offers import offer_of
from topox_core.text.numbers import NBSP, percent, plural, short, time
from topox_ui.shell.charts import chart
from topox_ui.shell.page import chart_title, escape, headline, quiet, write_html

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
        f"Which switch · {escape(question.resolved.title)} · {plural(cluster.servers, 'server')}, "
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
        "each network at its usual figures, with the ends of their ranges; step line: no network is both faster and cheaper",
    )
    found = answer.verdict
    choices = [row.choice for row in found.best] if found else []
    best = [k for k, row in enumerate(usual) if row.choice in choices]
    steps = steps_of_rows(usual)
    drawn = [_drawn(answer.question, row, answer.rows, k in steps) for k, row in enumerate(usual)]
    alt = "; ".join(f"{one.name}: {time(one.time[1])}, {short_usd(one.price[1])}" for one in drawn)
    chart(
        buying_figure(drawn, PRICE, TIME, theme, best, steps),
        "buying_networks",
        f"Iteration time against price of the network. {alt}.",
        lambda: network_rows(answer),
        "Every network",
    )
    for line in unfit_words(answer.question.unfits):
        quiet(escape(line))


def _drawn(question: Question, row: Row, rows: tuple[Row, ...], on_step: bool) -> Drawn:
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
        on_step,
        f"{escape(vendor)}{short_usd(spent)} per iteration, {short(watts)} W",
    )


LEAD = Swinging(
    "saving", 100.0, f"{NBSP}%", lambda share: f"{100 * share:.1f}{NBSP}%", percent, 2.0, True
)


def questions(answer: Answer) -> None:
    """Write the break-even points."""
    lines = questions_turned(answer)
    if not lines:
        return
    chart_title(
        "Break-even points", "the best switch on offer against the best network without one"
    )
    pairs = "".join(f"<dt>{escape(asked)}</dt><dd>{bold(words)}</dd>" for asked, words in lines)
    write_html(f'<dl class="asked-back">{pairs}</dl>')


def hangs_on(answer: Answer, theme: Theme) -> None:
    """Draw how far the lead of the best switch swings with each figure."""
    found = answer.verdict
    if not answer.swings or found is None or not found.compared:
        return
    base = base_lead(answer)
    rival = found.rival.choice.name
    chart_title(
        "What the answer depends on",
        f"what {escape(found.offer.choice.name)} saves against {escape(rival[0].lower() + rival[1:])} when one figure goes "
        f"from low to high; now {percent(base).replace('-', '−')}",
    )
    chart(
        tornado(answer.swings, base, theme, LEAD),
        "buying_tornado",
        f"Saving of the best switch, now {percent(base)}: "
        + "; ".join(
            f"{one.name} "
            + ", ".join(f"{end[0]} gives {percent(end[1])}" for end in (one.low, one.high) if end)
            for one in answer.swings
        ),
        lambda: swing_rows(answer),
        "In numbers",
    )


def notes(answer: Answer) -> None:
    """Write what every answer depends on and what is not counted."""
    with st.container(key="buying_notes"):
        chart_title("What this rests on")
        quiet("<br>".join(escape(line) for line in caveats(answer.question)))
