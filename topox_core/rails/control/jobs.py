"""What both controllers of a rail share: the job table, the shims' calls, the circuits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from topox_core.rails.control.program import Program
from topox_core.rails.iteration import Message, Rail, RailCircuit
from topox_core.rails.ports import SIDES, PortUse

# A communication is announced; the answer names the network that carries it: the rail (0) or the
# scale-up domain (1).
COMM, CHECKIN_ACK = "COMM", "CHECKIN_ACK"
# Circuits of a group are asked for; the answer is that they are switched, or that nothing had to
# change.
CONFIG_REQ, CONFIG_ACK, NACK = "CONFIG_REQ", "CONFIG_ACK", "NACK"
_ANSWERS = "CONFIG_ACK or NACK"


class Log:
    """Counts every message and keeps the first ones, so that the log's size is bounded.

    Of announcements as many are kept as of requests, so that the many of the former do not push out
    the latter.
    """

    def __init__(self, keep: int) -> None:
        self._room = dict.fromkeys((COMM, CHECKIN_ACK, CONFIG_REQ, _ANSWERS), keep)
        self._kept: list[Message] = []
        self.counts: Counter[str] = Counter()

    def ask(self, at_ms: float, rank: int, word: str, group: str, note: str = "") -> None:
        """Note what a rank's shim says to the controller."""
        self.counts[word] += 1
        if self._room[word] > 0:
            self._room[word] -= 1
            self._kept.append(Message(at_ms, f"server {rank}", "controller", word, group, note))

    def answer(self, at_ms: float, rank: int, word: str, group: str, note: str = "") -> None:
        """Note what the controller says to a rank's shim."""
        self.counts[word] += 1
        kind = word if word == CHECKIN_ACK else _ANSWERS
        if self._room[kind] > 0:
            self._room[kind] -= 1
            self._kept.append(Message(at_ms, "controller", f"server {rank}", word, group, note))

    @property
    def sent(self) -> int:
        """Messages sent, kept or not."""
        return sum(self.counts.values())

    def messages(self) -> tuple[Message, ...]:
        """Return the messages kept, by time; at one time in the order in which they were sent."""
        return tuple(sorted(self._kept, key=lambda one: one.at_ms))


class Demand:
    """The group that each side of a server's NIC was last asked for."""

    def __init__(self) -> None:
        self._group: dict[int, int] = {}
        self.coalesced = 0

    def holds(self, group: int, sides: tuple[int, ...]) -> None:
        """Note circuits that stand without having been asked for."""
        for side in sides:
            self._group[side] = group

    def changes(self, group: int, sides: tuple[int, ...]) -> bool:
        """Note a call; return whether circuits must be asked for (another group had a side)."""
        changed = False
        for side in sides:
            if self._group.get(side) != group:
                self._group[side] = group
                changed = True
        self.coalesced += not changed
        return changed


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


NEVER = float("inf")


@dataclass
class Session:
    """A group's circuits: dark from ``setup_ms``, carrying from ``start_ms`` to ``end_ms``."""

    group: int
    setup_ms: float
    start_ms: float
    changed: bool
    end_ms: float = NEVER


@dataclass
class Entry:
    """A group in the job table: its name, its sides by rank, and its wiring."""

    name: str
    sides: dict[int, tuple[int, ...]]
    wiring: int


@dataclass
class Standing:
    """What the ports hold when an iteration begins.

    Attributes
    ----------
    groups
        Groups whose circuits are in place.
    left_ms
        When each side's last traffic ended, on the clock of this iteration: 0 or less.
    """

    groups: tuple[int, ...] = ()
    left_ms: dict[int, float] = field(default_factory=dict)


class Setup(NamedTuple):
    """What a controller runs: a program on a rail's ports, and what stands when it begins.

    ``start(node, at_ms)`` is called for each communication; without a log nothing is written down.
    """

    program: Program
    use: PortUse
    rail: Rail
    log: Log | None
    start: Callable[[int, float], None]
    standing: Standing


