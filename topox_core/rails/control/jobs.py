"""A rail's controller: on demand first come first served, or after a profile in its order, circuits asked for ahead of the calls."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from topox_core.rails.control.program import Program, Progress
from topox_core.rails.iteration import Rail, RailCircuit
from topox_core.rails.timing import SIDES, PortUse

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


class JobTable:
    """The circuits of a rail's groups as they are set up, each in place until another takes one of its sides."""

    def __init__(self, use: PortUse, groups: Sequence[int]) -> None:
        self.use = use
        self.sessions: list[RailCircuit] = []
        # Of each wiring its session while it is in place, and of each side the last one on it.
        self.current = [-1] * (max(use.wiring, default=-1) + 1)
        self._holder: dict[int, int] = {}
        self.reconfigurations = 0
        for group in groups:
            self.open(group, 0.0, 0.0, changed=False)

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

    def circuits(self, end_ms: float) -> tuple[RailCircuit, ...]:
        """Return all circuits until the end of the iteration, by set-up, but those gone before it."""
        ordered = sorted(
            (one for one in self.sessions if one.end_ms >= 0),
            key=lambda one: (one.setup_ms, one.group),
        )
        return tuple(
            replace(one, end_ms=min(one.end_ms, max(end_ms, one.start_ms))) for one in ordered
        )


class Served(NamedTuple):
    """A communication that was let start: in which session (-1 without circuits), when, and whether circuits changed for it."""

    node: int
    session: int
    at_ms: float
    changed: bool


_END, _CALL = 0, 1


class OnDemand:
    """Serves communications in the order in which their last rank has called them.

    One that waits keeps its ports from all that come later. It starts once none of its ports
    carries another group's traffic, after the dark time if its circuits are not in place.
    """

    def __init__(self, program: Program, rail: Rail, standing: Standing) -> None:
        self.program, self.rail, self.standing = program, rail, standing
        self.table = JobTable(program.use, standing.groups)
        self.served: list[Served] = []
        self._mask = _masks(program)
        self._busy = 0
        self._in_flight = [0] * len(self._mask)
        self._fresh: list[int] = []
        self._waiting: list[int] = []
        self._events: list[tuple[float, int, int]] = []
        self._progress = Progress(program, [0.0] * len(program.lasts_ms), self._called)
        self.start_ms, self.end_ms = self._progress.start_ms, self._progress.end_ms
        self._run()

    def _run(self) -> None:
        """Go through the iteration event by event."""
        events = self._events
        self._progress.begin()
        while events:
            now = events[0][0]
            while events and events[0][0] == now:
                _, what, node = heapq.heappop(events)
                if what == _CALL:
                    self._fresh.append(node)
                else:
                    self._ended(node)
            self._serve(now)
        self._progress.check_ended()

    def _called(self, at_ms: float, node: int) -> None:
        heapq.heappush(self._events, (at_ms, _CALL, node))

    def _ended(self, node: int) -> None:
        """Free the ports of a communication unless another of its group still uses them."""
        group = self.program.group[node]
        self._in_flight[group] -= 1
        if not self._in_flight[group]:
            self._busy &= ~self._mask[group]
        self._progress.ended(node)

    def _serve(self, at_ms: float) -> None:
        """Start what can start, first come first served; at equal times by order of issue."""
        if self._fresh:
            turn = self.program.turn
            self._waiting += sorted(self._fresh, key=lambda node: (turn[node], node))
            self._fresh.clear()
        if not self._waiting:
            return
        kept, reserved = [], 0
        for node in self._waiting:
            group = self.program.group[node]
            mask = self._mask[group]
            if mask & reserved or (mask & self._busy and not self._in_flight[group]):
                reserved |= mask
                kept.append(node)
            else:
                self._grant(at_ms, node, group)
        self._waiting = kept

    def _grant(self, at_ms: float, node: int, group: int) -> None:
        session = self.table.current[self.program.use.wiring[group]]
        changed = bool(self._mask[group]) and session < 0 and self.rail.switches
        if changed:
            session = self.table.open(group, at_ms, at_ms + self.rail.dark_ms, changed=True)
        self._in_flight[group] += 1
        self._busy |= self._mask[group]
        self.served.append(Served(node, session, at_ms, changed))
        # Light may still be coming up for a communication granted before.
        lit_ms = max(at_ms, self.table.sessions[session].start_ms) if session >= 0 else at_ms
        heapq.heappush(self._events, (self._progress.run(node, lit_ms), _END, node))


