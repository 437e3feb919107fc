"""A seeded local search: shake the order of the best schedule, generate again, improve, keep what is no worse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from topox_core.schedule.answer import Stop
from topox_core.schedule.list_scheduler import ranked
from topox_core.schedule.planner import Plan, Planner

SHAKES_IN_SLOTS = (0.3, 1.0, 3.0)
ROUNDS = 2


def local_search(planner: Planner, plan: Plan, seed: int, iterations: int, stop: Stop,
                 on_better: Callable[[Plan], None] | None = None) -> Plan:
    """Return the best plan found in ``iterations`` shakes; the same seed and count give the same plan.

    Each shake adds normal noise of a fraction of a slot up to a few slots to all start times, takes
    the result as an order and runs forward-backward improvement on it.
    """
    random = np.random.default_rng(seed)
    best = current = plan
    problem = planner.problem
    slot = problem.ticks_per_slot
    for i in range(iterations):
        if stop() or best.makespan <= planner.bound:
            break
        noise = random.normal(0.0, SHAKES_IN_SLOTS[i % len(SHAKES_IN_SLOTS)] * slot, problem.n)
        base = current.start if planner.ports is not None else current.reduced_start
        rank = ranked(np.asarray(np.round((base + noise) * 16), np.int64))
        if planner.ports is not None:
            booked = planner.ports.improved(planner.ports.serially(rank, "local search"), planner.bound, ROUNDS)
            candidate = replace(current, start=booked.start, makespan=booked.makespan, booking=booked.booking,
                                changes=booked.changes, source="local search")
            if booked.makespan < current.reduced_makespan:
                candidate = replace(candidate, reduced_start=booked.start, reduced_makespan=booked.makespan)
        else:
            start, makespan = planner.generator.improved(*planner.generator.serially(rank), planner.bound, ROUNDS)
            if makespan > current.makespan:
                continue
            candidate = planner.realised(start, makespan, "local search")
        if candidate.makespan <= current.makespan:
            current = candidate
        if candidate.cost < best.cost:
            best = candidate
            if on_better is not None:
                on_better(best)
    return best
