"""The first screen of Compare: who wins in a sentence, the bars, and the same in numbers."""

from __future__ import annotations

import re

import pandas as pd
import streamlit as st

from topox_core.fabrics.compare import fastest, gap
from topox_core.fabrics.registry import FABRICS
from topox_core.fabrics.run import FabricRun
from topox_core.fabrics.verdict import YARDSTICK, sentence, time_rows
from topox_core.figures.fabrics import iteration_bars
from topox_core.figures.palette import Theme
from topox_core.text.choices import chosen_by_all
from topox_core.text.numbers import count, percent, short, time
from topox_ui.compare.contest import Contest, priced_words
from topox_ui.compare.running import Runs
from topox_ui.schedule.solving import Case
from topox_ui.shell.charts import chart, frame, show_error
from topox_ui.shell.page import chart_title, escape, headline, quiet
from topox_ui.state.loading import Loaded, cluster_words

NUMBERS = ("Iteration", "Gap", "Changes", "Dark", "Tax")


def compare_headline(loaded: Loaded, case: Case, contest: Contest, runs: Runs, turn: str) -> None:
    """Write who wins and why: the verdict's first clause as the headline; the rest, and where the answer turns, under it."""
    fat_tree = contest.labels["fat_tree"].replace(", same", " of the same")
    verdict = sentence(runs, {**contest.labels, "fat_tree": fat_tree}).rstrip(".")
    first, *rest = verdict.split("; ")
    delay = (
        f"{short(case.cluster.reconfiguration_ms)}&nbsp;ms delay"
        if case.cluster.reconfiguration_ms
        else "no delay"
    )
    headline(
        f"Compare · {escape(loaded.title)} · {cluster_words(case.cluster)}, {delay}",
        f"{_emphasised(first)}.",
    )
    tail = "; ".join(rest)
    verdict = " ".join(
        part for part in (turn, f"{escape(tail[0].upper() + tail[1:])}." if tail else "") if part
    )
    if verdict:
        st.html(f'<p class="quiet" style="margin-top:-.55rem">{verdict}</p>')


def _emphasised(words: str) -> str:
    """Return a sentence as HTML, its fabrics and numbers with units in bold."""
    text = escape(words)
    names = "|".join(
        sorted(
            (*(w for k, w in FABRICS.items() if k != "fat_tree"), "Fat-tree[^ ]*"),
            key=len,
            reverse=True,
        )
    )
    text = re.sub(rf"({names})", r"<b>\1</b>", text)
    return re.sub(r"(?<![\w.,])(\d[\d.,]*)\s(ms|s|%|times)(?!\w)", r"<b>\1&nbsp;\2</b>", text)


def cannot_run(failed: tuple[str, ...]) -> None:
    """Write why some fabrics cannot run here, a line a reason; the others are compared."""
    for line in failed:
        show_error(line)


def main_figures(contest: Contest, runs: Runs, theme: Theme) -> None:
    """Draw the bars and the same in numbers beside them."""
    left, right = st.columns([1.42, 1], gap="medium")
    buildable = {name: run for name, run in runs.items() if name != YARDSTICK}
    first = fastest(buildable)
    notes = (
        dict.fromkeys(first, "equal")
        if len(first) > 1
        else dict.fromkeys(first, "fastest buildable")
    )
    with left:
        chart_title(
            "One iteration on every fabric, and where its time goes",
            "ms along the critical chain; tick: no iteration on that fabric can be shorter",
        )
        chart(
            iteration_bars(runs, contest.labels, notes, theme),
            "iterations",
            "Iteration time by fabric: "
            + "; ".join(f"{contest.labels[n]} {short(r.iteration_ms)} ms" for n, r in runs.items()),
            lambda: pd.DataFrame(time_rows(runs, contest.labels)),
            "Where the time goes",
        )
    with right:
        chart_title("The same in numbers", "gap: to the lower bound; tax: hops a byte travels")
        frame(
            {
                "Fabric": [contest.labels[name] for name in runs],
                "Iteration": [time(run.iteration_ms) for run in runs.values()],
                "Gap": [_gap_words(run) for run in runs.values()],
                "Changes": [count(run.circuits_changed) for run in runs.values()],
                "Dark": [percent(run.dark_share) for run in runs.values()],
                "Tax": [short(run.traffic.bandwidth_tax) for run in runs.values()],
            },
            column_config={
                name: st.column_config.TextColumn(alignment="right") for name in NUMBERS
            },
        )
        words = {contest.labels[name]: run.chosen_words for name, run in runs.items()}
        if sentence := chosen_by_all(words):
            quiet(escape(sentence))
        for name in ("scheduled", "fat_tree", "static"):
            if name in runs and runs[name].message:
                quiet(f"{escape(contest.labels[name])}: {escape(_polished(runs[name].message))}")
        if "fat_tree" in runs and contest.options.equivalent_gbps is not None:
            quiet(f"{escape(priced_words(runs['fat_tree'].execution.cluster))}")


def _gap_words(run: FabricRun) -> str:
    share = gap(run.iteration_ms, run.bound_ms)
    return percent(share) if share >= 0.0005 else "0\u00a0%"


def _polished(message: str) -> str:
    """Return a message with its times to three digits: the table has all of them."""
    return re.sub(r"\d+\.\d{4,}|\d{5,}", lambda number: short(float(number.group())), message)
