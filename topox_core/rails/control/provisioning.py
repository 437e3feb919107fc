"""The controller of one rail with a profile: circuits change once the traffic before has ended.

The profile is the order of service of an iteration on demand. Each side of a NIC goes through its
*stays* in that order: a stay is the side's traffic of one group until another group takes the side.
A group's next *turn* opens when all its sides have left their stay before, and has circuits a dark
time later.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from topox_core.rails.control.jobs import NEVER, Jobs, Setup
from topox_core.rails.ports import SIDES


@dataclass
class Turn:
    """A group's communications between circuit changes; closed while ``sides_left`` are busy."""

    group: int
    changed: bool
    sides_left: int = 0
    left_of_rank: dict[int, int] = field(default_factory=dict)
    ready_ms: float = -NEVER
    start_ms: float | None = None
    waiting: list[tuple[int, float]] = field(default_factory=list)
    asking: list[int] = field(default_factory=list)


@dataclass
class Stay:
    """One side's part in a turn: communications left, and the turn that takes the side next."""

    turn: Turn
    left: int = 0
    after: Turn | None = None


class ProvisioningController(Jobs):
    """Replays the order of a profile, asking for circuits ahead of the calls."""

    def __init__(self, setup: Setup, served: list[tuple[int, int]]) -> None:
        super().__init__(setup, profiled=True)
        standing = setup.standing
        self._turn: dict[int, Turn] = {}
        self._stays: dict[int, list[Stay]] = {}
        first = self._profile(served, len(standing.groups))
        for left_ms, side in sorted((standing.left_ms[side], side) for side in first):
            self._left(left_ms, side, first[side])

    def _profile(self, served: list[tuple[int, int]], standing: int) -> dict[int, Turn]:
        """Build turns and stays from the order of service; return the first turn of each side."""
        turn_of_session: dict[int, Turn] = {}
        stay_of_side: dict[int, Stay] = {}
        first: dict[int, Turn] = {}
        for node, session in served:
            group = self.group[node]
            sides = self.use.sides[group]
            turn = turn_of_session.get(session)
            if not sides or turn is None or turn.group != group:
                turn = Turn(group, changed=bool(sides) and turn is None and session >= standing)
                if sides:
                    turn_of_session[session] = turn
            self._turn[node] = turn
            stays = self._stays[node] = []
            for side in sides:
                stay = stay_of_side.get(side)
                if stay is None or stay.turn is not turn:
                    turn.sides_left += 1
                    rank = side // SIDES
                    turn.left_of_rank[rank] = turn.left_of_rank.get(rank, 0) + 1
                    if stay is None:
                        first[side] = turn
                    else:
                        stay.after = turn
                    stay = stay_of_side[side] = Stay(turn)
                stay.left += 1
                stays.append(stay)
            if not sides:
                turn.start_ms = 0.0
        return first

    def note_request(self, node: int, rank: int) -> None:
        """Take no request with a call: those of a profiled shim go ahead of it."""
        raise AssertionError(f"server {rank} asked for circuits with the call of node {node}")

    def complete(self, at_ms: float, node: int) -> None:
        """Start a communication, or let it wait for its circuits."""
        turn = self._turn[node]
        if turn.start_ms is None:
            turn.waiting.append((node, at_ms))
        else:
            self.start(node, max(at_ms, turn.start_ms))

    def ended(self, at_ms: float, node: int) -> None:
        """Take the end of a communication; after the last of a stay the shim asks for the next."""
        sides = self.use.sides[self.group[node]]
        for side, stay in zip(sides, self._stays[node], strict=True):
            stay.left -= 1
            if not stay.left and stay.after is not None:
                self._left(at_ms, side, stay.after)

    def _left(self, at_ms: float, side: int, turn: Turn) -> None:
        rank, entry = side // SIDES, self.table[turn.group]
        turn.sides_left -= 1
        turn.left_of_rank[rank] -= 1
        turn.ready_ms = max(turn.ready_ms, at_ms)
        released = not turn.left_of_rank[rank]
        if (
            self.shims
            and released
            and self.shims[rank].foresee(at_ms, turn.group, entry.name, entry.sides[rank])
        ):
            turn.asking.append(rank)
        if turn.sides_left:
            return
        setup_ms = turn.ready_ms
        turn.start_ms = setup_ms + (self.rail.dark_ms if turn.changed else 0.0)
        if turn.changed:
            self.open(turn.group, setup_ms, turn.start_ms, changed=True)
        for rank in turn.asking:
            self.answer(rank, turn.group, setup_ms, turn.changed)
        for node, called_ms in turn.waiting:
            self.start(node, max(called_ms, turn.start_ms))
        turn.waiting.clear()
