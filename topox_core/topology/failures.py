"""Failures of a fixed layout, and their repair: a fibre, a port, a switch, a server whose tasks another takes over.

TopoOpt (NSDI 2023, section 7): when a fibre of an all-reduce ring fails, a circuit laid for
model-parallel traffic is lent to the ring. What cannot be repaired is forwarded by servers over the
circuits that are left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from topox_core.errors import InputError, refuse_if
from topox_core.io.limits import check_one_of
from topox_core.model.execution import Layout
from topox_core.model.transfer_graph import IntArray
from topox_core.topology.finder import find_layout
from topox_core.topology.ring_circuits import LayoutResult, LayoutStep, Routes, named, ring_pairs
from topox_core.topology.routing import RoutedNetwork, SwitchWiring, wiring_of
from topox_core.topology.traffic import Demand, Group, Pair

FAILURES = ("fibre", "port", "switch", "server")
# One side of one port: ("out" or "in", server, plane).
Side = tuple[str, int, int]


@dataclass(frozen=True)
class Failure:
    """One failed element, made with ``fibre``, ``of_port``, ``of_switch`` or ``of_server``.

    Attributes
    ----------
    kind
        One of ``FAILURES``.
    source, destination
        Ends of the circuit that a cut fibre carried; one of several parallel ones.
    server, port
        A port carries one circuit out and one in; ports of a server are numbered from 0 through the
        switches. Of a fibre, the port of ``source`` that it ends at; -1 where that is not known.
    switch
        Number of the switch, from 0.
    substitute
        Server that takes over the tasks of a failed one; -1 if none is named.
    """

    kind: str
    source: int = -1
    destination: int = -1
    server: int = -1
    port: int = -1
    switch: int = -1
    substitute: int = -1

    @staticmethod
    def fibre(source: int, destination: int, port: int = -1) -> Failure:
        """Return the failure of one circuit, and of the out-port of its source where that is known."""
        return Failure("fibre", source=source, destination=destination, port=port)

    @staticmethod
    def of_port(server: int, port: int) -> Failure:
        """Return the failure of one port of one server."""
        return Failure("port", server=server, port=port)

    @staticmethod
    def of_switch(switch: int) -> Failure:
        """Return the failure of a whole switch."""
        return Failure("switch", switch=switch)

    @staticmethod
    def of_server(server: int, substitute: int = -1) -> Failure:
        """Return the failure of a server, whose tasks ``substitute`` takes over."""
        return Failure("server", server=server, substitute=substitute)

    def __str__(self) -> str:
        return {
            "fibre": f"the fibre from server {self.source} to server {self.destination}",
            "port": f"port {self.port} of server {self.server}",
            "switch": f"switch {self.switch}",
            "server": f"server {self.server}",
        }.get(self.kind, f"failure {self.kind}")

    def error(self, problem: str, field: str = "") -> InputError:
        """Return an error about this failure."""
        return InputError(problem, file="failure", item=str(self), field=field)

    def refuse_if(self, *rules: tuple[object, str, str]) -> None:
        """Refuse this failure where it breaks a rule: whether it does, the problem, and the field."""
        refuse_if(*rules, file="failure", item=str(self))

    def check(self, servers: int) -> None:
        """Refuse an unknown kind, a server that is not there, a substitute that cannot serve.

        Raises
        ------
        InputError
            Naming the field.
        """
        check_one_of(self.kind, FAILURES, file="failure", field="kind")
        other = {-1, *range(servers)} - {self.server}
        self.refuse_if(
            (
                self.kind in ("port", "server") and not 0 <= self.server < servers,
                f"there is no such server (0 to {servers - 1})",
                "server",
            ),
            (
                self.kind == "server" and self.substitute not in other,
                f"must be another server, 0 to {servers - 1} (got {self.substitute})",
                "substitute",
            ),
        )

    def sides(self, servers: int, planes: int, ports_per_switch: int) -> frozenset[Side]:
        """Return the sides of ports that no longer work; of a fibre the out-port of its source.

        Parameters
        ----------
        planes
            Ports of a server.
        ports_per_switch
            As of :func:`fail_layout`.
        """
        if self.kind == "fibre":
            return frozenset({("out", self.source, self.port)})
        first = self.switch * ports_per_switch
        at = {
            "port": ((self.server,), (self.port,)),
            "server": ((self.server,), range(planes)),
            "switch": (range(servers), range(first, first + ports_per_switch)),
        }[self.kind]
        return frozenset(product(("out", "in"), *at))

    def stand_in(self) -> int:
        """Return the server that takes over the tasks of a failed one.

        Raises
        ------
        InputError
            If none is named.
        """
        if self.substitute < 0:
            raise self.error(
                f"has tasks: name the server that takes them over (server {self.server} is gone)",
                "substitute",
            )
        return self.substitute


def lend(
    wiring: SwitchWiring,
    lost: NDArray[np.bool_],
    banned: Collection[Side],
    demand: Demand,
    planes: int,
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


@dataclass(frozen=True)
class Repair:
    """A layout after a failure and its repair, and what was done, a sentence each."""

    result: LayoutResult
    done: tuple[str, ...]


def fail_layout(
    layout: Layout, failure: Failure, wiring: SwitchWiring, ports_per_switch: int = 1
) -> Layout:
    """Return the layout without the failed element: broken routes lead over what is left.

    A route of several paths keeps those that are whole. What a failed server sends has no route: see
    :func:`repair`.

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
    lost, _ = _lost(wiring, failure, layout.servers, ports_per_switch)
    left = wiring.without(lost).circuits(layout.servers)
    rerouted = _rerouted(layout.routes, left, failure)
    return Layout(left, rerouted, f"{layout.name} without {failure}".strip())


