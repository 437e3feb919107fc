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
_ASKED = (COMM, CONFIG_REQ)  # of the controller; every other word is its answer


class Log:
    """Counts every message and keeps the first ones, so that the log's size is bounded.

    Of announcements as many are kept as of requests, so that the many of the former do not push out
    the latter.
    """

    def __init__(self, keep: int) -> None:
        self._room = dict.fromkeys((COMM, CHECKIN_ACK, CONFIG_REQ, _ANSWERS), keep)
        self._kept: list[Message] = []
        self.counts: Counter[str] = Counter()

    def note(self, at_ms: float, rank: int, word: str, group: str, note: str = "") -> None:
        """Note what a rank's shim says to the controller, or the controller to it."""
        self.counts[word] += 1
        kind = word if word in self._room else _ANSWERS
        if self._room[kind] > 0:
            self._room[kind] -= 1
            ends = f"server {rank}", "controller"
            sender, receiver = ends if word in _ASKED else ends[::-1]
            self._kept.append(Message(at_ms, sender, receiver, word, group, note))

    @property
    def sent(self) -> int:
        """Messages sent, kept or not."""
        return sum(self.counts.values())

    def messages(self) -> tuple[Message, ...]:
        """Return the messages kept, by time; at one time in the order in which they were sent."""
        return tuple(sorted(self._kept, key=lambda one: one.at_ms))


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
        # The group that each side of the server's NIC was last asked for.
        self._group: dict[int, int] = {}

    def call(self, at_ms: float, group: int, name: str, sides: tuple[int, ...], label: str) -> bool:
        """Announce a call to the controller; return whether circuits were asked for with it."""
        if sides and not self.profiled and self._changes(group, sides):
            self._log.note(at_ms, self.rank, CONFIG_REQ, name, label)
            return True
        self._log.note(at_ms, self.rank, COMM, name, label)
        network = "rail" if sides else "scale-up domain"
        self._log.note(at_ms, self.rank, CHECKIN_ACK, name, network)
        return False

    def holds(self, group: int, sides: tuple[int, ...]) -> None:
        """Learn that a group's circuits stand from the iteration before."""
        self._group.update(dict.fromkeys(sides, group))

    def foresee(self, at_ms: float, group: int, name: str, sides: tuple[int, ...]) -> bool:
        """Ask for the next group's circuits, right after the traffic before it."""
        if not self._changes(group, sides):
            return False
        self._log.note(at_ms, self.rank, CONFIG_REQ, name, "ahead of the call")
        return True

    def _changes(self, group: int, sides: tuple[int, ...]) -> bool:
        """Note a call; return whether circuits must be asked for (another group had a side)."""
        changed = any(self._group.get(side) != group for side in sides)
        self.holds(group, sides)
        return changed

    def configured(self, at_ms: float, name: str, changed: bool) -> None:
        """Take the controller's answer to a request: its circuits are switched, or nothing had to change."""
        word, words = (CONFIG_ACK, "") if changed else (NACK, "nothing to change")
        self._log.note(at_ms, self.rank, word, name, words)


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
        self.name = [group.name for group in iteration.groups]
        # Of each group the sides that each of its ranks gives it.
        self.sides = [
            {rank: tuple(side for side in taken if side // SIDES == rank) for rank in group.ranks}
            for group, taken in zip(iteration.groups, use.sides, strict=True)
        ]
        self.sessions: list[Session] = []
        self.current = [-1] * (
            max(use.wiring, default=-1) + 1
        )  # session of each wiring while it is in place
        self._holder: dict[int, int] = {}  # session that last set up each side
        self.reconfigurations = 0
        self._called: dict[int, int] = {}
        # Of each communication the ranks that asked for circuits together with their call.
        self.asking: dict[int, list[int]] = {}
        for group in standing.groups:
            self.open(group, 0.0, 0.0, changed=False)
            for shim in self.shims:
                shim.holds(group, self.sides[group].get(shim.rank, ()))

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
        sides, label = self.sides[group].get(rank, ()), self.program.iteration.label[node]
        if self.shims[rank].call(at_ms, group, self.name[group], sides, label):
            self.asking.setdefault(node, []).append(rank)

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
            at_ms + (self.rail.reconfiguration_ms if changed else 0.0), self.name[group], changed
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
    def complete(self, at_ms: float, node: int) -> None:
        """Take a communication that all its ranks have called."""

    @abstractmethod
    def ended(self, at_ms: float, node: int) -> None:
        """Take the end of a communication."""

    def serve(self, at_ms: float) -> None:  # noqa: B027 (what decides at once has nothing to do here)
        """Decide what can be decided now that all that happens at this time is known."""
