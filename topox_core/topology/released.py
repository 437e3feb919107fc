"""TopologyFinder as released: all ports to rings both ways, other traffic forwarded.

Kept apart from the published algorithm because the released code's figures can only be met this
way: no degree split, a ring budget that favours the largest group size, another selection of
strides, one path per pair.
"""

import random

from topox_core.model.execution import Layout
from topox_core.model.lowering.algorithm_choice import distinct_rings
from topox_core.topology.ring_circuits import (
    LayoutResult,
    LayoutStep,
    Rings,
    Routes,
    candidate_step,
    named,
    released_strides,
    riding_strides,
    ring_circuits,
    ring_pairs,
    route_step,
    stride_links,
    walk,
)
from topox_core.topology.routing import RoutedNetwork, coin_sequences, wired
from topox_core.topology.traffic import Demand, Group


def find_released(demand: Demand, degree: int, seed: int) -> LayoutResult:
    """Return the released algorithm's layout; see :func:`~topox_core.topology.finder.find_layout`."""
    n = demand.servers
    buckets = _buckets(demand)
    steps = [_split_step(demand, degree, buckets)]
    rings: dict[Group, tuple[int, ...]] = {}
    strides: dict[int, tuple[int, ...]] = {}
    jumps: list[int] = []
    budget = _ring_budget(
        {size: sent for size, sent in buckets.items() if n % size == 0}, n, degree
    )
    for size, ports in budget.items():
        # Any stride that shares no factor with the size: composites and 1 are candidates at every
        # size.
        chosen = released_strides(distinct_rings(size), ports // 2)
        both_ways = tuple(p for stride in chosen for p in (stride, size - stride))
        spacing = n // size
        strides[size] = chosen
        jumps += [p * spacing for p in both_ways]
        groups = [tuple(range(first, n, spacing)) for first in range(spacing)]
        rings |= dict.fromkeys(groups, both_ways)
        of = f"groups of {size}, " if len(budget) > 1 else ""
        steps += _ring_steps(groups, ports, chosen, buckets.get(size, 0.0), of)
    wiring = wired(ring_circuits(rings))
    circuits = wiring.circuits(n)
    network = RoutedNetwork(circuits)
    riding = riding_strides(demand, rings, network, degree)
    routes = _routes(demand, riding, jumps, network, random.Random(seed))
    steps.append(
        route_step(
            routes,
            {n: tuple(dict.fromkeys(jumps))},
            "rings in the fewest strides, other data over one shortest path",
        )
    )
    layout = Layout(circuits, routes, f"TopologyFinder as released, degree {degree}")
    return LayoutResult(
        layout, tuple(steps), "released", degree, degree, 0, rings, riding, strides, wiring
    )


def _buckets(demand: Demand) -> dict[int, float]:
    """Return bytes by group size, most first, as the released code counts: (2g-1)/g a tensor."""
    buckets: dict[int, float] = {}
    for members, sent in demand.all_reduce.items():
        size = len(members)
        buckets[size] = buckets.get(size, 0.0) + sent * (2 * size - 1) / (2 * (size - 1))
    return dict(sorted(buckets.items(), key=lambda item: (-item[1], -item[0])))


def _ring_budget(buckets: dict[int, float], servers: int, degree: int) -> dict[int, int]:
    """Return ports by group size.

    The ratio is upside down in the released code (all bytes over the bucket's), so the largest
    bucket takes everything; then one ring through all servers is taken back from the last if none
    has it.
    """
    if servers < 2:
        return {}
    total, left = sum(buckets.values()), degree
    ports: dict[int, int] = {}
    for size, sent in buckets.items():
        # Hardly any bytes make the ratio infinite; more than all ports is never had.
        wanted = int(min(left, total * degree / sent)) if sent > 0 else degree
        count = min(left, 2 * max(1, wanted))
        if count:
            ports[size] = count
            left -= count
    if servers not in ports:
        if left < 2 and ports:
            last = next(reversed(ports))
            ports[last] -= 2
            left += 2
        ports[servers] = left
    return {size: count for size, count in ports.items() if count}


def _routes(
    demand: Demand, riding: Rings, jumps: list[int], network: RoutedNetwork, rng: random.Random
) -> Routes:
    """Return one route a pair: rings by coin change, others over a random shortest path."""
    n = demand.servers
    sequences = coin_sequences(n, jumps, rng)
    routes: Routes = {}
    for members, strides in riding.items():
        for a, b in ring_pairs(members, (*strides, *demand.lowered_strides.get(members, ()))):
            coins = sequences[(b - a) % n]
            assert coins is not None  # a ring through all servers is always laid
            routes.setdefault((a, b), (walk(range(n), a, coins),))
    for a, b in sorted(demand.pairs):
        routes[a, b] = (network.random_path(a, b, rng),)
    return routes


def _split_step(demand: Demand, degree: int, buckets: dict[int, float]) -> LayoutStep:
    uneven = [size for size in buckets if demand.servers % size]
    text = f"All {degree} ports go to rings, laid in both directions; model-parallel transfers are forwarded by hosts."
    if uneven:
        sizes = ", ".join(map(str, uneven))
        text += f" Groups of {sizes} get no rings of their own: they do not divide the {demand.servers} servers."
    return LayoutStep(
        "split",
        text,
        {
            "all_reduce_bytes": demand.all_reduce_bytes,
            "model_parallel_bytes": demand.model_parallel_bytes,
            "degree": degree,
            "degree_all_reduce": degree,
            "degree_model_parallel": 0,
            "bytes_by_size": dict(buckets),
        },
    )


def _ring_steps(
    groups: list[Group], ports: int, chosen: tuple[int, ...], sent: float, of: str
) -> list[LayoutStep]:
    size, spacing = len(groups[0]), len(groups)
    candidates = distinct_rings(size)
    ratio = (candidates[-1] / candidates[0]) ** (2 / ports)
    which = f"Groups of {size}" + (f", every {spacing} servers" if spacing > 1 else "")
    about = {"size": size, "spacing": spacing, "group_count": spacing}
    return [
        candidate_step(which, candidates, about, size * spacing),
        LayoutStep(
            "choose",
            f"{which}, {ports} ports per server: {named(chosen)} both ways, "
            f"the first not below a geometric sequence of ratio {ratio:.3g}.",
            {**about, "bytes": sent, "ports": ports, "ratio": ratio, "chosen": list(chosen)},
            tuple(stride_links(groups, (stride, size - stride), of) for stride in chosen),
        ),
    ]
