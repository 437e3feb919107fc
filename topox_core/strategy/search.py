"""Search for a fast strategy: a Markov chain, a descent, and a proof for small models."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from topox_core.errors import InputError
from topox_core.runs.stopping import never
from topox_core.strategy.blueprint import divisors
from topox_core.strategy.evaluator import Evaluator, FastEvaluator
from topox_core.strategy.moves import Move, MoveProgress, Proposer, SearchSettings
from topox_core.strategy.operators import OperatorGraph
from topox_core.strategy.strategy import (
    Placement,
    Strategy,
    blocks,
    check_placement,
    check_strategy,
    data_parallel,
    memory_problem,
    server_bytes,
    server_limit,
    spread,
)


class Chain:
    """One chain; :meth:`step` makes one proposal.

    Attributes
    ----------
    current, current_ms, best, best_ms
        Where it is, and the best it has been.
    proposals, accepted, too_large
        How many proposals were made, were accepted, and were refused for memory.
    """

    def __init__(
        self,
        graph: OperatorGraph,
        start: Strategy,
        evaluate: Evaluator,
        settings: SearchSettings,
        fixed: Iterable[str] = (),
    ) -> None:
        self.graph, self.evaluate, self.settings = graph, evaluate, settings
        self.rng = random.Random(settings.seed)
        self.proposer = Proposer(graph, start.servers, self.rng, frozenset(fixed))
        self._limit = server_limit(graph, settings.memory_gb)
        # Where every server could hold the whole model, no strategy at all can exceed the memory.
        self.always_fits = (
            sum(
                max(cost.memory_bytes for cost in operator.costs.values()) * operator.gpus
                for operator in graph.operators
            )
            <= self._limit
        )
        self.current = self.best = start
        self.current_ms = self.best_ms = evaluate(start)
        self.proposals = self.accepted = self.too_large = 0
        self._since_best = 0

    def fits(self, strategy: Strategy) -> bool:
        """Tell whether every server's share fits its memory."""
        return self.always_fits or max(server_bytes(strategy, self.graph)) <= self._limit

    def step(self) -> list[Move]:
        """Make one proposal; return its moves, at most a change and a return to the best."""
        self.proposals += 1
        self._since_best += 1
        name, changed = self.proposer.draw(self.current)
        known = self.current.by_operator
        changed = [placement for placement in changed if placement != known[placement.operator]]
        moves = []
        if changed and (move := self._judged(name, changed)):
            moves.append(move)
        if self._since_best >= self.settings.patience:
            self._since_best = 0
            if self.current != self.best:
                moves.append(self._move_to(self.best, self.best_ms, name, "reset"))
        return moves

    def _judged(self, name: str, changed: list[Placement]) -> Move | None:
        proposal = self.current.changed(changed)
        if not self.fits(proposal):
            self.too_large += 1
            return None
        proposal_ms = self.evaluate(proposal)
        slower_ms = proposal_ms - self.current_ms
        if slower_ms > 0 and self.rng.random() >= math.exp(-self.settings.alpha * slower_ms):
            return None
        self.accepted += 1
        reason = "better" if slower_ms < 0 else "equal" if slower_ms == 0 else "chance"
        move = self._move_to(proposal, proposal_ms, name, reason)
        if proposal_ms < self.best_ms:
            self.best, self.best_ms = proposal, proposal_ms
            self._since_best = 0
        return move

    def _move_to(self, strategy: Strategy, strategy_ms: float, name: str, reason: str) -> Move:
        pairs = [
            (old, new)
            for old, new in zip(self.current.placements, strategy.placements, strict=True)
            if old != new
        ]
        move = Move(
            self.proposals,
            name,
            tuple(old for old, _ in pairs),
            tuple(new for _, new in pairs),
            self.current_ms,
            strategy_ms,
            reason,
        )
        self.current, self.current_ms = strategy, strategy_ms
        return move

    def take(self, strategy: Strategy, strategy_ms: float, reason: str) -> Move:
        """Go to a better strategy that was found outside the chain."""
        pairs = zip(self.current.placements, strategy.placements, strict=True)
        name = next((new.operator for old, new in pairs if old != new), "")
        move = self._move_to(strategy, strategy_ms, name, reason)
        if strategy_ms < self.best_ms:
            self.best, self.best_ms = strategy, strategy_ms
        return move


