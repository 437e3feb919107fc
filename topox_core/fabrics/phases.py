"""An order of transfers phase by phase: each phase as a few matchings, and each matching on one plane of ports.

For long delays: a matching joins every server with one peer, so that its transfers share a change
of circuits. After Spectra (arXiv 2603.07373, of which we know the abstract): our own decomposition,
with whole transfers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from topox_core.fabrics.circuit_requests import Profile, held_devices, numbered_servers
from topox_core.fabrics.kernels.circuit_requests import Requests
from topox_core.model.passes import topological_order
from topox_core.model.transfer_graph import TRANSFER, FloatArray, IntArray, TransferGraph
from topox_core.schedule.kernels.known_order import Holders, Places, orders_of

Pair = tuple[int, int]
MOST_TASKS = 5_000
# Changes a plane that even out the planes of a phase, and transfers looked at in all.
MOST_EVENED, MOST_WORK = 32, 400_000


@dataclass(frozen=True)
class _Configuration:
    """Circuits that stand at the same time on one plane: the transfers of each pair, and the longest sum of one."""

    transfers: dict[Pair, list[int]]
    weight_ms: float

    @staticmethod
    def of(transfers: dict[Pair, list[int]], length_ms: list[float]) -> _Configuration:
        """Return the configuration of some transfers; pairs without any are left out."""
        some = {pair: mine for pair, mine in transfers.items() if mine}
        weight_ms = max((sum(length_ms[j] for j in mine) for mine in some.values()), default=0.0)
        return _Configuration(some, weight_ms)

    def split(self, tau_ms: float, length_ms: list[float]) -> tuple[_Configuration, _Configuration]:
        """Return what stays and what goes where the last transfers of each pair go until ``tau_ms`` less is left."""
        stays: dict[Pair, list[int]] = {}
        goes: dict[Pair, list[int]] = {}
        for pair, mine in self.transfers.items():
            left_ms, cut = sum(length_ms[j] for j in mine), len(mine)
            while cut and left_ms > self.weight_ms - tau_ms:
                cut -= 1
                left_ms -= length_ms[mine[cut]]
            stays[pair], goes[pair] = mine[:cut], mine[cut:]
        return _Configuration.of(stays, length_ms), _Configuration.of(goes, length_ms)


def phased(profile: Profile, exclusive_devices: bool) -> Profile | None:
    """Return the iteration of a profile whose ports take their transfers phase by phase.

    The phase of a node is the number of transfers on the longest path into it, itself included;
    transfers of a phase do not wait for one another. A plane is one port of every server. Devices
    take tasks in the order in which they would be ready, were there devices enough. None for half
    duplex, where eq. 7 can bind, and for graphs of more than :data:`MOST_TASKS` tasks.
    """
    graph, wiring, length_ms = profile.graph, profile.wiring, profile.length_ms
    if wiring.half or wiring.limit or len(graph) > MOST_TASKS:
        return None
    planes, delay_ms = wiring.switches * wiring.k, profile.cluster.reconfiguration_ms
    rank, plane = _phase_by_phase(graph, length_ms, planes, delay_ms)
    carried = (graph.kind == TRANSFER) & (length_ms > 0)
    nobody, nothing = np.full(len(graph), -1, np.int32), np.zeros(0, np.int64)
    ends = [
        np.where(carried, numbered_servers(end, profile.server) * planes + plane, -1)
        for end in (graph.source, graph.destination)
    ]
    out_port, in_port = ends[0], np.where(carried, ends[1] + wiring.servers * planes, -1)
    switch = np.where(carried, plane // wiring.k, -1)
    holders = Holders(nobody, *(column.astype(np.int32) for column in (out_port, in_port, switch)))
    places = Places(0, 0, 0, nothing, nothing)
    known = Requests(
        length_ms,
        holders.switch,
        holders.out_port,
        holders.in_port,
        orders_of(np.argsort(rank).astype(np.int32), holders, places),
    )
    ready_ms = replace(profile, known=known).provisioned_start_ms()
    device = np.where(length_ms > 0, held_devices(graph, exclusive_devices)[0], -1)
    holders = holders._replace(device=device.astype(np.int32))
    orders = orders_of(np.lexsort((rank, ready_ms)).astype(np.int32), holders, places)
    return replace(profile, known=known._replace(start=ready_ms, orders=orders))


def _phase_by_phase(
    graph: TransferGraph, length_ms: FloatArray, planes: int, delay_ms: float
) -> tuple[IntArray, IntArray]:
    """Return a rank for every node, by which ports take transfers, and the plane of each transfer."""
    lengths = length_ms.tolist()
    succ_ptr, succ_idx = graph.successors
    topological = topological_order(graph.pred_ptr, succ_ptr, succ_idx)
    moved = (graph.kind == TRANSFER) & (length_ms > 0)
    phase = _phases(graph, topological, moved)
    step, plane = np.zeros(len(graph), np.int32), np.zeros(len(graph), np.int32)
    for number in np.unique(phase[moved]).tolist():
        nodes = np.flatnonzero(moved & (phase == number)).tolist()
        configurations = _configurations(graph, nodes, lengths)
        for at, (one, port) in enumerate(_assigned(configurations, planes, delay_ms, lengths)):
            for mine in one.transfers.values():
                step[mine], plane[mine] = at, port
    place = np.empty(len(graph), np.int64)
    place[topological] = np.arange(len(graph))
    # Transfers of a phase come before what else belongs to it, and that waits for them only.
    rank = np.empty(len(graph), np.int32)
    rank[np.lexsort((place, step, ~moved, phase))] = np.arange(len(graph), dtype=np.int32)
    return rank, plane


def _phases(graph: TransferGraph, topological: IntArray, moved: NDArray[np.bool_]) -> IntArray:
    phase = [0] * len(graph)
    pointer, before, own = graph.pred_ptr.tolist(), graph.pred_idx.tolist(), moved.tolist()
    for j in topological.tolist():
        latest = max((phase[i] for i in before[pointer[j] : pointer[j + 1]]), default=0)
        phase[j] = latest + own[j]
    return np.array(phase, np.int32)


def _configurations(
    graph: TransferGraph, nodes: Iterable[int], length_ms: list[float]
) -> list[_Configuration]:
    """Return as few matchings as the busiest server has peers, the longest pairs together as far as that goes."""
    of_pair: dict[Pair, list[int]] = {}
    for j in nodes:
        of_pair.setdefault((int(graph.source[j]), int(graph.destination[j])), []).append(j)
    total_ms = {pair: sum(length_ms[j] for j in mine) for pair, mine in of_pair.items()}
    longest = sorted(total_ms, key=lambda pair: (-total_ms[pair], pair))
    matchings: dict[int, dict[Pair, list[int]]] = {}
    for pair, colour in matching_of_pairs(longest).items():
        matchings.setdefault(colour, {})[pair] = of_pair[pair]
    return [_Configuration.of(one, length_ms) for one in matchings.values()]


def matching_of_pairs(pairs: list[Pair]) -> dict[Pair, int]:
    """Return the number of a matching for each pair; as many matchings as the busiest server has peers one way.

    Pairs take the first matching in which both servers are free, in the order given; where there is
    none, an alternating path makes room (Koenig).
    """
    at_source: dict[int, dict[int, int]] = {}  # colour -> the other end
    at_destination: dict[int, dict[int, int]] = {}
    degree = Counter(x for x, _ in pairs), Counter(y for _, y in pairs)
    most = max(max(one.values(), default=0) for one in degree)
    for x, y in pairs:
        out, into = at_source.setdefault(x, {}), at_destination.setdefault(y, {})
        first = next(c for c in range(len(out) + len(into) + 1) if c not in out)
        both = next(c for c in range(len(out) + len(into) + 1) if c not in out and c not in into)
        if both < most:
            out[both], into[both] = y, x
            continue
        other = next(c for c in range(len(into) + 1) if c not in into)
        _swap(at_source, at_destination, y, first, other)
        out[first], into[first] = y, x
    return {(x, y): c for x, of_x in at_source.items() for c, y in of_x.items()}


def _swap(
    at_source: dict[int, dict[int, int]],
    at_destination: dict[int, dict[int, int]],
    y: int,
    first: int,
    other: int,
) -> None:
    """Exchange two colours along the path from y that begins with ``first``, so that y has it free."""
    path: list[tuple[int, int, int]] = []
    at, wanted, here = y, first, at_destination
    while (next_one := here.get(at, {}).get(wanted)) is not None:
        path.append((next_one, at, wanted) if here is at_destination else (at, next_one, wanted))
        here = at_source if here is at_destination else at_destination
        at, wanted = next_one, other if wanted == first else first
    for a, b, colour in path:
        del at_source[a][colour], at_destination[b][colour]
    for a, b, colour in path:
        swapped = other if colour == first else first
        at_source[a][swapped], at_destination[b][swapped] = b, a


def _assigned(
    configurations: list[_Configuration], planes: int, delay_ms: float, length_ms: list[float]
) -> list[tuple[_Configuration, int]]:
    """Return configurations with the plane of each: the longest first to the plane with the least load, then evened out."""
    load_ms = [0.0] * planes
    assigned: list[tuple[_Configuration, int]] = []
    for one in sorted(configurations, key=lambda one: -one.weight_ms):
        plane = min(range(planes), key=lambda p: load_ms[p])
        load_ms[plane] += one.weight_ms + delay_ms
        assigned.append((one, plane))
    transfers = sum(len(mine) for one in configurations for mine in one.transfers.values())
    for _ in range(min(MOST_EVENED * planes, MOST_WORK // max(1, transfers))):
        high = max(range(planes), key=lambda p: load_ms[p])
        low = min(range(planes), key=lambda p: load_ms[p])
        tau_ms = (load_ms[high] - load_ms[low] - delay_ms) / 2
        best_ms = load_ms[high] * (1 - 1e-9)
        change: tuple[int, _Configuration | None, _Configuration] | None = None
        for at, (one, plane) in enumerate(assigned):
            if plane != high or tau_ms <= 0:
                continue
            whole_ms = one.weight_ms + delay_ms
            after_ms = max(load_ms[high] - whole_ms, load_ms[low] + whole_ms)
            if after_ms < best_ms:
                best_ms, change = after_ms, (at, None, one)
            stays, goes = one.split(tau_ms, length_ms)
            if not stays.transfers or not goes.transfers:
                continue
            after_ms = max(
                load_ms[high] - one.weight_ms + stays.weight_ms,
                load_ms[low] + goes.weight_ms + delay_ms,
            )
            if after_ms < best_ms:
                best_ms, change = after_ms, (at, stays, goes)
        if change is None:
            break
        at, kept, given = change
        left_ms = -delay_ms if kept is None else kept.weight_ms
        load_ms[high] += left_ms - assigned[at][0].weight_ms
        load_ms[low] += given.weight_ms + delay_ms
        assigned[at] = (given, low) if kept is None else (kept, high)
        if kept is not None:
            assigned.append((given, low))
    return assigned
