"""One iteration on one rail with its control plane: profiled on demand, then provisioned."""

from __future__ import annotations

import heapq
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from topox_core.errors import InputError
from topox_core.model.transfer_graph import FloatArray
from topox_core.rails.control.controller import Controller
from topox_core.rails.control.jobs import Jobs, Log, Setup, Standing
from topox_core.rails.control.program import Program, ProgramProgress
from topox_core.rails.control.provisioning import ProvisioningController
from topox_core.rails.iteration import Rail, RailCircuit, RailIteration, RailRun
from topox_core.rails.ports import port_use
from topox_core.rails.timing import durations_ms
from topox_core.rails.windows import windows_of_run

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
        If a setting of the rail is out of range, the iteration has no node, or its ranks wait for
        each other in a circle.
    """
    return Simulation(iteration, rail).run(profile=profile, messages=messages)


@dataclass
class _Pass:
    """One walk through the iteration: its times and the controller that let it happen."""

    progress: ProgramProgress
    jobs: Jobs

    @property
    def iteration_ms(self) -> float:
        return max(self.progress.end_ms, default=0.0)


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
        if not len(iteration):
            raise InputError("has no node", file=iteration.name)
        self.iteration, self.rail = iteration, rail
        self._duration_ms: list[float] = (
            durations_ms(iteration, rail) if duration_ms is None else duration_ms
        ).tolist()
        self._use = port_use(iteration, rail)
        self._program = Program.of(iteration)
        self._base = self._walk(self._with(0.0), Standing(), None)
        # The iteration when switching takes no time.
        self.undisturbed_ms = self._base.iteration_ms
        self._standing = self._left_standing()

    @property
    def switches(self) -> bool:
        """Whether circuits ever change on this rail."""
        return self.rail.optical and not self.rail.static_split

    def on_demand_ms(self, dark_ms: float) -> float:
        """Return the iteration time on demand, with this dark time instead of the rail's."""
        return self._on_demand(self._with(dark_ms), None).iteration_ms

    def both_ms(self, dark_ms: float) -> tuple[float, float]:
        """Return the iteration time on demand and provisioned, with another dark time."""
        rail = self._with(dark_ms)
        profiled = self._on_demand(rail, None)
        return profiled.iteration_ms, self._provisioned(rail, profiled, None).iteration_ms

    def run(self, profile: bool = True, messages: int = MESSAGES) -> RailRun:
        """Run on the rail as it is; see :func:`simulate`."""
        log = Log(messages)
        if not self.switches:
            walked, log = self._base, Log(0)
        elif not profile:
            walked = self._walk(self.rail, Standing(), log)
        elif self.rail.provisioned:
            walked = self._provisioned(self.rail, self._on_demand(self.rail, None), log)
        else:
            walked = self._on_demand(self.rail, log)
        start, end = np.array(walked.progress.start_ms), np.array(walked.progress.end_ms)
        return RailRun(
            iteration=self.iteration,
            rail=self.rail,
            start_ms=start,
            end_ms=end,
            iteration_ms=walked.iteration_ms,
            undisturbed_ms=self.undisturbed_ms,
            reconfigurations=walked.jobs.reconfigurations,
            circuits=self._circuits(walked),
            messages=log.messages(),
            windows=windows_of_run(self.iteration, start, end),
            messages_sent=log.sent,
        )

    def at(self, dark_ms: float, provisioned: bool) -> RailRun:
        """Run with another dark time and control; no message is kept."""
        other = copy(self)
        other.rail = replace(self._with(dark_ms), provisioned=provisioned)
        return other.run(messages=0)

    def _with(self, dark_ms: float) -> Rail:
        return replace(self.rail, reconfiguration_ms=dark_ms, link_up_ms=0.0)

    def _on_demand(self, rail: Rail, log: Log | None) -> _Pass:
        return self._walk(rail, self._standing, log)

    def _provisioned(self, rail: Rail, profiled: _Pass, log: Log | None) -> _Pass:
        return self._walk(rail, self._standing, log, profiled)

    def _left_standing(self) -> Standing:
        """Return what an iteration leaves to the next, which begins where it ends."""
        jobs, progress = self._base.jobs, self._base.progress
        groups = tuple(jobs.sessions[session].group for session in jobs.current if session >= 0)
        left: dict[int, float] = {}
        for node, group in enumerate(jobs.group):
            if group >= 0:
                ended = progress.end_ms[node] - self.undisturbed_ms
                for side in self._use.sides[group]:
                    left[side] = max(left.get(side, ended), ended)
        return Standing(groups, left)

    def _circuits(self, walked: _Pass) -> tuple[RailCircuit, ...]:
        if self.rail.optical and self.rail.static_split:
            return tuple(
                RailCircuit(g, 0.0, 0.0, walked.iteration_ms, False)
                for g, sides in enumerate(self._use.sides)
                if sides
            )
        return walked.jobs.circuits(walked.iteration_ms) if self.switches else ()

    def _walk(
        self, rail: Rail, standing: Standing, log: Log | None, profiled: _Pass | None = None
    ) -> _Pass:
        """Go through the iteration event by event."""
        events: list[tuple[float, int, int, int]] = []

        def call(at_ms: float, node: int, slot: int) -> None:
            heapq.heappush(events, (at_ms, _CALL, node, slot))

        def start(node: int, at_ms: float) -> None:
            heapq.heappush(events, (progress.run(node, at_ms), _END, node, -1))

        progress = ProgramProgress(self._program, self._duration_ms, call)
        setup = Setup(self._program, self._use, rail, log, start, standing)
        jobs: Jobs
        if profiled is None:
            jobs = Controller(setup)
        else:
            assert isinstance(profiled.jobs, Controller)
            jobs = ProvisioningController(setup, profiled.jobs.served)
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
        return _Pass(progress, jobs)