def space(proposer: Proposer, start: Strategy, symmetric: bool) -> list[list[Placement]]:
    """Return the configurations of every operator; the first's rotated copies left out."""
    free = set(proposer.free)
    rows = [
        proposer.configurations(p.operator) if p.operator in free else [p] for p in start.placements
    ]
    if symmetric and len(free) == len(rows):
        rows[0] = [placement for placement in rows[0] if placement.start == 0]
    return rows


def best_of(
    rows: list[list[Placement]], start: Strategy, evaluate: FastEvaluator, stop: Callable[[], bool]
) -> tuple[Strategy, float, bool]:
    """Return the best strategy, its time, and whether all were tried."""
    best, best_ms = start, evaluate(start)
    for number, placements in enumerate(product(*rows)):
        if not number & 0xFF and stop():
            return best, best_ms, False
        strategy = Strategy(start.model, start.servers, placements)
        if (found_ms := evaluate(strategy)) < best_ms:
            best, best_ms = strategy, found_ms
    return best, best_ms, True


@dataclass(frozen=True)
class SearchResult:
    """The result of a search.

    Attributes
    ----------
    strategy, iteration_ms
        The best strategy and its time.
    start, start_ms
        Data parallel with tables round robin (with what was fixed), and its time: never better than
        the best.
    moves
        Every accepted change, in order.
    proposals, accepted, too_large
        Proposals made, accepted, and refused for memory.
    descent
        Strategies tried after the chain: neighbours in blocks, then the descent.
    proved
        Every strategy was tried: none is faster on this simulator.
    stopped_by
        ``budget``, ``proof``, ``cancelled``, or ``fixed`` where nothing was left to choose.
    """

    strategy: Strategy
    iteration_ms: float
    start: Strategy
    start_ms: float
    moves: tuple[Move, ...]
    proposals: int
    accepted: int
    too_large: int
    descent: int
    proved: bool
    stopped_by: str

    @property
    def speed_up(self) -> float:
        """How many times faster than the start."""
        return self.start_ms / self.iteration_ms if self.iteration_ms > 0 else 1.0

    @property
    def tried(self) -> int:
        """Strategies tried one by one: by the chain and after it, without those of a proof."""
        return self.proposals + self.descent


