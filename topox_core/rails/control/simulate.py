"""One iteration on one rail with its control plane: profiled on demand, then provisioned."""

import heapq
from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np

from topox_core.model.transfer_graph import FloatArray
from topox_core.rails.control.jobs import NEVER, Jobs, Setup, Shims, Standing
from topox_core.rails.control.program import Program, ProgramProgress
from topox_core.rails.iteration import Rail, RailCircuit, RailIteration, RailRun
from topox_core.rails.timing import SIDES, PortUse, durations_ms, port_use
from topox_core.rails.windows import strip, windows_between


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
        super().__init__(setup)
        self._turn: dict[int, Turn] = {}
        self._stays: dict[int, list[Stay]] = {}
        first = self._profile(served, len(self.standing.groups))
        for left_ms, side in sorted((self.standing.left_ms[side], side) for side in first):
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
        rank, group = side // SIDES, turn.group
        turn.sides_left -= 1
        turn.left_of_rank[rank] -= 1
        turn.ready_ms = max(turn.ready_ms, at_ms)
        released = not turn.left_of_rank[rank]
        if (
            self.shims is not None
            and released
            and self.shims.foresee(at_ms, rank, group, self.sides[group][rank])
        ):
            turn.asking.append(rank)
        if turn.sides_left:
            return
        setup_ms = turn.ready_ms
        turn.start_ms = setup_ms + (self.rail.dark_ms if turn.changed else 0.0)
        if turn.changed:
            self.open(turn.group, setup_ms, turn.start_ms, changed=True)
        self.answer(turn.asking, group, setup_ms, turn.changed)
        for node, called_ms in turn.waiting:
            self.start(node, max(called_ms, turn.start_ms))
        turn.waiting.clear()


