"""The page Plans, judged on a fabric: the strategy found for it, and strategies beside fabrics."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import streamlit as st

from topox_core.fabrics.registry import FABRICS
from topox_core.figures.palette import Theme
from topox_core.figures.strategy import placements, strategies_on_fabrics
from topox_core.strategy.fabric_table import StrategyTable, table_sentence
from topox_core.text.numbers import count, delay_label, percent, plural, short, time
from topox_core.text.sentences import STRATEGY_STOPPED_BY, enumeration
from topox_ui.runs.owner import run_owner
from topox_ui.runs.panel import watched
from topox_ui.shell.charts import Content, chart, frame, kpis
from topox_ui.shell.page import chart_title, headline, quiet
from topox_ui.strategy.controls import search_actions
from topox_ui.strategy.details import (
    loaded_job_note,
    operator_costs,
    operators_table,
    take_strategy_away,
)
from topox_ui.strategy.fabric_run import ON_FABRIC, FabricSearch, start


def fabric_view(search: FabricSearch, theme: Theme) -> None:
    """Draw the search: not begun, running, or its answer."""
    model = search.model
    table: StrategyTable | None = run_owner().results(ON_FABRIC).get(search.key)
    if table is not None and search.fabric not in table.fabrics:  # stopped before its turn
        search = replace(search, fabric=table.fabrics[-1])
    cluster = model.cluster
    kicker = (
        f"Plans · {model.graph.name} · {plural(cluster.servers, 'server')}, "
        f"{cluster.ports_per_server} × {cluster.port_gbps:g}G, {FABRICS[search.fabric]}, "
        f"delay {delay_label(cluster.reconfiguration_ms)}"
    )
    if table is None:
        headline(
            kicker,
            f"Which split of <b>{plural(len(model.graph.operators), 'operator')}</b> suits the fabric that will run "
            "it? Each fabric gets a search of its own, which starts from data parallelism and is never slower.",
        )
    else:
        headline(kicker, table_sentence(table, search.fabric, lambda words: f"<b>{words}</b>"))
        _key_figures(search, table)
    loaded_job_note()
    take_away = None
    if table is not None:
        take_away = partial(
            take_strategy_away,
            model.graph,
            table.best(search.fabric).strategy,
            table.start.strategy,
            cluster,
            search.settings.memory_gb,
        )
    search_actions(ON_FABRIC, search, start, take_away)
    if not watched(ON_FABRIC, "Searching", key=search.key) and table is not None:
        _answer(search, table, theme)
    operator_costs(model.graph, cluster.servers)


def _key_figures(search: FabricSearch, table: StrategyTable) -> None:
    found, row = table.searches[search.fabric], table.best(search.fabric)
    outcome = row.outcomes[search.fabric]
    changed = sum(
        a != b
        for a, b in zip(row.strategy.placements, table.start.strategy.placements, strict=True)
    )
    gap = 1 - outcome.bound_ms / outcome.iteration_ms if outcome.iteration_ms > 0 else 0.0
    kpis(
        (
            "Iteration time",
            time(outcome.iteration_ms),
            f"on {FABRICS[search.fabric]}, as on Compare",
        ),
        (
            "Lower bound",
            time(outcome.bound_ms),
            f"of this strategy, {percent(max(0.0, gap))} below",
        ),
        (
            "Data parallelism",
            time(found.start_outcome.iteration_ms),
            f"{short(table.speed_up(search.fabric))} times that of the best",
        ),
        ("Strategies tried", count(found.proposals), STRATEGY_STOPPED_BY[table.stopped_by]),
        (
            "Operators split differently",
            count(changed),
            f"of {plural(len(row.strategy.placements), 'operator')}",
        ),
    )


def _answer(search: FabricSearch, table: StrategyTable, theme: Theme) -> None:
    chart_title(
        "Strategies beside fabrics",
        "ms per iteration, in brackets the lower bound, as on Compare; on each fabric the strategy found for it is fastest",
    )
    frame(_beside(table))
    best = table.best(search.fabric).strategy
    left, right = st.columns([1.25, 1], gap="medium")
    with left:
        chart_title("Gain from a strategy for each fabric", "tick: lower bound")
        chart(
            strategies_on_fabrics(table, theme),
            "strategies_on_fabrics",
            "Iteration time by fabric, of data parallel and of the strategy found for the fabric.",
            lambda: _beside(table),
        )
        chart_title("The best strategy", "beside data parallelism; what differs comes first")
        frame(operators_table(search.model.graph, best, table.start.strategy))
    with right:
        chart_title("Servers of each operator", "operators down, servers across")
        chart(
            placements(best, theme),
            "placements",
            f"Servers of each of {len(best.placements)} operators. The table has the same.",
            lambda: operators_table(search.model.graph, best, table.start.strategy),
        )
    quiet(
        "Estimates guide the search: each proposal goes through the fast simulator, a lower bound and a few quick "
        "plans. The most promising are then run on the fabric itself; the page shows only these times."
    )


def _beside(table: StrategyTable) -> Content:
    """Return a row a strategy and a column a fabric."""
    rows = []
    for k, row in enumerate(table.rows):
        words = ["data parallel"] if k == 0 else []
        if row.found_for == table.fabrics and len(table.fabrics) > 2:
            words.append("best for all")
        elif row.found_for:
            words.append(f"best for {enumeration([FABRICS[name] for name in row.found_for])}")
        cells = {
            FABRICS[name]: f"{one.iteration_ms:.6g} ({one.bound_ms:.6g})"
            if (one := row.outcomes.get(name))
            else ""
            for name in table.fabrics
        }
        rows.append({"strategy": ", ".join(words)} | cells)
    return rows
