"""An iteration as its ranks run it: what each end sets free, and when a communication has been called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topox_core.errors import InputError
from topox_core.model.arrays.csr import grouped, row_of_entry
from topox_core.model.transfer_graph import FloatArray
from topox_core.rails.iteration import COMPUTE, SEND, RailIteration, senders
from topox_core.rails.timing import PortUse

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Program:
    """Plain lists for the event loop, built once for any number of runs.

    Attributes
    ----------
    use
        The ports of each group.
    lasts_ms, group
        Of each node, how long it takes, and its group.
    before, after
        Pairs of nodes, of which the second waits for the end of the first.
    compute
        Of each node whether it computes.
    frees, waiting
        Of each node those that wait for its end, and for how many ends it waits.
    turn
        Of each node its place in the program of the rank that sends it, or of its foremost rank: of
        two communications that are ready at one instant, the one issued earlier goes first.
    """

    iteration: RailIteration
    use: PortUse
    lasts_ms: list[float]
    group: list[int]
    before: Ints
    after: Ints
    compute: list[bool]
    frees: list[list[int]]
    waiting: list[int]
    turn: list[int]

    @classmethod
    def of(cls, iteration: RailIteration, use: PortUse, lasts_ms: FloatArray) -> Program:
        """Prepare an iteration."""
        n = len(iteration)
        owner = row_of_entry(iteration.issue_ptr)
        issued = iteration.issue_idx.astype(np.int64)
        place = np.arange(len(issued)) - iteration.issue_ptr[:-1].astype(np.int64)[owner]
        sender = senders(iteration)
        before, after = _edges(iteration, owner, issued, sender)
        pointer, freed = grouped(before, after, n)
        turn = np.full(n, np.iinfo(np.int64).max)
        decides = (sender[issued] < 0) | (sender[issued] == owner)
        np.minimum.at(turn, issued[decides], place[decides])
        return cls(
            iteration,
            use,
            lasts_ms.tolist(),
            iteration.group.tolist(),
            before,
            after,
            (iteration.kind == COMPUTE).tolist(),
            [row.tolist() for row in np.split(freed, pointer[1:-1])],
            np.bincount(after, minlength=n).tolist(),
            turn.tolist(),
        )


def _nobody(at_ms: float, node: int) -> None:
    """Stand in for who is called where everything runs by itself."""


class Progress:
    """One run of a program, or of nodes that wait for each other as those of one do.

    Computing has its rank to itself in program order, so its times are known as soon as those before
    it are; of anything else the last rank's call is told, and somebody else runs it.

    Parameters
    ----------
    ready_ms
        Of each node, before when it may not begin.
    called
        Told when a node that does not compute has been called by all its ranks, and which.
    """

    def __init__(
        self,
        program: Program,
        ready_ms: Sequence[float],
        called: Callable[[float, int], None] = _nobody,
    ) -> None:
        self.program, self._called = program, called
        self.start_ms, self.end_ms = [0.0] * len(ready_ms), [0.0] * len(ready_ms)
        self._ready_ms, self._waiting = list(ready_ms), list(program.waiting)

    def begin(self) -> None:
        """Start whatever waits for nothing."""
        self._settle([node for node, waiting in enumerate(self._waiting) if not waiting])

    def run(self, node: int, start_ms: float) -> float:
        """Note when a node starts; return when it ends."""
        self.start_ms[node] = start_ms
        self.end_ms[node] = end = start_ms + self.program.lasts_ms[node]
        return end

    def ended(self, node: int) -> None:
        """Set free what waited for a communication."""
        self._settle(self._freed(node))

    def _settle(self, ready: list[int]) -> None:
        compute, ready_ms = self.program.compute, self._ready_ms
        while ready:
            node = ready.pop()
            if compute[node]:
                self.run(node, ready_ms[node])
                ready += self._freed(node)
            else:
                self._called(ready_ms[node], node)

    def _freed(self, node: int) -> list[int]:
        end, ready_ms, waiting = self.end_ms[node], self._ready_ms, self._waiting
        freed = []
        for later in self.program.frees[node]:
            if end > ready_ms[later]:
                ready_ms[later] = end
            waiting[later] -= 1
            if not waiting[later]:
                freed.append(later)
        return freed

    def check_ended(self) -> None:
        """Raise InputError if ranks wait for each other in a circle, so that nothing can go on before the end."""
        iteration = self.program.iteration
        for label, waiting in zip(iteration.label, self._waiting, strict=False):
            if waiting:
                raise InputError(
                    f"the ranks wait for each other in a cycle; {label!r} is never reached",
                    file=iteration.name,
                )


def _edges(iteration: RailIteration, owner: Ints, issued: Ints, sender: Ints) -> tuple[Ints, Ints]:
    """Return pairs of nodes, one before the other: predecessors, and program order by rank, group and direction."""
    n = len(iteration)
    after = row_of_entry(iteration.pred_ptr)
    codes = [iteration.pred_idx.astype(np.int64) * n + after]
    kind, group = iteration.kind[issued], iteration.group[issued].astype(np.int64)
    stream = np.where(
        kind == COMPUTE, -1, np.where(kind == SEND, len(iteration.groups) + group, group)
    )
    ordered = (kind != SEND) | (sender[issued] == owner)
    stream, who, what = stream[ordered], owner[ordered], issued[ordered]
    order = np.lexsort((np.arange(len(what)), stream, who))
    stream, who, what = stream[order], who[order], what[order]
    next_in_line = (stream[1:] == stream[:-1]) & (who[1:] == who[:-1])
    codes.append(what[:-1][next_in_line] * n + what[1:][next_in_line])
    code = np.unique(np.concatenate(codes))
    return code // n, code % n