class Controller(Jobs):
    """Serves communications in the order in which their last rank has called them.

    One that waits keeps its ports from all that come later. It starts once none of its ports
    carries another group's traffic, after the dark time if its circuits are not in place.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        # (communication, its session), in the order of service
        self.served: list[tuple[int, int]] = []
        self._mask = _masks(self.program, self.use)
        self._busy = 0
        self._in_flight = [0] * len(self.use.sides)
        self._fresh: list[int] = []
        self._waiting: list[int] = []

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
        self.answer(self.asking.pop(node, ()), group, at_ms, changed)
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


MESSAGES = 500
_END, _CALL = 0, 1


def simulate(
    iteration: RailIteration, rail: Rail, profile: bool = True, messages: int = MESSAGES
) -> RailRun:
    """Return the iteration as it runs on the rail.

    Parameters
    ----------
    profile
        True: an iteration has been profiled, and this one begins with the circuits that the one
        before left; a provisioned rail is then asked ahead of the calls. False: the very first
        iteration, on demand, no circuit in place.
    messages
        Messages of each word to keep (the two answers to a request count as one); all are counted.

    Raises
    ------
    InputError
        If a setting of the rail is out of range, or the iteration's ranks wait for each other in a
        circle.
    """
    return Simulation(iteration, rail).run(profile=profile, messages=messages)


# One walk through the iteration: its times, and the controller that let it happen.
_Pass = tuple[ProgramProgress, Jobs]


class Simulation:
    """An iteration prepared for a rail, to be run with any switching delay.

    Raises
    ------
    InputError
        As :func:`simulate`.
    """

    def __init__(
        self, iteration: RailIteration, rail: Rail, duration_ms: FloatArray | None = None
    ) -> None:
        self.iteration, self.rail = iteration, rail
        self._duration_ms: list[float] = (
            durations_ms(iteration, rail) if duration_ms is None else duration_ms
        ).tolist()
        self._use = port_use(iteration, rail)
        self._program = Program.of(iteration)
        self._base = self._walk(self._with(0.0), Standing(), None)
        # The iteration when switching takes no time.
        self.undisturbed_ms = self._base[0].iteration_ms
        self._standing = self._left_standing()

    @property
    def switches(self) -> bool:
        """Whether circuits ever change on this rail."""
        return self.rail.optical and not self.rail.static_split

    def both_ms(self, dark_ms: float) -> tuple[float, float]:
        """Return the iteration time on demand and provisioned, with another dark time."""
        rail = self._with(dark_ms)
        profiled = self._walk(rail, self._standing, None)
        provisioned, _ = self._walk(rail, self._standing, None, profiled)
        return profiled[0].iteration_ms, provisioned.iteration_ms

    def run(self, profile: bool = True, messages: int = MESSAGES) -> RailRun:
        """Run on the rail as it is; see :func:`simulate`."""
        profiled = None
        if profile and self.switches and self.rail.provisioned:
            profiled = self._walk(self.rail, self._standing, None)
        names = [group.name for group in self.iteration.groups]
        shims = Shims(names, messages, profiled is not None)
        if self.switches:
            standing = self._standing if profile else Standing()
            progress, jobs = self._walk(self.rail, standing, shims, profiled)
        else:
            progress, jobs = self._base
        start, end = np.array(progress.start_ms), np.array(progress.end_ms)
        return RailRun(
            iteration=self.iteration,
            rail=self.rail,
            start_ms=start,
            end_ms=end,
            iteration_ms=progress.iteration_ms,
            undisturbed_ms=self.undisturbed_ms,
            reconfigurations=jobs.reconfigurations,
            circuits=self._circuits(jobs, progress.iteration_ms),
            messages=shims.messages(),
            windows=windows_between(strip(self.iteration, start, end)),
            messages_sent=shims.sent,
        )

    def at(self, dark_ms: float, provisioned: bool) -> RailRun:
        """Run with another dark time and control; no message is kept."""
        other = copy(self)
        other.rail = replace(self._with(dark_ms), provisioned=provisioned)
        return other.run(messages=0)

    def _with(self, dark_ms: float) -> Rail:
        return replace(self.rail, reconfiguration_ms=dark_ms, link_up_ms=0.0)

    def _left_standing(self) -> Standing:
        """Return what an iteration leaves to the next, which begins where it ends."""
        progress, jobs = self._base
        groups = tuple(jobs.sessions[session].group for session in jobs.current if session >= 0)
        left: dict[int, float] = {}
        for node, group in enumerate(jobs.group):
            if group >= 0:
                ended = progress.end_ms[node] - self.undisturbed_ms
                for side in self._use.sides[group]:
                    left[side] = max(left.get(side, ended), ended)
        return Standing(groups, left)

    def _circuits(self, jobs: Jobs, iteration_ms: float) -> tuple[RailCircuit, ...]:
        if self.rail.optical and self.rail.static_split:
            return tuple(
                RailCircuit(g, 0.0, 0.0, iteration_ms, False)
                for g, sides in enumerate(self._use.sides)
                if sides
            )
        return jobs.circuits(iteration_ms) if self.switches else ()

    def _walk(
        self, rail: Rail, standing: Standing, shims: Shims | None, profiled: _Pass | None = None
    ) -> _Pass:
        """Go through the iteration event by event."""
        events: list[tuple[float, int, int, int]] = []

        def call(at_ms: float, node: int, slot: int) -> None:
            heapq.heappush(events, (at_ms, _CALL, node, slot))

        def start(node: int, at_ms: float) -> None:
            heapq.heappush(events, (progress.run(node, at_ms), _END, node, -1))

        progress = ProgramProgress(self._program, self._duration_ms, call)
        setup = (self._program, self._use, rail, shims, start, standing)
        jobs: Jobs = Controller(setup)
        if profiled is not None:
            assert isinstance(profiled[1], Controller)
            jobs = ProvisioningController(setup, profiled[1].served)
        progress.begin()
        while events:
            now = events[0][0]
            while events and events[0][0] == now:
                _, what, node, slot = heapq.heappop(events)
                if what == _CALL:
                    jobs.called(now, node, slot)
                else:
                    jobs.ended(now, node)
                    progress.ended(node)
            jobs.serve(now)
        if progress.left:
            raise progress.unfinished()
        return progress, jobs
