"""The page Plans: how to split a model over servers, searched operator by operator, or judged on the fabric that runs it."""

from collections import Counter
from dataclasses import replace
from functools import partial

import streamlit as st

from topox_core.fabrics.comparison.compare import EQUAL
from topox_core.fabrics.registry import FABRICS
from topox_core.figures.palette import Theme
from topox_core.figures.strategy import before_and_after, placements, strategies_on_fabrics, walk
from topox_core.runs.run import FunctionRun
from topox_core.strategy.fabric_table import StrategyTable, table_sentence
from topox_core.strategy.models import Model
from topox_core.strategy.search.evaluator import computing_ms
from topox_core.strategy.search.moves import MoveProgress
from topox_core.strategy.search.search import SearchResult
from topox_core.strategy.strategy import Strategy
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
from topox_ui.shell.charts import Content, button, chart, frame, headline, kpis, quiet
from topox_ui.shell.panel import watched
from topox_ui.strategy.controls import Answer, Search, import_box, start
from topox_ui.strategy.details import (
    IN_VIEW,
    loaded_job_note,
    operator_costs,
    operators_table,
    placed,
    strategy_link,
    take_strategy_away,
)
from topox_ui.strategy.state import OWN_STRATEGY, StrategyState

WHERE = {"switch": "one packet switch", "circuits": "fixed circuits"}
WIRED = {"switch": "one switch", "circuits": "circuits fixed before the job"}


def search_view(model: Model, search: Search, theme: Theme) -> None:
    """Draw the search: not begun, running, or its answer."""
    answer = run_owner().results(search.kind).get(search.key)
    if search.on_fabric and answer and search.fabric not in answer.fabrics:
        search = replace(search, fabric=answer.fabrics[-1])  # stopped before its turn
    cluster, operators = search.cluster, plural(len(search.graph.operators), "operator")
    wired = WIRED.get(search.network) or (
        f"{FABRICS[search.fabric]}, delay {delay_label(cluster.reconfiguration_ms)}"
    )
    kicker = (
        f"Plans · {search.graph.name} · {plural(cluster.servers, 'server')}, "
        f"{cluster.ports_per_server} × {cluster.port_gbps:g}G, {wired}"
    )
    if isinstance(answer, StrategyTable):
        _fabric_finding(kicker, search, answer)
    elif answer is not None:
        _finding(kicker, search, answer)
    elif search.on_fabric:
        headline(
            kicker,
            f"Which split of <b>{operators}</b> suits the fabric that will run "
            "it? Each fabric gets a search of its own, which starts from data parallelism and is never slower.",
        )
    else:
        headline(
            kicker,
            f"How should <b>{operators}</b> be split over "
            f"<b>{plural(cluster.servers, 'server')}</b>? The search starts from data parallelism and is never slower.",
        )
    loaded_job_note()
    if model.shape is None and not search.on_fabric:
        quiet(
            "Whole plans (TP, PP, DP, EP and microbatches) are ranked for <b>language models</b>: choose Llama 3 or a mixture "
            "of experts under Model."
        )
    if search.network == "switch":
        button(
            "Split for circuits",
            "to_circuits",
            "cable",
            lambda: StrategyState.choose(network="circuits"),
            help="Circuits that are fixed before the job; the search then changes them with the strategy.",
        )
    if answer is None and opening(search):
        start(search)
    _actions(search, answer)
    live = None if search.on_fabric else partial(_live, theme)
    if not watched(search.kind, "Searching", live, search.key) and answer is not None:
        _answer(search, answer, theme)
    operator_costs(search.graph, cluster.servers)


def best_and_first(search: Search, answer: Answer | StrategyTable) -> tuple[Strategy, Strategy]:
    """Return the best strategy found, and that of data parallelism, where the search began."""
    if isinstance(answer, StrategyTable):
        return answer.best(search.fabric).strategy, answer.start.strategy
    return answer.strategy, answer.start


def _actions(search: Search, answer: Answer | StrategyTable | None) -> None:
    """Draw what can be done: search, which rests while a search runs, or take the answer away; import, and link."""
    with st.container(horizontal=True, vertical_alignment="center", key="strategy_actions"):
        if answer is None:
            running = run_owner().run(search.kind, search.key) is not None
            button("Search", "search", "search", start, search, primary=True, disabled=running)
        import_box()
        if answer is not None:
            take_strategy_away(search, *best_and_first(search, answer))
        strategy_link()


