"""The shim of one scale-up domain, which announces calls and asks for circuits."""

from __future__ import annotations

from topox_core.rails.control.demand import Demand
from topox_core.rails.control.messages import CHECKIN_ACK, COMM, CONFIG_ACK, CONFIG_REQ, NACK, Log


class Shim:
    """Speaks for one rank of the rail.

    While it has no profile, a call whose group differs from the traffic before it asks for circuits
    (``CONFIG_REQ``) and any other is announced (``COMM``). With a profile requests go ahead of the
    calls.
    """

    def __init__(self, rank: int, log: Log, profiled: bool) -> None:
        self.rank = rank
        self.profiled = profiled
        self._log = log
        self._demand = Demand()

    def call(self, at_ms: float, group: int, name: str, sides: tuple[int, ...], label: str) -> bool:
        """Announce a call to the controller; return whether circuits were asked for with it."""
        if sides and not self.profiled and self._demand.changes(group, sides):
            self._log.ask(at_ms, self.rank, CONFIG_REQ, name, label)
            return True
        self._log.ask(at_ms, self.rank, COMM, name, label)
        self._log.answer(
            at_ms, self.rank, CHECKIN_ACK, name, "rail" if sides else "scale-up domain"
        )
        return False

    def holds(self, group: int, sides: tuple[int, ...]) -> None:
        """Learn that a group's circuits stand from the iteration before."""
        self._demand.holds(group, sides)

    def foresee(self, at_ms: float, group: int, name: str, sides: tuple[int, ...]) -> bool:
        """Ask for the next group's circuits, right after the traffic before it."""
        if not self._demand.changes(group, sides):
            return False
        self._log.ask(at_ms, self.rank, CONFIG_REQ, name, "ahead of the call")
        return True

    def configured(self, at_ms: float, name: str, changed: bool) -> None:
        """Take the controller's answer to a request."""
        self._log.answer(
            at_ms,
            self.rank,
            CONFIG_ACK if changed else NACK,
            name,
            "" if changed else "nothing to change",
        )
