"""Strategy and topology in turn: the chain walks on one topology, which is found anew for what the chain accepts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from topox_core.io.ranges import check_whole
from topox_core.model.task_graph import TaskGraph
from topox_core.runs.stopping import never
from topox_core.strategy.evaluator import Evaluator
from topox_core.strategy.moves import Move, MoveProgress, SearchSettings
from topox_core.strategy.operators import OperatorGraph
from topox_core.strategy.search import Chain, SearchResult, first_strategy
from topox_core.strategy.strategy import Placement, Strategy
from topox_core.strategy.task_graph import task_graph

# FlexNet rebuilds a topology that has not changed for this many proposals.
PATIENCE = 50
T = TypeVar("T")


@dataclass(frozen=True)
class Alternated(SearchResult, Generic[T]):
    """What alternating found.

    A topology that was kept is a move with the reason ``topology``; nothing follows the chain.

    Attributes
    ----------
    topology
        Of the best strategy. ``start_ms`` is that of data parallel on the topology found for it.
    topologies, kept
        How many topologies were found after the first, and kept.
    """

    topology: T
    topologies: int
    kept: int


@dataclass(frozen=True)
class Topologies(Generic[T]):
    """How a topology is found for a task graph, how strategies are timed on it, and after how many accepted proposals anew."""

    find: Callable[[TaskGraph], T]
    evaluator: Callable[[T], Evaluator]
    every: int = 1


def alternate(
    graph: OperatorGraph,
    servers: int,
    topologies: Topologies[T],
    settings: SearchSettings,
    *,
    fixed: Iterable[Placement] = (),
    stop: Callable[[], bool] = never,
    on_progress: Callable[[MoveProgress], None] | None = None,
) -> Alternated[T]:
    """Return the best strategy and topology found in turn; never slower than data parallel on its own topology.

    After ``topologies.every`` accepted proposals, or after ``PATIENCE`` proposals without one, the topology is
    found anew for the strategy at hand and kept if the iteration is faster on it (TopoOpt, NSDI
    2023, section 4; its released code also keeps a slower one now and then). Going back to the best
    goes back to its topology.

    Raises
    ------
    InputError
        If a fixed configuration does not suit the model, nothing to start from fits the memory, or
        ``topologies.every`` is not a whole number above 0; and whatever ``find`` refuses.
    """
    check_whole(topologies.every, file="search", field="every")
    pinned = {placement.operator: placement for placement in fixed}
    start = first_strategy(graph, servers, settings.memory_gb, tuple(pinned.values()))
    walk = _Walk(graph, start, topologies, settings, frozenset(pinned))
    start_ms = walk.chain.current_ms
    stopped = False
    since = idle = 0
    every_part = max(1, settings.proposals // 100)
    while (
        walk.chain.proposer.free
        and walk.chain.proposals < settings.proposals
        and not (stopped := stop())
    ):
        accepted = walk.step()
        since, idle = since + accepted, 0 if accepted else idle + 1
        if since >= topologies.every or idle >= PATIENCE:
            walk.renew()
            since = idle = 0
        if on_progress is not None and walk.chain.proposals % every_part == 0:
            on_progress(
                MoveProgress(
                    walk.chain.proposals,
                    settings.proposals,
                    walk.chain.current_ms,
                    walk.chain.best_ms,
                )
            )
    chain = walk.chain
    return Alternated(
        strategy=chain.best,
        iteration_ms=chain.best_ms,
        start=start,
        start_ms=start_ms,
        moves=tuple(walk.moves),
        proposals=chain.proposals,
        accepted=chain.accepted,
        too_large=chain.too_large,
        descent=0,
        proved=False,
        stopped_by="cancelled" if stopped else "budget",
        topology=walk.best_topology,
        topologies=walk.renewed,
        kept=walk.kept,
    )


class _Walk(Generic[T]):
    """The chain, the topology it is timed on, and those of the best strategy."""

    def __init__(
        self,
        graph: OperatorGraph,
        start: Strategy,
        topologies: Topologies[T],
        settings: SearchSettings,
        fixed: frozenset[str],
    ) -> None:
        self.graph, self.topologies, self.memory_gb = graph, topologies, settings.memory_gb
        self.topology = self.best_topology = topologies.find(
            task_graph(graph, start, settings.memory_gb)
        )
        evaluate = topologies.evaluator(self.topology)
        self.chain = Chain(graph, start, evaluate, settings, fixed)
        self.best_evaluate = self.chain.evaluate
        self.moves: list[Move] = []
        self.renewed = self.kept = 0
        self._topology_of = start

    def step(self) -> bool:
        """Make one proposal; return whether it was accepted."""
        best_ms = self.chain.best_ms
        moves = self.chain.step()
        self.moves += moves
        if self.chain.best_ms < best_ms:
            self._remember()
        if any(move.reason == "reset" for move in moves):
            self.topology, self.chain.evaluate = self.best_topology, self.best_evaluate
        return any(move.reason != "reset" for move in moves)

    def renew(self) -> None:
        """Find the topology anew, unless it was found for the very strategy, and keep it if it is faster."""
        chain = self.chain
        if chain.current == self._topology_of:
            return
        self._topology_of = chain.current
        topology = self.topologies.find(task_graph(self.graph, chain.current, self.memory_gb))
        self.renewed += 1
        evaluate = self.topologies.evaluator(topology)
        strategy_ms = evaluate(chain.current)
        if strategy_ms >= chain.current_ms:
            return
        self.kept += 1
        self.topology, chain.evaluate = topology, evaluate
        self.moves.append(
            Move(chain.proposals, "", (), (), chain.current_ms, strategy_ms, "topology")
        )
        chain.current_ms = strategy_ms
        if strategy_ms < chain.best_ms:
            chain.best, chain.best_ms = chain.current, strategy_ms
            self._remember()

    def _remember(self) -> None:
        self.best_topology, self.best_evaluate = self.topology, self.chain.evaluate