def opening(search: Search) -> bool:
    """Whether the page is as it opens and has not been searched: then it begins by itself."""
    begun = run_owner().begun(search.kind, search.key)
    return not (begun or OWN_STRATEGY.there) and StrategyState.now() == StrategyState()


def _finding(kicker: str, search: Search, answer: Answer) -> None:
    computing, before = (
        float(computing_ms(search.graph, strategy).max())
        for strategy in (answer.strategy, answer.start)
    )
    waiting, waited = answer.iteration_ms - computing, answer.start_ms - before
    headline(
        kicker,
        f"{finding(answer, WHERE[search.network])} {_why(answer, computing - before, waiting - waited)}".strip(),
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
    if answer.speed_up <= 1 + EQUAL:
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
    if answer.speed_up > 1 + EQUAL:
        less = percent(1 - answer.iteration_ms / answer.start_ms)
        words = (
            f"Of {tried} tried on {where}, the best takes <b>{time(answer.iteration_ms)}</b>: "
            f"<b>{less}</b> less than plain data parallelism ({plain})."
        )
    else:
        words = f"Of {tried} tried on {where}, none beats plain data parallelism by more than {percent(EQUAL)}: <b>{plain}</b>."
    return words + (" No other strategy is faster: every one was tried." if proved else "")


def _before_and_after(search: Search, answer: Answer, theme: Theme) -> None:
    """Draw the iteration of data parallelism and that of the strategy found, and what they are spent on."""
    rows = [
        (words, total_ms, float(computing_ms(search.graph, strategy).max()))
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


def _answer(search: Search, answer: Answer | StrategyTable, theme: Theme) -> None:
    best, first = best_and_first(search, answer)
    if isinstance(answer, StrategyTable):
        frame(
            _beside(answer),
            title=(
                "Strategies beside fabrics",
                "ms per iteration, in brackets the lower bound, as on Compare; on each fabric the strategy found for it is fastest",
            ),
        )
    left, right = st.columns([1.25, 1], gap="medium")
    with left:
        if isinstance(answer, StrategyTable):
            chart(
                strategies_on_fabrics(answer, theme),
                "strategies_on_fabrics",
                "Iteration time by fabric, of data parallel and of the strategy found for the fabric.",
                lambda: _beside(answer),
                title=("Gain from a strategy for each fabric", "tick: lower bound"),
            )
        else:
            _before_and_after(search, answer, theme)
            _walked(answer, theme)
        rows = operators_table(search.graph, best, first)
        frame(
            [{name: row[name] for name in IN_VIEW} for row in rows],
            title=("The best strategy", "beside data parallelism; what differs comes first"),
        )
    with right:
        chart(
            placements(best, theme),
            "placements",
            f"Servers of each of {len(best.placements)} operators. The table has the same.",
            lambda: rows,
            title=("Servers of each operator", "operators down, servers across"),
        )
    if search.on_fabric:
        quiet(
            "Estimates guide the search: each proposal goes through the fast simulator, a lower bound and a few quick "
            "plans. The most promising are then run on the fabric itself; the page shows only these times."
        )


def _walked(answer: Answer, theme: Theme) -> None:
    """Draw the walk that found the best strategy."""
    drawn = walk(
        (),
        answer.moves,
        answer.start_ms,
        answer.iteration_ms,
        answer.proposals,
        theme,
        answer.tried,
    )
    chart(
        drawn,
        "walk",
        f"Iteration time by strategies tried: from {short(answer.start_ms)} to {short(answer.iteration_ms)} ms in "
        f"{len(answer.moves)} accepted moves.",
        lambda: _moves(answer),
        "Every accepted move",
        title=("The search", "each point is a change that was kept; line: the best so far"),
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


def _fabric_finding(kicker: str, search: Search, table: StrategyTable) -> None:
    headline(kicker, table_sentence(table, search.fabric, lambda words: f"<b>{words}</b>"))
    found, row = table.searches[search.fabric], table.best(search.fabric)
    outcome = row.outcomes[search.fabric]
    best, first = (one.placements for one in best_and_first(search, table))
    changed = sum(a != b for a, b in zip(best, first, strict=True))
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
        ("Operators split differently", count(changed), f"of {plural(len(best), 'operator')}"),
    )


def _beside(table: StrategyTable) -> Content:
    """Return a row per strategy and a column per fabric."""
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
