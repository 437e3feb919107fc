"""A card's answer: theirs against ours as figures, the table, the reasons."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from topox_core.figures.palette import Theme
from topox_core.figures.papers import paired
from topox_core.papers.card import Answer, Card
from topox_core.papers.rows import APART, VERDICTS, Row, counted_verdicts
from topox_core.text.foreign import escape_untrusted
from topox_core.text.numbers import short
from topox_ui.shell.charts import chart, frame, kpis
from topox_ui.shell.page import chart_title, escape, write_html


def finding(card: Card, answer: Answer | None) -> str:
    """Return the headline's HTML: what came out, or what the original shows while nothing has been run."""
    return (
        escape(card.shows)
        if answer is None or not answer.rows
        else f"<b>{escape(answer.finding)}</b>"
    )


def draw_answer(card: Card, answer: Answer, theme: Theme) -> None:
    """Draw facts, one chart a series, its table with the reasons, and the remarks."""
    if answer.facts:
        kpis(*list(answer.facts))
    for line in answer.lost:
        st.warning(f"Rows are missing: {escape_untrusted(line, 'markdown')}")
    present = [key for key in card.series if answer.of(key)]
    if not present:
        return
    series = present[0]
    if len(present) > 1:
        series = (
            st.segmented_control(
                "Series",
                present,
                default=present[0],
                format_func=lambda key: card.series[key],
                key=f"gallery_series_{card.name}",
                label_visibility="collapsed",
            )
            or present[0]
        )
    rows = answer.of(series)
    chart_title(escape(card.series[series]), counted_verdicts(rows), beside=True)
    chart(paired(rows, theme, card.logarithmic), f"gallery_{card.name}", _alt(card, series, rows))
    reasons(rows)
    frame(table(rows), column_config={"why": st.column_config.TextColumn(width="large")})
    if answer.remarks:
        chart_title("Why it came out so")
        write_html("".join(f'<p class="note">{escape(line)}</p>' for line in answer.remarks))


def reasons(rows: tuple[Row, ...]) -> None:
    """Write why rows do not match or do not count, those with the same reason together."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.counted_as in APART:
            key = (row.verdict_words, row.kind_reason or row.reason)
            grouped.setdefault(key, []).append(row.item)
        elif row.verdict != "match":
            grouped.setdefault((VERDICTS[row.verdict][0], row.reason), []).append(row.item)
    write_html(
        "".join(
            f'<p class="quiet"><b>{sign} {escape(", ".join(items))}</b> {escape(reason)}</p>'
            for (sign, reason), items in grouped.items()
        )
        or '<p class="quiet">Every row matches.</p>'
    )


def table(rows: tuple[Row, ...]) -> pd.DataFrame:
    """Return rows as a table: all digits, the verdict in sign and words or the kind, the reason."""
    unit = f" ({rows[0].unit})" if rows and rows[0].unit else ""
    content: dict[str, list[object]] = {
        "row": [row.item for row in rows],
        "on": [row.about for row in rows],
        f"theirs{unit}": [row.theirs for row in rows],
        f"ours{unit}": [round(row.ours, 6) for row in rows],
        "deviation": ["" if row.deviation is None else f"{row.deviation:+.1%}" for row in rows],
        "verdict": [row.verdict_words for row in rows],
    }
    if any(row.bound is not None for row in rows):
        content[f"bound{unit}"] = [row.bound for row in rows]
    return pd.DataFrame(
        {**content, "why": [f"{row.reason} {row.kind_reason}".rstrip() for row in rows]}
    )


def _alt(card: Card, series: str, rows: tuple[Row, ...]) -> str:
    worst = max(rows, key=lambda row: abs(row.deviation or 0.0))
    off = ""
    if worst.theirs is not None:
        off = f" Furthest off is {worst.item}: {short(worst.ours)} against {short(worst.theirs)}."
    return f"{card.title}, {card.series[series]}: printed and computed values of {len(rows)} rows. {counted_verdicts(rows)}.{off}"
