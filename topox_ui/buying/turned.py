"""The questions turned round, what the answer hangs on, and what is not counted."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from topox_core.figures.buying import Swinging, tornado
from topox_core.figures.palette import Theme
from topox_core.studies.buying_run import Answer, base_lead
from topox_core.studies.buying_words import caveats, questions_turned, swing_rows
from topox_core.text.numbers import NBSP, percent
from topox_ui.buying.first_screen import bold
from topox_ui.shell.charts import chart
from topox_ui.shell.page import chart_title, escape, quiet, write_html

LEAD = Swinging(
    "saving", 100.0, f"{NBSP}%", lambda share: f"{100 * share:.1f}{NBSP}%", percent, 2.0, True
)


def questions(answer: Answer) -> None:
    """Write the questions turned round with their answers."""
    lines = questions_turned(answer)
    if not lines:
        return
    chart_title(
        "The question turned round", "the best switch on offer against the best network without one"
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
        "What the answer hangs on",
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
        lambda: pd.DataFrame(swing_rows(answer)),
        "In numbers",
    )


def notes(answer: Answer) -> None:
    """Write what every answer hangs on and what is not counted."""
    with st.container(key="buying_notes"):
        chart_title("What this rests on")
        quiet("<br>".join(escape(line) for line in caveats(answer.question)))
