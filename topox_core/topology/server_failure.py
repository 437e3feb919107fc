"""A failed server: its traffic and its routes move to the server that takes over its tasks."""

from __future__ import annotations

from dataclasses import replace
from math import gcd

import numpy as np

from topox_core.model.layout import Layout
from topox_core.topology.failed_element import Failure
from topox_core.topology.finder import find_layout
from topox_core.topology.result import LayoutResult, LayoutStep
from topox_core.topology.ring_circuits import Routes
from topox_core.topology.routing import RoutedNetwork
from topox_core.topology.traffic import Demand, Group


def moved_members(members: Group, failure: Failure) -> Group:
    """Return a group with the substitute in the failed server's place, or without it."""
    if failure.server not in members:
        return members
    substitute = failure.stand_in()
    if substitute in members:
        return tuple(m for m in members if m != failure.server)
    return tuple(substitute if m == failure.server else m for m in members)


def moved_demand(demand: Demand, failure: Failure) -> Demand:
    """Return the demand after the move; traffic with the substitute itself disappears.

    Raises
    ------
    InputError
        If the failed server talks and no substitute is named.
    """
    sent: dict[Group, float] = {}
    strides: dict[Group, tuple[int, ...]] = {}
    for members, each in demand.all_reduce.items():
        now = moved_members(members, failure)
        n, left = len(members), len(now)
        if left < 2:
            continue
        # A ring moves (n - 1) / n of the tensor a pass.
        sent[now] = sent.get(now, 0.0) + each * ((left - 1) / left) / ((n - 1) / n)
        kept = tuple(p for p in demand.lowered_strides.get(members, ()) if gcd(p, left) == 1)
        strides[now] = tuple(dict.fromkeys((*strides.get(now, ()), *kept))) or (1,)
    matrix = demand.model_parallel.copy()
    pairs = demand.pairs
    if any(failure.server in pair for pair in pairs):
        gone, substitute = failure.server, failure.stand_in()
        matrix[substitute] += matrix[gone]
        matrix[:, substitute] += matrix[:, gone]
        matrix[gone], matrix[:, gone] = 0.0, 0.0
        np.fill_diagonal(matrix, 0.0)
        moved = ((substitute if a == gone else a, substitute if b == gone else b) for a, b in pairs)
        pairs = frozenset((a, b) for a, b in moved if a != b)
    return Demand(demand.servers, sent, strides, matrix, pairs)


def moved_routes(routes: Routes, failure: Failure) -> Routes:
    """Return the routes after the move; a pair that is new has no path yet."""
    result: Routes = {pair: paths for pair, paths in routes.items() if failure.server not in pair}
    for a, b in routes:
        if failure.server in (a, b):
            substitute = failure.stand_in()
            pair = (
                substitute if a == failure.server else a,
                substitute if b == failure.server else b,
            )
            if pair[0] != pair[1]:
                result.setdefault(pair, ())
    return result


def bypassed(routes: Routes, server: int, network: RoutedNetwork) -> Routes:
    """Return routes that close rings over a missing server, from its sender to its receiver."""
    before = [a for a, b in routes if b == server]
    after = [b for a, b in routes if a == server]
    return {
        (a, b): network.shortest_paths(a, b)
        for a in before
        for b in after
        if a != b and network.connected(a, b)
    }


def find_without(result: LayoutResult, failure: Failure, demand: Demand) -> LayoutResult:
    """Return a new layout of the same variant without the failed server."""
    demand = moved_demand(demand, failure)
    if result.variant == "published":
        return _named(find_layout(demand, result.degree, result.variant), failure)
    # The released variant lays rings through all servers, so it is asked about the others only,
    # numbered anew.
    there = [s for s in range(demand.servers) if s != failure.server]
    place = {s: i for i, s in enumerate(there)}
    fewer = Demand(
        len(there),
        {tuple(place[m] for m in members): sent for members, sent in demand.all_reduce.items()},
        {
            tuple(place[m] for m in members): strides
            for members, strides in demand.lowered_strides.items()
        },
        demand.model_parallel[np.ix_(there, there)],
        frozenset((place[a], place[b]) for a, b in demand.pairs),
    )
    return _named(
        _numbered_back(find_layout(fewer, result.degree, result.variant), there, demand.servers),
        failure,
    )


def _numbered_back(result: LayoutResult, there: list[int], servers: int) -> LayoutResult:
    number = np.array(there, np.int32)
    wiring = replace(
        result.wiring,
        source=number[result.wiring.source],
        destination=number[result.wiring.destination],
    )
    routes: Routes = {
        (there[a], there[b]): tuple(tuple(there[s] for s in path) for path in paths)
        for (a, b), paths in result.layout.routes.items()
    }

    def groups(strides: dict[Group, tuple[int, ...]]) -> dict[Group, tuple[int, ...]]:
        return {tuple(there[m] for m in members): chosen for members, chosen in strides.items()}

    return replace(
        result,
        layout=Layout(wiring.circuits(servers), routes, result.layout.name),
        rings=groups(dict(result.rings)),
        riding=groups(dict(result.riding)),
        wiring=wiring,
    )


def _named(result: LayoutResult, failure: Failure) -> LayoutResult:
    name = f"{result.layout.name}, without {failure}"
    step = LayoutStep(
        "repair",
        f"Without {failure}, whose tasks server {failure.substitute} takes over.",
        {"server": failure.server, "substitute": failure.substitute},
    )
    return replace(result, layout=replace(result.layout, name=name), steps=(step, *result.steps))
