"""What can fail: a fibre, a port, a switch, a server, whose traffic and routes move to the one that takes over its tasks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd

import numpy as np

from topox_core.errors import InputError
from topox_core.io.ranges import check_one_of
from topox_core.topology.finder import find_layout
from topox_core.topology.result import LayoutResult, LayoutStep
from topox_core.topology.ring_circuits import Routes
from topox_core.topology.routing import RoutedNetwork
from topox_core.topology.traffic import Demand, Group

FAILURES = ("fibre", "port", "switch", "server")


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

    def check(self, servers: int) -> None:
        """Refuse an unknown kind, a server that is not there, a substitute that cannot serve.

        Raises
        ------
        InputError
            Naming the field.
        """
        check_one_of(self.kind, FAILURES, file="failure", field="kind")
        if self.kind in ("port", "server") and not 0 <= self.server < servers:
            raise self.error(f"there is no such server (0 to {servers - 1})", "server")
        if (
            self.kind == "server"
            and self.substitute != -1
            and (not 0 <= self.substitute < servers or self.substitute == self.server)
        ):
            raise self.error(
                f"must be another server, 0 to {servers - 1} (got {self.substitute})", "substitute"
            )

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
    """Return a new layout without the failed server, as published: released rings go through all servers."""
    found = find_layout(moved_demand(demand, failure), result.degree)
    name = f"{found.layout.name}, without {failure}"
    step = LayoutStep(
        "repair",
        f"Without {failure}, whose tasks server {failure.substitute} takes over.",
        {"server": failure.server, "substitute": failure.substitute},
    )
    return replace(found, layout=replace(found.layout, name=name), steps=(step, *found.steps))
