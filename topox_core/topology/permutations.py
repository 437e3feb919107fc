"""Which regular rings a group may use, and which to lay (TotientPerms, SelectPermutations).

A regular ring of stride p joins member i to member i + p (mod n) and visits everybody if p and n
share no factor. TopoOpt, NSDI 2023, section 4.3; the released code chooses a little differently, so
both are here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import islice

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
    if not candidates or rings < 1:
        return ()
    rounds, rest = divmod(rings, len(candidates))
    chosen: list[int] = list(candidates) * rounds
    ratio = members ** (1 / rest) if rest else 1.0
    free = list(candidates)
    for k in range(rest):
        nearest = min(free, key=lambda p, target=ratio**k: (abs(p - target), p))  # type: ignore[misc]
        free.remove(nearest)
        chosen.append(nearest)
    return tuple(sorted(chosen))


def released_strides(candidates: Sequence[int], rings: int) -> tuple[int, ...]:
    """Return ``rings`` strides as the released code picks them for rings laid in both directions.

    The ratio is (largest / smallest)^(1/rings); each target takes the first candidate not below it
    that is still free. A sequence that runs off the end goes on with the smallest free candidate.
    """
    if not candidates or rings < 1:
        return ()
    rounds, rest = divmod(rings, len(candidates))
    chosen = list(candidates) * rounds
    ratio = (candidates[-1] / candidates[0]) ** (1 / rest) if rest else 1.0
    free = list(candidates)
    for k in range(rest):
        target = candidates[0] * ratio**k
        pick = next(islice((p for p in free if p >= target), 1), free[0])
        free.remove(pick)
        chosen.append(pick)
    return tuple(sorted(chosen))
