"""Regular rings of groups, the circuits and routes that come of them, step by step, and what links then carry.

A regular ring of stride p joins member i to member i + p (mod n) and visits everybody if p and n
share no factor (TotientPerms, SelectPermutations; TopoOpt, NSDI 2023, section 4.3). The released
code chooses a little differently, so both are here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topox_core.errors import InputError
from topox_core.io.content import record_of
from topox_core.model.execution import Layout
from topox_core.model.lowering.algorithm_choice import distinct_rings
from topox_core.model.transfer_graph import TransferGraph
from topox_core.topology.routing import Hops, Path, RoutedNetwork, SwitchWiring, coin_sequences
from topox_core.topology.traffic import Demand, Group, Pair, on_strides


@dataclass(frozen=True)
class LinkSet:
    """Circuits that belong together: one stride of rings, one matching, the connecting ring.

    ``kind`` is ``ring``, ``matching``, ``connect`` or ``candidate`` (considered, not laid).
    """

    name: str
    kind: str
    pairs: tuple[Pair, ...]

    @property
    def laid(self) -> bool:
        """Whether these are circuits, not candidates."""
        return self.kind != "candidate"


@dataclass(frozen=True)
class LayoutStep:
    """One step of the algorithm.

    Attributes
    ----------
    kind
        ``split``, ``candidates``, ``choose``, ``connect``, ``matching`` or ``route``.
    text
        What happened, in one sentence.
    data
        The numbers behind it, as JSON would hold them (docs/topology.md lists the keys by kind).
    links
        The circuits that it lays or considers, in the order in which the player adds them.
    """

    kind: str
    text: str
    data: Mapping[str, Any] = field(default_factory=dict)
    links: tuple[LinkSet, ...] = ()


@dataclass(frozen=True)
class LayoutResult:
    """A layout that TopologyFinder computed.

    Attributes
    ----------
    layout
        Circuits and routes.
    steps
        How it came about.
    variant, degree
        As asked for.
    degree_all_reduce, degree_model_parallel
        d_A and d_MP, the split of a server's ports.
    rings
        Groups that have circuits of their own, with the directed strides laid for them: member i to
        member i + p. A stride that stands twice has two parallel circuits a member.
    riding
        For every group of the demand the strides its rings should run on: its own, or the ones with
        fewest hops over other circuits.
    strides
        By group size the strides chosen (of rings in both directions one of p and n - p).
    wiring
        The circuits one by one, with the switch plane each lies on.
    """

    layout: Layout
    steps: tuple[LayoutStep, ...]
    variant: str
    degree: int
    degree_all_reduce: int
    degree_model_parallel: int
    rings: Mapping[Group, tuple[int, ...]]
    riding: Mapping[Group, tuple[int, ...]]
    strides: Mapping[int, tuple[int, ...]]
    wiring: SwitchWiring

    @cached_property
    def network(self) -> RoutedNetwork:
        """The circuits as a graph."""
        return RoutedNetwork(self.layout.circuits)

    @property
    def hops(self) -> Hops:
        """Diameter and mean hops over all ordered pairs of servers."""
        return self.network.hops

    @cached_property
    def longest_route(self) -> int:
        """Hops of the longest route between servers that exchange data; 0 if none do."""
        routes = self.layout.routes.values()
        return max((len(path) - 1 for paths in routes for path in paths), default=0)

    def as_record(self) -> dict[str, Any]:
        """Return the layout as JSON has it, which keys of labs name too."""
        return {
            "servers": self.layout.servers,
            **record_of(self, "degree variant degree_all_reduce degree_model_parallel"),
            "rings": {str(size): list(strides) for size, strides in self.strides.items()},
            "links": self.layout.link_rows(),
            "diameter": self.hops.diameter,
            "mean_hops": self.hops.mean,
            "unreachable_pairs": self.hops.unreachable,
            "steps": [record_of(step, "kind text") for step in self.steps],
        }


def ring_strides(result: LayoutResult, members: Iterable[int]) -> tuple[int, ...]:
    """Return the strides for a group's all-reduces, one ring each with an equal share.

    Strides are in places within the group, as :class:`~topox_core.model.transfer_graph.Lowering`
    has them; one that stands twice has twice the circuits, so it gets two rings.

    Raises
    ------
    InputError
        If the group is none of the demand that the layout was found for.
    """
    group = tuple(members)
    if group not in result.riding:
        shown = ", ".join(map(str, group[:8])) + (", ..." if len(group) > 8 else "")
        problem = f"the layout was found for other groups than ({shown})"
        raise InputError(problem, file="topology", field="members")
    return result.riding[group]


def on_rings(graph: TransferGraph, result: LayoutResult) -> TransferGraph:
    """Return the graph with ring collectives on a layout's rings, one a stride, equal shares.

    The collectives move the same bytes as before; only who sends to whom changes. Groups may have
    different strides, which a ``Lowering`` cannot say. Strides are those of
    :func:`ring_strides`: one a circuit out of a member, so parallel
    circuits carry parallel rings, and rings laid in both directions run both ways.

    Raises
    ------
    InputError
        If a group is not one the layout was found for, or the transfers become too many.
    """
    return on_strides(graph, lambda members: ring_strides(result, members))


Routes = dict[Pair, tuple[Path, ...]]
Rings = Mapping[Group, tuple[int, ...]]
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


def stride_links(groups: Iterable[Group], ways: Sequence[int], of: str = "") -> LinkSet:
    """Return the circuits of a stride in some groups, with those back where there are two ``ways``."""
    pairs = tuple((a, b) for a, b, _ in ring_circuits(dict.fromkeys(groups, ways)))
    both = " both ways" if len(ways) > 1 else ""
    return LinkSet(f"{of}stride {ways[0]}{both}", "ring", pairs)


def candidate_step(
    which: str, candidates: Sequence[int], about: Mapping[str, Any], servers: int
) -> LayoutStep:
    """Return the record of a group's candidate strides."""
    apart = max(1, servers // about["size"])
    from_first = tuple((0, p * apart % servers) for p in candidates)
    text = f"{which}: {counted(len(candidates), 'stride makes a regular ring', 'strides make regular rings')}."
    considered = LinkSet("candidate strides from S0", "candidate", from_first)
    return LayoutStep("candidates", text, {**about, "candidates": list(candidates)}, (considered,))


def route_step(routes: Routes, rings: Mapping[int, tuple[int, ...]], rule: str) -> LayoutStep:
    """Return the record of routing: coin sequences by group size and what the routes amount to."""
    hops = [len(path) - 1 for paths in routes.values() for path in paths]
    sequences = {
        size: [None if coins is None else list(coins) for coins in coin_sequences(size, strides)]
        for size, strides in rings.items()
        if strides and size <= MAX_SHOWN
    }
    mean = sum(hops) / len(hops) if hops else 0.0
    longest = max(hops, default=0)
    text = (
        f"All circuits are laid. {len(routes):,} pairs that exchange data have {counted(len(hops), 'route', 'routes')} of at most "
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
MAX_SHOWN = 256


def counted(count: int, one: str, several: str) -> str:
    """Return a count with its noun."""
    return f"{count:,} {one if count == 1 else several}"


def named(strides: Sequence[int]) -> str:
    """Return strides in words."""
    return f"stride{'' if len(strides) == 1 else 's'} {', '.join(map(str, strides))}"


@dataclass(frozen=True)
class Frame:
    """One picture of the player: the step, what it adds, and what lies already."""

    step: LayoutStep
    words: str
    added: tuple[LinkSet, ...]
    laid: tuple[LinkSet, ...]

    @property
    def circuits_laid(self) -> tuple[LinkSet, ...]:
        """Sets of circuits that lie after it, without candidates."""
        return tuple(one for one in (*self.laid, *self.added) if one.laid)

    def circuits(self, servers: int) -> NDArray[np.int32]:
        """Return the matrix of circuits laid so far, those of this frame included."""
        matrix = np.zeros((servers, servers), np.int32)
        for one in self.circuits_laid:
            for a, b in one.pairs:
                matrix[a, b] += 1
        return matrix


def frames(layout: LayoutResult) -> tuple[Frame, ...]:
    """Return the player's pictures: chosen strides one by one, a matching all at once."""
    result: list[Frame] = []
    laid: tuple[LinkSet, ...] = ()
    for step in layout.steps:
        parts = step.links
        if not parts:
            result.append(Frame(step, step.text, (), laid))
        for k, one in enumerate(parts):
            more = f" ({k + 1} of {len(parts)}: {one.name})" if len(parts) > 1 else ""
            result.append(Frame(step, step.text + more, (one,), laid))
            if one.laid:
                laid = (*laid, one)
    return tuple(result)


def used_for(layout: LayoutResult) -> dict[Pair, str]:
    """Return for each linked pair what its circuits were laid for, in words."""
    words: dict[Pair, list[str]] = {}
    for one in chain.from_iterable(step.links for step in layout.steps):
        for pair in one.pairs if one.laid else ():
            words.setdefault(pair, []).append(one.name)
    return {pair: ", ".join(names) for pair, names in words.items()}


def sent_bytes(result: LayoutResult, demand: Demand) -> Iterator[tuple[Pair, float]]:
    """Yield who sends how much to whom: rings in equal shares, then all other transfers."""
    for members, sent in demand.all_reduce.items():
        strides = result.riding.get(members, ())
        for p in strides:
            for pair in ring_pairs(members, (p,)):
                yield pair, sent / len(strides)
    for a, b in zip(*(ends.tolist() for ends in np.nonzero(demand.model_parallel)), strict=True):
        yield (a, b), float(demand.model_parallel[a, b])


def bandwidth_tax(result: LayoutResult, demand: Demand) -> float:
    """Return bytes times hops over bytes of a demand on a layout (TopoOpt's measure)."""
    total = sum(size for _, size in sent_bytes(result, demand))
    return sum(link_loads(result, demand).values()) / total if total > 0 else 1.0


def link_loads(result: LayoutResult, demand: Demand) -> dict[Pair, float]:
    """Return the bytes that each linked pair carries, forwarded ones included."""
    carried: dict[Pair, float] = {}
    for pair, size in sent_bytes(result, demand):
        paths = result.layout.routes.get(pair) or ()
        for path in paths:
            for hop in pairwise(path):
                carried[hop] = carried.get(hop, 0.0) + size / len(paths)
    return carried


def circuit_loads(result: LayoutResult, demand: Demand) -> dict[Pair, float]:
    """Return the bytes that one circuit of each linked pair carries: parallel ones share what the pair carries."""
    parallel = result.layout.circuits
    loads = link_loads(result, demand)
    return {pair: carried / float(parallel[pair]) for pair, carried in loads.items()}
