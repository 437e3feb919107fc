"""Windows narrowed by propagation, and the lower bounds that follow where nothing is left of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from topox_core.model.csr import pointer_of, row_of_entry
from topox_core.schedule.bounds.windows import Windows, windows, within
from topox_core.schedule.kernels.propagation import Constraints, propagate, shave
from topox_core.schedule.kernels.tasks import Precedence
from topox_core.schedule.problem import Int, Problem

# Larger problems are left to windows from the critical path: a shaving pass would take longer than
# it saves.
MAX_TASKS = 4000
# Up to so many tasks trials use energetic reasoning too; beyond, bounds do where they have so long.
# Trials with energy: up to so many tasks, or where there is so much time a task.
THOROUGH_TASKS, THOROUGH_S_A_TASK = 500, 0.005
MAX_MOMENTS = 20_000
Refuter = Callable[[Windows, int], Windows | None]
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
        owner = row_of_entry(p.demand_ptr)
        lone = (p.pair < 0) | (np.bincount(p.pair[p.pair >= 0], minlength=1)[p.pair] == 1)
        counts = lone[owner] & (p.duration[owner] > 0)
        held = np.flatnonzero((p.device >= 0) & (p.duration > 0))
        ports = len(p.capacity)
        task = np.concatenate((owner[counts], held))
        resource = np.concatenate((p.demand_resource[counts], p.device[held] + ports))
        demand = np.concatenate((p.demand_amount[counts], np.ones(len(held)))).astype(np.int64)
        by_resource = np.lexsort((task, resource))
        unit = np.where(np.arange(ports + p.devices) < ports, p.ticks_per_slot, 1)
        return Constraints(
            Precedence(p.order, p.pred_ptr, p.pred_idx, p.duration, np.ones_like(p.duration)),
            pointer_of(resource, ports + p.devices),
            task[by_resource].astype(np.int32),
            demand[by_resource],
            np.concatenate((p.capacity, np.ones(p.devices))).astype(np.int64),
            unit.astype(np.int64),
            pointer_of(task, p.n),
            resource[np.lexsort((resource, task))].astype(np.int32),
        )

    def worthwhile(self, horizon: int) -> bool:
        """Whether the problem is small enough."""
        return 0 < self.problem.n <= MAX_TASKS and horizon <= MAX_MOMENTS

    def thorough_within(self, seconds: float) -> bool:
        """Whether trials of single starts with energy come to an end in so many seconds."""
        return self.problem.n <= THOROUGH_TASKS or seconds >= THOROUGH_S_A_TASK * self.problem.n

    def propagated(self, given: Windows, horizon: int) -> Windows | None:
        """Return narrower windows, or None: no schedule lies within those given."""
        return self._run(given, horizon, 0, False, lambda: False)

    def shaved(
        self, given: Windows, horizon: int, thorough: bool, stop: Callable[[], bool]
    ) -> Windows | None:
        """Return windows narrowed by trying single starts as well, or None: no schedule lies within those given.

        ``thorough`` trials use energetic reasoning too: some twenty times slower, and stronger by a
        few per cent: for small problems, or where there is time.
        """
        return self._run(given, horizon, PASSES, thorough, stop)

    def _run(
        self, given: Windows, horizon: int, passes: int, thorough: bool, stop: Callable[[], bool]
    ) -> Windows | None:
        constraints = self._constraints
        constraints = constraints._replace(edges=constraints.edges._replace(clock=given.clock))
        earliest, latest = given.earliest.copy(), given.latest.copy()
        if (earliest > latest).any():
            return None
        profile = np.zeros(horizon + 2, np.int64)
        dirty = np.ones(len(constraints.capacity), np.bool_)
        if not propagate(earliest, latest, constraints, profile, dirty, True):
            return None
        for _ in range(passes):
            shrank = False
            # Narrow windows first: fixing one of those settles most.
            for j in np.argsort(latest - earliest, kind="stable").tolist():
                if stop():
                    return Windows(earliest, latest, given.clock)
                change = shave(j, earliest, latest, constraints, profile, dirty, thorough)
                if change < 0:
                    return None
                shrank = shrank or change > 0
            dirty[:] = True
            if not propagate(earliest, latest, constraints, profile, dirty, True):
                return None
            if not shrank:
                break
        return Windows(earliest, latest, given.clock)


def raised_bound(
    propagator: Propagator,
    bound: int,
    horizon: int,
    step: int,
    seconds: float,
    stop: Callable[[], bool],
    on_bound: Callable[[int], None] | None = None,
    known: tuple[Int, Int] | None = None,
) -> int:
    """Return a lower bound on the makespan, raised in steps as long as propagation refutes the next length.

    Parameters
    ----------
    bound, horizon
        A valid lower bound and the makespan of a known schedule, in ticks.
    step
        Ticks between makespans that can occur; ``bound`` is a multiple. Lengths are refuted in
        strides that double and, once one is not refuted, halve. With many tasks and energy the next
        length takes many times as long as the last: there strides grow by a step.
    seconds
        How long to try.
    known
        Valid heads and tails, better than the critical path's: the windows begin with them.
    """
    deadline = time.monotonic() + seconds

    def late() -> bool:
        return time.monotonic() >= deadline or stop()

    def shaved(thorough: bool) -> Refuter:
        return lambda given, length: propagator.shaved(given, length, thorough, late)

    thorough = propagator.thorough_within(seconds)
    slow = thorough and propagator.problem.n > THOROUGH_TASKS  # quick trials find nothing there
    refuters: list[Refuter] = [propagator.propagated]
    refuters += [] if slow else [shaved(False)]
    refuters += [shaved(True)] if thorough else []
    for refuted in refuters:
        dear = slow and refuted is refuters[-1]
        open_, jump = horizon, 2 * step if dear else step
        while bound < open_ and not late():
            length = min(bound + jump, open_) - step
            given = windows(propagator.problem, length)
            if known is not None:
                given = within(given, propagator.problem, *known, length)
            if refuted(given, length) is None:
                bound, jump = length + step, jump + step if dear else 2 * jump
                if on_bound is not None:
                    on_bound(bound)
            else:
                open_, jump = length, max(step, (length - bound) // 2 // step * step)
    return bound
