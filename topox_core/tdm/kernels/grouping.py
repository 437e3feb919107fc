"""Compiled searches over groupings: caps and fronts, three windows, annealing."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topox_core.compiled import compiled
from topox_core.tdm.kernels.stage import BoolArray, Fabric, FloatArray, GroupLoad, IntArray, stage_s


@compiled
def turns(firsts: NDArray[np.int16], seconds: NDArray[np.int16]) -> tuple[BoolArray, BoolArray]:
    """Return whether circuits change when the first group's stages begin, and when the second's do, of each pair of groups.

    The links are those of the pushes. A stage without links leaves the circuits as they are. Push to
    pull of the other group and back are each other's transposes, so two answers cover four stages.
    """
    to_first, to_second = np.empty(len(firsts), np.bool_), np.empty(len(firsts), np.bool_)
    for at in range(len(firsts)):
        first, second = firsts[at], seconds[at]
        any_first, any_second = bool(first.any()), bool(second.any())
        # Before the first group's push stands the second's pull, or its own where the second has no
        # links.
        before = second.T if any_second else first.T
        to_first[at] = any_first and not np.array_equal(first, before)
        before = first if any_first else second.T
        to_second[at] = any_second and not np.array_equal(second, before)
    return to_first, to_second


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
    """Ways to split the jobs of each pod group, ordered by pod group, then by ``first_s``.

    Attributes
    ----------
    start
        Of each pod group, its first point; one more at the end.
    first_s, second_s
        Communication of the two groups in that pod group.
    train_first_s, train_second_s
        Longest computing between pull and push.
    between_first_s, between_second_s
        Longest computing between push and pull.
    turn_first, turn_second
        Whether circuits change when the stages of the group begin.
    subset
        Which of the pod group's subsets the second group is.
    """

    start: IntArray
    first_s: FloatArray
    second_s: FloatArray
    train_first_s: FloatArray
    train_second_s: FloatArray
    between_first_s: FloatArray
    between_second_s: FloatArray
    turn_first: BoolArray
    turn_second: BoolArray
    subset: IntArray


class Computing(NamedTuple):
    """Longest computing of each group over all pod groups: between pull and push, and between push and pull."""

    train_first_s: float
    train_second_s: float
    between_first_s: float
    between_second_s: float


class Switching(NamedTuple):
    """Whether circuits change when each group's stages begin, for how long that is dark, and whether computing goes on then."""

    first: bool
    second: bool
    dark_s: float
    inside: bool


@compiled
def round_length_s(
    first_s: float, second_s: float, computing: Computing, switching: Switching, all_train: bool
) -> float:
    """Return the length of a round: four stages, or two halves with a phase in which all train."""
    dark_s = (switching.dark_s if switching.first else 0.0) + (
        switching.dark_s if switching.second else 0.0
    )
    if switching.inside:
        first_s += switching.dark_s if switching.first else 0.0
        second_s += switching.dark_s if switching.second else 0.0
        dark_s = 0.0
    if all_train:
        both = first_s + second_s
        length = max(
            both, max(first_s + computing.train_first_s, second_s + computing.train_second_s)
        ) + max(
            both, max(first_s + computing.between_first_s, second_s + computing.between_second_s)
        )
    else:
        length = (
            max(first_s, computing.train_second_s)
            + max(first_s, computing.between_second_s)
            + max(second_s, computing.train_first_s)
            + max(second_s, computing.between_first_s)
        )
    return length + 2.0 * dark_s


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
def _allowed(points: Points, at: int, caps: Computing, switching: Switching) -> bool:
    return (
        (switching.first or not points.turn_first[at])
        and (switching.second or not points.turn_second[at])
        and points.train_first_s[at] <= caps.train_first_s
        and points.train_second_s[at] <= caps.train_second_s
        and points.between_first_s[at] <= caps.between_first_s
        and points.between_second_s[at] <= caps.between_second_s
    )


@compiled
def cheapest(
    points: Points, caps: Computing, floors: Computing, switching: Switching, all_train: bool
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
            if points.second_s[at] < best and _allowed(points, at, caps, switching):
                leaves_at[events] = points.first_s[at]
                then_s[events] = best
                best = points.second_s[at]
                events += 1
        if best == np.inf:
            return np.inf, chosen
        second_s = max(second_s, best)
    order = np.argsort(-leaves_at[:events])
    shortest, first_cap, second_cap = np.inf, 0.0, 0.0
    for event in order:
        length = round_length_s(leaves_at[event], second_s, floors, switching, all_train)
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
                points.first_s[at] <= first_cap
                and points.second_s[at] <= second_cap
                and _allowed(points, at, caps, switching)
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
        switching = Switching(points.turn_first[at], points.turn_second[at], dark_s, inside)
        computing = Computing(
            points.train_first_s[at],
            points.train_second_s[at],
            points.between_first_s[at],
            points.between_second_s[at],
        )
        length = round_length_s(
            points.first_s[at], points.second_s[at], computing, switching, all_train
        )
        if length < shortest:
            shortest, chosen = length, at
    return shortest, chosen


@compiled
def three_windows(
    seconds: FloatArray, train_s: FloatArray, between_s: FloatArray
) -> tuple[float, int, int]:
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
                both = a + b + c
                length = max(
                    both, max(a + train_s[first], max(b + train_s[second], c + train_s[third]))
                ) + max(
                    both,
                    max(a + between_s[first], max(b + between_s[second], c + between_s[third])),
                )
                if length < best:
                    best, best_first, best_second = length, first, second
            if second == 0:
                break
            second = (second - 1) & rest
    return best, best_first, best_second


class OrderedJobs(NamedTuple):
    """Jobs in the order of their pod groups, with the computing of each; ``start`` is each pod group's first."""

    load: GroupLoad
    start: IntArray
    train_s: FloatArray
    between_s: FloatArray


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
def _computing(train_s: FloatArray, between_s: FloatArray, second: BoolArray) -> Computing:
    longest = np.zeros(4)
    for n in range(len(second)):
        k = 1 if second[n] else 0
        longest[k] = max(longest[k], train_s[n])
        longest[2 + k] = max(longest[2 + k], between_s[n])
    return Computing(longest[0], longest[1], longest[2], longest[3])


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
        seconds[:, 0].max(),
        seconds[:, 1].max(),
        _computing(ordered.train_s, ordered.between_s, second),
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