def _masks(program: Program) -> list[int]:
    """Return each group's sides as bits; groups of different planes have ports of their own."""
    width, use = SIDES * program.iteration.ranks, program.use
    return [
        sum(1 << (side + width * plane) for side in sides)
        for sides, plane in zip(use.sides, use.plane, strict=True)
    ]


@dataclass
class Turn:
    """A group's communications, in the order of the profile, for which its ports are asked at once.

    Attributes
    ----------
    changed
        Whether its circuits have to be set up.
    before
        Of each of its sides the turn that has it before; -1 where the iteration begins with this one.
    """

    group: int
    changed: bool
    before: dict[int, int]
    nodes: list[int] = field(default_factory=list)


class Ahead:
    """Replays the order of a profile: a turn's circuits are asked for once the turns before it have ended.

    So a turn is what its communications wait for besides their calls, and lasts as long as its circuits
    are dark: every time follows from those before it.
    """

    def __init__(self, profile: OnDemand) -> None:
        self.program, self.rail, self.standing = profile.program, profile.rail, profile.standing
        self.turns = self._turns(profile.served)
        n, frees = len(self.program.frees), [*map(list, self.program.frees)]
        waiting = [*self.program.waiting, *(0 for _ in self.turns)]
        begins_ms = [0.0] * n
        for number, turn in enumerate(self.turns):
            left = (self.standing.left_ms[side] for side, one in turn.before.items() if one < 0)
            begins_ms.append(max(left, default=-NEVER))
            frees.append(turn.nodes)
            for node in turn.nodes:
                waiting[node] += 1
            for earlier in {one for one in turn.before.values() if one >= 0}:
                waiting[n + number] += len(self.turns[earlier].nodes)
                for node in self.turns[earlier].nodes:
                    frees[node].append(n + number)
        dark_ms = (self.rail.dark_ms if turn.changed else 0.0 for turn in self.turns)
        alone = replace(
            self.program,
            lasts_ms=[*self.program.lasts_ms, *dark_ms],
            compute=[True] * len(frees),
            frees=frees,
            waiting=waiting,
        )
        progress = Progress(alone, begins_ms)
        progress.begin()
        progress.check_ended()
        self.start_ms, self.end_ms = progress.start_ms[:n], progress.end_ms[:n]
        self.table = JobTable(self.program.use, self.standing.groups)
        lit = zip(progress.start_ms[n:], self.turns, progress.end_ms[n:], strict=True)
        for setup_ms, turn, start_ms in sorted(lit, key=lambda one: one[0]):
            if turn.changed:
                self.table.open(turn.group, setup_ms, start_ms, changed=True)

    def _turns(self, served: Sequence[Served]) -> list[Turn]:
        """Return the turns of a profile: what it served in one session of circuits, without a break by another group."""
        turns: list[Turn] = []
        of_session: dict[int, int] = {}
        on_side: dict[int, int] = {}
        for node, session, _, _ in served:
            group = self.program.group[node]
            sides = self.program.use.sides[group]
            if not sides:
                continue
            number = of_session.get(session, -1)
            if number < 0 or turns[number].group != group:
                changed = number < 0 and session >= len(self.standing.groups)
                number = of_session[session] = len(turns)
                turns.append(Turn(group, changed, {side: on_side.get(side, -1) for side in sides}))
                on_side.update(dict.fromkeys(sides, number))
            turns[number].nodes.append(node)
        return turns
