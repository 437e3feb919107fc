"""Which points of a map are computed: a coarse grid, then the blocks at whose corners different fabrics win.

A block of the grid whose four corners have the same winner is taken to have it everywhere; any other
one is cut in the middle, both ways, until its corners are neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise, product

from topox_core.fabrics.sweep import Axes, Point
from topox_core.fabrics.winner import Winner

# The coarse grid has at most so many delays, and so many port speeds or degrees besides the focus.
COARSE_DELAYS, COARSE_VALUES = 5, 3

Place = tuple[float, float]  # value, delay in ms
_Block = tuple[int, int, int, int]  # first and last value, first and last delay, by position


def wanted(axes: Axes, points: Mapping[Place, Point]) -> tuple[Place, ...]:
    """Return the points to compute next, from long delays to short ones; none once the map is complete."""
    places = {
        place
        for block in _blocks(axes, points)
        for place in _corners(axes, block)
        if place not in points
    }
    return tuple(sorted(places, key=lambda place: (-place[1], place[0])))


def inferred(axes: Axes, points: Mapping[Place, Point]) -> dict[Place, Winner]:
    """Return the winner of the points that are not computed since all corners of their block agree."""
    values, delays = sorted(axes.values), sorted(axes.delay_ms)
    filled: dict[Place, Winner] = {}
    for block in _blocks(axes, points):
        corners = [points.get(place) for place in _corners(axes, block)]
        if not _agree(corners) or corners[0] is None:
            continue
        x0, x1, y0, y1 = block
        for place in product(values[x0 : x1 + 1], delays[y0 : y1 + 1]):
            if place not in points:
                filled[place] = Winner(corners[0].winner.fabric, corners[0].winner.equals)
    return filled


def _blocks(axes: Axes, points: Mapping[Place, Point]) -> Iterator[_Block]:
    """Yield the blocks as far as they are cut by now."""
    focus = () if axes.focus is None else (sorted(axes.values).index(axes.focus),)
    columns = _steps(len(axes.values), COARSE_VALUES, focus)
    rows = _steps(len(axes.delay_ms), COARSE_DELAYS)
    waiting = [(x0, x1, y0, y1) for (x0, x1), (y0, y1) in product(columns, rows)]
    while waiting:
        block = waiting.pop()
        corners = [points.get(place) for place in _corners(axes, block)]
        parts = _cut(block)
        if None in corners or _agree(corners) or len(parts) == 1:
            yield block
        else:
            waiting += parts


def _steps(count: int, most: int, besides: tuple[int, ...] = ()) -> list[tuple[int, int]]:
    """Return the first and last positions of the coarse steps along an axis, ``besides`` among them."""
    if count == 1:
        return [(0, 0)]
    steps = min(most, count) - 1
    positions = {round(k * (count - 1) / steps) for k in range(steps + 1)}
    return list(pairwise(sorted(positions.union(besides))))


def _corners(axes: Axes, block: _Block) -> set[Place]:
    values, delays = sorted(axes.values), sorted(axes.delay_ms)
    x0, x1, y0, y1 = block
    return {(values[x], delays[y]) for x in (x0, x1) for y in (y0, y1)}


def _agree(corners: list[Point | None]) -> bool:
    return len({point.winner.key for point in corners if point is not None}) == 1


def _cut(block: _Block) -> list[_Block]:
    x0, x1, y0, y1 = block
    return [(a, b, c, d) for (a, b), (c, d) in product(_halves(x0, x1), _halves(y0, y1))]


def _halves(first: int, last: int) -> list[tuple[int, int]]:
    middle = (first + last) // 2
    return [(first, middle), (middle, last)] if last - first > 1 else [(first, last)]
