"""The controller of one rail on demand: first come, first served; no circuit in use is cut."""

from __future__ import annotations

from topox_core.rails.control.jobs import Jobs, Setup
from topox_core.rails.control.program import Program
from topox_core.rails.ports import SIDES, PortUse


class Controller(Jobs):
    """Serves communications in the order in which their last rank has called them.

    One that waits keeps its ports from all that come later. It starts once none of its ports
    carries another group's traffic, after the dark time if its circuits are not in place.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup, profiled=False)
        # (communication, its session), in the order of service
        self.served: list[tuple[int, int]] = []
        self._mask = _masks(self.program, self.use)
        self._busy = 0
        self._in_flight = [0] * len(self.use.sides)
        self._fresh: list[int] = []
        self._waiting: list[int] = []
        self._asking: dict[int, list[int]] = {}

    def note_request(self, node: int, rank: int) -> None:
        """Note that a rank asked for circuits together with its call."""
        self._asking.setdefault(node, []).append(rank)

    def complete(self, at_ms: float, node: int) -> None:
        """Put a communication into the line."""
        del at_ms  # the line is kept in the order of these calls
        self._fresh.append(node)

    def ended(self, at_ms: float, node: int) -> None:
        """Free the ports of a communication unless another of its group still uses them."""
        del at_ms
        group = self.group[node]
        self._in_flight[group] -= 1
        if not self._in_flight[group]:
            self._busy &= ~self._mask[group]

    def serve(self, at_ms: float) -> None:
        """Start what can start, first come first served; at equal times by order of issue."""
        if self._fresh:
            turn = self.program.turn
            self._waiting += sorted(self._fresh, key=lambda node: (turn[node], node))
            self._fresh.clear()
        if not self._waiting:
            return
        kept, reserved = [], 0
        for node in self._waiting:
            group = self.group[node]
            mask = self._mask[group]
            if mask & reserved or (mask & self._busy and not self._in_flight[group]):
                reserved |= mask
                kept.append(node)
            else:
                self._grant(at_ms, node, group)
        self._waiting = kept

    def _grant(self, at_ms: float, node: int, group: int) -> None:
        session = self.current[self.use.wiring[group]]
        changed = (
            bool(self._mask[group])
            and session < 0
            and self.rail.optical
            and not self.rail.static_split
        )
        if changed:
            session = self.open(group, at_ms, at_ms + self.rail.dark_ms, changed=True)
        self._in_flight[group] += 1
        self._busy |= self._mask[group]
        for rank in self._asking.pop(node, ()):
            self.answer(rank, group, at_ms, changed)
        self.served.append((node, session))
        # Light may still be coming up for a communication granted before.
        self.start(node, max(at_ms, self.sessions[session].start_ms) if session >= 0 else at_ms)


def _masks(program: Program, use: PortUse) -> list[int]:
    """Return each group's sides as bits; groups of different planes have ports of their own."""
    width = SIDES * program.iteration.ranks
    return [
        sum(1 << (side + width * plane) for side in sides)
        for sides, plane in zip(use.sides, use.plane, strict=True)
    ]
