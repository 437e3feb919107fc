"""Compare: the same task graph under every fabric, who wins in a sentence, bars and numbers, and where the answer turns."""

import re
from contextlib import suppress
from functools import partial
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from topox_core.economics.clusters import same_cost_ratio, same_cost_words
from topox_core.errors import InputError
from topox_core.fabrics.comparison import words as comparison_words
from topox_core.fabrics.comparison.compare import EQUAL, fabric_bill, fastest
from topox_core.fabrics.comparison.words import (
    FULL,
    YARDSTICK,
    ahead_of_time,
    time_rows,
    why_longer,
)
from topox_core.fabrics.registry import BY_RULE, FABRICS
from topox_core.fabrics.run import FabricRun, JobRequest
from topox_core.figures.networks.fabrics import bar_legend, iteration_bars
from topox_core.figures.palette import Theme
from topox_core.model.cluster import Cluster
from topox_core.schedule.results.result import gap
from topox_core.text.choices import chosen_by_all
from topox_core.text.numbers import capitalised, count, enumeration, percent, short, time
from topox_ui.answers.clicks import delays_here
from topox_ui.answers.contest import (
    Contest,
    Runs,
    contest_of,
    redraw_when_shorter,
    run_all,
)
from topox_ui.answers.keeping import keep_contest_button
from topox_ui.answers.other_times import other_times
from topox_ui.answers.solving import job_of, shorter_than_first
from topox_ui.answers.verdicts import known_verdict, verdict_line
from topox_ui.compare.gating import changing_gating
from topox_ui.compare.map import KICKER, where_which_wins
from topox_ui.compare.sections import failures, lanes
from topox_ui.runs.owner import run_owner
from topox_ui.shell.charts import (
    as_label,
    chart,
    chart_title,
    csv_of,
    emphasised,
    escape,
    frame,
    headline,
    legend_line,
    quiet,
    show_error,
    show_input_errors,
)
from topox_ui.shell.downloads import figures_file, graph_kept_here, stem, take_away
from topox_ui.state.choices import VARIANTS, ContestState
from topox_ui.state.loading import Loaded, scenario, setting_words
from topox_ui.state.prices import catalogue
from topox_ui.state.what_ifs import (
    collectives,
    delay_and_speed,
    ports_slider,
    reset_button,
    shown_values,
)
from topox_ui.state.widgets import control, pick, sidebar_part, slide

FAT_TREES = {"cost": "same cost", "racks": "racks"}
RATIOS = (1.5, 2.0, 2.5, 3.2, 4.0, 5.0)


def controls(loaded: Loaded) -> None:
    """Draw the sidebar's what-ifs."""
    cluster, settings = shown_values(loaded)
    with sidebar_part("What if"):
        delay_and_speed(
            cluster,
            settings,
            "Each change costs this time, rounded up where plans use whole slots.",
        )
        control(
            "pills",
            ContestState,
            "fabrics",
            label="Fabrics",
            options=FABRICS,
            selection_mode="multi",
            # None at all stands for all of them.
            take=lambda fabrics: ContestState.choose(fabrics=fabrics or None),
        )
        with st.expander("Fat-tree", key="fat_tree_menu", type="compact"):
            _fat_tree(cluster)
        with st.expander("More what-ifs", key="more_compare", type="compact"):
            ports_slider(cluster, settings)
            collectives(
                loaded,
                settings,
                "For circuits that change; fixed circuits run all-reduces on the rings they were laid for.",
            )
            pick(ContestState, "variant", VARIANTS, help="How fixed circuits are laid out.")
            st.caption("Slots, switches and the rest are on Schedule, and hold here too.")
        reset_button()


