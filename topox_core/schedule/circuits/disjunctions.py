"""Which tasks models with set-ups have to put in order, port by port, and up to which size CP-SAT does so.

Apart from the models, which load OR-Tools. All pairs of transfers, for a model of the whole; who
follows whom in a schedule, and what stays so while some tasks are free, for its neighbourhoods.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topox_core.schedule.bounds.windows import Windows
from topox_core.schedule.circuits.held_ports import Solution, carried_tasks
from topox_core.schedule.problem import Int, Problem

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
    """Two tasks at one side of a server or on one device, and what holds if they share a port there.

    Attributes
    ----------
    first, second
        The tasks; ``first`` comes first where the graph orders them.
    apart
        Ticks from the end of one to the start of the other.
    may_follow, may_lead
        Whether ``second`` can start so long after ``first`` has ended, and the other way round,
        within its window.
    anywhere
        Whether that holds wherever they are: on a device, and of tasks that stay on one switch.
    leaves
        Of transfers whether each leaves.
    alike
        Whether both run between the same servers the same way: then it is one circuit if they share
        the ports at both ends.
    around
        Whether the next iteration's first of the two may come too soon after the last, which windows
        do not exclude.
    """

    first: int
    second: int
    apart: int
    may_follow: bool = True
    may_lead: bool = False
    anywhere: bool = False
    leaves: tuple[bool, bool] = (True, True)
    alike: bool = False
    around: bool = False


@dataclass(frozen=True)
class Side:
    """The ports of a server one way (both ways in half duplex), or a device: tasks there, in some order.

    The peer of a transfer is the server at the other end and the way there: twice the destination of
    one that leaves, the number behind twice the source of one that arrives. A circuit the other way
    is another circuit.
    """

    tasks: list[int]
    peers: list[int]
    device: bool = False

    @property
    def leaves(self) -> list[bool]:
        """Of each transfer whether it leaves."""
        return [peer % 2 == 0 for peer in self.peers]


def sides_of(problem: Problem, when: Int) -> list[Side]:
    """Return the transfers at the out-side and the in-side of each server, or at the server (half duplex), ordered by ``when``."""
    network, carried = problem.switch_network, carried_tasks(problem)
    source = network.source[carried].astype(np.int64)
    destination = network.destination[carried].astype(np.int64)
    ways = 0 if network.half_duplex else 1
    side = np.concatenate([(1 + ways) * source, (1 + ways) * destination + ways])
    peer, task = np.concatenate([2 * destination, 2 * source + 1]), np.tile(carried, 2)
    order = np.lexsort((when[task], side))
    rows = np.split(order, np.flatnonzero(np.diff(side[order])) + 1)
    return [Side(task[one].tolist(), peer[one].tolist()) for one in rows if len(one)]


class Spans(NamedTuple):
    """Earliest and latest starts of tasks, and how long they last."""

    low: list[int]
    high: list[int]
    lasts: list[int]

    @staticmethod
    def of(problem: Problem, given: Windows) -> "Spans":
        """Return those within windows."""
        return Spans(given.earliest.tolist(), given.latest.tolist(), problem.duration.tolist())

    def may(self, i: int, j: int, apart: int) -> bool:
        """Whether ``j`` can start so long after ``i`` ends."""
        return self.high[j] >= self.low[i] + self.lasts[i] + apart

    def must(self, i: int, j: int, apart: int) -> bool:
        """Whether ``j`` always starts so long after ``i`` ends."""
        return self.low[j] >= self.high[i] + self.lasts[i] + apart


def pairs_within(problem: Problem, given: Windows) -> Iterator[Pair]:
    """Yield the pairs of transfers at one side that a model with set-ups has to put in order; what windows decide is left out."""
    net, dark, spans = problem.switch_network, problem.dark_ticks or 0, Spans.of(problem, given)
    low, high, lasts = spans
    least = int((given.earliest + problem.duration).max(initial=0))  # of an iteration
    ancestors = _ancestors(problem)

    def soon(i: int, j: int) -> bool:
        """Tell whether ``i`` of the next iteration can start less than a set-up after ``j`` ends."""
        return low[i] + least < high[j] + lasts[j] + dark

    for side in sides_of(problem, np.arange(problem.n)):
        for one, other in combinations(zip(side.tasks, side.peers, strict=True), 2):
            alike = one[1] == other[1]
            if alike and net.ports_on_switch == 1:
                continue  # one circuit: that they do not overlap is enough
            if ancestors[one[0]] >> other[0] & 1:
                one, other = other, one
            (i, peer), (j, there) = one, other
            ordered = bool(ancestors[j] >> i & 1)
            around = net.repeats and (soon(i, j) or soon(j, i))
            decided = spans.must(i, j, dark) or (not ordered and spans.must(j, i, dark))
            if around or not decided:
                may_lead = not ordered and spans.may(j, i, dark)
                leaves = peer % 2 == 0, there % 2 == 0
                may = spans.may(i, j, dark), may_lead
                yield Pair(i, j, dark, *may, leaves=leaves, alike=alike, around=around)


def _ancestors(problem: Problem) -> list[int]:
    """Return of each task its ancestors, as bits."""
    bits = [0] * problem.n
    ptr, idx = problem.pred_ptr.tolist(), problem.pred_idx.tolist()
    for j in problem.order.tolist():
        for i in idx[ptr[j] : ptr[j + 1]]:
            bits[j] |= bits[i] | (1 << i)
    return bits


def may_be_few(problem: Problem) -> bool:
    """Whether a model that counts set-ups may be small enough, as far as that costs nothing to see."""
    sides = sides_of(problem, np.arange(problem.n))
    return sum(math.comb(len(side.tasks), 2) for side in sides) <= MAX_PAIRS


def neighbourhoods_fit(problem: Problem) -> bool:
    """Whether large neighbourhoods know all ports there are: one of a server on each switch, and no switch that fills."""
    net = problem.network
    if net is None or net.switches_may_fill or net.ports_on_switch > 1:
        return False
    return problem.n <= NEIGHBOURHOOD_TASKS


def cpsat_counts_set_ups(problem: Problem) -> bool:
    """Whether CP-SAT has a model of set-ups, or of neighbourhoods with them, that may be small enough."""
    return neighbourhoods_fit(problem) or may_be_few(problem)


def pairs_in_turn(
    problem: Problem, solution: Solution, free: Bools, given: Windows
) -> Iterator[Pair]:
    """Yield what keeps ports and devices if free tasks may change places and switches, and the others neither.

    A server has one port on each switch. Set-ups keep the triangle inequality: of tasks that keep
    their order on a switch neighbours are enough. Pairs that their windows keep apart are left out.
    """
    assert solution.ports is not None
    dark, spans = problem.dark_ticks or 0, Spans.of(problem, given)
    may_move, switch = free.tolist(), solution.ports[0].tolist()
    sides = sides_of(problem, solution.start)
    for device in range(problem.devices):
        held = np.flatnonzero((problem.device == device) & (problem.duration > 0))
        held = held[np.argsort(solution.start[held], kind="stable")]
        sides.append(Side(held.tolist(), [0] * len(held), device=True))
    for side in sides:
        peer = dict(zip(side.tasks, side.peers, strict=True))
        seen = [j for j in side.tasks if not may_move[j]]
        last: dict[int, int] = {}  # by switch the last task that keeps its turn
        for j in seen:
            place = 0 if side.device else switch[j]
            if place in last:
                i = last[place]
                yield Pair(i, j, 0 if peer[i] == peer[j] else dark, anywhere=True)
            last[place] = j
        for f in (j for j in side.tasks if may_move[j]):
            for g in seen:
                apart = 0 if peer[f] == peer[g] else dark
                if not spans.must(f, g, apart) and not spans.must(g, f, apart):
                    may = spans.may(g, f, apart), spans.may(f, g, apart)
                    yield Pair(g, f, apart, *may, anywhere=side.device)
            seen.append(f)
