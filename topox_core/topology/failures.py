"""Failures of a fixed layout, and their repair.

TopoOpt (NSDI 2023, section 7): when a fibre of an all-reduce ring fails, a circuit laid for
model-parallel traffic is lent to the ring. What cannot be repaired is forwarded by servers over the
circuits that are left.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from topox_core.errors import InputError
from topox_core.model.execution import Layout
from topox_core.topology.failed_element import (
    FAILURES,
    Failure,
    bypassed,
    find_without,
    moved_routes,
)
from topox_core.topology.result import LayoutResult
from topox_core.topology.ring_circuits import Routes, named, ring_pairs
from topox_core.topology.routing import RoutedNetwork
from topox_core.topology.traffic import Demand, Group, Pair
from topox_core.topology.wiring import SwitchWiring, wiring_of

# One side of one port: ("out" or "in", server, plane).
Side = tuple[str, int, int]


def lend(
    wiring: SwitchWiring, lost: NDArray[np.bool_], banned: set[Side], demand: Demand, planes: int
) -> tuple[SwitchWiring, tuple[str, ...]]:
    """Return the wiring with broken ring circuits replaced where possible, and what was done.

    Parameters
    ----------
    lost
        Circuits that are gone.
    banned
        Port sides that no longer work.
    demand
        Whose model-parallel bytes say which circuits are missed least.
    planes
        Ports of a server.
    """
    left, done = wiring.without(lost), list[str]()
    for k in np.flatnonzero(lost).tolist():
        a, b = int(wiring.source[k]), int(wiring.destination[k])
        if not wiring.for_rings[k]:
            done.append(
                f"The model-parallel circuit {a} → {b} is lost; its traffic takes other routes."
            )
            continue
        held = {
            plane: _held(left, a, b, plane)
            for plane in range(planes)
            if ("out", a, plane) not in banned and ("in", b, plane) not in banned
        }
        # Of circuits that are not of rings those with the fewest bytes; free ports come first.
        options = [
            (float(demand.model_parallel[left.ends_of(torn)].sum()) if torn else -1.0, plane)
            for plane, torn in held.items()
            if not left.for_rings[torn].any()
        ]
        if not options:
            done.append(f"No port can be lent to the ring circuit {a} → {b}.")
            continue
        _, plane = min(options)
        torn = held[plane]
        what = " and ".join(f"{x} → {y}" for x, y in zip(*left.ends_of(torn), strict=True))
        done.append(
            f"The ring circuit {a} → {b} is laid again through port {plane}"
            + (f", lent by the model-parallel {what}." if torn else ", which was free.")
        )
        left = left.without(np.isin(np.arange(len(left)), torn)).with_ring(a, b, plane)
    return left, tuple(done)


def _held(wiring: SwitchWiring, a: int, b: int, plane: int) -> list[int]:
    """Return the circuits that hold the ports which a circuit a -> b on this plane needs."""
    here = wiring.plane == plane
    out, into = here & (wiring.source == a), here & (wiring.destination == b)
    return list(dict.fromkeys([*np.flatnonzero(out).tolist(), *np.flatnonzero(into).tolist()]))


def whole_rings(
    rings: Mapping[Group, tuple[int, ...]], circuits: NDArray[np.int32]
) -> tuple[dict[Group, tuple[int, ...]], tuple[str, ...]]:
    """Return the rings that still have all their circuits, and what was given up.

    All-reduce traffic is mutable, so a group drops a broken ring and sends more on its others: with
    k rings that costs k / (k - 1), where forwarding around the gap would nearly double the load of
    a circuit. A group's last ring stays, and its traffic is forwarded.
    """
    needed: Counter[Pair] = Counter()
    for members, strides in rings.items():
        for p in strides:
            needed.update(ring_pairs(members, (p,)))
    left = {members: list(strides) for members, strides in rings.items()}
    done: list[str] = []
    for (a, b), count in list(needed.items()):
        for members in left if circuits[a, b] < count else ():
            for p in list(left[members]):
                pairs = ring_pairs(members, (p,))
                if (a, b) not in pairs or circuits[a, b] >= needed[a, b]:
                    continue
                if len(left[members]) == 1:
                    done.append(
                        f"The last ring of {len(members)} servers is broken at {a} → {b}: its traffic is forwarded."
                    )
                    break
                left[members].remove(p)
                needed.subtract(pairs)
                done.append(
                    f"The ring of stride {p} of {len(members)} servers is broken at {a} → {b}: their all-reduces run on "
                    f"{named(left[members])} only."
                )
    return {members: tuple(strides) for members, strides in left.items()}, tuple(done)


__all__ = ["FAILURES", "Failure", "Repair", "at_its_port", "fail_layout", "lost_circuits", "repair"]


@dataclass(frozen=True)
class Repair:
    """A layout after a failure and its repair, and what was done, a sentence each."""

    result: LayoutResult
    done: tuple[str, ...]

    @property
    def layout(self) -> Layout:
        """The repaired layout."""
        return self.result.layout


def fail_layout(
    layout: Layout, failure: Failure, wiring: SwitchWiring, ports_per_switch: int = 1
) -> Layout:
    """Return the layout without the failed element: broken routes lead over what is left.

    A route of several paths keeps those that are whole. Of a failed server also the routes change:
    its substitute talks in its place.

    Parameters
    ----------
    wiring
        Which switch each circuit passes: that of ``LayoutResult``.
    ports_per_switch
        Ports of a server on each switch: port p lies on switch p // ports_per_switch.

    Raises
    ------
    InputError
        If there is no such element, or two talking servers are cut off from one another; names
        both.
    """
    lost = _lost(wiring, failure, layout.servers, ports_per_switch)
    left = wiring.without(lost).circuits(layout.servers)
    routes = moved_routes(layout.routes, failure) if failure.kind == "server" else layout.routes
    rerouted = _rerouted(routes, left, failure)
    if failure.kind == "server":
        rerouted = bypassed(layout.routes, failure.server, RoutedNetwork(left)) | rerouted
    return Layout(left, rerouted, f"{layout.name} without {failure}".strip())


def repair(
    result: LayoutResult, failure: Failure, demand: Demand, ports_per_switch: int = 1
) -> Repair:
    """Return the layout after the failure, repaired as far as the ports that are left allow.

    A broken ring circuit gets a circuit on another plane: on free ports if both ends have them,
    else on ports of model-parallel circuits, those with the least traffic, which are taken down.
    Where no port can be had, the all-reduces give the broken ring up and run on the others
    (``riding`` of the result, for :func:`~topox_core.topology.mutation.on_rings`). After a failed server
    the circuits are found anew for the servers that are left.

    Raises
    ------
    InputError
        As :func:`fail_layout`.
    """
    if failure.kind == "server":
        failure.check(result.layout.servers)
        again = find_without(result, failure, demand)
        return Repair(
            again,
            (
                f"Server {failure.substitute} takes over the tasks of server {failure.server}; the circuits are "
                f"found anew for the {result.layout.servers - 1} servers that are left.",
            ),
        )
    lost = _lost(result.wiring, failure, result.layout.servers, ports_per_switch)
    banned = {
        port
        for k in np.flatnonzero(lost).tolist()
        for port in (
            ("out", int(result.wiring.source[k]), int(result.wiring.plane[k])),
            ("in", int(result.wiring.destination[k]), int(result.wiring.plane[k])),
        )
    }
    if failure.kind == "switch":
        planes = range(failure.switch * ports_per_switch, (failure.switch + 1) * ports_per_switch)
        banned |= {
            (way, server, plane)
            for way in ("out", "in")
            for server in range(result.layout.servers)
            for plane in planes
        }
    elif failure.kind == "port":
        banned |= {("out", failure.server, failure.port), ("in", failure.server, failure.port)}
    name = f"{result.layout.name}, repaired after the loss of {failure}"
    wiring, done = lend(result.wiring, lost, banned, demand, result.degree)
    try:
        return _repaired(result, wiring, failure, name, done)
    except InputError:
        # What was lent may have been the last way between two servers.
        kept = (
            "No circuit is lent to the ring: that would disconnect two servers that exchange data.",
        )
        return _repaired(result, result.wiring.without(lost), failure, name, kept)


def _repaired(
    result: LayoutResult, wiring: SwitchWiring, failure: Failure, name: str, done: tuple[str, ...]
) -> Repair:
    circuits = wiring.circuits(result.layout.servers)
    layout = Layout(circuits, _rerouted(result.layout.routes, circuits, failure), name)
    rings, given_up = whole_rings(result.rings, circuits)
    riding = {members: rings.get(members, strides) for members, strides in result.riding.items()}
    return Repair(
        replace(result, layout=layout, wiring=wiring, rings=rings, riding=riding),
        (*done, *given_up),
    )


def _lost(
    wiring: SwitchWiring, failure: Failure, servers: int, ports_per_switch: int
) -> NDArray[np.bool_]:
    """Return which circuits the failure takes out."""
    failure.check(servers)
    if failure.kind == "fibre":
        return np.asarray(np.arange(len(wiring)) == _fibre(wiring, failure))
    at: NDArray[np.bool_] = (wiring.source == failure.server) | (
        wiring.destination == failure.server
    )
    if failure.kind == "server":
        return at
    planes = int(wiring.plane.max(initial=-1)) + 1
    if failure.kind == "port":
        if not 0 <= failure.port < planes:
            raise failure.error(f"there is no such port in use (0 to {planes - 1})", "port")
        return np.asarray(at & (wiring.plane == failure.port))
    switches = -(-planes // ports_per_switch)
    if not 0 <= failure.switch < switches:
        raise failure.error(f"there is no such switch in use (0 to {switches - 1})", "switch")
    return np.asarray(wiring.plane // ports_per_switch == failure.switch)


def lost_circuits(layout: Layout, failure: Failure, ports_per_switch: int = 1) -> NDArray[np.int32]:
    """Return how many circuits of each pair a failure takes out, as the layout is coloured afresh."""
    wiring = wiring_of(layout)
    lost = _lost(wiring, failure, layout.servers, ports_per_switch)
    return layout.circuits - wiring.without(lost).circuits(layout.servers)


def _fibre(wiring: SwitchWiring, failure: Failure) -> int:
    """Return which circuit a cut fibre carried; of parallel ones a ring's own: the harder case."""
    between = np.flatnonzero(
        (wiring.source == failure.source) & (wiring.destination == failure.destination)
    )
    if not len(between):
        raise failure.error("there is no such circuit")
    return int(between[np.argmax(wiring.for_rings[between])])


def at_its_port(failure: Failure, wiring: SwitchWiring) -> Failure:
    """Return the failure with the port of its source, where it is a fibre of fixed circuits."""
    if failure.kind != "fibre":
        return failure
    port = int(wiring.plane[_fibre(wiring, failure)])
    return Failure.fibre(failure.source, failure.destination, port)


def _rerouted(routes: Routes, circuits: NDArray[np.int32], failure: Failure) -> Routes:
    """Return the routes, those without a whole path replaced by one shortest path."""
    network = RoutedNetwork(circuits)
    there = [frozenset(out) for out in network.out]
    result: Routes = {}
    for pair, paths in routes.items():
        whole = tuple(path for path in paths if all(b in there[a] for a, b in pairwise(path)))
        try:
            result[pair] = whole or network.shortest_paths(*pair)
        except InputError as error:
            raise failure.error(error.problem) from None
    return result
