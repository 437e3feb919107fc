"""Whether the transfers of a collective are those of the algorithm that the settings name.

Two tests, from sources, destinations, bytes and listed waits: every ordered pair of members moves
the bytes that the algorithm owes it, and what every member must end with can have reached it by
transfers that wait for each other.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, permutations


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


Pair = tuple[int, int]
Bytes = dict[Pair, float]
# Pairs that all move the same share.
Parts = list[tuple[Iterable[Pair], float]]
# Parts of messages, even or not, move the same bytes.
_WORD = re.compile(r"([a-z_]+)(?:\((\d+)\))?(?:\*\d+|\[[\d:|]+\])?")


def algorithm_of(
    words: Mapping[str, str], kind: str, members: int, size_bytes: float
) -> tuple[str, int] | None:
    """Return name and parameter of a collective's algorithm; None for the default lowering.

    The key with bytes counts before the one with members, and that before the kind alone.
    """
    word = words.get(
        f"{kind}:{members}:{size_bytes:.3g}", words.get(f"{kind}:{members}", words.get(kind))
    )
    match = _WORD.fullmatch(word) if word else None
    if match is None or match[1] == "default":
        return None
    return match[1], int(match[2] or 0)


def group_size(members: int) -> int:
    """Return the divisor of n nearest its square root, the smaller of two."""
    best = 1
    for m in range(1, members + 1):
        if members % m == 0 and abs(m - members**0.5) < abs(best - members**0.5):
            best = m
    return best


def owed_bytes(kind: str, name: str, members: int, group: int, root: int) -> Bytes | None:
    """Return the share of the tensor that each ordered pair moves; None if there is no such algorithm.

    Rings are told apart by their strides elsewhere; here they have stride 1.
    """
    n, parts = members, Parts()
    at = [(root + v) % n for v in range(n)]
    powers = [1 << k for k in range((n - 1).bit_length())]
    passes = 2 if kind == "all_reduce" else 1
    match kind, name:
        case (("all_reduce" | "all_gather" | "reduce_scatter"), "ring"):
            parts = [(_ring(range(n)), passes * (n - 1) / n)]
        case (("all_reduce" | "all_gather" | "reduce_scatter" | "all_to_all"), "direct"):
            parts = [(permutations(range(n), 2), passes / n)]
        case ("all_gather", "doubling") | ("reduce_scatter", "halving"):
            parts = _exchange(range(n), 1.0)
        case "all_gather", "bruck":
            parts = [(_shift(n, -d), min(d, n - d) / n) for d in powers]
        case "all_reduce", "halving_doubling":
            folded = n - (1 << (n.bit_length() - 1))
            active = [*range(0, 2 * folded, 2), *range(2 * folded, n)]
            fold = _both_ways((2 * i, 2 * i + 1) for i in range(folded))
            parts = [(fold, 1.0), *_exchange(active, 2.0)]
        case "all_reduce", "tree":
            parts = [(_both_ways((v, v & (v - 1)) for v in range(1, n)), 1.0)]
        case (("all_reduce" | "all_to_all"), "two_level"):
            parts = _two_levels(n, group, kind)
        case "broadcast", "tree":
            parts = [(((at[v - (1 << (v.bit_length() - 1))], at[v]) for v in range(1, n)), 1.0)]
        case "broadcast", "flat":
            parts = [(((root, to) for to in at[1:]), 1.0)]
        case "broadcast", "scatter_gather":
            parts = [(((root, to) for to in at[1:]), 1 / n), (_ring(at), (n - 1) / n)]
        case "broadcast", "chain":
            parts = [(pairwise(at), 1.0)]
        case "all_to_all", "pairwise":
            parts = [(permutations(range(n), 2), 1 / n)]
        case "all_to_all", "bruck":
            parts = [
                (_shift(n, d), sum(1 for offset in range(n) if offset & d) / n) for d in powers
            ]
        case _:
            return None
    owed: Bytes = {}
    for pairs, share in parts:
        for pair in pairs:
            owed[pair] = owed.get(pair, 0.0) + share
    return owed


def _both_ways(pairs: Iterable[Pair]) -> Iterable[Pair]:
    return (one for a, b in pairs for one in ((a, b), (b, a)))


def _ring(at: Sequence[int]) -> Iterable[Pair]:
    return ((one, at[(i + 1) % len(at)]) for i, one in enumerate(at) if len(at) > 1)


def _shift(n: int, by: int) -> Iterable[Pair]:
    return ((i, (i + by) % n) for i in range(n))


def _exchange(at: Sequence[int], times: float) -> Parts:
    """Return partners at distances 1, 2, 4, ...; at distance d they exchange d blocks."""
    distances = [1 << k for k in range(len(at).bit_length() - 1)]
    return [
        ([(one, at[i ^ d]) for i, one in enumerate(at)], times * d / len(at)) for d in distances
    ]


def _two_levels(n: int, m: int, kind: str) -> Parts:
    g, inside = n // m, [range(first, first + m) for first in range(0, n, m)]
    across = [range(x, n, m) for x in range(m)]
    if kind == "all_reduce":
        rings = [(_ring(one), 2 * (m - 1) / m) for one in inside]
        return [*rings, *((_ring(one), 2 * (g - 1) / n) for one in across)]
    pairs = [(permutations(one, 2), g / n) for one in inside]
    return [*pairs, *((permutations(one, 2), m / n) for one in across)]


def unreached(
    kind: str,
    members: int,
    root: int,
    ends: Sequence[tuple[int, int]],
    waits: Mapping[int, Sequence[int]],
) -> tuple[int, int] | None:
    """Return a member and one whose data cannot have reached it, or None.

    A transfer can carry what its sender began with, and what came to its sender or had left it in
    transfers that it waits for.

    Parameters
    ----------
    ends
        Source and destination of each transfer, as positions.
    waits
        For each transfer the others of the collective that it waits for; without a cycle.
    """
    step = steps_of(waits)
    known = [1 << source for source, _ in ends]
    held = [1 << i for i in range(members)]
    for t in sorted(step, key=lambda one: step[one]):
        source, destination = ends[t]
        for u in waits[t]:
            if source in ends[u]:
                known[t] |= known[u]
        held[destination] |= known[t]
    must = 1 << root if kind == "broadcast" else (1 << members) - 1
    for i, mask in enumerate(held):
        if missing := must & ~mask:
            return i, missing.bit_length() - 1
    return None
