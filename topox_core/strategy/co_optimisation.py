"""Co-optimisation: a strategy is searched for, and judged, on the fabric that will run it."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from time import monotonic

from topox_core.runs.run import Stop, never
from topox_core.strategy.on_fabrics import FabricEvaluator, ModelOnCluster, Outcome
from topox_core.strategy.operators import divisors
from topox_core.strategy.search.moves import Move, SearchSettings
from topox_core.strategy.search.search import Chain, first_strategy
from topox_core.strategy.strategy import Placement, Strategy, blocks, check_strategy, spread

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
