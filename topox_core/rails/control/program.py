"""An iteration as its ranks run it: what each end sets free, and when ranks call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topox_core.errors import InputError
from topox_core.model.csr import grouped, row_of_entry
from topox_core.rails.iteration import COMPUTE, SEND, RailIteration, senders

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Program:
    """Plain lists for the event loop, built once for any number of runs.

    A *gate* counts what a node as a whole waits for; a *slot* is one rank's part in one
    communication and counts what that rank computes before it calls. Gates are numbered like nodes,
    slots follow them.

    Attributes
    ----------
    frees
        Of each node the gates and slots that its end counts down.
    waiting
        Of each gate and slot how many ends it waits for.
    slots_of
        Of each communication its slots whose ranks compute something for it: they call it in their
        own time.
    others
        Of each communication the ranks that only wait for it; they call it together with the last
        of the former.
    turn
        Of each node its place in the program of the rank that sends it, or of its foremost rank: of
        two communications that are ready at one instant, the one issued earlier goes first.
    """

    iteration: RailIteration
    compute: list[bool]
    frees: list[list[int]]
    waiting: list[int]
    slot_node: list[int]
    slot_rank: list[int]
    slots_of: dict[int, list[int]]
    others: dict[int, list[int]]
    turn: list[int]

    @classmethod
    def of(cls, iteration: RailIteration) -> Program:
        """Prepare an iteration."""
        n = len(iteration)
        kind = iteration.kind
        owner = row_of_entry(iteration.issue_ptr)
        issued = iteration.issue_idx.astype(np.int64)
        place = np.arange(len(issued)) - iteration.issue_ptr[:-1].astype(np.int64)[owner]
        sender = senders(iteration)
        before, after = _edges(iteration, owner, issued, sender)
        comms = np.flatnonzero(kind != COMPUTE).tolist()
        taking_part = kind[issued] != COMPUTE
        members = _grouped(issued[taking_part], owner[taking_part], n)
        # An end reaches one slot if it is computing of a member, else the communication as a whole.
        key_of_slot, slot = _local(iteration, before, after)
        target = np.where(slot >= 0, n + slot, after)
        waiting = np.bincount(target, minlength=n + len(key_of_slot)).astype(np.int64)
        slot_node, slot_rank = (
            (key_of_slot // iteration.ranks).tolist(),
            (key_of_slot % iteration.ranks).tolist(),
        )
        slots_of: dict[int, list[int]] = {c: [] for c in comms}
        for s, c in enumerate(slot_node):
            slots_of[c].append(s)
        calling = {c: {slot_rank[s] for s in slots} for c, slots in slots_of.items()}
        others = {c: [rank for rank in members[c] if rank not in calling[c]] for c in comms}
        turn = np.full(n, np.iinfo(np.int64).max)
        decides = (sender[issued] < 0) | (sender[issued] == owner)
        np.minimum.at(turn, issued[decides], place[decides])
        return cls(
            iteration,
            (kind == COMPUTE).tolist(),
            _grouped(before, target, n),
            waiting.tolist(),
            slot_node,
            slot_rank,
            slots_of,
            others,
            turn.tolist(),
        )


class ProgramProgress:
    """One run of a program: takes ends of communications, calls back who calls what and when."""

    def __init__(
        self, program: Program, duration_ms: list[float], called: Callable[[float, int, int], None]
    ) -> None:
        self.program = program
        self.duration_ms = duration_ms
        n = len(program.compute)
        self.start_ms = [0.0] * n
        self.end_ms = [0.0] * n
        self.left = n
        self._called = called  # (when, communication, slot or -1 if nobody computes for it)
        self._waiting = list(program.waiting)
        self._latest = [0.0] * len(program.waiting)

    @property
    def iteration_ms(self) -> float:
        """When the last node ends."""
        return max(self.end_ms, default=0.0)

    def begin(self) -> None:
        """Start whatever waits for nothing."""
        program, roots = self.program, []
        for node, waiting in enumerate(self._waiting[: len(program.compute)]):
            if not waiting:
                if program.compute[node]:
                    self.end_ms[node] = self.duration_ms[node]
                    roots.append(node)
                else:
                    self._opened(node)
        self.left -= len(roots)
        self._settle(roots)

    def run(self, node: int, start_ms: float) -> float:
        """Note when a communication starts; return when it ends."""
        self.start_ms[node] = start_ms
        self.end_ms[node] = end = start_ms + self.duration_ms[node]
        return end

    def ended(self, node: int) -> None:
        """Set free what waited for a communication."""
        self.left -= 1
        self._settle([node])

    def _settle(self, stack: list[int]) -> None:
        # Computing has its rank to itself in program order, so its times are known as soon as those
        # before it are.
        program, waiting, latest, end_ms = self.program, self._waiting, self._latest, self.end_ms
        n, compute, frees = len(program.compute), program.compute, program.frees
        while stack:
            node = stack.pop()
            end = end_ms[node]
            for cell in frees[node]:
                if end > latest[cell]:
                    latest[cell] = end
                waiting[cell] -= 1
                if waiting[cell]:
                    continue
                if cell >= n:
                    communication = program.slot_node[cell - n]
                    if not waiting[communication]:
                        self._called(
                            max(latest[cell], latest[communication]), communication, cell - n
                        )
                elif compute[cell]:
                    self.start_ms[cell] = latest[cell]
                    end_ms[cell] = latest[cell] + self.duration_ms[cell]
                    self.left -= 1
                    stack.append(cell)
                else:
                    self._opened(cell)

    def _opened(self, node: int) -> None:
        slots, n = self.program.slots_of[node], len(self.program.compute)
        if not slots:
            self._called(self._latest[node], node, -1)
        for slot in slots:
            if not self._waiting[n + slot]:
                self._called(max(self._latest[n + slot], self._latest[node]), node, slot)

    def unfinished(self) -> InputError:
        """Return what to say when nothing can go on before the end."""
        iteration = self.program.iteration
        stuck = next(
            label for label, waiting in zip(iteration.label, self._waiting, strict=False) if waiting
        )
        return InputError(
            f"the ranks wait for each other in a cycle; {stuck!r} is never reached",
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


def _local(iteration: RailIteration, before: Ints, after: Ints) -> tuple[Ints, Ints]:
    """Return (node * ranks + rank of every slot, slot of every edge or -1)."""
    local = (
        (iteration.kind[before] == COMPUTE)
        & (iteration.kind[after] != COMPUTE)
        & (iteration.rank[before] >= 0)
    )
    key = after.astype(np.int64) * iteration.ranks + iteration.rank[before]
    slot = np.full(len(before), -1, np.int64)
    # A rank may wait for a communication that it takes no part in; that is no call of its own.
    taking_part = row_of_entry(iteration.issue_ptr)
    local &= np.isin(key, iteration.issue_idx.astype(np.int64) * iteration.ranks + taking_part)
    keys, slot[local] = np.unique(key[local], return_inverse=True)
    return keys, slot


def _grouped(owner: Ints, value: Ints, n: int) -> list[list[int]]:
    pointer, values = grouped(owner, value, n)
    return [row.tolist() for row in np.split(values, pointer[1:-1])]
