"""Strategy and topology in turn: the chain walks on one topology, which is found anew for what the chain accepts."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from topox_core.model.execution import Layout
from topox_core.model.task_graph import TaskGraph
from topox_core.runs.run import never
from topox_core.strategy.evaluator import Evaluator
from topox_core.strategy.moves import MoveProgress, SearchSettings
from topox_core.strategy.operators import OperatorGraph
from topox_core.strategy.search import Chain, SearchResult, first_strategy
from topox_core.strategy.strategy import Placement, Strategy, task_graph

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
        made, best_ms = len(self.moves), self.best_ms
        super().step()
        self._remember(best_ms)
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
        strategy_ms, best_ms = evaluate(self.current), self.best_ms
        if strategy_ms < self.current_ms:
            self.kept += 1
            self.topology, self.evaluate = topology, evaluate
            self.take(self.current, strategy_ms, "topology")
            self._remember(best_ms)

    def _remember(self, best_ms: float) -> None:
        """Keep the topology at hand as that of the best strategy, if that is a better one now."""
        if self.best_ms < best_ms:
            self.best_topology, self.best_evaluate = self.topology, self.evaluate
