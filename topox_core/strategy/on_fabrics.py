"""Strategies on the fabrics that run them: what one takes there, the search that is judged there, each beside every fabric."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from time import monotonic

from topox_core.errors import InputError
from topox_core.fabrics.comparison.compare import (
    chosen,
    compare,
    default_options,
    run_one,
    run_with_best_lowering,
    same_time,
)
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.planning.lowering_search import Case, ring_choices
from topox_core.fabrics.registry import FABRICS
from topox_core.fabrics.run import JobRequest
from topox_core.model.cluster import Cluster, one_port_a_switch
from topox_core.model.task_graph import TaskGraph
from topox_core.runs.run import Stop, never
from topox_core.schedule.bounds.unrounded import circuit_bound
from topox_core.schedule.planner import prepare
from topox_core.schedule.replay import replay
from topox_core.schedule.settings import FREE, Settings
from topox_core.strategy.evaluator import FastEvaluator, non_blocking
from topox_core.strategy.moves import Move, SearchSettings
from topox_core.strategy.operators import OperatorGraph, divisors
from topox_core.strategy.search import Chain, first_strategy
from topox_core.strategy.strategy import (
    Placement,
    Strategy,
    blocks,
    check_strategy,
    spread,
    task_graph,
)
from topox_core.text.numbers import first_that_holds, short, time


def estimate(name: str, job: JobRequest, best_ms: float = math.inf) -> tuple[float, bool]:
    """Return an estimate of the iteration time on a fabric, and False where a bound alone says that it is not among the fastest.

    ``scheduled`` is taken half-way between the lower bound of plans that switch and the best of a few
    quick plans (the plans of 12 strategies for DLRM were within 5 % of that), or as static circuits
    where those are faster; no plan is made whose bound is above ``best_ms``. ``ideal`` is taken as
    fair shares. Every other fabric is run.

    Raises
    ------
    InputError
        If the fabric cannot run the graph.
    """
    if name == "ideal":
        at_full = replace(job, options=FabricOptions())  # a fat-tree of full bandwidth
        return run_one("fat_tree", at_full.lowered(job.settings.lowering)).iteration_ms, True
    if name != "scheduled" or job.settings.on_slots:
        return run_with_best_lowering(name, job).iteration_ms, True
    own = job.lowered(job.settings.lowering)
    requests = [own, *map(job.lowered, ring_choices(Case(name, job)))]
    bounds_ms = [circuit_bound(one.graph, job.cluster, job.settings).ms for one in requests]
    bound_ms, fixed_ms = min(bounds_ms), math.inf
    if job.settings.switching in ("auto", "fixed"):
        # Where two servers that talk are not connected, only switching serves them.
        with suppress(InputError):
            fixed_ms = run_one("static", own).iteration_ms
    if fixed_ms <= bound_ms:
        return fixed_ms, True
    if bound_ms > best_ms:
        return bound_ms, False
    order = requests[bounds_ms.index(bound_ms)]
    prepared = prepare(order.graph, job.cluster, job.settings)
    plans = prepared.planner.sketches(None, direct=True)
    plan_ms = min(replay(prepared, plan, job.cluster).makespan_ms for plan in plans)
    return min(fixed_ms, (bound_ms + plan_ms) / 2), True


# A strategy that the fast simulator finds this many times slower than the fastest so far is not
# estimated on the fabric: the two rank differently, so that less would lose good ones.
SPREAD = 1.5


def cluster_of(
    servers: int, ports: int, port_gbps: float, reconfiguration_ms: float = 0.0
) -> Cluster:
    """Return servers with one port on each of ``ports`` optical switches.

    Raises
    ------
    InputError
        If a number is out of range.
    """
    return one_port_a_switch(
        servers,
        ports,
        port_gbps,
        reconfiguration_ms=reconfiguration_ms,
        name=f"{servers} servers, {ports} OCS of {port_gbps:g} Gbit/s ports",
    )


@dataclass(frozen=True)
class Outcome:
    """A strategy on a fabric, as ``compare`` has it."""

    iteration_ms: float
    bound_ms: float
    bound_by: str


@dataclass(frozen=True)
class ModelOnCluster:
    """A model that is to be split over the servers of a cluster.

    Parameters
    ----------
    memory_gb
        Memory of one GPU in 10^9 bytes; the machine's own if None.
    settings
        As ``compare`` reads them; by default every fabric chooses rings and algorithms for itself.
    """

    graph: OperatorGraph
    cluster: Cluster
    memory_gb: float | None = None
    settings: Settings = field(default_factory=lambda: Settings.of(engine="list", free=FREE))

    def tasks(self, strategy: Strategy) -> TaskGraph:
        """Return the task graph of an iteration, as it is exported."""
        return task_graph(self.graph, strategy, self.memory_gb)

    def job(self, strategy: Strategy) -> JobRequest:
        """Return what the fabrics are asked to run."""
        options = default_options(self.cluster)
        return JobRequest(self.tasks(strategy), self.cluster, self.settings, options)

    def outcomes(
        self, strategy: Strategy, fabrics: Iterable[str], stop: Stop = never
    ) -> dict[str, Outcome]:
        """Return what ``compare`` says of a strategy on fabrics; nothing if ``stop`` turns true meanwhile.

        A plan that was cut short is not what ``compare`` would say.

        Raises
        ------
        InputError
            If a fabric cannot run it.
        """
        runs = compare(self.tasks(strategy), self.cluster, self.settings, fabrics, stop=stop)
        if stop():
            return {}
        return {
            name: Outcome(run.iteration_ms, run.bound_ms, run.bound_by)
            for name, run in runs.items()
        }


class FabricEvaluator:
    """Estimates the iteration time of strategies on one fabric, each strategy once.

    Attributes
    ----------
    fast
        The fast simulator, which is asked first.
    estimated
        The estimates that were not cut short, in ms.
    """

    def __init__(self, model: ModelOnCluster, fabric: str) -> None:
        self.model, self.fabric = model, fabric
        one = model.cluster
        network = non_blocking(one.servers, one.ports_per_server, one.port_gbps, one.latency_us)
        self.fast = FastEvaluator(model.graph, network)
        self.estimated: dict[Strategy, float] = {}
        self._known: dict[Strategy, float] = {}
        self._fastest_ms = self._best_ms = math.inf

    def __call__(self, strategy: Strategy) -> float:
        """Return the estimate in ms; what cannot be the fastest is somewhere above the best so far."""
        if strategy not in self._known:
            self._known[strategy] = self._time_ms(strategy)
        return self._known[strategy]

    def ranked(self) -> list[Strategy]:
        """Return the strategies whose estimates were not cut short, the most promising first."""
        return sorted(self.estimated, key=self.estimated.__getitem__)

    def _time_ms(self, strategy: Strategy) -> float:
        fast_ms = self.fast(strategy)
        self._fastest_ms = min(self._fastest_ms, fast_ms)
        if self.estimated and fast_ms > SPREAD * self._fastest_ms:
            return self._best_ms * fast_ms / self._fastest_ms
        found_ms, whole = estimate(self.fabric, self.model.job(strategy), self._best_ms)
        if whole:
            self.estimated[strategy] = found_ms
            self._best_ms = min(self._best_ms, found_ms)
        return found_ms


# After the walk the most promising strategies are run on the fabric until so many in a row, or so
# many in all, have brought nothing.
IN_A_ROW, IN_ALL = 5, 20
# Seconds that the last run may take after a search was stopped.
LAST_S = 10.0
# What a search does, one after the other, and from which part of its time on.
OPENING, WALKING, AROUND, RUNNING, CROSSING = (
    "what to begin with",
    "proposals",
    "around the best",
    "running the most promising",
    "every strategy on every fabric",
)
_FROM = {OPENING: 0.0, WALKING: 0.1, AROUND: 0.65, RUNNING: 0.7, CROSSING: 0.0}
_LASTS = {OPENING: 0.1, WALKING: 0.55, AROUND: 0.05, RUNNING: 0.3, CROSSING: 1.0}


@dataclass(frozen=True)
class CoProgress:
    """How far a search on a fabric is.

    Attributes
    ----------
    fabric
        It is judged on.
    doing
        ``OPENING``, ``WALKING``, ``AROUND``, ``RUNNING``, or for all of them ``CROSSING``.
    done, total
        Proposals, strategies run or strategies crossed, of how many at most.
    best_ms
        The best estimate so far; while running, the best figure; 0 while there is none.
    part, parts
        Which of several searches it is.
    """

    fabric: str
    doing: str
    done: int
    total: int
    best_ms: float
    part: int = 0
    parts: int = 1

    @property
    def share(self) -> float:
        """About how much of everything is done, 0 to 1."""
        inner = _FROM[self.doing] + _LASTS[self.doing] * self.done / max(1, self.total)
        return (self.part + min(1.0, inner)) / self.parts


@dataclass(frozen=True)
class CoOptimised:
    """The best strategy found for one fabric.

    Attributes
    ----------
    strategy, outcome
        The best, and what it takes on the fabric.
    start, start_outcome
        Data parallel (with what was fixed), and what that takes: never less than the best.
    moves
        What the walk accepted, in ms of its estimate.
    proposals, estimated, run
        Proposals of the walk; strategies that were estimated on the fabric, and that were run on it.
    stopped_by
        ``budget``, ``cancelled``, or ``fixed`` where nothing was left to choose.
    """

    fabric: str
    strategy: Strategy
    outcome: Outcome
    start: Strategy
    start_outcome: Outcome
    moves: tuple[Move, ...]
    proposals: int
    estimated: int
    run: int
    stopped_by: str


def co_optimise(
    model: ModelOnCluster,
    fabric: str,
    settings: SearchSettings,
    *,
    fixed: Iterable[Placement] = (),
    starts: Iterable[Strategy] = (),
    stop: Stop = never,
    on_progress: Callable[[CoProgress], None] | None = None,
) -> CoOptimised | None:
    """Return the best strategy found for a fabric; never one slower there than data parallel.

    1. What to begin with: data parallel, blocks of neighbours on shares of the servers, whole
       operators spread evenly, ``starts``.
    2. A walk from the best of them by estimates
       (:class:`FabricEvaluator`): boundaries between operators that
       are configured alike are moved until nothing gains, ``settings.proposals`` proposals of the
       Markov chain follow, and boundaries again.
    3. The most promising strategies are run on the fabric, and the fastest is kept.

    Limits are counted, never timed: one input and seed have one answer. If ``stop`` turns true, the
    best estimate so far is still run, for at most ``LAST_S``; None if that was before data parallel
    was.

    Raises
    ------
    InputError
        If a fixed or given configuration does not suit the model, nothing to start from fits the
        memory, or the fabric cannot run it.
    """
    pinned = {placement.operator: placement for placement in fixed}
    graph, servers = model.graph, model.cluster.servers
    model = replace(model, memory_gb=settings.memory_gb)
    base = first_strategy(graph, servers, settings.memory_gb, tuple(pinned.values()))
    report = on_progress or (lambda _progress: None)
    report(CoProgress(fabric, OPENING, 0, 1, 0.0))
    base_outcome = model.outcomes(base, (fabric,), stop).get(fabric)
    if base_outcome is None:
        return None
    walk = _Walk(model, fabric, base, settings, pinned)

    if walk.proposer.free:
        for start in starts:
            check_strategy(start, graph, settings.memory_gb)
            walk.offer(start.changed(pinned.values()), "start")
        for doing in walk.steps(stop):
            done, total = walk.proposals, settings.proposals
            report(CoProgress(fabric, doing, done, total, walk.best_ms))
    late, best, barren = _Late(stop), base, 0
    outcomes = {base: base_outcome}
    for strategy in walk.estimate.ranked():
        if barren >= IN_A_ROW or len(outcomes) >= IN_ALL:
            break
        if stop() and (len(outcomes) > 1 or late()):
            break
        if strategy not in outcomes:
            outcome = model.outcomes(strategy, (fabric,), late).get(fabric)
            if outcome is not None:
                outcomes[strategy] = outcome
                barren += 1
                if outcome.iteration_ms < outcomes[best].iteration_ms * (1 - 1e-9):
                    best, barren = strategy, 0
        report(CoProgress(fabric, RUNNING, len(outcomes), IN_ALL, outcomes[best].iteration_ms))
    return CoOptimised(
        fabric,
        best,
        outcomes[best],
        base,
        base_outcome,
        tuple(walk.moves),
        walk.proposals,
        len(walk.estimate.estimated),
        len(outcomes),
        "fixed" if not walk.proposer.free else "cancelled" if stop() else "budget",
    )


@dataclass
class _Late:
    """Stop ``LAST_S`` seconds after another criterion."""

    stop: Stop
    until_s: float = math.inf

    def __call__(self) -> bool:
        """Return whether the time is up."""
        if self.until_s == math.inf and self.stop():
            self.until_s = monotonic() + LAST_S
        return monotonic() >= self.until_s


class _Walk(Chain):
    """A Markov chain by estimates, with openings before it and boundaries moved around it."""

    def __init__(
        self,
        model: ModelOnCluster,
        fabric: str,
        base: Strategy,
        settings: SearchSettings,
        pinned: dict[str, Placement],
    ) -> None:
        self.model, self.pinned = model, pinned
        self.estimate = FabricEvaluator(model, fabric)
        patience = settings.reset_every or max(10, settings.patience)
        patient = replace(settings, reset_every=patience)
        super().__init__(model.graph, base, self.estimate, patient, pinned)

    def steps(self, stop: Stop) -> Iterator[str]:
        """Walk; yields what it does between two strategies, and ends when ``stop`` turns true."""
        for strategy, reason in self._openings():
            if stop():
                return
            self.offer(strategy, reason)
            yield OPENING
        for _ in self.descend(stop):
            yield OPENING
        while self.proposals < self.settings.proposals:
            if stop():
                return
            self.step()
            yield WALKING
        for _ in self.descend(stop):
            yield AROUND

    def _openings(self) -> Iterator[tuple[Strategy, str]]:
        graph, servers, pinned = self.model.graph, self.model.cluster.servers, self.pinned.values()
        for count in divisors(servers)[1:]:
            yield blocks(graph, servers, count).changed(pinned), "blocks"
        yield spread(graph, servers).changed(pinned), "whole"


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
