"""Search for a fast strategy: a Markov chain, a descent, a proof for small models; and strategy and topology in turn."""

import math
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from topox_core.errors import InputError
from topox_core.model.execution import Layout
from topox_core.model.task_graph import TaskGraph
from topox_core.runs.run import never
from topox_core.strategy.operators import OperatorGraph, divisors
from topox_core.strategy.search.evaluator import Evaluator, FastEvaluator, laid_out
from topox_core.strategy.search.moves import (
    Move,
    MoveProgress,
    Proposer,
    SearchSettings,
    boundary_changes,
)
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
    task_graph,
)
from topox_core.topology.finder import find_layout, traffic_of


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


class Chain:
    """One chain; :meth:`step` makes one proposal.

    Attributes
    ----------
    current, current_ms, best, best_ms
        Where it is, and the best it has been.
    proposals, accepted, too_large
        How many proposals were made, were accepted, and were refused for memory.
    later
        How many strategies were tried after the proposals.
    stopped
        Whether it was stopped early.
    moves
        Every change from where it began, in order.
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
        self.rng, self.fixed = random.Random(settings.seed), frozenset(fixed)
        self.proposer = Proposer(graph, start.servers, self.rng, self.fixed)
        self._limit = server_limit(graph, settings.memory_gb)
        # Where every server could hold the whole model, no strategy at all can exceed the memory.
        self.always_fits = (
            sum(
                max(cost.memory_bytes for cost in operator.costs.values()) * operator.gpus
                for operator in graph.operators
            )
            <= self._limit
        )
        self.start = self.current = self.best = start
        self.start_ms = self.current_ms = self.best_ms = evaluate(start)
        self.proposals = self.accepted = self.too_large = self.later = 0
        self.stopped = False
        self.moves: list[Move] = []
        self._since_best = 0

    def fits(self, strategy: Strategy) -> bool:
        """Tell whether every server's share fits its memory."""
        return self.always_fits or max(server_bytes(strategy, self.graph)) <= self._limit

    def walk(
        self,
        stop: Callable[[], bool],
        on_progress: Callable[[MoveProgress], None] | None = None,
    ) -> None:
        """Make proposals until the budget is spent or ``stop`` turns true."""
        budget = self.settings.proposals
        while self.proposer.free and self.proposals < budget:
            if stop():
                self.stopped = True
                return
            self.step()
            if on_progress is not None and self.proposals % max(1, budget // 100) == 0:
                on_progress(MoveProgress(self.proposals, budget, self.current_ms, self.best_ms))

    def step(self) -> None:
        """Make one proposal: at most a change, and a return to the best."""
        self.proposals += 1
        self._since_best += 1
        name, changed = self.proposer.draw(self.current)
        known = self.current.by_operator
        changed = [placement for placement in changed if placement != known[placement.operator]]
        if changed:
            self._judge(name, changed)
        if self._since_best >= self.settings.patience:
            self._since_best = 0
            if self.current != self.best:
                self.take(self.best, self.best_ms, "reset", name)

    def _judge(self, name: str, changed: list[Placement]) -> None:
        proposal = self.current.changed(changed)
        if not self.fits(proposal):
            self.too_large += 1
            return
        proposal_ms = self.evaluate(proposal)
        slower_ms = proposal_ms - self.current_ms
        if slower_ms > 0 and self.rng.random() >= math.exp(-self.settings.alpha * slower_ms):
            return
        self.accepted += 1
        reason = "better" if slower_ms < 0 else "equal" if slower_ms == 0 else "chance"
        if proposal_ms < self.best_ms:
            self._since_best = 0
        self.take(proposal, proposal_ms, reason, name)

    def take(self, strategy: Strategy, strategy_ms: float, reason: str, name: str = "") -> None:
        """Go to a strategy; the change began with operator ``name``, else with the first that differs."""
        pairs = [
            (old, new)
            for old, new in zip(self.current.placements, strategy.placements, strict=True)
            if old != new
        ]
        self.moves.append(
            Move(
                self.proposals + self.later,
                name or (pairs[0][1].operator if pairs else ""),
                tuple(old for old, _ in pairs),
                tuple(new for _, new in pairs),
                self.current_ms,
                strategy_ms,
                reason,
            )
        )
        self.current, self.current_ms = strategy, strategy_ms
        if strategy_ms < self.best_ms:
            self.best, self.best_ms = strategy, strategy_ms

    def offer(self, strategy: Strategy, reason: str, later: int = 0) -> bool:
        """Go to a strategy if it is the best so far; return whether it is. ``later`` counts it as tried after the proposals."""
        if not self.fits(strategy):
            return False
        self.later += later
        strategy_ms = self.evaluate(strategy)
        better = strategy_ms < self.best_ms
        if better:
            self.take(strategy, strategy_ms, reason)
        return better

    def descend(self, stop: Callable[[], bool], later: int = 0) -> Iterator[None]:
        """Move boundaries around the best strategy until nothing gains; yields after each that was tried."""
        gained = True
        while gained:
            gained = False
            for change in boundary_changes(self.graph, self.best, self.fixed):
                if stop():
                    self.stopped = True
                    return
                gained = self.offer(self.best.changed(change), "descent", later)
                yield
                if gained:
                    break
        if self.current != self.best:
            self.take(self.best, self.best_ms, "reset")

    def result(self, proved: bool = False) -> SearchResult:
        """Return what came of it."""
        ending = "cancelled" if self.stopped else "proof" if proved else "budget"
        return SearchResult(
            self.best,
            self.best_ms,
            self.start,
            self.start_ms,
            tuple(self.moves),
            self.proposals,
            self.accepted,
            self.too_large,
            self.later,
            proved,
            ending if self.proposer.free else "fixed",
        )


def space(proposer: Proposer, start: Strategy, symmetric: bool) -> list[list[Placement]]:
    """Return the configurations of every operator; the first's rotated copies left out."""
    free = set(proposer.free)
    rows = [
        proposer.configurations(p.operator) if p.operator in free else [p] for p in start.placements
    ]
    if symmetric and len(free) == len(rows):
        rows[0] = [placement for placement in rows[0] if placement.start == 0]
    return rows


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
    descent that moves boundaries between operators, of at most as many strategies again, then takes
    what the chain passed over.

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
    if start is not None:
        check_strategy(start, graph, settings.memory_gb)
        placements = sorted(start.placements, key=lambda p: graph.position[p.operator])
        given = Strategy(start.model, start.servers, tuple(placements))
        chain.offer(given.changed(pinned.values()), "better")
    chain.walk(stop, on_progress)
    proved = False
    if not chain.stopped and settings.proposals and chain.proposer.free:
        # Blocks of neighbours on shares of the servers are too far for the chain to reach.
        for count in divisors(servers)[1:]:
            strategy = blocks(graph, servers, count).changed(pinned.values())
            chain.offer(strategy, "blocks", later=1)
        most = chain.later + settings.proposals
        for _ in chain.descend(stop, later=1):
            if chain.later >= most:
                break
        proved = not chain.stopped and _prove(chain, stop)
    return chain.result(proved)


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


def _prove(chain: Chain, stop: Callable[[], bool]) -> bool:
    """Try every strategy if they are few; return whether all were tried."""
    if not isinstance(chain.evaluate, FastEvaluator) or not chain.always_fits:
        return False
    rows = space(chain.proposer, chain.best, chain.evaluate.network.symmetric)
    if prod(len(row) for row in rows) > chain.settings.exhaustive:
        return False
    best, best_ms = chain.best, chain.best_ms
    for number, placements in enumerate(product(*rows)):
        if not number & 0xFF and stop():
            chain.stopped = True
            break
        strategy = Strategy(best.model, best.servers, placements)
        if (found_ms := chain.evaluate(strategy)) < best_ms:
            best, best_ms = strategy, found_ms
    if best_ms < chain.best_ms:
        chain.take(best, best_ms, "proved")
    return not chain.stopped


# FlexNet rebuilds a topology that has not changed for this many proposals.
PATIENCE = 50
Find = Callable[[TaskGraph], Layout]
EvaluatorOn = Callable[[Layout], Evaluator]


@dataclass(frozen=True)
class Alternated(SearchResult):
    """What alternating found.

    A topology that was kept is a move with the reason ``topology``; nothing follows the chain.

    Attributes
    ----------
    topology
        Of the best strategy. ``start_ms`` is that of data parallel on the topology found for it.
    topologies, kept
        How many topologies were found after the first, and kept.
    """

    topology: Layout
    topologies: int
    kept: int


def alternate(
    graph: OperatorGraph,
    servers: int,
    find: Find,
    evaluator: EvaluatorOn,
    settings: SearchSettings,
    *,
    fixed: Iterable[Placement] = (),
    stop: Callable[[], bool] = never,
    on_progress: Callable[[MoveProgress], None] | None = None,
) -> Alternated:
    """Return the best strategy and topology found in turn; never slower than data parallel on its own topology.

    After each accepted proposal, or after ``PATIENCE`` proposals without one, the topology is
    found anew for the strategy at hand and kept if the iteration is faster on it (TopoOpt, NSDI
    2023, section 4; its released code also keeps a slower one now and then). Going back to the best
    goes back to its topology.

    Parameters
    ----------
    find, evaluator
        How a topology is found for a task graph, and how strategies are timed on it.

    Raises
    ------
    InputError
        If a fixed configuration does not suit the model, or nothing to start from fits the memory;
        and whatever ``find`` refuses.
    """
    pinned = {placement.operator: placement for placement in fixed}
    start = first_strategy(graph, servers, settings.memory_gb, tuple(pinned.values()))
    chain = _InTurn(graph, start, find, evaluator, settings, pinned)
    chain.walk(stop, on_progress)
    return Alternated(
        **vars(chain.result()),
        topology=chain.best_topology,
        topologies=chain.renewed,
        kept=chain.kept,
    )


def search_circuits(
    graph: OperatorGraph,
    servers: int,
    ports: int,
    port_gbps: float,
    settings: SearchSettings,
    **more: Any,
) -> Alternated:
    """Return the best strategy and fixed circuits found in turn: circuits by TopologyFinder, times by the fast simulator.

    ``more`` and errors as of :func:`alternate`.
    """
    return alternate(
        graph,
        servers,
        lambda tasks: find_layout(traffic_of(tasks, servers), ports).layout,
        lambda layout: FastEvaluator(graph, laid_out(layout, port_gbps)),
        settings,
        **more,
    )


class _InTurn(Chain):
    """A chain with the topology it is timed on, and that of the best strategy."""

    def __init__(
        self,
        graph: OperatorGraph,
        start: Strategy,
        find: Find,
        evaluator: EvaluatorOn,
        settings: SearchSettings,
        fixed: Iterable[str],
    ) -> None:
        self.find, self.evaluator = find, evaluator
        self.topology = self.best_topology = find(task_graph(graph, start, settings.memory_gb))
        super().__init__(graph, start, evaluator(self.topology), settings, fixed)
        self.best_evaluate = self.evaluate
        self.renewed = self.kept = self._idle = 0
        self._topology_of = start

    def step(self) -> None:
        """Make one proposal; the topology is found anew after one that was accepted, and after many that were not."""
        made = len(self.moves)
        super().step()
        reasons = [move.reason for move in self.moves[made:]]
        if "reset" in reasons:
            self.topology, self.evaluate = self.best_topology, self.best_evaluate
        accepted = reasons not in ([], ["reset"])
        self._idle = 0 if accepted else self._idle + 1
        if accepted or self._idle >= PATIENCE:
            self._renew()
            self._idle = 0

    def _renew(self) -> None:
        """Find the topology anew, unless it was found for the very strategy, and keep it if it is faster."""
        if self.current == self._topology_of:
            return
        self._topology_of = self.current
        topology = self.find(task_graph(self.graph, self.current, self.settings.memory_gb))
        self.renewed += 1
        evaluate = self.evaluator(topology)
        strategy_ms = evaluate(self.current)
        if strategy_ms < self.current_ms:
            self.kept += 1
            self.topology, self.evaluate = topology, evaluate
            self.take(self.current, strategy_ms, "topology")

    def take(self, strategy: Strategy, strategy_ms: float, reason: str, name: str = "") -> None:
        """Go to a strategy; the topology at hand is that of the best one, if this is a better one."""
        best_ms = self.best_ms
        super().take(strategy, strategy_ms, reason, name)
        if self.best_ms < best_ms:
            self.best_topology, self.best_evaluate = self.topology, self.evaluate
