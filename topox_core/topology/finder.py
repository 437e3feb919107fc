"""TopologyFinder: circuits for a job, fixed before it starts (TopoOpt, NSDI 2023, Algorithm 1).

Two variants: ``published`` follows the paper (degree split, rings, matching), ``released`` the code
that came with it (all ports to rings laid in both directions, model-parallel traffic forwarded by
hosts).
"""

from dataclasses import dataclass, field
from math import ceil

import networkx
import numpy as np
from numpy.typing import NDArray

from topox_core.errors import refuse_if
from topox_core.io.limits import check_one_of, check_whole
from topox_core.model.cluster import MAX_PORTS
from topox_core.model.execution import Layout
from topox_core.model.transfer_graph import FloatArray
from topox_core.topology.released import find_released
from topox_core.topology.ring_circuits import (
    MAX_SHOWN,
    LayoutResult,
    LayoutStep,
    LinkSet,
    Routes,
    candidate_step,
    counted,
    named,
    riding_strides,
    ring_circuits,
    ring_pairs,
    ring_strides,
    route_step,
    routes_of_rings,
    select_strides,
    stride_links,
    totient_strides,
)
from topox_core.topology.routing import RoutedNetwork, SwitchWiring, wired
from topox_core.topology.traffic import Demand, Group, check_servers, demand_of, traffic_of


def matching_rounds(model_parallel: FloatArray, free: NDArray[np.int64]) -> list[LayoutStep]:
    """Return rounds of maximum-weight matching until no two talking servers have a free port each.

    A matched pair gets a circuit each way, so it uses one out-port and one in-port at both ends,
    and its demand is halved for the rounds that follow (TopoOpt, NSDI 2023, Algorithm 1:
    diminishing return). A step's data holds the pairs, the smaller server first and ascending, with
    their bytes both ways as the round saw them, and the bytes over all pairs before and after it.

    Parameters
    ----------
    model_parallel
        Matrix of bytes; not changed.
    free
        Free ports per server; where all servers have d_MP, there are at most d_MP rounds.
    """
    weight = np.triu(model_parallel + model_parallel.T, 1)
    left = free.copy()
    rounds: list[LayoutStep] = []
    while True:
        open_pairs = (weight > 0) & (left > 0)[:, None] & (left > 0)[None, :]
        if not open_pairs.any():
            return rounds
        pairs, number = _maximum_weight(weight, open_pairs), len(rounds) + 1
        before = float(weight.sum())
        weighed = [[a, b, float(weight[a, b])] for a, b in pairs]
        for a, b in pairs:
            weight[a, b] /= 2
            left[a] -= 1
            left[b] -= 1
        both_ways = tuple(ends for a, b in pairs for ends in ((a, b), (b, a)))
        rounds.append(
            LayoutStep(
                "matching",
                f"Matching {number}: {len(pairs)} pairs get a circuit each way; their demand counts half from "
                "now on.",
                {
                    "round": number,
                    "pairs": weighed,
                    "before": before,
                    "after": float(weight.sum()),
                },
                (LinkSet(f"matching {number}", "matching", both_ways),),
            )
        )


def _maximum_weight(weight: FloatArray, allowed: NDArray[np.bool_]) -> tuple[tuple[int, int], ...]:
    """Return the matching of most pairs and, among those, of most bytes (Edmonds' Blossom)."""
    graph = networkx.Graph()
    first, second = np.nonzero(allowed)
    # Relative weights: bytes of 1e18 would leave the algorithm's differences no digits.
    largest = float(weight[allowed].max())
    graph.add_weighted_edges_from(
        (a, b, float(weight[a, b]) / largest)
        for a, b in zip(first.tolist(), second.tolist(), strict=True)
    )
    return tuple(
        sorted(
            (min(a, b), max(a, b))
            for a, b in networkx.max_weight_matching(graph, maxcardinality=True)
        )
    )


Ports = NDArray[np.int64]


@dataclass
class _Plan:
    """Rings and matchings so far."""

    backbones: tuple[Group, ...] = ()
    rings: dict[Group, tuple[int, ...]] = field(default_factory=dict)
    strides: dict[int, tuple[int, ...]] = field(default_factory=dict)
    rounds: list[LayoutStep] = field(default_factory=list)
    steps: list[LayoutStep] = field(default_factory=list)

    def wiring(self) -> SwitchWiring:
        """Return the circuits: connecting rings, all-reduce rings, then matched pairs both ways."""
        matched = [
            ends
            for one in self.rounds
            for a, b, _ in one.data["pairs"]
            for ends in ((a, b, False), (b, a, False))
        ]
        return wired(
            [
                *ring_circuits(dict.fromkeys(self.backbones, (1,))),
                *ring_circuits(self.rings),
                *matched,
            ]
        )


