"""Things that wait for each other: an order in which each comes after what it waits for, or the cycle in the way."""

from __future__ import annotations

from collections.abc import Sequence


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
    start, end = [0.0] * len(waits), [0.0] * len(waits)
    for at in order:
        begin = 0.0
        for before in waits[at]:
            if end[before] > begin:
                begin = end[before]
        start[at], end[at] = begin, begin + lasts[at]
    return order, start


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
