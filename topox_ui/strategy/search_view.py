"""The Strategy page: how to split a model over servers, searched operator by operator."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pandas as pd
import streamlit as st

from topox_core.figures.palette import Theme
from topox_core.figures.strategy import placements, walk
from topox_core.io.task_graph_file import dump_graph_json
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph
from topox_core.runs.run import FunctionRun
from topox_core.strategy.models import Model
from topox_core.strategy.moves import MoveProgress
from topox_core.strategy.operators import OperatorGraph
from topox_core.strategy.search import SearchResult
from topox_core.strategy.strategy_file import dump_strategy
from topox_core.strategy.task_graph import task_graph
from topox_core.text.numbers import count, plural, short, time
from topox_core.text.status_words import STRATEGY_STOPPED_BY
from topox_ui.runs.owner import run_owner
from topox_ui.runs.panel import run_note, run_panel
from topox_ui.shell.charts import chart, frame, kpis
from topox_ui.shell.downloads import download_menu, offer_task_graph
from topox_ui.shell.page import chart_title, escape, headline, quiet
from topox_ui.state.loading import fitting
from topox_ui.strategy.controls import import_box
from topox_ui.strategy.search_run import SEARCH, Answer, Request, start


def search_view(model: Model, request: Request, theme: Theme) -> None:
    """Draw the search: not begun, running, or its answer."""
    owner = run_owner()
    answer = owner.results(SEARCH).get(request.key)
    kicker = (
        f"Strategy · {model.name} · {plural(request.servers, 'server')}, {request.ports} × {request.port_gbps:g}G, "
        + ("one switch" if request.network == "switch" else "circuits fixed before the job")
    )
    measured, every = _sources(request.graph)
    if answer is None:
        headline(
            kicker,
            f"How should <b>{plural(len(request.graph.operators), 'operator')}</b> be split over "
            f"<b>{plural(request.servers, 'server')}</b>? The search starts from data parallel and is never slower.",
        )
    else:
        _headline(kicker, request, answer)
    with st.container(horizontal=True, vertical_alignment="center", key="strategy_actions"):
        running = owner.run(SEARCH, request.key) is not None
        st.button(
            "Search" if answer is None else "Searched",
            type="primary" if answer is None else "secondary",
            key="search",
            icon=":material/search:",
            disabled=running or answer is not None,
            on_click=start,
            args=(request,),
        )
        import_box()
        if answer is not None:
            _take_away(request, answer)
    run_note(SEARCH)
    if running:
        run_panel(SEARCH, "Searching", partial(_live, theme))
    elif answer is not None:
        _answer(request, answer, theme)
    source_words = (
        "all measured"
        if measured == every
        else f"{measured} of {plural(every, 'cost')} measured, the rest a roofline"
    )
    chart_title(
        "What an operator costs",
        f"ms on one server, forward + backward, by number of partitions; {source_words}",
    )
    frame(
        _costs(request.graph, request.servers),
        column_config={"parameters": st.column_config.NumberColumn(format="localized")},
    )
    quiet(f"{escape(request.graph.source)}")


def _headline(kicker: str, request: Request, answer: Answer) -> None:
    proved = isinstance(answer, SearchResult) and answer.proved
    if answer.speed_up > 1.0005:
        words = (
            f"The best strategy found takes <b>{time(answer.iteration_ms)}</b>, <b>{short(answer.speed_up)} times</b> as fast as "
            f"data parallel ({time(answer.start_ms)})"
        )
    else:
        words = f"Data parallel, <b>{time(answer.start_ms)}</b>, is the best strategy found"
    headline(
        kicker, words + (": every strategy was tried." if proved else "; a better one may exist.")
    )
    changed = sum(
        a != b for a, b in zip(answer.strategy.placements, answer.start.placements, strict=True)
    )
    whole = sum(p.partitions == 1 for p in answer.strategy.placements)
    kpis(
        ("Iteration", time(answer.iteration_ms), "by the search's own simulator"),
        ("Data parallel", time(answer.start_ms), "where the search begins"),
        ("Proposals", count(answer.proposals), STRATEGY_STOPPED_BY[answer.stopped_by]),
        (
            "Operators moved",
            count(changed),
            f"of {plural(len(request.graph.operators), 'operator')}",
        ),
        ("Whole operators", count(whole), "on one server each"),
    )


def _live(theme: Theme, run: FunctionRun[Answer, MoveProgress]) -> None:
    """Draw the walk so far."""
    steps = run.steps
    if steps:
        done = steps[-1].proposals
        chart(
            walk(
                [(p.proposals, p.current_ms) for p in steps],
                (),
                max(p.current_ms for p in steps),
                steps[-1].best_ms,
                done,
                theme,
            ),
            "walk_live",
            f"Iteration time of the chain after {done} proposals.",
        )


def _answer(request: Request, answer: Answer, theme: Theme) -> None:
    left, right = st.columns([1.25, 1], gap="medium")
    with left:
        chart_title("The walk", "accepted moves by reason; line: the best so far")
        chart(
            walk((), answer.moves, answer.start_ms, answer.iteration_ms, answer.proposals, theme),
            "walk",
            f"Iteration time against proposals: from {short(answer.start_ms)} to {short(answer.iteration_ms)} ms in "
            f"{len(answer.moves)} accepted moves.",
            lambda: _moves(answer),
            "Every accepted move",
        )
        chart_title("The best strategy", "beside data parallel; what differs comes first")
        frame(_strategy_table(request, answer))
    with right:
        chart_title("Who works on what", "operators down, servers across")
        chart(
            placements(answer.strategy, theme),
            "placements",
            f"Servers of each of {len(request.graph.operators)} operators. The table has the same.",
        )


def _moves(answer: Answer) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "proposal": m.proposal,
            "operator": m.operator or "circuits",
            "why": m.reason,
            "before (ms)": m.before_ms,
            "after (ms)": m.after_ms,
            "changes": "; ".join(
                f"{new.operator} {old.partitions}@{old.start} → {new.partitions}@{new.start}"
                for old, new in zip(m.before[:6], m.after[:6], strict=True)
            ),
        }
        for m in answer.moves
    )


def _strategy_table(request: Request, answer: Answer) -> pd.DataFrame:
    rows = []
    for new, old in zip(answer.strategy.placements, answer.start.placements, strict=True):
        operator = request.graph.operator(new.operator)
        cost = operator.costs[new.partitions]
        rows.append(
            {
                "operator": new.operator,
                "partitions": new.partitions,
                "first server": new.start,
                "data parallel": f"{old.partitions}@{old.start}",
                "differs": new != old,
                "forward (ms)": cost.forward_ms,
                "backward (ms)": cost.backward_ms,
                "memory (GB)": cost.memory_bytes / 1e9,
                "cost from": cost.source,
            }
        )
    return pd.DataFrame(rows).sort_values("differs", ascending=False, kind="stable")


def _sources(graph: OperatorGraph) -> tuple[int, int]:
    costs = [cost for operator in graph.operators for cost in operator.costs.values()]
    return sum(cost.source == "measured" for cost in costs), len(costs)


def _costs(graph: OperatorGraph, servers: int) -> pd.DataFrame:
    """Return a row an operator, a column a number of partitions that suits the servers; a star marks measured times."""
    partitions = sorted(
        {p for operator in graph.operators for p in graph.choices(operator, servers)}
    )
    rows = []
    for operator in graph.operators:
        allowed = graph.choices(operator, servers)
        source = {operator.costs[p].source for p in allowed}
        rows.append(
            {
                "operator": operator.name,
                "kind": operator.kind,
                "cost from": " and ".join(sorted(source)) or "none",
                "parameters": operator.parameters,
                **{
                    f"in {p}": operator.costs[p].forward_ms + operator.costs[p].backward_ms
                    if p in allowed
                    else None
                    for p in partitions
                },
            }
        )
    return pd.DataFrame(rows)


def _take_away(request: Request, answer: Answer) -> None:
    """Offer the strategy and its task graph as files, and the graph to the other pages."""
    name = f"{request.graph.name}-{request.servers}"
    strategy = answer.strategy
    tasks = partial(task_graph, request.graph, strategy, request.settings.memory_gb)
    download_menu(
        name,
        [
            ("Strategy (JSON)", ".strategy.json", lambda: dump_strategy(strategy)),
            (
                "Data parallel (JSON)",
                "-data-parallel.strategy.json",
                lambda: dump_strategy(answer.start),
            ),
            ("Task graph (JSON)", ".taskgraph.json", lambda: dump_graph_json(tasks())),
        ],
    )
    offer_task_graph(
        "use_graph",
        lambda: with_cluster(tasks(), request.servers, request.ports, request.port_gbps),
        "Load it: Schedule, Circuits, Compare and Topology then show this iteration.",
    )


def with_cluster(
    tasks: TaskGraph, servers: int, ports: int, port_gbps: float
) -> tuple[TaskGraph, Cluster]:
    """Return a generated task graph and a cluster like the one it was made for."""
    cluster = fitting(tasks, None)
    return tasks, replace(
        cluster,
        servers=max(servers, cluster.servers),
        ports_per_server=ports,
        switches=ports,
        port_gbps=port_gbps,
        ports_per_switch=max(servers, cluster.servers),
        name=f"{plural(servers, 'server')}, {ports} optical switches, {port_gbps:g} Gbit/s ports",
    )