def find_published(demand: Demand, degree: int) -> LayoutResult:
    """Return the published algorithm's layout; see :func:`~topox_core.topology.finder.find_layout`."""
    degree_rings, split = _split(demand, degree)
    # Without any all-reduce the one port that d_A never falls below still connects who talks.
    plan = _plan(demand, degree, degree_rings, () if demand.all_reduce else _talking(demand))
    cut = _cut_off(demand, plan)
    if cut:
        plan = _plan(demand, degree, degree_rings, cut)
    wiring = plan.wiring()
    circuits = wiring.circuits(demand.servers)
    network = RoutedNetwork(circuits)
    riding = riding_strides(demand, plan.rings, network, degree)
    routes: Routes = routes_of_rings(demand, plan.rings, riding, network.shortest_paths)
    for pair in sorted(demand.pairs):
        routes[pair] = network.shortest_paths(*pair, PATHS)
    rule = f"rings in the fewest strides, other data over up to {PATHS} shortest paths"
    steps = (split, *plan.steps, route_step(routes, plan.strides, rule))
    layout = Layout(circuits, routes, f"TopologyFinder as published, degree {degree}")
    return LayoutResult(
        layout,
        steps,
        "published",
        degree,
        degree_rings,
        degree - degree_rings,
        plan.rings,
        riding,
        plan.strides,
        wiring,
    )


def _split(demand: Demand, degree: int) -> tuple[int, LayoutStep]:
    """Return d_A = max(1, ceil(d * all-reduce bytes / all bytes)), safe against rounding."""
    rings, others = demand.all_reduce_bytes, demand.model_parallel_bytes
    share = rings / (rings + others) if rings + others > 0 else float(bool(demand.all_reduce))
    for_rings = min(degree, max(1, ceil(degree * share - 1e-9)))
    text = f"All-reduce is {share:.1%} of the bytes: {for_rings} of {degree} ports for rings, {degree - for_rings} for matchings."
    return for_rings, LayoutStep(
        "split",
        text,
        {
            "all_reduce_bytes": rings,
            "model_parallel_bytes": others,
            "degree": degree,
            "degree_all_reduce": for_rings,
            "degree_model_parallel": degree - for_rings,
        },
    )


def _plan(demand: Demand, degree: int, degree_rings: int, backbones: tuple[Group, ...]) -> _Plan:
    plan = _Plan()
    left: Ports = np.full(demand.servers, degree_rings, np.int64)
    used: Ports = np.zeros(demand.servers, np.int64)
    for members in backbones:
        servers = list(members)
        used[servers] += 1
        if degree_rings == degree:  # no port of a matching to take
            left[servers] -= 1
        plan.steps.append(_connect_step(members, members in demand.all_reduce))
    _lay_rings(demand, degree_rings, left, used, plan, backbones)
    plan.backbones = tuple(members for members in backbones if members not in demand.all_reduce)
    plan.rounds = matching_rounds(demand.model_parallel, degree - used)
    plan.steps += plan.rounds
    return plan


def _connect_step(members: Group, own: bool) -> LayoutStep:
    what = "the group's own ring" if own else "a ring"
    ring = LinkSet("connecting ring", "connect", tuple(ring_pairs(members, (1,))))
    return LayoutStep(
        "connect",
        f"One port of each of {len(members)} servers that exchange data goes to {what} through all of them: "
        "without it some could not reach each other.",
        {"members": list(members[:MAX_SHOWN]), "size": len(members)},
        () if own or len(members) > MAX_SHOWN else (ring,),
    )


def _lay_rings(
    demand: Demand,
    degree_rings: int,
    left: Ports,
    used: Ports,
    plan: _Plan,
    backbones: tuple[Group, ...],
) -> None:
    """Give each group, most traffic first, its share of the ports its members still have.

    The paper shares ports out by group size, every server being in one group of each size. Here a
    group's share is its part of its own members' ring traffic: the same thing there, and right
    where groups overlap or shards of several jobs differ.
    """
    ring_bytes = np.zeros(demand.servers)
    for members, sent in demand.all_reduce.items():
        ring_bytes[list(members)] += sent
    laid: dict[tuple[int, int], list[Group]] = {}
    for members, sent in sorted(
        demand.all_reduce.items(), key=lambda item: (-item[1] * len(item[0]), item[0])
    ):
        servers = list(members)
        total = float(ring_bytes[servers].sum())
        share = sent * len(members) / total if total > 0 else 1.0
        rings = min(int(left[servers].min()), ceil(degree_rings * share - 1e-9) or 1)
        left[servers] -= rings
        used[servers] += rings
        rings += (
            members in backbones
        )  # whose one port is counted already, and stride 1 is always chosen
        laid.setdefault((len(members), rings), []).append(members)
        if rings:
            plan.rings[members] = select_strides(len(members), rings, totient_strides(len(members)))
            plan.strides.setdefault(len(members), plan.rings[members])
    several = len({len(members) for members in plan.rings}) > 1
    for (size, rings), groups in laid.items():
        sent = sum(demand.all_reduce[members] * size for members in groups)
        of = f"groups of {size}, " if several else ""
        plan.steps += _ring_steps(rings, groups, sent, demand.servers, of)


