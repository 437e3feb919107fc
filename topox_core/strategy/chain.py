"""The Markov chain over strategies: propose, time, accept or refuse, return to the best."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable

from topox_core.strategy.evaluator import Evaluator
from topox_core.strategy.moves import Move, Proposer, SearchSettings
from topox_core.strategy.operators import OperatorGraph
from topox_core.strategy.strategy import Placement, Strategy, server_bytes, server_limit


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
        # Where every server could hold the whole model, memory need not be asked each time.
        self._ask_memory = (
            sum(
                max(cost.memory_bytes for cost in operator.costs.values()) * operator.gpus
                for operator in graph.operators
            )
            > self._limit
        )
        self.current = self.best = start
        self.current_ms = self.best_ms = evaluate(start)
        self.proposals = self.accepted = self.too_large = 0
        self._since_best = 0

    def fits(self, strategy: Strategy) -> bool:
        """Tell whether every server's share fits its memory."""
        return not self._ask_memory or max(server_bytes(strategy, self.graph)) <= self._limit

    @property
    def always_fits(self) -> bool:
        """Whether no strategy at all can exceed the memory."""
        return not self._ask_memory

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
