"""Compiled searches over groupings: caps and fronts, three windows, annealing."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topox_core.compiled import compiled
from topox_core.tdm.kernels.stage import BoolArray, Fabric, FloatArray, GroupLoad, IntArray, stage_s

WAYS = 1, 0  # after a pull, after a push: the order in which times are added up


def turns(firsts: NDArray[np.int16], seconds: NDArray[np.int16]) -> BoolArray:
    """Return, ``[group, pair]``, whether circuits change when the first group's stages begin, and when the second's do.

    Of each pair of groups the links of their pushes. A stage without links leaves the circuits as
    they are. Push to pull of the other group and back are each other's transposes, so two answers
    cover four stages.
    """
    some = np.stack([firsts.any((1, 2)), seconds.any((1, 2))])
    turned = seconds.transpose(0, 2, 1)
    # Before a group's push stands the other's, or its own pull where the other has no links.
    before_first = np.where(some[1, :, None, None], turned, firsts.transpose(0, 2, 1))
    before_second = np.where(some[0, :, None, None], firsts, turned)
    changes = (firsts != before_first).any((1, 2)), (seconds != before_second).any((1, 2))
    changed: BoolArray = some & np.stack(changes)
    return changed


@compiled
def stages(
    load: GroupLoad, fabric: Fabric, sets: BoolArray
) -> tuple[FloatArray, NDArray[np.int16]]:
    """Return communication time and links of sets of jobs, ``[set, job]``."""
    jobs, pods = load.units.shape
    demand, links = np.empty((pods, pods)), np.empty((pods, pods), np.int64)
    rings = np.empty((jobs, pods), np.int64)
    seconds, kept = np.empty(len(sets)), np.empty((len(sets), pods, pods), np.int16)
    for at in range(len(sets)):
        seconds[at] = stage_s(load, sets[at], fabric, demand, links, rings)
        kept[at] = links
    return seconds, kept


class Points(NamedTuple):
    """Ways to split the jobs of each pod group in two, ordered by pod group, then by the first one's communication.

    Attributes
    ----------
    start
        Of each pod group, its first point; one more at the end.
    talk_s
        ``[group, point]`` communication in that pod group.
    computing_s
        ``[way, group, point]`` longest computing, after a push and after a pull.
    turn
        ``[group, point]`` whether circuits change when the stages of the group begin.
    subset
        Which of the pod group's subsets the second group is.
    """

    start: IntArray
    talk_s: FloatArray
    computing_s: FloatArray
    turn: BoolArray
    subset: IntArray


class Switching(NamedTuple):
    """Whether circuits change when each group's stages begin, for how long that is dark, and whether computing goes on then."""

    turn: tuple[bool, bool]
    dark_s: float
    inside: bool


@compiled
def round_length_s(
    talk_s: tuple[float, float], computing_s: FloatArray, switching: Switching, all_train: bool
) -> float:
    """Return the length of a round: four stages, or two halves with a phase in which all train.

    Of each group how long it communicates, and ``[way, group]`` how long it computes after a push
    and after a pull.
    """
    first_s, second_s = talk_s
    dark_first_s = switching.dark_s if switching.turn[0] else 0.0
    dark_second_s = switching.dark_s if switching.turn[1] else 0.0
    length = 0.0
    if switching.inside:
        first_s, second_s = first_s + dark_first_s, second_s + dark_second_s
        dark_first_s, dark_second_s = 0.0, 0.0
    if all_train:
        for way in WAYS:
            each = max(first_s + computing_s[way, 0], second_s + computing_s[way, 1])
            length += max(first_s + second_s, each)
    else:
        for way in WAYS:
            length += max(first_s, computing_s[way, 1])
        for way in WAYS:
            length += max(second_s, computing_s[way, 0])
    return length + 2.0 * (dark_first_s + dark_second_s)


@compiled
def undominated(kind: IntArray, second_s: FloatArray) -> BoolArray:
    """Mark what is better in the second time than all before of its kind; ordered by kind, then by the first time."""
    keep = np.zeros(len(kind), np.bool_)
    best = np.inf
    for at in range(len(kind)):
        if at == 0 or kind[at] != kind[at - 1]:
            best = np.inf
        if second_s[at] < best:
            best = second_s[at]
            keep[at] = True
    return keep


