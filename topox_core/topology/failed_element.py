"""What can fail: a fibre, a port, a switch, a server."""

from __future__ import annotations

from dataclasses import dataclass

from topox_core.errors import InputError
from topox_core.io.ranges import check_one_of

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
