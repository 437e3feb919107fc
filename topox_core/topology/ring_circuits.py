"""From rings and matched pairs to circuits, and from circuits to routes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from topox_core.model.rings import distinct_rings
from topox_core.topology.result import LayoutStep
from topox_core.topology.routing import Path, RoutedNetwork, coin_sequences
from topox_core.topology.traffic import Demand, Group, Pair

Routes = dict[Pair, tuple[Path, ...]]
Rings = Mapping[Group, tuple[int, ...]]


def ring_circuits(rings: Mapping[Group, Sequence[int]]) -> list[tuple[int, int, bool]]:
    """Return the circuits of rings, ring by ring: member i to member i + p for each stride p."""
    return [
        (members[i], members[(i + p) % len(members)], True)
        for members, strides in rings.items()
        for p in strides
        for i in range(len(members))
    ]


def ring_pairs(members: Group, strides: Iterable[int]) -> list[Pair]:
    """Return who sends to whom on rings of these strides."""
    n = len(members)
    return [
        (members[i], members[(i + p) % n])
        for p in dict.fromkeys(strides)
        for i in range(n)
        if p % n
    ]


def riding_strides(
    demand: Demand, rings: Rings, network: RoutedNetwork, most: int
) -> dict[Group, tuple[int, ...]]:
    """Return each group's own strides or, without any, those with fewest hops.

    Equal ones are all taken, up to ``most``: rings of equal length share the load.
    """
    riding: dict[Group, tuple[int, ...]] = {}
    for members in demand.all_reduce:
        if members in rings:
            riding[members] = rings[members]
            continue
        hops = {
            p: sum(network.hops_to(b)[a] for a, b in ring_pairs(members, (p,)))
            for p in distinct_rings(len(members))
            if all(network.connected(a, b) for a, b in ring_pairs(members, (p,)))
        }
        least = min(hops.values(), default=0)
        riding[members] = tuple(p for p, total in hops.items() if total == least)[:most] or (1,)
    return riding


def routes_of_rings(
    demand: Demand, rings: Rings, riding: Rings, shortest: Callable[[int, int], tuple[Path, ...]]
) -> Routes:
    """Return a route for each ring transfer: by coin change on own strides, else shortest."""
    routes: Routes = {}
    for members, strides in riding.items():
        n = len(members)
        sequences = coin_sequences(n, rings[members]) if members in rings else None
        wanted = tuple(dict.fromkeys((*strides, *demand.lowered_strides.get(members, ()))))
        for p in wanted:
            coins = sequences[p % n] if sequences else None
            for i in range(n):
                pair = (members[i], members[(i + p) % n])
                if pair in routes or pair[0] == pair[1]:
                    continue
                routes[pair] = (walk(members, i, coins),) if coins else shortest(*pair)
    return routes


def walk(members: Sequence[int], start: int, coins: Iterable[int]) -> Path:
    """Return the members passed from place ``start`` along a hop sequence."""
    place, path = start, [members[start]]
    for coin in coins:
        place = (place + coin) % len(members)
        path.append(members[place])
    return tuple(path)


def candidate_step(which: str, candidates: Sequence[int], about: Mapping[str, Any]) -> LayoutStep:
    """Return the record of a group's candidate strides."""
    text = f"{which}: {counted(len(candidates), 'stride makes a regular ring', 'strides make regular rings')}."
    return LayoutStep("candidates", text, {**about, "candidates": list(candidates)})


def route_step(routes: Routes, rings: Mapping[int, tuple[int, ...]], rule: str) -> LayoutStep:
    """Return the record of routing: coin sequences by group size and what the routes amount to."""
    hops = [len(path) - 1 for paths in routes.values() for path in paths]
    sequences = {
        size: [None if coins is None else list(coins) for coins in coin_sequences(size, strides)]
        for size, strides in rings.items()
        if strides and size <= MOST_SHOWN
    }
    mean = sum(hops) / len(hops) if hops else 0.0
    longest = max(hops, default=0)
    text = (
        f"All circuits are laid. {len(routes):,} talking pairs have {counted(len(hops), 'route', 'routes')} of at most "
        f"{counted(longest, 'hop', 'hops')}: {rule}."
    )
    return LayoutStep(
        "route",
        text,
        {
            "pairs": len(routes),
            "paths": len(hops),
            "mean_hops": mean,
            "longest_hops": longest,
            "coin_sequences": sequences,
        },
    )


# Coin sequences and members are listed in the record up to this group size; a page could not show
# more.
MOST_SHOWN = 256


def counted(count: int, one: str, several: str) -> str:
    """Return a count with its noun."""
    return f"{count:,} {one if count == 1 else several}"


def named(strides: Sequence[int]) -> str:
    """Return strides in words."""
    return f"stride{'' if len(strides) == 1 else 's'} {', '.join(map(str, strides))}"
