"""The clocks of several ranks made one: a communication ends on all its ranks at once."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from topox_core.traces.matching import Call
from topox_core.traces.steps import StepOfRank


@dataclass(frozen=True)
class Clocks:
    """What to subtract from each rank's times.

    Attributes
    ----------
    offset_us
        By rank, against the lowest; 0 for ranks that share no call with it, directly or over others.
    residual_us, largest_us
        Median and largest difference between ends of one call that are left.
    alone
        Ranks without a common call.
    """

    offset_us: Mapping[int, float]
    residual_us: float
    largest_us: float
    alone: tuple[int, ...]


def align(steps: Mapping[int, StepOfRank], calls: Sequence[Call]) -> Clocks:
    """Return the clocks' offsets from the ends of common calls."""
    # Files count from their own beginning; hosts are compared by what was subtracted.
    first = min(steps)
    base = {r: step.recording.base_us - steps[first].recording.base_us for r, step in steps.items()}
    ends: dict[tuple[int, int], list[float]] = defaultdict(list)
    # A kernel of several sends and receives ends with the last of them: it tells less.
    rough: dict[tuple[int, int], list[float]] = defaultdict(list)
    by_call: list[list[tuple[int, float]]] = []
    for call in calls:
        entries = [(rank, steps[rank].entries[entry]) for rank, entry, _ in call.places]
        row = [(rank, entry.kernel.end_us) for rank, entry in entries]
        single = all(len(entry.parts) == 1 for _, entry in entries)
        if single:
            by_call.append(row)
        # Every pair of a large group tells no more than each with the first does.
        for rank, end in row if len(row) <= 16 else row[:1]:
            for other, at in row:
                if rank != other:
                    told = ends if single else rough
                    told[rank, other].append(at - end)
                    if len(row) > 16:
                        told[other, rank].append(end - at)
    for pair, differences in rough.items():
        ends.setdefault(pair, differences)
    neighbours: dict[int, list[int]] = defaultdict(list)
    for rank, other in ends:
        neighbours[rank].append(other)
    offset: dict[int, float] = {}
    alone: list[int] = []
    for start in sorted(steps):
        if start in offset:
            continue
        # Ranks that share nothing with the first keep the clocks their hosts had.
        offset[start] = 0.0 if not offset else -base[start]
        if start != first:
            alone.append(start)
        queue = deque([start])
        while queue:
            rank = queue.popleft()
            for other in sorted(neighbours[rank]):
                if other not in offset:
                    offset[other] = offset[rank] + float(np.median(ends[rank, other]))
                    queue.append(other)
    left = [
        abs((at - offset[other]) - (row[0][1] - offset[row[0][0]]))
        for row in by_call
        for other, at in row[1:]
    ]
    return Clocks(
        offset,
        float(np.median(left)) if left else 0.0,
        max(left, default=0.0),
        tuple(alone),
    )


def between_hosts_us(steps: Mapping[int, StepOfRank], clocks: Clocks) -> dict[int, float]:
    """Return how far each rank's own clock is ahead of the lowest rank's."""
    base = steps[min(steps)].recording.base_us
    return {
        rank: clocks.offset_us[rank] + step.recording.base_us - base for rank, step in steps.items()
    }
