"""Strategies beside fabrics: what each strategy found for one fabric takes on every other."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from topox_core.fabrics.comparison.compare import chosen, same_time
from topox_core.fabrics.registry import FABRICS
from topox_core.runs.run import Stop, never
from topox_core.strategy.co_optimisation import (
    CROSSING,
    CoOptimised,
    CoProgress,
    co_optimise,
)
from topox_core.strategy.on_fabrics import ModelOnCluster, Outcome
from topox_core.strategy.search.moves import SearchSettings
from topox_core.strategy.strategy import Placement, Strategy
from topox_core.text.numbers import first_that_holds, short, time

# Whom a fabric is compared with in a sentence: circuits that stay, or else the plan.
RIVALS = ("static", "scheduled")


@dataclass(frozen=True)
class TableRow:
    """A strategy, the fabrics for which it is the best one known, and what it takes on each."""

    strategy: Strategy
    found_for: tuple[str, ...]
    outcomes: Mapping[str, Outcome]


@dataclass(frozen=True)
class StrategyTable:
    """Strategies by fabrics; the first row is data parallel, or what stands for it.

    Attributes
    ----------
    fabrics
        Of the columns, in their order.
    searches
        What was found for each fabric.
    stopped_by
        ``cancelled`` if cells are missing or a search was cut short; ``fixed`` where nothing was left
        to choose; else ``budget``.
    """

    fabrics: tuple[str, ...]
    rows: tuple[TableRow, ...]
    searches: Mapping[str, CoOptimised]
    stopped_by: str

    @property
    def start(self) -> TableRow:
        """Data parallel, or where the searches began."""
        return self.rows[0]

    def best(self, fabric: str) -> TableRow:
        """Return the row of the best strategy known for a fabric: no other is faster there."""
        return next(row for row in self.rows if fabric in row.found_for)

    def speed_up(self, fabric: str) -> float:
        """Return how many times faster than data parallel the best strategy for a fabric is there."""
        best_ms = self.best(fabric).outcomes[fabric].iteration_ms
        return self.start.outcomes[fabric].iteration_ms / best_ms if best_ms > 0 else 1.0


def strategy_table(
    model: ModelOnCluster,
    fabrics: Iterable[str],
    settings: SearchSettings,
    *,
    fixed: Iterable[Placement] = (),
    starts: Iterable[Strategy] = (),
    stop: Stop = never,
    on_progress: Callable[[CoProgress], None] | None = None,
) -> StrategyTable | None:
    """Search a strategy for each fabric and run each of them, and data parallel, on all.

    Whatever was found for one fabric is where the next searches may begin, and a candidate on all of
    them: the best strategy known for a fabric is the fastest of its column, of equal ones the first.
    Where ``stop`` turns true, fabrics whose search had not begun have no column; None if that holds
    for all of them.

    Raises
    ------
    InputError
        As :func:`co_optimise`.
    """
    names = chosen(fabrics)
    fixed, starts = tuple(fixed), tuple(starts)
    model = replace(model, memory_gb=settings.memory_gb)
    report = on_progress or (lambda _progress: None)
    parts = len(names) + (len(names) > 1)
    searches: dict[str, CoOptimised] = {}
    # What the searches ran: the start first, the same for all, then what was found for each fabric.
    known: dict[Strategy, dict[str, Outcome]] = {}
    for part, name in enumerate(names):

        def report_part(progress: CoProgress, part: int = part) -> None:
            report(replace(progress, part=part, parts=parts))

        found = [*starts, *(search.strategy for search in searches.values())]
        one = co_optimise(
            model, name, settings, fixed=fixed, starts=found, stop=stop, on_progress=report_part
        )
        if one is not None:
            searches[name] = one
            known.setdefault(one.start, {})[name] = one.start_outcome
            known.setdefault(one.strategy, {})[name] = one.outcome
    if not searches:
        return None
    cancelled = len(searches) < len(names)
    names = tuple(searches)
    for done, (strategy, outcomes) in enumerate(known.items()):
        if set(outcomes) < set(names) and not stop():
            report(CoProgress("", CROSSING, done, len(known), 0.0, parts - 1, parts))
            outcomes |= model.outcomes(strategy, names, stop)
    endings = {one.stopped_by for one in searches.values()}
    whole = all(set(outcomes) >= set(names) for outcomes in known.values())
    return StrategyTable(
        names,
        _rows(known, names),
        searches,
        "cancelled" if cancelled or not whole or "cancelled" in endings else endings.pop(),
    )


def _rows(
    known: Mapping[Strategy, Mapping[str, Outcome]], names: tuple[str, ...]
) -> tuple[TableRow, ...]:
    """Return the start and every strategy that is the best of a column."""
    best = {
        name: min(
            (strategy for strategy, outcomes in known.items() if name in outcomes),
            key=lambda strategy: known[strategy][name].iteration_ms,
        )
        for name in names
    }
    rows = [
        TableRow(
            strategy,
            tuple(name for name in names if best[name] == strategy),
            {name: outcomes[name] for name in names if name in outcomes},
        )
        for strategy, outcomes in known.items()
    ]
    return (rows[0], *(row for row in rows[1:] if row.found_for))


def table_sentence(
    table: StrategyTable, fabric: str, strong: Callable[[str], str] = lambda words: words
) -> str:
    """Return what judging strategies on a fabric gives there, and what that means beside another fabric."""
    best, start = table.best(fabric), table.start
    best_ms = best.outcomes[fabric].iteration_ms
    label, began = FABRICS[fabric], "data parallel"
    if best is start:
        words = f"{label}: of the strategies tried none is faster than {began}, {strong(time(best_ms))}."
    else:
        start_ms = start.outcomes[fabric].iteration_ms
        words = (
            f"{label}: the strategy found for it takes {strong(time(best_ms))}, "
            f"{strong(short(start_ms / best_ms))} times as fast as {began} there ({time(start_ms)})."
        )
    rival = next((name for name in RIVALS if name in table.fabrics and name != fabric), None)
    if rival is None:
        return words
    theirs = table.best(rival)
    if fabric not in theirs.outcomes or best_ms <= 0:
        return words
    rival_ms, same_ms = (theirs.outcomes[name].iteration_ms for name in (rival, fabric))
    beside = f"{time(rival_ms)}, {strong(short(rival_ms / best_ms))} times that"
    alone = f"on the strategy found for them alone it would be {short(rival_ms / same_ms)} times"
    means = first_that_holds(
        (same_time(rival_ms, best_ms), f"no different ({time(rival_ms)})"),
        (best is theirs, f"{beside}; the strategy is the same"),
        (True, f"{beside}; {alone}"),
    )
    return f"{words} {FABRICS[rival]}, with the strategy found for them: {means}."
