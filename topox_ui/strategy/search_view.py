"""The page Plans: how to split a model over servers, searched operator by operator, or judged on the fabric that runs it."""

from collections import Counter
from dataclasses import replace
from functools import partial

import streamlit as st

from topox_core.fabrics.registry import FABRICS
from topox_core.figures.palette import Theme
from topox_core.figures.strategy import before_and_after, placements, strategies_on_fabrics, walk
from topox_core.runs.run import FunctionRun
from topox_core.strategy.fabric_table import StrategyTable, table_sentence
from topox_core.strategy.models import Model
from topox_core.strategy.on_fabrics import cluster_of
from topox_core.strategy.search.evaluator import computing_ms
from topox_core.strategy.search.moves import MoveProgress
from topox_core.strategy.search.search import SearchResult
from topox_core.text.numbers import (
    STRATEGY_STOPPED_BY,
    count,
    delay_label,
    enumeration,
    percent,
    plural,
    short,
    time,
)
from topox_ui.runs.owner import run_owner
from topox_ui.runs.panel import watched
from topox_ui.shell.charts import Content, button, chart, chart_title, frame, headline, kpis, quiet
from topox_ui.strategy.controls import (
    ON_FABRIC,
    SEARCH,
    Answer,
    FabricSearch,
    Request,
    search_actions,
    start,
    start_on_fabrics,
)
from topox_ui.strategy.details import (
    loaded_job_note,
    operator_costs,
    operators_table,
    placed,
    strategy_table,
    take_strategy_away,
)
from topox_ui.strategy.state import OWN_STRATEGY, StrategyState

WHERE = {"switch": "one packet switch", "circuits": "fixed circuits"}
WON = 1.0005  # a speed-up below this is none


def search_view(model: Model, request: Request, theme: Theme) -> None:
    """Draw the search: not begun, running, or its answer."""
    answer = run_owner().results(SEARCH).get(request.key)
    kicker = (
        f"Plans · {model.name} · {plural(request.servers, 'server')}, {request.ports} × {request.port_gbps:g}G, "
        + ("one switch" if request.network == "switch" else "circuits fixed before the job")
    )
    if answer is None:
        headline(
            kicker,
            f"How should <b>{plural(len(request.graph.operators), 'operator')}</b> be split over "
            f"<b>{plural(request.servers, 'server')}</b>? The search starts from data parallelism and is never slower.",
        )
    else:
        _headline(kicker, request, answer)
    loaded_job_note()
    if model.shape is None:
        quiet(
            "Whole plans (TP, PP, DP, EP and microbatches) are ranked for <b>language models</b>: choose Llama 3 or a mixture "
            "of experts under Model."
        )
    if request.network == "switch":
        button(
            "Split for circuits",
            "to_circuits",
            "cable",
            lambda: StrategyState.choose(network="circuits"),
            help="Circuits that are fixed before the job; the search then changes them with the strategy.",
        )
    if answer is None and opening(request):
        start(request)
    take_away = None
    if answer is not None:
        take_away = partial(
            take_strategy_away,
            request.graph,
            answer.strategy,
            answer.start,
            cluster_of(request.servers, request.ports, request.port_gbps),
            request.settings.memory_gb,
        )
    search_actions(SEARCH, request, start, take_away)
    live = partial(_live, theme)
    if not watched(SEARCH, "Searching", live, request.key) and answer is not None:
        _answer(request, answer, theme)
    operator_costs(request.graph, request.servers)


def opening(request: Request) -> bool:
    """Whether the page is as it opens and has not been searched: then it begins by itself."""
    owner = run_owner()
    asked = (
        owner.run(SEARCH) is not None
        or owner.note(SEARCH)
        or owner.cancelled(SEARCH, request.key)  # such as in the line, where nothing is kept
    )
    own_file = OWN_STRATEGY.there
    return not (asked or own_file) and StrategyState.now() == StrategyState()


def _headline(kicker: str, request: Request, answer: Answer) -> None:
    computing, before = (
        float(computing_ms(request.graph, strategy).max())
        for strategy in (answer.strategy, answer.start)
    )
    waiting, waited = answer.iteration_ms - computing, answer.start_ms - before
    headline(
        kicker,
        f"{finding(answer, WHERE[request.network])} {_why(answer, computing - before, waiting - waited)}".strip(),
    )
    kpis(
        ("Iteration time", time(answer.iteration_ms), "simulated"),
        ("Data parallelism", time(answer.start_ms), "where the search begins"),
        ("Strategies tried", count(answer.tried), _how_many(answer)),
        ("Computing", time(computing), f"data parallelism {time(before)}"),
        ("Waiting for data", time(waiting), f"data parallelism {time(waited)}"),
    )


def _why(answer: Answer, more_computing_ms: float, more_waiting_ms: float) -> str:
    """Return which split is the best one, and why it wins, in a sentence."""
    if answer.speed_up <= WON:
        return ""
    placed = answer.strategy.placements
    parts, often = Counter(p.partitions for p in placed).most_common(1)[0]
    most = "every operator" if often == len(placed) else f"{often:,} of {len(placed):,} operators"
    plain = Counter(p.partitions for p in answer.start.placements).most_common(1)[0][0]
    if parts == 1:
        words = f"It runs {most} on one server each"
        words += f", not split over {plain}" if plain != parts else ""
    else:
        words = f"It splits the batch of {most} over {parts} servers"
        words += f", not {plain}" if plain != parts else ""
    if more_computing_ms > 0 > more_waiting_ms:
        return f"{words}: the busiest server computes longer, but waits less for data."
    return f"{words}: servers wait less for data." if more_waiting_ms < 0 else f"{words}."


