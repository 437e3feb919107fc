"""What both controllers of a rail share: the job table, the shims' calls, the circuits."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from topox_core.rails.control.program import Program
from topox_core.rails.iteration import Message, Rail, RailCircuit
from topox_core.rails.timing import SIDES, PortUse

# A communication is announced; the answer names the network that carries it: the rail (0) or the
# scale-up domain (1).
COMM, CHECKIN_ACK = "COMM", "CHECKIN_ACK"
# Circuits of a group are asked for; the answer is that they are switched, or that nothing had to
# change.
CONFIG_REQ, CONFIG_ACK, NACK = "CONFIG_REQ", "CONFIG_ACK", "NACK"
_ANSWERS = "CONFIG_ACK or NACK"
_ASKED = (COMM, CONFIG_REQ)  # of the controller; every other word is its answer


class Shims:
    """Speak for the ranks of a rail with its controller.

    Without a profile a call whose group differs from the traffic before it asks for circuits
    (``CONFIG_REQ``) and any other is announced (``COMM``). With one requests go ahead of the calls.

    Every message is counted and the first ones are kept: of announcements as many as of requests, so
    that the many of the former do not push out the latter.
    """

    def __init__(self, names: list[str], keep: int, profiled: bool) -> None:
        self._names, self._profiled = names, profiled
        self._room = dict.fromkeys((COMM, CHECKIN_ACK, CONFIG_REQ, _ANSWERS), keep)
        self._kept: list[Message] = []
        self.sent = 0
        # The group that each side of a server's NIC was last asked for.
        self._group: dict[int, int] = {}

    def messages(self) -> tuple[Message, ...]:
        """Return the messages kept, by time; at one time in the order in which they were sent."""
        return tuple(sorted(self._kept, key=lambda one: one.at_ms))

    def call(self, at_ms: float, rank: int, group: int, sides: tuple[int, ...], label: str) -> bool:
        """Announce a call to the controller; return whether circuits were asked for with it."""
        if sides and not self._profiled and self._changes(group, sides):
            self._note(at_ms, rank, CONFIG_REQ, group, label)
            return True
        self._note(at_ms, rank, COMM, group, label)
        self._note(at_ms, rank, CHECKIN_ACK, group, "rail" if sides else "scale-up domain")
        return False

    def holds(self, group: int, sides: tuple[int, ...]) -> None:
        """Learn that a group's circuits stand from the iteration before."""
        self._group.update(dict.fromkeys(sides, group))

    def foresee(self, at_ms: float, rank: int, group: int, sides: tuple[int, ...]) -> bool:
        """Ask for the next group's circuits, right after the traffic before it."""
        if not self._changes(group, sides):
            return False
        self._note(at_ms, rank, CONFIG_REQ, group, "ahead of the call")
        return True

    def configured(self, at_ms: float, rank: int, group: int, changed: bool) -> None:
        """Take the controller's answer to a request: its circuits are switched, or nothing had to change."""
        word, words = (CONFIG_ACK, "") if changed else (NACK, "nothing to change")
        self._note(at_ms, rank, word, group, words)

    def _changes(self, group: int, sides: tuple[int, ...]) -> bool:
        """Note a call; return whether circuits must be asked for (another group had a side)."""
        changed = any(self._group.get(side) != group for side in sides)
        self.holds(group, sides)
        return changed

    def _note(self, at_ms: float, rank: int, word: str, group: int, note: str) -> None:
        """Note what a rank says to the controller, or the controller to it."""
        self.sent += 1
        kind = word if word in self._room else _ANSWERS
        if self._room[kind] > 0:
            self._room[kind] -= 1
            ends = f"server {rank}", "controller"
            sender, receiver = ends if word in _ASKED else ends[::-1]
            self._kept.append(Message(at_ms, sender, receiver, word, self._names[group], note))


NEVER = float("inf")


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


# What a controller runs: a program on a rail's ports; what is told each communication and when it starts; what
# stands when it begins. Without shims nothing is written down.
Setup = tuple[Program, PortUse, Rail, Shims | None, Callable[[int, float], None], Standing]


class Jobs(ABC):
    """The job table of one rail and the calls of its shims.

    A communication is *complete* when all its ranks have called it; then :meth:`complete` decides
    when it starts. What shims say changes no decision of this rail's controller.
    """

    def __init__(self, setup: Setup) -> None:
        program, use, rail, self.shims, start, standing = setup
        iteration = program.iteration
        self.program, self.use, self.rail, self.start = program, use, rail, start
        self.group: list[int] = iteration.group.tolist()
        self.standing = standing
        # Of each group the sides that each of its ranks gives it.
        self.sides = [
            {rank: tuple(side for side in taken if side // SIDES == rank) for rank in group.ranks}
            for group, taken in zip(iteration.groups, use.sides, strict=True)
        ]
        self.sessions: list[RailCircuit] = []
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
            if self.shims is not None:
                self.shims.holds(group, use.sides[group])

    def called(self, at_ms: float, node: int, slot: int) -> None:
        """Take the call of a slot's rank; ranks that compute nothing for it call with the last."""
        program, ranks, last = self.program, list[int](), True
        if slot >= 0:
            ranks.append(program.slot_rank[slot])
            count = self._called[node] = self._called.get(node, 0) + 1
            last = count >= len(program.slots_of[node])
        if self.shims is not None:
            group, label = self.group[node], program.iteration.label[node]
            for rank in (*ranks, *(program.others[node] if last else ())):
                sides = self.sides[group].get(rank, ())
                if self.shims.call(at_ms, rank, group, sides, label):
                    self.asking.setdefault(node, []).append(rank)
        if last:
            self.complete(at_ms, node)

    def open(self, group: int, setup_ms: float, start_ms: float, changed: bool) -> int:
        """Set up a group's circuits, cutting what holds their ports; return the session."""
        number = len(self.sessions)
        for side in self.use.sides[group]:
            held = self._holder.get(side, -1)
            if held >= 0 and self.sessions[held].end_ms == NEVER:
                self.sessions[held] = replace(self.sessions[held], end_ms=setup_ms)
                self.current[self.use.wiring[self.sessions[held].group]] = -1
            self._holder[side] = number
        self.current[self.use.wiring[group]] = number
        self.sessions.append(RailCircuit(group, setup_ms, start_ms, NEVER, changed))
        if changed:
            self.reconfigurations += self.use.weight[group]
        return number

    def answer(self, ranks: Iterable[int], group: int, at_ms: float, changed: bool) -> None:
        """Answer the ranks that asked: their circuits are switched, or nothing had to change."""
        switched_ms = at_ms + (self.rail.reconfiguration_ms if changed else 0.0)
        if self.shims is not None:
            for rank in ranks:
                self.shims.configured(switched_ms, rank, group, changed)

    def circuits(self, end_ms: float) -> tuple[RailCircuit, ...]:
        """Return all circuits until the end of the iteration, by set-up, but those gone before it."""
        ordered = sorted(
            (one for one in self.sessions if one.end_ms >= 0),
            key=lambda one: (one.setup_ms, one.group),
        )
        return tuple(
            replace(one, end_ms=min(one.end_ms, max(end_ms, one.start_ms))) for one in ordered
        )

    @abstractmethod
    def complete(self, at_ms: float, node: int) -> None:
        """Take a communication that all its ranks have called."""

    @abstractmethod
    def ended(self, at_ms: float, node: int) -> None:
        """Take the end of a communication."""

    def serve(self, at_ms: float) -> None:  # noqa: B027 (what decides at once has nothing to do here)
        """Decide what can be decided now that all that happens at this time is known."""
