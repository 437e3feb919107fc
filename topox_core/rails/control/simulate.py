"""One iteration on one rail with its control plane: profiled on demand, then provisioned."""

from copy import copy
from dataclasses import replace

import numpy as np

from topox_core.model.transfer_graph import FloatArray
from topox_core.rails.control.jobs import Ahead, OnDemand, Standing
from topox_core.rails.control.messages import Log
from topox_core.rails.control.program import Program
from topox_core.rails.iteration import Rail, RailCircuit, RailIteration, RailRun
from topox_core.rails.timing import durations_ms, port_use
from topox_core.rails.windows import strip, windows_between

MESSAGES = 500


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
        lasts_ms = durations_ms(iteration, rail) if duration_ms is None else duration_ms
        self._program = Program.of(iteration, port_use(iteration, rail), lasts_ms)
        self._base = OnDemand(self._program, self._with(0.0), Standing())
        # The iteration when switching takes no time.
        self.undisturbed_ms = _last(self._base)
        self._standing = self._left_standing()

    def both_ms(self, dark_ms: float) -> tuple[float, float]:
        """Return the iteration time on demand and provisioned, with another dark time."""
        profiled = OnDemand(self._program, self._with(dark_ms), self._standing)
        return _last(profiled), _last(Ahead(profiled))

    def run(self, profile: bool = True, messages: int = MESSAGES) -> RailRun:
        """Run on the rail as it is; see :func:`simulate`."""
        run: OnDemand | Ahead = self._base
        log, circuits = None, self._never_changed()
        if self.rail.switches:
            run = OnDemand(self._program, self.rail, self._standing if profile else Standing())
            if profile and self.rail.provisioned:
                run = Ahead(run)
            log, circuits = Log(run, messages), run.table.circuits(_last(run))
        start, end = np.array(run.start_ms), np.array(run.end_ms)
        return RailRun(
            iteration=self.iteration,
            rail=self.rail,
            start_ms=start,
            end_ms=end,
            iteration_ms=_last(run),
            undisturbed_ms=self.undisturbed_ms,
            reconfigurations=run.table.reconfigurations,
            circuits=circuits,
            messages=log.messages if log else (),
            windows=windows_between(strip(self.iteration, start, end)),
            messages_sent=log.sent if log else 0,
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
        table, use = self._base.table, self._program.use
        groups = tuple(table.sessions[session].group for session in table.current if session >= 0)
        left: dict[int, float] = {}
        for node, *_ in self._base.served:
            ended = self._base.end_ms[node] - self.undisturbed_ms
            for side in use.sides[self._program.group[node]]:
                left[side] = max(left.get(side, ended), ended)
        return Standing(groups, left)

    def _never_changed(self) -> tuple[RailCircuit, ...]:
        """Return the circuits of a static split; an electrical rail has none."""
        if not self.rail.optical:
            return ()
        return tuple(
            RailCircuit(g, 0.0, 0.0, self.undisturbed_ms, False)
            for g, sides in enumerate(self._program.use.sides)
            if sides
        )


def _last(run: OnDemand | Ahead) -> float:
    return max(run.end_ms, default=0.0)