class Jobs(ABC):
    """The job table of one rail and the calls of its shims.

    A communication is *complete* when all its ranks have called it; then :meth:`complete` decides
    when it starts. Without a log the shims keep silent: what they would say changes no decision of
    this rail's controller.
    """

    def __init__(self, setup: Setup, *, profiled: bool) -> None:
        program, use, rail, log, start, standing = setup
        iteration = program.iteration
        self.program, self.use, self.rail, self.start = program, use, rail, start
        self.group: list[int] = iteration.group.tolist()
        self.shims = (
            [] if log is None else [Shim(rank, log, profiled) for rank in range(iteration.ranks)]
        )
        self.table = [
            Entry(group.name, _sides_by_rank(group.ranks, use.sides[g]), use.wiring[g])
            for g, group in enumerate(iteration.groups)
        ]
        self.sessions: list[Session] = []
        self.current = [-1] * (
            max(use.wiring, default=-1) + 1
        )  # session of each wiring while it is in place
        self._holder: dict[int, int] = {}  # session that last set up each side
        self.reconfigurations = 0
        self._called: dict[int, int] = {}
        for group in standing.groups:
            self.open(group, 0.0, 0.0, changed=False)
            for shim in self.shims:
                shim.holds(group, self.table[group].sides.get(shim.rank, ()))

    def called(self, at_ms: float, node: int, slot: int) -> None:
        """Take the call of a slot's rank; ranks that compute nothing for it call with the last."""
        program = self.program
        if slot >= 0:
            if self.shims:
                self._call(at_ms, node, program.slot_rank[slot])
            count = self._called[node] = self._called.get(node, 0) + 1
            if count < len(program.slots_of[node]):
                return
        if self.shims:
            for rank in program.others[node]:
                self._call(at_ms, node, rank)
        self.complete(at_ms, node)

    def _call(self, at_ms: float, node: int, rank: int) -> None:
        group = self.group[node]
        entry = self.table[group]
        if self.shims[rank].call(
            at_ms, group, entry.name, entry.sides.get(rank, ()), self.program.iteration.label[node]
        ):
            self.note_request(node, rank)

    def open(self, group: int, setup_ms: float, start_ms: float, changed: bool) -> int:
        """Set up a group's circuits, cutting what holds their ports; return the session."""
        number = len(self.sessions)
        for side in self.use.sides[group]:
            held = self._holder.get(side, -1)
            if held >= 0 and self.sessions[held].end_ms == NEVER:
                self.sessions[held].end_ms = setup_ms
                self.current[self.use.wiring[self.sessions[held].group]] = -1
            self._holder[side] = number
        self.current[self.use.wiring[group]] = number
        self.sessions.append(Session(group, setup_ms, start_ms, changed))
        if changed:
            self.reconfigurations += self.use.weight[group]
        return number

    def answer(self, rank: int, group: int, at_ms: float, changed: bool) -> None:
        """Answer a rank's shim: its circuits are switched, or nothing had to change."""
        self.shims[rank].configured(
            at_ms + (self.rail.reconfiguration_ms if changed else 0.0),
            self.table[group].name,
            changed,
        )

    def circuits(self, end_ms: float) -> tuple[RailCircuit, ...]:
        """Return all circuits until the end of the iteration, by set-up, but those gone before it."""
        ordered = sorted(
            (one for one in self.sessions if one.end_ms >= 0),
            key=lambda one: (one.setup_ms, one.group),
        )
        return tuple(
            RailCircuit(
                one.group,
                one.setup_ms,
                one.start_ms,
                min(one.end_ms, max(end_ms, one.start_ms)),
                one.changed,
            )
            for one in ordered
        )

    @abstractmethod
    def note_request(self, node: int, rank: int) -> None:
        """Note that a rank asked for circuits together with its call."""

    @abstractmethod
    def complete(self, at_ms: float, node: int) -> None:
        """Take a communication that all its ranks have called."""

    @abstractmethod
    def ended(self, at_ms: float, node: int) -> None:
        """Take the end of a communication."""

    def serve(self, at_ms: float) -> None:  # noqa: B027 (what decides at once has nothing to do here)
        """Decide what can be decided now that all that happens at this time is known."""


def _sides_by_rank(ranks: tuple[int, ...], sides: tuple[int, ...]) -> dict[int, tuple[int, ...]]:
    return (
        {rank: tuple(side for side in sides if side // SIDES == rank) for rank in ranks}
        if sides
        else {}
    )