def repair(
    result: LayoutResult, failure: Failure, demand: Demand, ports_per_switch: int = 1
) -> Repair:
    """Return the layout after the failure, repaired as far as the ports that are left allow.

    A broken ring circuit gets a circuit on another plane: on free ports if both ends have them,
    else on ports of model-parallel circuits, those with the least traffic, which are taken down.
    Where no port can be had, the all-reduces give the broken ring up and run on the others
    (``riding`` of the result, for :func:`~topox_core.topology.ring_circuits.on_rings`). After a failed server
    the circuits are found anew for the servers that are left; ``demand`` is what they send then, with
    the tasks of the failed one moved (:func:`~topox_core.topology.replanning.remaining_graph`).

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
    lost, sides = _lost(result.wiring, failure, result.layout.servers, ports_per_switch)
    gone = zip(*result.wiring.ends_of(lost), result.wiring.plane[lost].tolist(), strict=True)
    banned = {end for a, b, plane in gone for end in (("out", a, plane), ("in", b, plane))}
    name = f"{result.layout.name}, repaired after the loss of {failure}"
    wiring, done = lend(result.wiring, lost, sides | banned, demand, result.degree)
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
) -> tuple[NDArray[np.bool_], frozenset[Side]]:
    """Return which circuits the failure takes out, and which sides of ports."""
    failure.check(servers)
    failure = at_its_port(failure, wiring)
    planes = int(wiring.plane.max(initial=-1)) + 1
    for kind, number, count in (
        ("port", failure.port, planes),
        ("switch", failure.switch, -(-planes // ports_per_switch)),
    ):
        if failure.kind == kind and not 0 <= number < count:
            raise failure.error(f"there is no such {kind} in use (0 to {count - 1})", kind)
    sides = failure.sides(servers, planes, ports_per_switch)
    return on_sides(sides, wiring.source, wiring.destination, wiring.plane, wiring.plane), sides


def on_sides(
    sides: Collection[Side],
    source: IntArray,
    destination: IntArray,
    out_plane: IntArray,
    in_plane: IntArray,
) -> NDArray[np.bool_]:
    """Return which circuits begin or end at one of these sides of ports."""
    ends = (one.tolist() for one in (source, out_plane, destination, in_plane))
    at = [("out", a, p) in sides or ("in", b, q) in sides for a, p, b, q in zip(*ends, strict=True)]
    return np.array(at, np.bool_)


def lost_circuits(layout: Layout, failure: Failure, ports_per_switch: int = 1) -> NDArray[np.int32]:
    """Return how many circuits of each pair a failure takes out, as the layout is coloured afresh."""
    wiring = wiring_of(layout)
    lost, _ = _lost(wiring, failure, layout.servers, ports_per_switch)
    return layout.circuits - wiring.without(lost).circuits(layout.servers)


def at_its_port(failure: Failure, wiring: SwitchWiring) -> Failure:
    """Return the failure with the port of its source, where it is a fibre of fixed circuits.

    Of parallel circuits a ring's own is the one: the harder case.
    """
    if failure.kind != "fibre" or failure.port >= 0:
        return failure
    ends = (wiring.source == failure.source) & (wiring.destination == failure.destination)
    between = np.flatnonzero(ends)
    if not len(between):
        raise failure.error("there is no such circuit")
    port = int(wiring.plane[between[np.argmax(wiring.for_rings[between])]])
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


def find_without(result: LayoutResult, failure: Failure, demand: Demand) -> LayoutResult:
    """Return a new layout for a demand without the failed server, as published: released rings go through all servers."""
    found = find_layout(demand, result.degree)
    name = f"{found.layout.name}, without {failure}"
    step = LayoutStep(
        "repair",
        f"Without {failure}, whose tasks server {failure.substitute} takes over.",
        {"server": failure.server, "substitute": failure.substitute},
    )
    return replace(found, layout=replace(found.layout, name=name), steps=(step, *found.steps))
