"""The first screen of Compare: who wins in a sentence, the bars, and the same in numbers."""

from __future__ import annotations

import re

import streamlit as st

from topox_core.fabrics import comparison_words
from topox_core.fabrics.compare import fastest
from topox_core.fabrics.comparison_words import YARDSTICK, sentence, time_rows
from topox_core.fabrics.registry import BY_RULE
from topox_core.fabrics.run import FabricRun
from topox_core.figures.fabrics import bar_legend, iteration_bars
from topox_core.figures.palette import Theme
from topox_core.schedule.result import gap
from topox_core.text.choices import chosen_by_all
from topox_core.text.numbers import count, percent, short, time
from topox_core.text.sentences import enumeration
from topox_ui.answers.case import Case
from topox_ui.answers.contest import Contest, priced_words
from topox_ui.answers.running import Runs
from topox_ui.shell.charts import chart, frame, legend_line
from topox_ui.shell.page import chart_title, emphasised, escape, headline, quiet
from topox_ui.state.loading import Loaded, cluster_words

NUMBERS = ("Iteration time", "Gap", "Circuit changes", "Dark time", "Bandwidth tax")


def compare_headline(loaded: Loaded, case: Case, contest: Contest, runs: Runs) -> None:
    """Write whether changing circuits pays at this delay, and by how much."""
    delay_ms = case.cluster.reconfiguration_ms
    delay = f"{short(delay_ms)}&nbsp;ms delay" if delay_ms else "no delay"
    words = comparison_words.headline(runs, contest.spoken)
    if not delay_ms and any(run.circuits_changed for run in runs.values()):
        words += " Changes of circuits take no time here."
    headline(
        f"Compare · {escape(loaded.title)} · {cluster_words(case.cluster)}, {delay}",
        emphasised(words),
    )


def _in_words(contest: Contest) -> dict[str, str]:
    """Return the names of the fabrics as a sentence has them."""
    fat_tree = contest.labels["fat_tree"].replace(", same", " of the same")
    return {**contest.labels, "fat_tree": fat_tree}


def main_figures(contest: Contest, runs: Runs, theme: Theme) -> None:
    """Draw the bars, and the same in numbers under them."""
    buildable = {name: run for name, run in runs.items() if name != YARDSTICK}
    first = fastest(buildable)
    notes = (
        dict.fromkeys(first, "equal")
        if len(first) > 1
        else dict.fromkeys(first, "fastest that can be built")
    )
    chart_title(
        "Iteration time on every fabric, and where it goes",
        "ms along the critical path of each fabric; exposed transfer: nothing computes meanwhile; tick: lower bound",
    )
    legend_line(bar_legend(runs, theme), theme)
    chart(
        iteration_bars(runs, contest.labels, notes, theme, legend=False),
        "iterations",
        "Iteration time by fabric: "
        + "; ".join(f"{contest.labels[n]} {short(r.iteration_ms)} ms" for n, r in runs.items()),
        lambda: time_rows(runs, contest.labels),
        "Where the time goes",
    )
    chart_title(
        "The same in numbers",
        "gap: how far above the lower bound of its own kind of network (planned: of any circuits); "
        "bandwidth tax: bytes carried for each byte sent, above 1 where servers forward data",
        beside=True,
    )
    frame(
        {
            "Fabric": [contest.labels[name] for name in runs],
            "Iteration time": [time(run.iteration_ms) for run in runs.values()],
            "Gap": [_gap_words(run) for run in runs.values()],
            "Circuit changes": [count(run.circuits_changed) for run in runs.values()],
            "Dark time": [percent(run.dark_share) for run in runs.values()],
            "Bandwidth tax": [short(run.traffic.bandwidth_tax) for run in runs.values()],
        },
        column_config={name: st.column_config.TextColumn(alignment="right") for name in NUMBERS},
    )
    _notes(contest, runs)


def _notes(contest: Contest, runs: Runs) -> None:
    """Offer what a referee would ask: why the next fabric is slower, what was chosen, what the same money buys."""
    lines = [sentence(runs, _in_words(contest))]
    words = {contest.labels[name]: run.chosen_words for name, run in runs.items()}
    if chosen := chosen_by_all(words):
        lines.append(chosen)
    lines += [
        f"{contest.labels[name]}: {runs[name].message}"
        for name in ("scheduled", "fat_tree", "static")
        if name in runs and runs[name].message
    ]
    if by_rule := [contest.spoken[name] for name in BY_RULE if name in runs]:
        lines.append(
            f"{enumeration(by_rule)}: a rule, not a plan. A shorter delay can make such an iteration longer; a planned one never."
        )
    if "fat_tree" in runs and contest.options.equivalent_gbps is not None:
        lines.append(priced_words(runs["fat_tree"].execution.cluster))
    with st.expander("Notes", key="compare_notes", type="compact"):
        for line in lines:
            quiet(escape(_polished(line)))


def _gap_words(run: FabricRun) -> str:
    share = gap(run.iteration_ms, run.bound_ms)
    return percent(share) if share >= 0.0005 else "0\u00a0%"


def _polished(message: str) -> str:
    """Return a message with its times to three digits: the table has all of them."""
    return re.sub(r"\d+\.\d{4,}|\d{5,}", lambda number: short(float(number.group())), message)
