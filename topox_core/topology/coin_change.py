"""Routing on rings by coin change: strides are coins, distances are amounts modulo n.

CoinChangeMod of TopoOpt, NSDI 2023, section 4.3.
"""

from __future__ import annotations

import random
from collections.abc import Sequence


def coin_sequences(
    members: int, coins: Sequence[int], rng: random.Random | None = None
) -> list[tuple[int, ...] | None]:
    """Return for every distance the fewest strides that add up to it modulo ``members``.

    Parameters
    ----------
    members
        Size of the ring, n.
    coins
        Selected strides; of rings laid in both directions also n - p.
    rng
        Breaks ties among last hops; None takes the first coin, so that every member routes alike.

    Returns
    -------
    list
        Hop sequences by distance, largest stride first; None where no strides lead.
    """
    usable = list(dict.fromkeys(coin % members for coin in coins if coin % members))
    count = {0: 0}
    last: dict[int, list[int]] = {}
    frontier = [0]
    while frontier:
        reached: list[int] = []
        for at in frontier:
            for coin in usable:
                to = (at + coin) % members
                if to not in count:
                    count[to] = count[at] + 1
                    reached.append(to)
                if count[to] == count[at] + 1:
                    last.setdefault(to, []).append(coin)
        frontier = reached
    sequences: list[tuple[int, ...] | None] = [None] * members
    # By rising number of coins, so that what remains to pay is known already.
    for distance in sorted(count, key=count.__getitem__):
        if distance == 0:
            sequences[0] = ()
            continue
        coin = rng.choice(last[distance]) if rng else last[distance][0]
        before = sequences[(distance - coin) % members]
        assert before is not None
        sequences[distance] = tuple(sorted((*before, coin), reverse=True))
    return sequences
