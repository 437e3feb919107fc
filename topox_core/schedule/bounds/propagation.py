"""Windows narrowed by propagation, and the lower bounds that follow where nothing is left of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topox_core.schedule.bounds.windows import Windows, topological_order, windows, within
from topox_core.schedule.kernels import propagation as kernels
from topox_core.schedule.problem import Int, Int32, Problem

# Larger problems are left to windows from the critical path: a shaving pass would take longer than
# it saves.
MAX_TASKS = 4000
THOROUGH_TASKS = 500
MAX_MOMENTS = 20_000
PASSES = 3


@dataclass(frozen=True)
class Propagator:
    """The rules of one problem laid out for the kernels; transfers that may share a circuit are left out.

    Leaving a demand out only weakens what is found.
    """

    problem: Problem

    @cached_property
    def _order(self) -> Int32:
        return np.array(topological_order(self.problem), np.int32)

    @cached_property
    def _resources(self) -> tuple[Int32, Int32, Int, Int, Int, Int32, Int32]:
        """(task_ptr, task, demand, capacity, unit, use_ptr, use_resource): ports on slots, then devices on ticks."""
        p = self.problem
        owner = np.repeat(np.arange(p.n), np.diff(p.demand_ptr))
        lone = (p.pair < 0) | (np.bincount(p.pair[p.pair >= 0], minlength=1)[p.pair] == 1)
        counts = lone[owner] & (p.duration[owner] > 0)
        held = np.flatnonzero((p.device >= 0) & (p.duration > 0))
        ports = len(p.capacity)
        task = np.concatenate((owner[counts], held))
        resource = np.concatenate((p.demand_resource[counts], p.device[held] + ports)).astype(
            np.int64
        )
        demand = np.concatenate((p.demand_amount[counts], np.ones(len(held)))).astype(np.int64)
        total = ports + p.devices
        by_resource = np.lexsort((task, resource))
        by_task = np.lexsort((resource, task))
        capacity = np.concatenate((p.capacity, np.ones(p.devices))).astype(np.int64)
        unit = np.concatenate((np.full(ports, p.ticks_per_slot), np.ones(p.devices))).astype(
            np.int64
        )
        return (
            _pointer(resource, total),
            task[by_resource].astype(np.int32),
            demand[by_resource],
            capacity,
            unit,
            _pointer(task, p.n),
            resource[by_task].astype(np.int32),
        )

    def worthwhile(self, horizon: int) -> bool:
        """Whether the problem is small enough."""
        return 0 < self.problem.n <= MAX_TASKS and horizon <= MAX_MOMENTS

    def propagated(self, given: Windows, horizon: int) -> Windows | None:
        """Return narrower windows, or None: no schedule lies within those given."""
        return self._run(given, horizon, 0, False, lambda: False)

    def shaved(
        self, given: Windows, horizon: int, thorough: bool, stop: Callable[[], bool]
    ) -> Windows | None:
        """Return windows narrowed by trying single starts as well, or None: no schedule lies within those given.

        ``thorough`` trials use energetic reasoning too: some twenty times slower, and stronger by a
        few per cent, so only small problems get them.
        """
        return self._run(
            given, horizon, PASSES, thorough and self.problem.n <= THOROUGH_TASKS, stop
        )

    def _run(
        self, given: Windows, horizon: int, passes: int, thorough: bool, stop: Callable[[], bool]
    ) -> Windows | None:
        p = self.problem
        task_ptr, task, demand, capacity, unit, use_ptr, use_resource = self._resources
        earliest, latest = given.earliest.copy(), given.latest.copy()
        if (earliest > latest).any():
            return None
        profile, dirty = np.zeros(horizon + 2, np.int64), np.ones(len(capacity), np.bool_)

        def rules(with_energy: bool) -> tuple[object, ...]:
            return (
                earliest,
                latest,
                p.duration,
                given.clock,
                self._order,
                p.pred_ptr,
                p.pred_idx,
                task_ptr,
                task,
                demand,
                capacity,
                unit,
                use_ptr,
                use_resource,
                profile,
                dirty,
                horizon,
                with_energy,
            )

        if not kernels.propagate(*rules(True)):  # type: ignore[arg-type]
            return None
        for _ in range(passes):
            shrank = False
            # Narrow windows first: fixing one of those settles most.
            for j in np.argsort(latest - earliest, kind="stable").tolist():
                if stop():
                    return Windows(earliest, latest, given.clock)
                found = kernels.shave(j, *rules(thorough))  # type: ignore[arg-type]
                if found < 0:
                    return None
                shrank = shrank or found > 0
            dirty[:] = True
            if not kernels.propagate(*rules(True)):  # type: ignore[arg-type]
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
    on_bound: Callable[[int], None],
    known: tuple[Int, Int] | None = None,
) -> int:
    """Return a lower bound on the makespan, raised in steps as long as propagation refutes the next length.

    Parameters
    ----------
    bound, horizon
        A valid lower bound and the makespan of a known schedule, in ticks.
    step
        Ticks between makespans that can occur; ``bound`` is a multiple. Lengths are refuted in
        strides that double and, once one is not refuted, halve.
    seconds
        How long to try.
    known
        Valid heads and tails, better than the critical path's: the windows begin with them.
    """
    deadline = time.monotonic() + seconds

    def late() -> bool:
        return time.monotonic() >= deadline or stop()

    refuters: tuple[Callable[[Windows, int], Windows | None], ...] = (
        propagator.propagated,
        lambda given, length: propagator.shaved(given, length, False, late),
    )
    if propagator.problem.n <= THOROUGH_TASKS:
        refuters = (*refuters, lambda given, length: propagator.shaved(given, length, True, late))
    for refuted in refuters:
        open_, jump = horizon, step
        while bound < open_ and not late():
            length = min(bound + jump, open_) - step
            given = windows(propagator.problem, length)
            if known is not None:
                given = within(given, propagator.problem, *known, length)
            if refuted(given, length) is None:
                bound, jump = length + step, 2 * jump
                on_bound(bound)
            else:
                open_, jump = length, max(step, (length - bound) // 2 // step * step)
    return bound


def _pointer(owner: NDArray[np.integer], count: int) -> Int32:
    pointer = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(owner, minlength=count), out=pointer[1:])
    return pointer