def _how_many(answer: Answer) -> str:
    """Return how the strategies tried came about, or why there are no more."""
    after = answer.tried - answer.proposals
    if after and answer.stopped_by == "budget":
        return f"{count(answer.proposals)} at random, then {count(after)} in order"
    return STRATEGY_STOPPED_BY[answer.stopped_by]


def finding(answer: Answer, where: str) -> str:
    """Return what the search found on a network against data parallelism, in a sentence or two."""
    proved = isinstance(answer, SearchResult) and answer.proved
    plain, tried = time(answer.start_ms), plural(answer.tried, "strategy", "strategies")
    if answer.speed_up > WON:
        less = percent(1 - answer.iteration_ms / answer.start_ms)
        words = (
            f"Of {tried} tried on {where}, the best takes <b>{time(answer.iteration_ms)}</b>: "
            f"<b>{less}</b> less than plain data parallelism ({plain})."
        )
    else:
        words = f"Of {tried} tried on {where}, none beats plain data parallelism: <b>{plain}</b>."
    return words + (" No other strategy is faster: every one was tried." if proved else "")


def _before_and_after(request: Request, answer: Answer, theme: Theme) -> None:
    """Draw the iteration of data parallelism and that of the strategy found, and what they are spent on."""
    rows = [
        (words, total_ms, float(computing_ms(request.graph, strategy).max()))
        for words, strategy, total_ms in (
            ("data parallelism", answer.start, answer.start_ms),
            ("best found", answer.strategy, answer.iteration_ms),
        )
    ]
    chart(
        before_and_after(rows, theme),
        "before_and_after",
        "Iteration time: "
        + "; ".join(
            f"{words} {time(ms)}, of which {time(part)} computing" for words, ms, part in rows
        ),
        lambda: [
            {
                "strategy": words,
                "computing (ms)": computing,
                "waiting (ms)": total - computing,
                "iteration (ms)": total,
            }
            for words, total, computing in rows
        ],
        title=(
            "One iteration before and after",
            "ms; what its busiest server computes, and waits for data",
        ),
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
            f"Iteration time after {done} strategies.",
        )


def _answer(request: Request, answer: Answer, theme: Theme) -> None:
    left, right = st.columns([1.25, 1], gap="medium")
    with left:
        _before_and_after(request, answer, theme)
        chart(
            walk(
                (),
                answer.moves,
                answer.start_ms,
                answer.iteration_ms,
                answer.proposals,
                theme,
                answer.tried,
            ),
            "walk",
            f"Iteration time by strategies tried: from {short(answer.start_ms)} to {short(answer.iteration_ms)} ms in "
            f"{len(answer.moves)} accepted moves.",
            lambda: _moves(answer),
            "Every accepted move",
            title=("The search", "each point is a change that was kept; line: the best so far"),
        )
        chart_title("The best strategy", "beside data parallelism; what differs comes first")
        strategy_table(request.graph, answer.strategy, answer.start)
    with right:
        chart(
            placements(answer.strategy, theme),
            "placements",
            f"Servers of each of {len(request.graph.operators)} operators. The table has the same.",
            lambda: operators_table(request.graph, answer.strategy, answer.start),
            title=("Servers of each operator", "operators down, servers across"),
        )


def _moves(answer: Answer) -> Content:
    return [
        {
            "strategy": m.proposal,
            "operator": m.operator or "circuits",
            "why": m.reason,
            "before (ms)": m.before_ms,
            "after (ms)": m.after_ms,
            "changes": "; ".join(
                f"{new.operator}: {placed(old)} → {placed(new)}"
                for old, new in zip(m.before[:6], m.after[:6], strict=True)
            ),
        }
        for m in answer.moves
    ]


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
    search_actions(ON_FABRIC, search, start_on_fabrics, take_away)
    if not watched(ON_FABRIC, "Searching", key=search.key) and table is not None:
        _answer_on_fabrics(search, table, theme)
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


def _answer_on_fabrics(search: FabricSearch, table: StrategyTable, theme: Theme) -> None:
    frame(
        _beside(table),
        title=(
            "Strategies beside fabrics",
            "ms per iteration, in brackets the lower bound, as on Compare; on each fabric the strategy found for it is fastest",
        ),
    )
    best = table.best(search.fabric).strategy
    left, right = st.columns([1.25, 1], gap="medium")
    with left:
        chart(
            strategies_on_fabrics(table, theme),
            "strategies_on_fabrics",
            "Iteration time by fabric, of data parallel and of the strategy found for the fabric.",
            lambda: _beside(table),
            title=("Gain from a strategy for each fabric", "tick: lower bound"),
        )
        chart_title("The best strategy", "beside data parallelism; what differs comes first")
        strategy_table(search.model.graph, best, table.start.strategy)
    with right:
        chart(
            placements(best, theme),
            "placements",
            f"Servers of each of {len(best.placements)} operators. The table has the same.",
            lambda: operators_table(search.model.graph, best, table.start.strategy),
            title=("Servers of each operator", "operators down, servers across"),
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
