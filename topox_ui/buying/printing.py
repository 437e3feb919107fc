"""Which switch, on paper: A4 across, without menus and buttons, black on white, tables in full."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from topox_core.figures.palette import Theme
from topox_core.studies.buying import buying_study
from topox_core.studies.buying_run import Answer
from topox_core.studies.buying_words import as_record, network_rows, offer_rows, swing_rows
from topox_core.studies.study import dump_study
from topox_core.text.numbers import short
from topox_ui.buying.state import chosen_offers
from topox_ui.shell.downloads import csv_of, download_menu, graph_kept_here, link_menu, stem
from topox_ui.shell.page import escape


def files_menu(answer: Answer) -> None:
    """Offer the networks as a study file, the tables as CSV, the whole answer as JSON, and a link."""
    question = answer.question
    name = stem(f"buy-{question.resolved.title}")
    with st.container(horizontal=True, key="buying_files"):
        download_menu(
            name,
            [
                ("Study (JSON)", ".study.json", lambda: dump_study(buying_study(question))),
                (
                    "Networks (CSV)",
                    ".networks.csv",
                    lambda: csv_of(network_rows(answer)),
                ),
                (
                    "What it depends on (CSV)",
                    ".tornado.csv",
                    lambda: csv_of(swing_rows(answer)),
                ),
                (
                    "Answer (JSON)",
                    ".buying.json",
                    lambda: (json.dumps(as_record(answer), indent=1) + "\n").encode(),
                ),
            ],
        )
        link_menu(graph_kept_here())


# The page is as wide as the paper, so that no figure is cut: plotly does not draw anew to print.
PAPER_PX = 1_045


def print_style(theme: Theme) -> None:
    """Write the style sheet of the page on paper."""
    # A figure of the dark theme has light letters; turned round they are dark and colours stay.
    turned = "" if theme.name == "light" else "filter: invert(1) hue-rotate(180deg);"
    st.html(f"""<style>
[data-testid="stMainBlockContainer"] {{ max-width: calc({PAPER_PX}px + 3.5rem); }}
.asked-back {{ margin: 0 !important; padding: 0 !important; }}
.asked-back dt {{ font-weight: 600; font-size: .95rem; color: {theme.ink}; }}
.asked-back dd {{ margin: 0 0 .55rem !important; color: {theme.ink}; }}
.only-print {{ display: none; }}
@page {{ size: A4 landscape; margin: 9mm; }}
@media print {{
  html, body, .stApp, [data-testid="stAppViewContainer"], [data-testid="stMain"] {{ background: #fff !important;
    color: #000 !important; height: auto !important; overflow: visible !important; position: static !important; }}
  [data-testid="stHeader"], [data-testid="stSidebar"], [data-testid="stExpandSidebarButton"], [data-testid="stStatusWidget"],
  [data-testid="stToolbar"], .stButton, .stDownloadButton, [data-testid="stPopover"], [data-testid="stExpander"],
  [data-testid="stProgress"], [data-testid="stFileUploader"], [data-testid="stElementToolbar"], .st-key-buying_switches,
  .st-key-buying_files, .st-key-views, .ask, .by-itself, iframe {{ display: none !important; }}
  .stApp *:not(svg):not(svg *) {{ color: #000 !important; }}
  [data-testid="stMainBlockContainer"] {{ padding: 0 !important; max-width: none !important; }}
  [data-testid="stPlotlyChart"] {{ break-inside: avoid; {turned} }}
  .asked-back dt {{ break-after: avoid; }} .asked-back dd {{ break-inside: avoid; }}
  .term {{ border: 0 !important; }}
  .only-print {{ display: block; break-before: page; }}
  .only-print table {{ border-collapse: collapse; width: 100%; font-size: 8.5pt; }}
  .only-print th, .only-print td {{ border: 0 !important; border-bottom: 1px solid #999 !important; padding: 1.5pt 4pt !important;
    text-align: left; }}
  .only-print tr {{ break-inside: avoid; }} .only-print thead {{ display: table-header-group; }}
}}
</style>""")


def tables_for_print(answer: Answer) -> None:
    """Write the tables that the screen shows when they are opened, for paper only."""
    rows = [
        {name: value for name, value in row.items() if name not in ("note",)}
        for row in network_rows(answer)
    ]
    parts = [_table("Every network", rows)] if rows else []
    parts.append(_table("Switches on offer", offer_rows(chosen_offers())))
    st.html(f'<div class="only-print">{"".join(parts)}</div>')


def _table(title: str, rows: Sequence[Mapping[str, Any]]) -> str:
    head = "".join(f"<th>{escape(str(name))}</th>" for name in rows[0])
    body = "".join(
        "<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row.values()) + "</tr>"
        for row in rows
    )
    return (
        f"<p><b>{title}</b></p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        if 0 < abs(value) < 1e-3:
            return f"{value:.3g}"
        return f"{value:,.0f}" if abs(value) >= 1000 else short(value)
    return escape(str(value))
