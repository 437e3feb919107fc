"""Windows narrowed by propagation, and the lower bounds that follow where nothing is left of them.

With heads and tails that is what every exact engine does first: ``engines/best_known.py``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from topox_core.model.arrays.csr import grouped, pointer_of
from topox_core.runs.run import AfterSeconds, Stop, any_of, never
from topox_core.schedule.bounds.windows import Windows, windows
from topox_core.schedule.kernels.propagation import (
    Constraints,
    Room,
    propagate,
    shave,
)
from topox_core.schedule.kernels.tasks import Precedence
from topox_core.schedule.problem import Int, Problem

# Single starts of larger problems are not tried: a pass would take longer than it saves.
SHAVED_TASKS = 4000
# Of more tasks the next length takes many times as long as the last.
SMALL_TASKS = 500
MAX_MOMENTS = 20_000
# Energetic reasoning: for resources with up to so many tasks, in windows and in trials of starts.
ENERGY_TASKS, TRIAL_ENERGY_TASKS = 1000, 150
PASSES = 3


@dataclass(frozen=True)
class Propagator:
    """The rules of one problem laid out for the kernels; transfers that may share a circuit are left out.

    Leaving a demand out only weakens what is found.
    """

    problem: Problem

    @cached_property
    def _constraints(self) -> Constraints:
        """The constraints on a clock of single ticks."""
        p = self.problem
        task, resource, demand = p.uses
        lone = (p.pair < 0) | (np.bincount(p.pair[p.pair >= 0], minlength=1)[p.pair] == 1)
        counts = lone[task] & (p.duration[task] > 0)
        task, resource, demand = task[counts], resource[counts], demand[counts]
        rows, ports = len(p.rooms), len(p.capacity)
        task_ptr, entry = grouped(resource, np.arange(len(task)), rows)
        unit = np.where(np.arange(rows) < ports, p.ticks_per_slot, 1)
        return Constraints(
            Precedence(p.order, p.pred_ptr, p.pred_idx, p.duration, np.ones_like(p.duration)),
            task_ptr,
            task[entry].astype(np.int32),
            demand[entry],
            p.rooms,
            unit.astype(np.int64),
            pointer_of(task, p.n),
            resource,
        )

    def worthwhile(self, horizon: int) -> bool:
        """Whether there are tasks, and few enough moments."""
        return self.problem.n > 0 and horizon <= MAX_MOMENTS

    @property
    def shaves(self) -> bool:
        """Whether the problem is small enough for trials of single starts."""
        return self.problem.n <= SHAVED_TASKS

    def propagated(
        self, given: Windows, horizon: int, trials: bool = False, stop: Stop = never
    ) -> Windows | None:
        """Return narrower windows, or None: no schedule lies within those given.

        ``trials`` of single starts narrow them further.
        """
        constraints = self._constraints
        constraints = constraints._replace(edges=constraints.edges._replace(clock=given.clock))
        earliest, latest = given.earliest.copy(), given.latest.copy()
        if (earliest > latest).any():
            return None
        profile, dirty = (
            np.zeros(horizon + 2, np.int64),
            np.ones(len(constraints.capacity), np.bool_),
        )
        room = Room(profile, dirty, ENERGY_TASKS)
        if not propagate(earliest, latest, constraints, room):
            return None
        trying = room._replace(energy_tasks=TRIAL_ENERGY_TASKS)
        for _ in range(PASSES if trials else 0):
            shrank = False
            # Narrow windows first: fixing one of those settles most.
            for j in np.argsort(latest - earliest, kind="stable").tolist():
                if stop():
                    return Windows(earliest, latest, given.clock)
                change = shave(j, earliest, latest, constraints, trying)
                if change < 0:
                    return None
                shrank = shrank or change > 0
            dirty[:] = True
            if not propagate(earliest, latest, constraints, room):
                return None
            if not shrank:
                break
        return Windows(earliest, latest, given.clock)


def raised_bound(
    propagator: Propagator,
    bound: int,
    shortest: Callable[[], int],
    step: int,
    seconds: float,
    stop: Stop,
    on_bound: Callable[[int], None] | None = None,
    known: tuple[Int, Int] | None = None,
) -> int:
    """Return a lower bound on the makespan, raised in steps as long as propagation refutes the next length.

    Parameters
    ----------
    bound
        A valid lower bound in ticks.
    shortest
        Says the makespan of the best schedule known by now, in ticks.
    step
        Ticks between makespans that can occur; ``bound`` is a multiple. Lengths are refuted in
        strides that double and, once one is not refuted, halve. With many tasks and energy the next
        length takes many times as long as the last: there strides grow by a step.
    seconds
        How long to try.
    known
        Valid heads and tails, better than the critical path's: the windows begin with them.
    """
    late = any_of(stop, AfterSeconds(seconds))

    small = propagator.problem.n <= SMALL_TASKS
    for trials in (False, True) if propagator.shaves else (False,):
        dear = trials and not small
        open_, jump = shortest(), 2 * step if dear else step
        while bound < open_ and not late():
            length = min(bound + jump, open_) - step
            given = windows(propagator.problem, length, known)

            def pointless(length: int = length) -> bool:
                return late() or length >= shortest()

            if propagator.propagated(given, length, trials, pointless) is None:
                bound, jump = length + step, jump + step if dear else 2 * jump
                if on_bound is not None:
                    on_bound(bound)
            else:
                open_, jump = length, max(step, (length - bound) // 2 // step * step)
    return bound
