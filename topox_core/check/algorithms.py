"""Whether the transfers of a collective are those of the algorithm that the settings name.

Two tests, from sources, destinations, bytes and listed waits: every ordered pair of members moves
the bytes that the algorithm owes it, and what every member must end with can have reached it by
transfers that wait for each other.
"""

from __future__ import annotations

import re
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


Bytes = dict[tuple[int, int], float]
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
    n, owed = members, _Owed()
    at = [(root + v) % n for v in range(n)]
    powers = [1 << k for k in range((n - 1).bit_length())]
    passes = 2 if kind == "all_reduce" else 1
    match kind, name:
        case (("all_reduce" | "all_gather" | "reduce_scatter"), "ring"):
            owed.ring(range(n), passes * (n - 1) / n)
        case (("all_reduce" | "all_gather" | "reduce_scatter" | "all_to_all"), "direct"):
            owed.everybody(range(n), passes / n)
        case ("all_gather", "doubling") | ("reduce_scatter", "halving"):
            owed.exchange(range(n), 1.0)
        case "all_gather", "bruck":
            for d in powers:
                owed.shift(n, -d, min(d, n - d) / n)
        case "all_reduce", "halving_doubling":
            folded = n - (1 << (n.bit_length() - 1))
            for i in range(folded):
                owed.both_ways(2 * i, 2 * i + 1, 1.0)
            owed.exchange([*range(0, 2 * folded, 2), *range(2 * folded, n)], 2.0)
        case "all_reduce", "tree":
            for v in range(1, n):
                owed.both_ways(v, v & (v - 1), 1.0)
        case (("all_reduce" | "all_to_all"), "two_level"):
            owed.two_levels(n, group, kind)
        case "broadcast", "tree":
            for v in range(1, n):
                owed.add(at[v - (1 << (v.bit_length() - 1))], at[v], 1.0)
        case "broadcast", "flat":
            for v in range(1, n):
                owed.add(root, at[v], 1.0)
        case "broadcast", "scatter_gather":
            for v in range(1, n):
                owed.add(root, at[v], 1 / n)
            owed.ring(at, (n - 1) / n)
        case "broadcast", "chain":
            for v in range(1, n):
                owed.add(at[v - 1], at[v], 1.0)
        case "all_to_all", "pairwise":
            owed.everybody(range(n), 1 / n)
        case "all_to_all", "bruck":
            for d in powers:
                owed.shift(n, d, sum(1 for offset in range(n) if offset & d) / n)
        case _:
            return None
    return owed.share


class _Owed:
    """Shares of the tensor by ordered pair, added up."""

    def __init__(self) -> None:
        self.share: Bytes = {}

    def add(self, source: int, destination: int, share: float) -> None:
        pair = source, destination
        self.share[pair] = self.share.get(pair, 0.0) + share

    def both_ways(self, a: int, b: int, share: float) -> None:
        self.add(a, b, share)
        self.add(b, a, share)

    def ring(self, at: Sequence[int], share: float) -> None:
        for i, one in enumerate(at):
            if len(at) > 1:
                self.add(one, at[(i + 1) % len(at)], share)

    def shift(self, n: int, by: int, share: float) -> None:
        for i in range(n):
            self.add(i, (i + by) % n, share)

    def everybody(self, at: Sequence[int], share: float) -> None:
        for a in at:
            for b in at:
                if a != b:
                    self.add(a, b, share)

    def exchange(self, at: Sequence[int], times: float) -> None:
        """Add partners at distances 1, 2, 4, ...; at distance d they exchange d blocks."""
        for k in range(len(at).bit_length() - 1):
            for i, one in enumerate(at):
                self.add(one, at[i ^ (1 << k)], times * (1 << k) / len(at))

    def two_levels(self, n: int, m: int, kind: str) -> None:
        g = n // m
        for first in range(0, n, m):
            inside = range(first, first + m)
            if kind == "all_reduce":
                self.ring(inside, 2 * (m - 1) / m)
            else:
                self.everybody(inside, g / n)
        for x in range(m):
            across = range(x, n, m)
            if kind == "all_reduce":
                self.ring(across, 2 * (g - 1) / n)
            else:
                self.everybody(across, m / n)


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
