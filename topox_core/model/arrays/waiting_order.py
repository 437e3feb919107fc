"""Things that wait for each other: an order in which each comes after what it waits for, or the cycle in the way."""

import heapq
from collections.abc import Callable, Sequence
from operator import add


def order_of(waits: Sequence[Sequence[int]]) -> list[int]:
    """Return positions so that each comes after those it waits for; what a cycle holds up is left out."""
    waiting = [len(one) for one in waits]
    after: list[list[int]] = [[] for _ in waits]
    for at, befores in enumerate(waits):
        for before in befores:
            after[before].append(at)
    order = [at for at, count in enumerate(waiting) if not count]
    for at in order:
        for later in after[at]:
            waiting[later] -= 1
            if not waiting[later]:
                order.append(later)
    return order


def earliest(
    waits: Sequence[Sequence[int]], lasts: Sequence[float]
) -> tuple[list[int], list[float]]:
    """Return an order as :func:`order_of` does, and of everything when it begins if as early as it may.

    Parameters
    ----------
    lasts
        How long each takes.
    """
    order = order_of(waits)
    return order, _starts(order, waits, lasts)


def length(waits: Sequence[Sequence[int]], lasts: Sequence[float]) -> float | None:
    """Return when the last ends if everything begins as early as it may; None if there is a cycle."""
    order: Sequence[int] = range(len(waits))
    # What is listed in an order already, as most is, need not be put into one.
    if any(max(befores) >= at for at, befores in enumerate(waits) if befores):
        order = order_of(waits)
    start = _starts(order, waits, lasts)
    return max(map(add, start, lasts), default=0.0) if len(order) == len(waits) else None


def _starts(
    order: Sequence[int], waits: Sequence[Sequence[int]], lasts: Sequence[float]
) -> list[float]:
    start, end = [0.0] * len(waits), [0.0] * len(waits)
    for at in order:
        begin = 0.0
        for before in waits[at]:
            if end[before] > begin:
                begin = end[before]
        start[at], end[at] = begin, begin + lasts[at]
    return start


def cycle_of(waits: Sequence[Sequence[int]]) -> list[int]:
    """Return the positions along one cycle, each waiting for the one after; none if there is none."""
    held_up = sorted({*range(len(waits))}.difference(order_of(waits)))
    if not held_up:
        return []
    # Whatever is held up waits for something that is: going on from one to the next must come round.
    at, inside = held_up[0], {*held_up}
    seen: dict[int, int] = {}
    while at not in seen:
        seen[at] = len(seen)
        at = next(before for before in waits[at] if before in inside)
    return list(seen)[seen[at] :]


def last_end(following: Sequence[Sequence[int]], end_of: Callable[[int, float], float]) -> float:
    """Return when the last has ended if each is taken once what it waits for has ended.

    Of those that are ready the one that has been so longest is next; ties go by position.

    Parameters
    ----------
    following
        Of each the positions of those that wait for it.
    end_of
        When one ends, given its position and since when it is ready.
    """
    missing = [0] * len(following)
    for after in following:
        for j in after:
            missing[j] += 1
    ready = [0.0] * len(following)
    queue = [(0.0, i) for i, count in enumerate(missing) if not count]
    last = 0.0
    while queue:
        now, i = heapq.heappop(queue)
        ended = end_of(i, now)
        last = max(last, ended)
        for j in following[i]:
            ready[j] = max(ready[j], ended)
            missing[j] -= 1
            if not missing[j]:
                heapq.heappush(queue, (ready[j], j))
    return last
