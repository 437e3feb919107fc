"""Phase by phase: each phase of transfers as a few matchings, and each matching on one plane of ports.

For long delays: a matching joins every server with one peer, so that its transfers share a change
of circuits. After Spectra (arXiv 2603.07373, of which the abstract is public): our own
decomposition, with whole transfers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from topox_core.demand.decomposition import (
    Configuration,
    Pair,
    SwitchTimes,
    assigned,
    equalised,
    few_matchings,
)
from topox_core.fabrics.controllers.circuits import Profile, circuit_run
from topox_core.fabrics.fluid.simulator import go_on
from topox_core.fabrics.kernels.circuit_requests import first_come_first_served, unused
from topox_core.fabrics.run import FabricRequest, FabricRun
from topox_core.model.arrays.csr import grouped, ranks, row_of_entry
from topox_core.model.transfer_graph import IntArray, TransferGraph
from topox_core.runs.latest import Latest
from topox_core.runs.run import Stop
from topox_core.schedule.kernels.known_order import IN, OUT, Holders, Places, orders_of
from topox_core.topology.routing import wired

# Changes that even out the planes of a phase, and transfers looked at in all.
MAX_EVENED, MAX_WORK = 32, 400_000
# Lines of a phase's matrix: beyond, pairs are coloured one after the other, the longest first.
MAX_LINES = 128
# Nodes, in all, of iterations that leave planes unused: on 10,000 nodes one takes half a second.
MAX_UNUSED_WORK = 10_000
# Iterations kept: a plan asks for those of each way of lowering two or three times (moe: 4 of 7 s).
MAX_KEPT = 6
_kept = Latest[Profile](MAX_KEPT)


def run_phased(request: FabricRequest, stop: Stop) -> FabricRun:
    """Run an iteration whose ports take their transfers phase by phase, each circuit set up as soon as its ports are idle.

    Raises
    ------
    InputError
        As :func:`~topox_core.fabrics.controllers.circuits.run_reactive`.
    Stopped
        If ``stop()`` is true.
    """
    go_on(stop)
    profile = phased(Profile.of(request))
    return circuit_run("phased", request, profile.execution(profile.known.start), profile.first_ms)


@dataclass(frozen=True)
class WholeTransfers(Configuration):
    """Circuits that stand at the same time on one plane: the transfers of each pair, and the longest sum of one.

    ``by_length`` says which transfers of a pair stay where a part of them goes: the longest that fit,
    or the first ones.
    """

    transfers: dict[Pair, list[int]]
    length_ms: list[float]
    by_length: bool

    @staticmethod
    def of(
        transfers: dict[Pair, list[int]], length_ms: list[float], by_length: bool
    ) -> WholeTransfers:
        """Return the configuration of some transfers; pairs without any are left out."""
        return WholeTransfers((), 0.0, {}, length_ms, by_length)._like(transfers)

    def split(self, tau_ms: float) -> tuple[Self, Self] | None:
        """Return what stays and what goes where each pair keeps at most ``tau_ms`` less than the longest has."""
        if tau_ms <= 0:
            return None
        first = None if self.by_length else self._parts(tau_ms, by_length=False)
        return first or self._parts(tau_ms, by_length=True)

    def _parts(self, tau_ms: float, by_length: bool) -> tuple[Self, Self] | None:
        stays: dict[Pair, list[int]] = {}
        goes: dict[Pair, list[int]] = {}
        for pair, mine in self.transfers.items():
            kept, room_ms = set(), self.weight_ms - tau_ms
            for j in sorted(mine, key=lambda j: -self.length_ms[j]) if by_length else mine:
                if self.length_ms[j] <= room_ms:
                    room_ms -= self.length_ms[j]
                    kept.add(j)
                elif not by_length:
                    break
            stays[pair] = [j for j in mine if j in kept]
            goes[pair] = [j for j in mine if j not in kept]
        parts = self._like(stays), self._like(goes)
        return parts if parts[0].transfers and parts[1].transfers else None

    def _like(self, transfers: dict[Pair, list[int]]) -> Self:
        some = {pair: mine for pair, mine in transfers.items() if mine}
        sums_ms = (sum(self.length_ms[j] for j in mine) for mine in some.values())
        pairs, weight_ms = tuple(sorted(some)), max(sums_ms, default=0.0)
        return replace(self, circuits=pairs, weight_ms=weight_ms, transfers=some)

    def joined(self, other: Self) -> Self:
        """Return one configuration with the transfers of both, by position within a pair."""
        pairs = self.transfers.keys() | other.transfers.keys()
        both = {
            pair: sorted(self.transfers.get(pair, []) + other.transfers.get(pair, []))
            for pair in sorted(pairs)
        }
        return self._like(both)


def phased(profile: Profile) -> Profile:
    """Return the iteration of a profile whose ports take their transfers phase by phase.

    The phase of a node is the number of transfers on the longest path into it, itself included;
    transfers of a phase do not wait for one another. A plane is one port of every server. Nothing
    else keeps phases apart: a port goes on as soon as it can, devices and places on a switch are
    first come, first served. There is no deadlock, since phases rise along every path and both
    ports of a transfer take it by (phase, configuration). The iteration is the shortest of some: a
    configuration that is divided keeps the first transfers of each pair, or the longest that fit;
    planes may stay unused, since a phase spread over more of them can cost the next one a change; and
    where the planes hold a circuit for every pair of servers, no circuit changes.
    """
    graph, planes = profile.graph, profile.wiring.switches * profile.wiring.k
    key = (
        *(graph.digest, graph.lowering, profile.cluster),
        *(profile.tasks.devices, profile.repeats),
    )
    best = _kept.get(key)
    if best is None:
        unused = min(planes - 1, MAX_UNUSED_WORK // max(1, len(graph)))
        by_phase = (
            _phase_by_phase(profile, used, by_length)
            for used in range(planes, planes - unused - 1, -1)
            for by_length in (False, True)
        )
        ways = (_in_order(profile, *way) for way in (*by_phase, *_held(profile, planes)))
        best = min(ways, key=lambda one: float((one.known.start + one.length_ms).max(initial=0.0)))
        _kept[key] = best
    return best


def _in_order(profile: Profile, rank: IntArray, plane: IntArray) -> Profile:
    """Return the iteration whose ports take transfers by their rank, each on its plane."""
    tasks, wiring, delay_ms = profile.tasks, profile.wiring, profile.cluster.reconfiguration_ms
    planes = wiring.switches * wiring.k
    in_side = 0 if wiring.half else wiring.servers * planes
    numbers = (
        plane // wiring.k,
        *(ends * planes + plane for ends in (tasks.source, tasks.destination)),
    )
    switch, out_port, in_port = (
        np.where(tasks.carried, number + side, -1).astype(np.int32)
        for number, side in zip(numbers, (0, 0, in_side), strict=True)
    )
    nobody, nothing = np.full(len(rank), -1, np.int32), np.zeros(0, np.int64)
    holders = Holders(nobody, np.stack([out_port, in_port]), switch)
    order = np.argsort(rank).astype(np.int32)
    orders = orders_of(order, holders, Places(0, 0, 0, nothing, nothing))
    # A transfer also waits for the last users of its ports, and where one changes for its set-up.
    sides = [(np.flatnonzero(side >= 0), side) for side in orders.before[[OUT, IN]]]
    later = np.concatenate([at for at, _ in sides])
    first = np.concatenate([row_of_entry(tasks.succ_ptr), *(side[at] for at, side in sides)])
    then = np.concatenate([tasks.succ_idx, later]).astype(np.int32)
    lag = np.concatenate([tasks.lag, delay_ms * orders.changed[later]])
    succ_ptr, succ_idx = grouped(first, then, len(rank))
    tasks = tasks._replace(
        waits_for=np.bincount(then, minlength=len(rank)).astype(np.int32),
        succ_ptr=succ_ptr,
        succ_idx=succ_idx,
        lag=grouped(first, lag, len(rank))[1],
        switch=switch,
        out_port=out_port,
        in_port=in_port,
    )
    known = first_come_first_served(tasks, wiring, delay_ms, unused(wiring))
    by_phases = replace(profile, known=known, first=known)
    if not profile.repeats:
        return by_phases
    # Devices and places on switches keep the order of the first iteration.
    return replace(by_phases, known=known._replace(start=by_phases.provisioned_start_ms()))


def _held(profile: Profile, planes: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield a rank for every node and a plane for each transfer by which no circuit changes; nothing where planes are too few.

    Each plane holds one matching of all pairs; where planes are left, each matching has several, and
    a transfer takes the one that has carried least for its pair so far.
    """
    graph, lengths = profile.graph, profile.length_ms.tolist()
    rank = ranks(graph.order)
    nodes = np.flatnonzero(profile.tasks.carried)
    in_order = nodes[np.argsort(rank[nodes])].tolist()
    matchings = _matched(graph, in_order, lengths, profile.wiring.half)
    if not 0 < len(matchings) <= planes:
        return
    plane = np.zeros(len(graph), np.int32)
    for at, matching in enumerate(matchings):
        own = range(at, planes, len(matchings))
        for transfers in matching.values():
            carried_ms = dict.fromkeys(own, 0.0)
            for j in transfers:
                plane[j] = least = min(own, key=carried_ms.__getitem__)
                carried_ms[least] += lengths[j]
    yield rank, plane


