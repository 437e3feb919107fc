"""Which regular rings a group may use, and which to lay (TotientPerms, SelectPermutations).

A regular ring of stride p joins member i to member i + p (mod n) and visits everybody if p and n
share no factor. TopoOpt, NSDI 2023, section 4.3; the released code chooses a little differently, so
both are here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from topox_core.model.rings import distinct_rings

# From this size on only prime strides are candidates (and 1): about n / ln n of them instead of
# phi(n).
LARGE_GROUP = 256


@lru_cache(maxsize=256)
def totient_strides(members: int) -> tuple[int, ...]:
    """Return the candidate strides of a group, ascending (TotientPerms).

    All that share no factor with its size; of those of a large group only 1 and the primes.
    """
    strides = distinct_rings(members)
    if members < LARGE_GROUP:
        return strides
    composite = bytearray(members)
    for p in range(2, int(members**0.5) + 1):
        composite[p * p :: p] = b"\x01" * len(range(p * p, members, p))
    return tuple(p for p in strides if not composite[p])


def select_strides(members: int, rings: int, candidates: Sequence[int]) -> tuple[int, ...]:
    """Return ``rings`` strides near 1, x, x^2, ... with x = members^(1/rings).

    Each target takes the nearest candidate that is still free, the smaller of two equally near.
    Where there are more rings than candidates, all are taken and the rest are laid a second time in
    parallel. The diameter of such circulants grows as rings * members^(1/rings).
    """

    def nearest(free: list[int], target: float) -> int:
        return min(free, key=lambda p: (abs(p - target), p))

    return _selected(candidates, rings, (1.0, members), nearest)


def released_strides(candidates: Sequence[int], rings: int) -> tuple[int, ...]:
    """Return ``rings`` strides as the released code picks them for rings laid in both directions.

    The ratio is (largest / smallest)^(1/rings); each target takes the first candidate not below it
    that is still free. A sequence that runs off the end goes on with the smallest free candidate.
    """

    def not_below(free: list[int], target: float) -> int:
        return next((p for p in free if p >= target), free[0])

    span = (candidates[0], candidates[-1] / candidates[0]) if candidates else (1.0, 1.0)
    return _selected(candidates, rings, span, not_below)


def _selected(
    candidates: Sequence[int],
    rings: int,
    span: tuple[float, float],
    pick: Callable[[list[int], float], int],
) -> tuple[int, ...]:
    """Return strides near a geometric sequence, given its first target and how far it leads."""
    if not candidates or rings < 1:
        return ()
    rounds, rest = divmod(rings, len(candidates))
    chosen, free = list(candidates) * rounds, list(candidates)
    ratio = span[1] ** (1 / rest) if rest else 1.0
    for k in range(rest):
        stride = pick(free, span[0] * ratio**k)
        free.remove(stride)
        chosen.append(stride)
    return tuple(sorted(chosen))
