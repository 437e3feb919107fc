"""What a job sends: all-reduce bytes by group (mutable), model-parallel bytes by pair; and its rings moved to other strides.

TopoOpt (NSDI 2023) lays circuits out for these two kinds of traffic apart: a ring all-reduce moves
the same bytes on any ring over its members (it is *mutable*), a model-parallel transfer has a
source and a destination.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from topox_core.errors import InputError, refuse_if
from topox_core.io.limits import check_whole
from topox_core.model.lowering.algorithm_choice import (
    RING,
    RING_KINDS,
    distinct_rings,
)
from topox_core.model.lowering.lowering import lower
from topox_core.model.lowering_choices import Lowering
from topox_core.model.task_graph import TaskGraph
from topox_core.model.transfer_graph import TRANSFER, FloatArray, TransferGraph

Group = tuple[int, ...]
Pair = tuple[int, int]

# A layout is a matrix of servers x servers, and its routes are listed one by one.
MAX_SERVERS = 4_096


@dataclass(frozen=True)
class Demand:
    """Traffic of one iteration.

    Attributes
    ----------
    servers
        Number of servers.
    all_reduce
        For each group of members, in ring order, the bytes that *each member* sends around its
        rings: 2(n-1)/n of the tensor in an all-reduce, (n-1)/n in an all-gather or a
        reduce-scatter.
    lowered_strides
        For each group the ring strides that the lowered graph uses, so that a graph that is not
        moved onto the chosen rings still finds its routes.
    model_parallel
        Matrix servers x servers of all other bytes.
    pairs
        Every (source, destination) of those transfers, also of those that have no bytes of their
        own (a time is given, or the size is zero).
    """

    servers: int
    all_reduce: Mapping[Group, float]
    lowered_strides: Mapping[Group, tuple[int, ...]]
    model_parallel: FloatArray
    pairs: frozenset[Pair]

    @property
    def all_reduce_bytes(self) -> float:
        """Bytes of ring traffic over all members of all groups."""
        return sum(sent * len(members) for members, sent in self.all_reduce.items())

    @property
    def model_parallel_bytes(self) -> float:
        """Bytes of all other traffic."""
        return float(self.model_parallel.sum())


def traffic_of(graph: TaskGraph, servers: int, lowering: Lowering | None = None) -> Demand:
    """Return the demand of a task graph on ``servers`` servers.

    Raises
    ------
    InputError
        If the graph cannot be lowered or names more servers than there are.
    """
    return demand_of(lower(graph, lowering), servers)


def demand_of(graph: TransferGraph, servers: int) -> Demand:
    """Return the demand of a lowered graph: ring collectives by group, the rest by pair.

    Raises
    ------
    InputError
        If a transfer names a server beyond ``servers``, or there are more than ``MAX_SERVERS``.
    """
    check_servers(servers)
    is_transfer = graph.kind == TRANSFER
    highest = int(max(graph.source.max(initial=-1), graph.destination.max(initial=-1)))
    refuse_if(
        (
            highest >= servers,
            f"the graph names server {highest}, but there are {servers:,} (0 to {servers - 1:,})",
        ),
        file="topology",
        field="servers",
    )
    mutable = _mutable(graph)
    sized = np.nan_to_num(graph.size_bytes, nan=0.0)
    fixed = np.flatnonzero(is_transfer & ~mutable)
    pairs = frozenset(
        zip(graph.source[fixed].tolist(), graph.destination[fixed].tolist(), strict=True)
    )
    sent: dict[Group, float] = {}
    strides: dict[Group, dict[int, None]] = {}
    for members, nodes, ring_strides in ring_collectives(graph):
        sent[members] = sent.get(members, 0.0) + float(sized[nodes].sum()) / len(members)
        strides.setdefault(members, {}).update(ring_strides)
    return Demand(
        servers,
        sent,
        {members: tuple(ring_strides) for members, ring_strides in strides.items()},
        graph.matrix(sized, fixed, servers),
        pairs,
    )


def all_reduce_demand(servers: int) -> Demand:
    """Return the demand of one all-reduce of a byte over all servers and nothing else."""
    check_servers(servers)
    members = tuple(range(servers))
    sent = {members: 2 * (servers - 1) / servers} if servers > 1 else {}
    return Demand(
        servers, sent, dict.fromkeys(sent, (1,)), np.zeros((servers, servers)), frozenset()
    )


def check_servers(servers: int) -> None:
    """Refuse a number of servers that no layout can have, with one line."""
    check_whole(servers, 1, MAX_SERVERS, file="topology", field="servers")


def _mutable(graph: TransferGraph) -> NDArray[np.bool_]:
    """Return which nodes are transfers of ring collectives; other algorithms fix who sends to whom."""
    of_rings = np.fromiter((kind in RING_KINDS for kind in graph.task_kind), np.bool_, len(graph))
    fixed = [i for i, name in graph.algorithm.items() if name != RING]
    if fixed:
        of_rings &= ~np.isin(graph.origin, fixed)
    mutable: NDArray[np.bool_] = of_rings & (graph.kind == TRANSFER)
    return mutable


def ring_collectives(graph: TransferGraph) -> list[tuple[Group, NDArray[np.intp], dict[int, None]]]:
    """Return (members, nodes, strides) of each lowered ring collective."""
    nodes = np.flatnonzero(_mutable(graph))
    if not len(nodes):
        return []
    starts = np.flatnonzero(np.diff(graph.origin[nodes], prepend=-1))
    result = []
    for block in np.split(nodes, starts[1:]):
        source, destination = graph.source[block].tolist(), graph.destination[block].tolist()
        n = len(set(source))
        members = tuple(source[:n])  # the first n transfers leave the members in ring order
        place = {server: i for i, server in enumerate(members)}
        strides = dict.fromkeys(
            (place[destination[k]] - place[source[k]]) % n for k in range(0, len(source), n)
        )
        result.append((members, block, strides))
    return result


StridesOf = Callable[[Group], tuple[int, ...]]


def on_ring_count(graph: TransferGraph, rings: int) -> TransferGraph:
    """Return the graph with every ring collective on so many rings, as far as its group has them."""
    return on_strides(graph, lambda members: distinct_rings(len(members))[:rings] or (1,))


def on_strides(graph: TransferGraph, strides_of: StridesOf) -> TransferGraph:
    """Return the graph with each group's ring collectives on the strides given for it, equal shares.

    Raises
    ------
    InputError
        If the transfers become too many.
    """
    strides = {members: strides_of(members) for members, *_ in ring_collectives(graph)}
    if not strides:
        return graph
    assert graph.task_graph is not None
    try:
        moved = lower(graph.task_graph, graph.lowering, strides=strides)
    except InputError as error:
        problem = f"the rings of this layout: {error.problem}, or a smaller degree"
        raise InputError(problem, file="topology", field="degree") from None
    (first, *others), own = set(strides.values()), graph.lowering
    if not others and len(set(first)) == len(first):  # the lowering that would have made this graph
        own = replace(own, rings=len(first), strides=first)
    return replace(moved, lowering=own)