def _phase_by_phase(profile: Profile, planes: int, by_length: bool) -> tuple[IntArray, IntArray]:
    """Return a rank for every node, by which ports take transfers, and the plane of each transfer."""
    graph, half, lengths = profile.graph, profile.wiring.half, profile.length_ms.tolist()
    carried = profile.tasks.carried
    phase = graph.heads(carried.astype(np.float64)).astype(np.int32) + carried
    step, plane = np.zeros(len(graph), np.int32), np.zeros(len(graph), np.int32)
    times = SwitchTimes(profile.cluster.reconfiguration_ms, first_free=False)
    carried_ms = [0.0] * planes
    for nodes in _of_each_phase(phase, carried):
        configurations = [
            WholeTransfers.of(transfers, lengths, by_length)
            for transfers in _matched(graph, nodes, lengths, half)
        ]
        by_plane = assigned(configurations, planes, times)
        if len(nodes) > 1:
            most = min(MAX_EVENED * planes, MAX_WORK // len(nodes))
            by_plane = equalised(by_plane, times, exchanges=True, most=most)
        # Planes are alike: the longest part goes to the plane that has carried least so far.
        longest = sorted(by_plane, key=times.load_ms, reverse=True)
        for port, mine in zip(np.argsort(carried_ms, kind="stable").tolist(), longest, strict=True):
            carried_ms[port] += times.load_ms(mine)
            for at, one in enumerate(mine):
                for transfers in one.transfers.values():
                    step[transfers], plane[transfers] = at, port
    # Transfers of a phase come before what else belongs to it, and that waits for them only.
    place = ranks(graph.order)
    in_order = np.lexsort((np.arange(len(graph)), place * ~carried, step, ~carried, phase))
    return ranks(in_order), plane


def _of_each_phase(phase: IntArray, carried: NDArray[np.bool_]) -> Iterator[list[int]]:
    """Yield the transfers of each phase, ascending."""
    nodes = np.flatnonzero(carried)
    nodes = nodes[np.argsort(phase[nodes], kind="stable")]
    cuts = np.flatnonzero(np.diff(phase[nodes])) + 1
    yield from (part.tolist() for part in np.split(nodes, cuts) if len(part))


def _matched(
    graph: TransferGraph, nodes: Iterable[int], length_ms: list[float], half: bool
) -> list[dict[Pair, list[int]]]:
    """Return the transfers of a phase as matchings of servers, as few as the busiest server has peers one way."""
    of_pair: dict[Pair, list[int]] = {}
    for j in nodes:
        of_pair.setdefault((int(graph.source[j]), int(graph.destination[j])), []).append(j)
    total_ms = {pair: sum(length_ms[j] for j in mine) for pair, mine in of_pair.items()}
    return [{pair: of_pair[pair] for pair in one} for one in _matchings(total_ms, half)]


def _matchings(total_ms: dict[Pair, float], half: bool) -> list[list[Pair]]:
    sources, destinations = ({pair[side] for pair in total_ms} for side in (0, 1))
    distinct = len(sources | destinations) if half else len(total_ms)
    if len(sources) == len(destinations) == len(total_ms) and (
        not half or distinct == 2 * len(total_ms)
    ):
        return [list(total_ms)]  # already one matching
    longest = sorted(total_ms, key=lambda pair: (-total_ms[pair], pair))
    lines = max(len(sources), len(destinations))
    if half or lines > MAX_LINES:
        colours = one_way_matchings(longest) if half else matching_of_pairs(longest)
        matchings: dict[int, list[Pair]] = {}
        for pair, colour in colours.items():
            matchings.setdefault(colour, []).append(pair)
        return list(matchings.values())
    row, column = sorted(sources), sorted(destinations)
    at = {x: i for i, x in enumerate(row)}, {y: i for i, y in enumerate(column)}
    matrix = np.zeros((lines, lines))
    for (x, y), ms in total_ms.items():
        matrix[at[0][x], at[1][y]] = ms
    return [[(row[i], column[j]) for i, j in one] for one in few_matchings(matrix)]


def one_way_matchings(pairs: list[Pair]) -> dict[Pair, int]:
    """Return the number of a matching for each pair where a port sends or receives: the first with both servers free."""
    taken: dict[int, set[int]] = {}
    colours: dict[Pair, int] = {}
    for x, y in pairs:
        busy = taken.setdefault(x, set()) | taken.setdefault(y, set())
        colours[x, y] = colour = next(c for c in range(len(busy) + 1) if c not in busy)
        taken[x].add(colour)
        taken[y].add(colour)
    return colours


def matching_of_pairs(pairs: list[Pair]) -> dict[Pair, int]:
    """Return the number of a matching for each pair; as many matchings as the busiest server has peers one way."""
    planes = wired([(x, y, False) for x, y in pairs]).plane
    return dict(zip(pairs, planes.tolist(), strict=True))
