"""What leaves the page What to buy: the study, the tables, the figure of the switches, a link."""

from __future__ import annotations

import json

import pandas as pd
import streamlit as st

from topox_core.studies.buying import buying_study
from topox_core.studies.buying_run import Answer
from topox_core.studies.buying_words import as_record, network_rows, swing_rows
from topox_core.studies.study_file import dump_study
from topox_ui.shell.downloads import csv_of, download_menu, graph_kept_here, link_menu, stem


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
                    lambda: csv_of(pd.DataFrame(network_rows(answer))),
                ),
                (
                    "What it hangs on (CSV)",
                    ".tornado.csv",
                    lambda: csv_of(pd.DataFrame(swing_rows(answer))),
                ),
                (
                    "Answer (JSON)",
                    ".buying.json",
                    lambda: (json.dumps(as_record(answer), indent=1) + "\n").encode(),
                ),
            ],
        )
        link_menu(graph_kept_here())
