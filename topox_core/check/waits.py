"""Steps of transfers that wait for each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def steps_of(waits: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """Return each transfer's step: 0 where it waits for no other, else one more than the last it waits for.

    Transfers that wait for themselves, through others, have none.
    """
    after: dict[int, list[int]] = {}
    for i, earlier in waits.items():
        for j in earlier:
            after.setdefault(j, []).append(i)
    left = {i: len(earlier) for i, earlier in waits.items()}
    step = {i: 0 for i, count in left.items() if not count}
    free = list(step)
    while free:
        j = free.pop()
        for i in after.get(j, ()):
            left[i] -= 1
            if not left[i]:
                step[i] = 1 + max(step[e] for e in waits[i])
                free.append(i)
    return step