def search(
    graph: OperatorGraph,
    servers: int,
    evaluate: Evaluator,
    settings: SearchSettings,
    *,
    fixed: Iterable[Placement] = (),
    start: Strategy | None = None,
    stop: Callable[[], bool] = never,
    on_progress: Callable[[MoveProgress], None] | None = None,
) -> SearchResult:
    """Return the fastest strategy found; never one slower than data parallel.

    The chain is FlexNet's (FlexFlow's Metropolis search, MLSys 2019, as TopoOpt released it). A
    descent over changes of one operator, of at most as many strategies again, then takes what the
    chain passed over.

    Parameters
    ----------
    evaluate
        A :class:`FastEvaluator`, or any other timing of a strategy, such as a fabric simulator.
    fixed
        Configurations that stay as they are.
    start
        Where the chain begins, if faster than data parallel.
    stop
        Asked before every proposal; the best so far is kept.
    on_progress
        Called after every hundredth part of the budget.

    Raises
    ------
    InputError
        If a fixed or given configuration does not suit the model, or nothing to start from fits the
        memory.
    """
    pinned = {placement.operator: placement for placement in fixed}
    base = first_strategy(graph, servers, settings.memory_gb, tuple(pinned.values()))
    chain = Chain(graph, base, evaluate, settings, pinned)
    base_ms = chain.current_ms
    moves: list[Move] = []
    if start is not None:
        moves += _imported(chain, start, pinned)
    stopped = False
    every = max(1, settings.proposals // 100)
    while chain.proposer.free and chain.proposals < settings.proposals and not (stopped := stop()):
        moves += chain.step()
        if on_progress is not None and chain.proposals % every == 0:
            on_progress(
                MoveProgress(chain.proposals, settings.proposals, chain.current_ms, chain.best_ms)
            )
    tried, proved = 0, False
    if not stopped and settings.proposals and chain.proposer.free:
        in_blocks, found = _blocks(chain, pinned)
        descended, more, stopped = _descent(chain, settings.proposals, in_blocks, stop)
        tried = in_blocks + descended
        moves += found + more
        if not stopped:
            proved, better, stopped = _proof(chain, settings, stop)
            moves += [replace(move, proposal=chain.proposals + tried) for move in better]
    ending = "cancelled" if stopped else "proof" if proved else "budget"
    return SearchResult(
        chain.best,
        chain.best_ms,
        base,
        base_ms,
        tuple(moves),
        chain.proposals,
        chain.accepted,
        chain.too_large,
        tried,
        proved,
        ending if chain.proposer.free else "fixed",
    )


def first_strategy(
    graph: OperatorGraph, servers: int, memory_gb: float | None, fixed: Iterable[Placement] = ()
) -> Strategy:
    """Return data parallel or, if that exceeds the memory, whole operators spread evenly.

    Raises
    ------
    InputError
        If a fixed configuration does not suit the model, or neither fits.
    """
    fixed = tuple(fixed)
    for placement in fixed:
        check_placement(placement, graph, servers)
    limit = server_limit(graph, memory_gb)
    problems = []
    for whole in (data_parallel, spread):
        strategy = whole(graph, servers).changed(fixed)
        problem = memory_problem(strategy, graph, limit)
        if not problem:
            return strategy
        problems.append(problem)
    raise InputError(
        f"neither data parallel nor whole operators spread evenly fit: {'; '.join(problems)}",
        file=f"model {graph.name}",
        field="memory_gb",
    )


def _imported(chain: Chain, start: Strategy, pinned: dict[str, Placement]) -> list[Move]:
    check_strategy(start, chain.graph, chain.settings.memory_gb)
    order = chain.graph.position
    start = Strategy(
        start.model, start.servers, tuple(sorted(start.placements, key=lambda p: order[p.operator]))
    )
    start = start.changed(pinned.values())
    start_ms = chain.evaluate(start)
    return (
        [chain.take(start, start_ms, "better")]
        if start_ms < chain.current_ms and chain.fits(start)
        else []
    )


def _blocks(chain: Chain, pinned: dict[str, Placement]) -> tuple[int, list[Move]]:
    """Try blocks of neighbours on shares of the servers, too far for the chain to reach."""
    tried = 0
    moves: list[Move] = []
    servers = chain.best.servers
    for count in divisors(servers)[1:]:
        strategy = blocks(chain.graph, servers, count).changed(pinned.values())
        if not chain.fits(strategy):
            continue
        tried += 1
        if (strategy_ms := chain.evaluate(strategy)) < chain.best_ms:
            moves.append(_numbered(chain, tried, strategy, strategy_ms, "blocks"))
    return tried, moves


def _numbered(
    chain: Chain, number: int, strategy: Strategy, strategy_ms: float, reason: str
) -> Move:
    """Take the strategy that was tried as the given one after the chain."""
    move = chain.take(strategy, strategy_ms, reason)
    return replace(move, proposal=chain.proposals + number)


def _descent(
    chain: Chain, budget: int, before: int, stop: Callable[[], bool]
) -> tuple[int, list[Move], bool]:
    """Take any faster change of one operator, until none is or the budget is spent; ``before`` were tried after the chain."""
    tried = 0
    moves: list[Move] = []
    if chain.current != chain.best:
        moves.append(_numbered(chain, before, chain.best, chain.best_ms, "reset"))
    since = 0
    for proposal in _single_changes(chain):
        if (
            since > sum(chain.proposer.count(name) for name in chain.proposer.free)
            or tried >= budget
        ):
            break
        if stop():
            return tried, moves, True
        since += 1
        strategy = chain.best.changed((proposal,))
        if strategy == chain.best or not chain.fits(strategy):
            continue
        tried += 1
        if (strategy_ms := chain.evaluate(strategy)) < chain.best_ms:
            moves.append(_numbered(chain, before + tried, strategy, strategy_ms, "descent"))
            since = 0
    return tried, moves, False


def _single_changes(chain: Chain) -> Iterator[Placement]:
    """Yield the configurations of all free operators, in an order of the seed, over and over."""
    rows = [
        placement
        for name in chain.proposer.free
        for placement in chain.proposer.configurations(name)
    ]
    chain.rng.shuffle(rows)
    while rows:
        yield from rows


def _proof(
    chain: Chain, settings: SearchSettings, stop: Callable[[], bool]
) -> tuple[bool, list[Move], bool]:
    """Try every strategy if they are few."""
    if not isinstance(chain.evaluate, FastEvaluator) or not chain.always_fits:
        return False, [], False
    rows = space(chain.proposer, chain.best, chain.evaluate.network.symmetric)
    if prod(len(row) for row in rows) > settings.exhaustive:
        return False, [], False
    best, best_ms, all_tried = best_of(rows, chain.best, chain.evaluate, stop)
    moves = [chain.take(best, best_ms, "proved")] if best_ms < chain.best_ms else []
    return all_tried, moves, not all_tried