@compiled
def _allowed(points: Points, at: int, caps: FloatArray, turn: tuple[bool, bool]) -> bool:
    allowed = True
    for k in range(2):
        allowed = allowed and (turn[k] or not points.turn[k, at])
        for way in WAYS:
            allowed = allowed and points.computing_s[way, k, at] <= caps[way, k]
    return allowed


@compiled
def cheapest(
    points: Points, caps: FloatArray, floors: FloatArray, switching: Switching, all_train: bool
) -> tuple[float, IntArray]:
    """Return the shortest round whose computing keeps to the caps and is charged as the floors, with a point of each pod group.

    The pod groups meet only in the two longest communications. From the largest first one
    downwards, each pod group has to leave a point of its front now and then, and the second one
    grows: one pass sees all pairs. Infinite if some pod group has no point within the caps.
    """
    groups = len(points.start) - 1
    total = points.start[groups]
    leaves_at = np.empty(total)
    then_s = np.empty(total)
    events = 0
    second_s = 0.0
    chosen = np.full(groups, -1, np.int64)
    for g in range(groups):
        best = np.inf
        for at in range(points.start[g], points.start[g + 1]):
            if points.talk_s[1, at] < best and _allowed(points, at, caps, switching.turn):
                leaves_at[events] = points.talk_s[0, at]
                then_s[events] = best
                best = points.talk_s[1, at]
                events += 1
        if best == np.inf:
            return np.inf, chosen
        second_s = max(second_s, best)
    order = np.argsort(-leaves_at[:events])
    shortest, first_cap, second_cap = np.inf, 0.0, 0.0
    for event in order:
        length = round_length_s((leaves_at[event], second_s), floors, switching, all_train)
        if length < shortest:
            shortest, first_cap, second_cap = length, leaves_at[event], second_s
        second_s = max(second_s, then_s[event])
        if second_s == np.inf:
            break
    if shortest == np.inf:
        return np.inf, chosen
    for g in range(groups):
        for at in range(points.start[g], points.start[g + 1]):
            if (
                points.talk_s[0, at] <= first_cap
                and points.talk_s[1, at] <= second_cap
                and _allowed(points, at, caps, switching.turn)
            ):
                chosen[g] = at
                break
    return shortest, chosen


@compiled
def best_alone(
    points: Points, g: int, dark_s: float, inside: bool, all_train: bool
) -> tuple[float, int]:
    """Return the shortest round of one pod group behind a barrier of its own, and its point."""
    shortest, chosen = np.inf, -1
    for at in range(points.start[g], points.start[g + 1]):
        switching = Switching((points.turn[0, at], points.turn[1, at]), dark_s, inside)
        talk_s = points.talk_s[0, at], points.talk_s[1, at]
        length = round_length_s(talk_s, points.computing_s[:, :, at], switching, all_train)
        if length < shortest:
            shortest, chosen = length, at
    return shortest, chosen


@compiled
def three_windows(seconds: FloatArray, computing_s: FloatArray) -> tuple[float, int, int]:
    """Return the shortest round of one pod group with three windows, and the subsets of the first and second one.

    All arrays are over subsets of its jobs. Job 0 is in the first window, the first job left in the
    second.
    """
    full = len(seconds) - 1
    best, best_first, best_second = np.inf, full, 0
    for first in range(1, full + 1, 2):
        rest = full & ~first
        lowest = rest & -rest
        second = rest
        while True:
            if second & lowest == lowest:
                third = rest & ~second
                a, b, c = seconds[first], seconds[second], seconds[third]
                length = 0.0
                for way in WAYS:
                    own = computing_s[way]
                    each = max(a + own[first], max(b + own[second], c + own[third]))
                    length += max(a + b + c, each)
                if length < best:
                    best, best_first, best_second = length, first, second
            if second == 0:
                break
            second = (second - 1) & rest
    return best, best_first, best_second


class OrderedJobs(NamedTuple):
    """Jobs in the order of their pod groups, with ``[way, job]`` the computing of each; ``start`` is each pod group's first."""

    load: GroupLoad
    start: IntArray
    computing_s: FloatArray