def _fat_tree(cluster: Cluster) -> None:
    kind = pick(
        ContestState,
        "fat_tree",
        FAT_TREES,
        label="Its bandwidth",
        help="same cost: one slower NIC per server. racks: oversubscribed above the racks. A full fat-tree is shown beside it.",
    )
    if kind == "cost":
        _same_money(cluster, cluster.ports_per_server * cluster.port_gbps)
    else:
        slide(
            ContestState,
            "oversubscription",
            label="Oversubscription",
            words=lambda v: f"{v:g}:1",
            help="The links above a rack carry the bandwidth of its servers divided by this.",
        )
        slide(
            ContestState,
            "servers_per_rack",
            at_most=cluster.servers,
            value=ContestState.now().servers_per_rack or max(1, cluster.servers // 4),
            help="Below the oversubscribed links.",
        )


def _same_money(cluster: Cluster, full: float) -> None:
    """Draw what NIC the circuits' money buys: the price catalogue's figure, or another one to try."""
    priced = float(f"{same_cost_ratio(cluster, catalogue()):.6g}")

    def take(ratio: Any) -> None:
        # The priced one is no choice: it follows the cluster and the catalogue.
        ContestState.choose(cost_ratio=None if ratio == priced else ratio)

    slide(
        ContestState,
        "cost_ratio",
        (*RATIOS, priced),
        label="Same money buys",
        value=ContestState.now().cost_ratio or priced,
        words=lambda v: f"{short(full / v)}G{' (priced)' if v == priced else ''}",
        take=take,
        help=f"Of the {full:g} Gbit/s that a server's circuits have. {as_label(same_cost_words(cluster, catalogue()))} "
        "TopoOpt (NSDI 2023) found a full-bandwidth packet network 3.2 times as expensive as circuits on average.",
    )


# What the ideal switch stands for: its best order known is one in which hosts of a full fat-tree can send.
IN_ORDER = "full fat-tree in an order"
NUMBERS = ("Iteration time", "Gap", "Circuit changes", "Ports dark", "Bandwidth tax")


def _price_of_full(job: JobRequest, contest: Contest, runs: Runs) -> str:
    """Return between commas how many times the price of the fastest of the other networks a full fat-tree has, where it is dearer."""
    others = {name: run for name, run in runs.items() if name not in (YARDSTICK, FULL)}
    with suppress(InputError):  # a port speed without a price
        for name in fastest(others)[:1]:
            full, one = (
                fabric_bill(each, job.cluster, catalogue(), contest.options)
                for each in (FULL, name)
            )
            if full and one and full.cost_usd > one.cost_usd * (1 + EQUAL):
                return f", {short(full.cost_usd / one.cost_usd)} times the price of {contest.spoken[name]},"
    return ""


def bars(contest: Contest, runs: Runs, theme: Theme, legend: bool = False) -> go.Figure:
    """Return the bars of all fabrics, those marked that are fastest of what is run, and what the ideal switch stands for."""
    first = fastest({name: run for name, run in runs.items() if name != YARDSTICK})
    # Not the shortest bar in view where the ideal switch has that.
    after = "" if {*first} & {*fastest(runs)} else " after the ideal"
    notes = {YARDSTICK: IN_ORDER}
    notes |= dict.fromkeys(first, f"{'equal' if len(first) > 1 else 'fastest'}{after}")
    return iteration_bars(runs, contest.labels, notes, theme, first, legend)


def main_figures(contest: Contest, runs: Runs, theme: Theme) -> None:
    """Draw the bars, and the same in numbers under them."""
    chart_title(
        "Iteration time on every fabric, and where it goes",
        "ms along each fabric's critical path; exposed transfer: sending, or waiting for a port, while nothing computes; tick: bound. "
        "Compute is the same work everywhere: a bar has what lies on its own critical path. "
        "The ideal switch is a yardstick that nobody sells: a full fat-tree whose hosts send in an order takes at most as long",
    )
    legend_line(bar_legend(runs, theme), theme)
    chart(
        bars(contest, runs, theme),
        "iterations",
        "Iteration time by fabric: "
        + "; ".join(f"{contest.labels[n]} {short(r.iteration_ms)} ms" for n, r in runs.items()),
        lambda: time_rows(runs, contest.labels),
        "Where the time goes",
    )
    chart_title(
        "The same in numbers",
        "gap: the share of the time above the lower bound of its own kind of network (planned: of any circuits); ports "
        "dark: of all ports' time, where bars show the critical path alone; "
        "bandwidth tax: bytes carried for each byte sent, above 1 where servers forward data",
        beside=True,
    )
    frame(
        {
            "Fabric": [contest.labels[name] for name in runs],
            "Iteration time": [time(run.iteration_ms) for run in runs.values()],
            "Gap": [_gap_words(run) for run in runs.values()],
            "Circuit changes": [count(run.circuits_changed) for run in runs.values()],
            "Ports dark": [percent(run.dark_share) for run in runs.values()],
            "Bandwidth tax": [short(run.traffic.bandwidth_tax) for run in runs.values()],
        },
        column_config={name: st.column_config.TextColumn(alignment="right") for name in NUMBERS},
    )
    quiet(ahead_of_time(runs))
    if by_rule := [contest.spoken[name] for name in BY_RULE if name in runs]:
        names = escape(capitalised(enumeration(by_rule)))
        quiet(
            f"{names} follow a rule, not a plan: a shorter delay can make such an iteration longer, a planned one never."
        )
    _notes(contest, runs)


def _notes(contest: Contest, runs: Runs) -> None:
    """Offer what a referee would ask: why the next fabric is slower, what was chosen, what the same money buys."""
    lines = [why for why in [why_longer(runs, contest.spoken)] if why]
    words = {contest.labels[name]: run.chosen_words for name, run in runs.items()}
    if chosen := chosen_by_all(words):
        lines.append(chosen)
    lines += [
        f"{contest.labels[name]}: {runs[name].message}"
        for name in ("scheduled", "fat_tree", "static")
        if name in runs and runs[name].message
    ]
    if "fat_tree" in runs and contest.options.equivalent_gbps is not None:
        lines.append(same_cost_words(runs["fat_tree"].execution.cluster, catalogue()))
    with st.expander("Notes", key="compare_notes", type="compact"):
        for line in lines:
            quiet(escape(_polished(line)))
    other_times()


def _gap_words(run: FabricRun) -> str:
    share = gap(run.iteration_ms, run.bound_ms)
    return percent(share) if share >= 0.0005 else "0\u00a0%"


def _polished(message: str) -> str:
    """Return a message with its times to three digits: the table has all of them."""
    return re.sub(r"\d+\.\d{4,}|\d{5,}", lambda number: short(float(number.group())), message)


def draw(theme: Theme, opened: Loaded) -> None:
    """Draw the view All fabrics."""
    controls(opened)
    with show_input_errors(f"Compare · {opened.title}"):
        job = job_of(opened, scenario())
        contest = contest_of(job)
        runs, failed = run_all(job, contest)

    if run_owner().busy and "scheduled" in runs:
        redraw_when_shorter(job, runs["scheduled"])
    # Whether changing circuits pays, by how much, and what a full fat-tree takes at how many times the price.
    full = f"{contest.spoken[FULL]}{_price_of_full(job, contest, runs)}"
    known = known_verdict(job)
    headline(
        f"Compare · {escape(opened.title)} · {setting_words(job.cluster)}",
        emphasised(
            comparison_words.headline(
                runs, {**contest.spoken, FULL: full}, known and known.excludes
            )
        ),
    )
    if "scheduled" in runs:
        quiet(shorter_than_first(job, runs["scheduled"].iteration_ms))
    verdict_line(job, runs["scheduled"].iteration_ms if "scheduled" in runs else None)
    for line in failed:  # why some fabrics cannot run here; the others are compared
        show_error(line)
    delays_here(job)
    take_away(
        stem(opened.title),
        [
            (
                "Comparison (CSV)",
                ".comparison.csv",
                lambda: csv_of(time_rows(runs, contest.labels)),
            ),
            figures_file(
                opened.title,
                {"Iteration time": lambda look: bars(contest, runs, look, legend=True)},
            ),
        ],
        {},
        graph_kept_here(),
        keep=partial(keep_contest_button, opened, job, contest, runs),
    )
    main_figures(contest, runs, theme)
    lanes(contest, runs, theme)
    changing_gating(job, theme)
    failures(job, contest, runs, theme)


def draw_map(theme: Theme, opened: Loaded) -> None:
    """Draw the view Where which wins."""
    controls(opened)
    with show_input_errors(f"{KICKER} · {opened.title}"):
        job = job_of(opened, scenario())
        contest = contest_of(job)
    where_which_wins(opened, job, contest, theme)