def _ring_steps(
    rings: int, groups: list[Group], ring_bytes: float, servers: int, of: str
) -> list[LayoutStep]:
    size = len(groups[0])
    candidates = totient_strides(size)
    chosen = select_strides(size, rings, candidates)
    which = f"{counted(len(groups), 'group', 'groups')} of {size}"
    about = {
        "size": size,
        "groups": [list(members) for members in groups[:MAX_SHOWN]],
        "group_count": len(groups),
    }
    if not rings:
        return [
            LayoutStep(
                "choose",
                f"No port is left for {which}: their rings use other circuits.",
                {**about, "bytes": ring_bytes, "ports": 0, "ratio": None, "chosen": []},
            )
        ]
    ratio = size ** (1 / rings)
    return [
        candidate_step(which, candidates, about, servers),
        LayoutStep(
            "choose",
            f"{which}, {counted(rings, 'port', 'ports')} per server: {named(chosen)}, near a geometric sequence of "
            f"ratio {ratio:.3g}.",
            {**about, "bytes": ring_bytes, "ports": rings, "ratio": ratio, "chosen": list(chosen)},
            tuple(stride_links(groups, (stride,), of) for stride in chosen),
        ),
    ]


def _talking(demand: Demand) -> tuple[Group, ...]:
    """Return the connected sets of talking servers as rings; a group keeps its order."""
    graph = networkx.Graph()
    graph.add_edges_from(demand.pairs)
    for members in demand.all_reduce:
        networkx.add_path(graph, members)
    whole = {frozenset(members): members for members in demand.all_reduce}
    parts = sorted(sorted(part) for part in networkx.connected_components(graph))
    return tuple(whole.get(frozenset(part), tuple(part)) for part in parts)


def _cut_off(demand: Demand, plan: _Plan) -> tuple[Group, ...]:
    """Return the sets of talking servers in which somebody cannot reach somebody it talks to."""
    network = RoutedNetwork(plan.wiring().circuits(demand.servers))
    lost: set[int] = {a for a, b in demand.pairs if not network.connected(a, b)}
    for members in demand.all_reduce:
        lost |= {
            a
            for a, b in zip(members, (*members[1:], members[0]), strict=True)
            if not network.connected(a, b)
        }
    return tuple(part for part in _talking(demand) if lost & set(part)) if lost else ()


__all__ = [
    "PATHS",
    "VARIANTS",
    "Demand",
    "LayoutResult",
    "LayoutStep",
    "demand_of",
    "find_layout",
    "ring_strides",
    "traffic_of",
]

VARIANTS = ("published", "released")
# The paper splits model-parallel traffic over k shortest paths and leaves k open.
PATHS = 2
# Named before memory is spent.
MAX_CIRCUITS = 250_000
MAX_PAIRS = 250_000


def find_layout(
    demand: Demand,
    degree: int,
    variant: str = "published",
    *,
    seed: int = 0,
) -> LayoutResult:
    """Return circuits and routes for a demand.

    Parameters
    ----------
    demand
        Of :func:`traffic_of` or :func:`demand_of`.
    degree
        Circuits out of and into each server, d. It may exceed the number of other servers: circuits
        between the same two servers add up.
    variant
        ``published`` or ``released``.
    seed
        In ``released``: of the random tie-breaks of its routing. ``published`` has no chance in it.

    Raises
    ------
    InputError
        If the degree is zero, odd in ``released`` (a ring in both directions takes two ports), or
        absurdly large; if the variant is unknown; if more pairs talk than a layout may route.
    """
    check_one_of(variant, VARIANTS, file="topology", field="variant")
    check_whole(degree, 1, MAX_PORTS, file="topology", field="degree")
    check_servers(demand.servers)
    circuits, pairs = degree * demand.servers, len(demand.pairs)
    refuse_if(
        (
            circuits > MAX_CIRCUITS,
            f"would be {circuits:,} circuits, more than the {MAX_CIRCUITS:,} a layout may have",
            "degree",
        ),
        (
            pairs > MAX_PAIRS,
            f"has {pairs:,} pairs of servers that talk, more than the {MAX_PAIRS:,} a layout may have",
            "graph",
        ),
        (
            variant == "released" and degree % 2,
            f"must be even in the released variant, whose rings run both ways on two ports (got {degree})",
            "degree",
        ),
        file="topology",
    )
    if variant == "released":
        return find_released(demand, degree, seed)
    return find_published(demand, degree)