# A pod group counts so much even where it is not the longest: improving it is no plateau.
_PUSH = 2.0


@compiled
def _part(load: GroupLoad, low: int, high: int) -> GroupLoad:
    return GroupLoad(
        load.units[low:high],
        load.into[low:high],
        load.volume_gbit[low:high],
        load.arc_gbit[low:high],
        load.local_gbit[low:high],
        load.ring[low:high],
    )


@compiled
def _longest(computing_s: FloatArray, second: BoolArray) -> FloatArray:
    longest = np.zeros((2, 2))
    for way in WAYS:
        for n in range(len(second)):
            k = 1 if second[n] else 0
            longest[way, k] = max(longest[way, k], computing_s[way, n])
    return longest


@compiled
def _cost(
    seconds: FloatArray,
    switching: Switching,
    ordered: OrderedJobs,
    second: BoolArray,
    all_train: bool,
) -> tuple[float, float]:
    """Return the length of the round, and the same with a little of every pod group's own communication on top."""
    length = round_length_s(
        (seconds[:, 0].max(), seconds[:, 1].max()),
        _longest(ordered.computing_s, second),
        switching,
        all_train,
    )
    return length, length + _PUSH * (
        (seconds[:, 0] ** 2).mean() ** 0.5 + (seconds[:, 1] ** 2).mean() ** 0.5
    )


@compiled
def anneal(
    ordered: OrderedJobs,
    fabric: Fabric,
    switching: Switching,
    second: BoolArray,
    steps: int,
    cooling: tuple[float, float],
    all_train: bool,
    rng: np.random.Generator,
) -> tuple[float, BoolArray]:
    """Return the shortest round by simulated annealing from a grouping, and its grouping.

    The temperature falls from one end of the ``cooling`` to the other, shares of the round at the start.
    A step flips one job, or lets two of a pod group change places; every other one takes the pod
    group that is longest in one of the stages.
    """
    load, start = ordered.load, ordered.start
    groups, jobs, pods = len(start) - 1, len(second), load.units.shape[1]
    demand, links, rings = (
        np.empty((pods, pods)),
        np.empty((pods, pods), np.int64),
        np.empty((jobs, pods), np.int64),
    )
    second, (hot, cold) = second.copy(), cooling
    seconds = np.zeros((groups, 2))
    for g in range(groups):
        part, inside = _part(load, start[g], start[g + 1]), second[start[g] : start[g + 1]]
        seconds[g, 0] = stage_s(part, ~inside, fabric, demand, links, rings)
        seconds[g, 1] = stage_s(part, inside, fabric, demand, links, rings)
    best_s, now = _cost(seconds, switching, ordered, second, all_train)
    best = second.copy()
    scale = best_s if best_s < np.inf else 1.0
    owner = np.empty(jobs, np.int64)
    for g in range(groups):
        owner[start[g] : start[g + 1]] = g
    for step in range(steps):
        temperature = scale * hot * (cold / hot) ** (step / steps)
        g = owner[rng.integers(0, jobs)]
        if rng.random() < 0.5:
            g = int(seconds[:, rng.integers(0, 2)].argmax())
        low, high = start[g], start[g + 1]
        if high == low:
            continue
        a = rng.integers(low, high)
        b = rng.integers(low, high) if rng.random() < 0.5 else a
        if second[a] == second[b]:
            b = a
        second[a] = not second[a]
        if b != a:
            second[b] = not second[b]
        part, inside = _part(load, low, high), second[low:high]
        old_first, old_second = seconds[g, 0], seconds[g, 1]
        seconds[g, 0] = stage_s(part, ~inside, fabric, demand, links, rings)
        seconds[g, 1] = stage_s(part, inside, fabric, demand, links, rings)
        length, cost = _cost(seconds, switching, ordered, second, all_train)
        if cost <= now or rng.random() < np.exp((now - cost) / temperature):
            now = cost
            if length < best_s:
                best_s = length
                best[:] = second
        else:
            seconds[g, 0], seconds[g, 1] = old_first, old_second
            second[a] = not second[a]
            if b != a:
                second[b] = not second[b]
    return best_s, best
