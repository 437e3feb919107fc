"""Which tasks models with set-ups have to put in order, port by port, and up to which size CP-SAT does so.

Apart from the models, which load OR-Tools. All pairs of transfers, for a model of the whole; who
follows whom in a schedule, and what stays so while some tasks are free, for its neighbourhoods.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topox_core.model.csr import grouped
from topox_core.schedule.bounds.windows import Windows
from topox_core.schedule.circuits.held_ports import Solution
from topox_core.schedule.problem import Int32, Problem

Bools = NDArray[np.bool_]
# A whole model with set-ups has at most so many pairs to be ordered; CP-SAT may find no schedule of
# a larger one for minutes.
MAX_DISJUNCTIONS = 10_000
# Windows decide a part of them: up to so many pairs at one side the count is worth while.
MAX_PAIRS = 20_000
NEIGHBOURHOOD_TASKS = 3_000
WHOLE_TASKS = 600  # up to so many the problem is one model
LEARNING_TASKS = 250  # below, learning from conflicts decides sooner than linear programmes


@dataclass(frozen=True)
class Pair:
    """Two transfers at one side of a server: what holds if they share a port there.

    Attributes
    ----------
    first, second
        The tasks; ``first`` comes first where the graph orders them.
    alike
        Whether both run between the same servers the same way: then it is one circuit if they share
        the ports at both ends.
    may_follow, may_lead
        Whether ``second`` can start a set-up after ``first``, and the other way round, within its
        window.
    around
        Whether the next iteration's first of the two may come too soon after the last, which windows
        do not exclude.
    """

    first: int
    second: int
    alike: bool
    may_follow: bool
    may_lead: bool
    around: bool = False


@dataclass(frozen=True)
class Side:
    """The ports of a server one way (both ways in half duplex), or a device: tasks there, in some order.

    Of transfers their peers, whether each leaves, and pairs that may share a port.
    """

    tasks: tuple[int, ...]
    peers: tuple[int, ...]
    leaves: tuple[bool, ...] = ()
    pairs: tuple[Pair, ...] = ()
    device: bool = False


class Sides(NamedTuple):
    """The transfers at each side of each server (CSR) and the peer of each, with its direction."""

    ptr: Int32
    task: Int32
    peer: Int32


def sides_of(problem: Problem) -> Sides:
    """Return the transfers at the out-side and the in-side of each server, or at the server (half duplex).

    The peer is the server at the other end and the way there: twice the destination of a transfer
    that leaves, the number behind twice the source of one that arrives. A circuit the other way is
    another circuit.
    """
    network = problem.switch_network
    carried = np.flatnonzero(problem.on_grid & (problem.duration > 0)).astype(np.int32)
    source = network.source[carried].astype(np.int64)
    destination = network.destination[carried].astype(np.int64)
    ways = 0 if network.half_duplex else 1
    server = np.concatenate([(1 + ways) * source, (1 + ways) * destination + ways])
    peer = np.concatenate([2 * destination, 2 * source + 1])
    _, side = np.unique(server, return_inverse=True)
    ptr, entry = grouped(side, np.arange(len(side), dtype=np.int32), int(side.max(initial=-1)) + 1)
    task = np.concatenate([carried, carried])
    return Sides(ptr, task[entry].astype(np.int32), peer[entry].astype(np.int32))


@dataclass(frozen=True)
class Disjunctions:
    """Sides and pairs of a problem that counts set-ups, within windows; what the windows decide is left out."""

    problem: Problem
    windows: Windows

    @cached_property
    def ancestors(self) -> list[int]:
        """Of each task its ancestors, as bits."""
        p = self.problem
        bits = [0] * p.n
        ptr, idx = p.pred_ptr.tolist(), p.pred_idx.tolist()
        for j in p.order.tolist():
            mine = 0
            for i in idx[ptr[j] : ptr[j + 1]]:
                mine |= bits[i] | (1 << i)
            bits[j] = mine
        return bits

    @cached_property
    def sides(self) -> tuple[Side, ...]:
        """Every side of a server that transfers hold ports of."""
        sides = sides_of(self.problem)
        rows = [slice(*ends) for ends in pairwise(sides.ptr.tolist())]
        return tuple(self._side(sides.task[one], sides.peer[one]) for one in rows)

    @staticmethod
    def may_be_few(problem: Problem) -> bool:
        """Whether a model that counts set-ups may be small enough, as far as that costs nothing to see."""
        many = np.diff(sides_of(problem).ptr).astype(np.int64)
        return int((many * (many - 1) // 2).sum()) <= MAX_PAIRS

    @property
    def count(self) -> int:
        """Pairs that the model has to order."""
        return sum(len(side.pairs) for side in self.sides)

    def _side(self, task: Int32, peer: Int32) -> Side:
        order = np.argsort(task, kind="stable")
        tasks, peers = task[order].tolist(), peer[order].tolist()
        pairs = [
            pair
            for b in range(len(tasks))
            for a in range(b)
            if (pair := self._pair(tasks[a], tasks[b], peers[a] == peers[b])) is not None
        ]
        leaves = tuple(one % 2 == 0 for one in peers)
        return Side(tuple(tasks), tuple(peers), leaves, tuple(pairs))

    def _pair(self, a: int, b: int, alike: bool) -> Pair | None:
        """Return what a pair has to keep, or None: nothing that its windows do not keep already."""
        net, dark = self.problem.switch_network, self.problem.dark_ticks or 0
        if alike and net.ports_on_switch == 1:
            return None  # one circuit: that they do not overlap is enough
        before, after, ordered = a, b, False
        if self.ancestors[b] >> a & 1:
            ordered = True
        elif self.ancestors[a] >> b & 1:
            before, after, ordered = b, a, True
        follows, leads = self._distance(before, after, dark), self._distance(after, before, dark)
        around = net.repeats and (
            self._soon(before, after, dark) or self._soon(after, before, dark)
        )
        if not around and (follows == "always" or (leads == "always" and not ordered)):
            return None
        may_lead = not ordered and leads != "never"
        return Pair(before, after, alike, follows != "never", may_lead, around)

    def _soon(self, i: int, j: int, dark: int) -> bool:
        """Tell whether ``i`` of the next iteration can start less than a set-up after ``j`` ends."""
        low, high, lasts = self._plain
        return low[i] + self._least < high[j] + lasts[j] + dark

    @cached_property
    def _least(self) -> int:
        """How long an iteration takes at least."""
        return int((self.windows.earliest + self.problem.duration).max(initial=0))

    def _distance(self, i: int, j: int, dark: int) -> str:
        """Tell whether ``j`` can start a set-up after ``i`` ends: always, never, or it depends."""
        low, high, lasts = self._plain
        if low[j] >= high[i] + lasts[i] + dark:
            return "always"
        return "never" if high[j] < low[i] + lasts[i] + dark else "depends"

    @cached_property
    def _plain(self) -> tuple[list[int], list[int], list[int]]:
        w = self.windows
        return w.earliest.tolist(), w.latest.tolist(), self.problem.duration.tolist()


def neighbourhoods_fit(problem: Problem) -> bool:
    """Whether large neighbourhoods know all ports there are: one of a server on each switch, and no switch that fills."""
    net = problem.network
    if net is None or net.switches_may_fill or net.ports_on_switch > 1:
        return False
    return problem.n <= NEIGHBOURHOOD_TASKS


def cpsat_counts_set_ups(problem: Problem) -> bool:
    """Whether CP-SAT has a model of set-ups, or of neighbourhoods with them, that may be small enough."""
    return neighbourhoods_fit(problem) or Disjunctions.may_be_few(problem)


@dataclass(frozen=True)
class Follows:
    """``second`` starts no sooner than ``apart`` ticks after ``first`` has ended, or the other way round if ``either``.

    ``on_one_switch``: that holds only where both are on one switch.
    """

    first: int
    second: int
    apart: int
    either: bool
    on_one_switch: bool


def sides_in_turn(problem: Problem, solution: Solution) -> list[Side]:
    """Return the sides of servers and the devices that have several tasks; a server has one port on each switch."""
    found, sides = [], sides_of(problem)
    for rows in np.split(np.arange(len(sides.task)), sides.ptr[1:-1]):
        rows = rows[np.argsort(solution.start[sides.task[rows]], kind="stable")]
        found.append(Side(tuple(sides.task[rows].tolist()), tuple(sides.peer[rows].tolist())))
    for device in range(problem.devices):
        held = np.flatnonzero((problem.device == device) & (problem.duration > 0))
        held = held[np.argsort(solution.start[held], kind="stable")]
        found.append(Side(tuple(held.tolist()), (0,) * len(held), device=True))
    return [one for one in found if len(one.tasks) > 1]


def kept_apart(
    problem: Problem, sides: list[Side], solution: Solution, free: Bools, given: Windows
) -> Iterator[Follows]:
    """Yield what keeps ports and devices if free tasks may change places and switches, and the others neither.

    Set-ups keep the triangle inequality: of tasks that keep their order on a switch neighbours are
    enough. Pairs that their windows keep apart are left out.
    """
    assert solution.ports is not None
    dark, lasts = problem.dark_ticks or 0, problem.duration.tolist()
    low, high = given.earliest.tolist(), given.latest.tolist()
    may_move, switch = free.tolist(), solution.ports[0].tolist()
    for side in sides:
        peer = dict(zip(side.tasks, side.peers, strict=True))
        seen: list[int] = []
        last: dict[int, int] = {}  # by switch the last task that keeps its turn
        for j in side.tasks:
            if may_move[j]:
                continue
            place = 0 if side.device else switch[j]
            if place in last:
                i = last[place]
                yield Follows(i, j, 0 if peer[i] == peer[j] else dark, False, False)
            last[place] = j
            seen.append(j)
        for f in side.tasks:
            if not may_move[f]:
                continue
            for g in seen:
                apart = 0 if peer[f] == peer[g] else dark
                may_follow = high[f] >= low[g] + lasts[g] + apart
                may_lead = high[g] >= low[f] + lasts[f] + apart
                always = (
                    low[f] >= high[g] + lasts[g] + apart or low[g] >= high[f] + lasts[f] + apart
                )
                if not always:
                    first, second = (g, f) if may_follow else (f, g)
                    yield Follows(first, second, apart, may_follow and may_lead, not side.device)
            seen.append(f)
