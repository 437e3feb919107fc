"""Lower bounds that cost microseconds, and what binds in words."""

from dataclasses import dataclass

import numpy as np

from topox_core.model.arrays.loads import Load, load_bound
from topox_core.model.arrays.passes import heads, tails
from topox_core.schedule.bounds.unrounded import (
    THRESHOLDS,
    load_in_words,
    longest_path,
    path_in_words,
)
from topox_core.schedule.kernels.loads import pair_load_bound
from topox_core.schedule.problem import Int, Problem


@dataclass(frozen=True)
class Bound:
    """No schedule ends before ``ticks``; ``text`` says what binds."""

    ticks: int
    text: str


def best_bound(problem: Problem, dark_slots: int) -> Bound:
    """Return the best of the critical path and every resource's load, naming the one that binds.

    Parameters
    ----------
    problem
        The reduced problem.
    dark_slots
        Slots that a port is dark before each circuit it did not have; 0 where nothing is charged.
    """
    p = problem
    head = heads(p.order, p.pred_ptr, p.pred_idx, p.duration, p.slot_clock)
    tail = tails(p.order, p.succ_ptr, p.succ_idx, p.duration)
    best = _critical_path(problem, head, tail)
    return load_bounds(problem, head, tail, best.ticks, dark_slots) or best


def load_bounds(
    problem: Problem, head: Int, tail: Int, beat: int, dark_slots: int = 0
) -> Bound | None:
    """Return the best bound above ``beat`` ticks from the load of one device or port row; heads and tails must be valid."""
    best: Bound | None = None
    names, ports = (*problem.resource_names, *problem.device_names), len(problem.capacity)
    for r, tasks, amount in problem.held_by_row():  # of equal loads the first is named
        if not len(tasks):
            continue
        unit, capacity = 1, 1
        if r < ports:
            unit, capacity = problem.ticks_per_slot, max(1, int(problem.capacity[r]))
        work = problem.duration[tasks] // unit * amount
        load = Load(head[tasks], work, tail[tasks])
        if r < ports and problem.shares:
            pair = problem.pair[tasks]
            seen = np.zeros(int(pair.max()) + 2, np.int32)
            found = pair_load_bound(load, pair, THRESHOLDS, capacity, unit, 0, True, seen)
        else:
            found = load_bound(load, THRESHOLDS, capacity, unit)
            if dark_slots and r < ports and problem.server_ports[r]:
                found = max(found, _dark_load(problem, tasks, load, capacity, dark_slots))
        ticks, first, last = found
        if ticks > beat:
            beat = ticks
            best = Bound(beat, _between(problem, names[r], capacity, beat, first, last))
    return best


def _critical_path(problem: Problem, head: Int, tail: Int) -> Bound:
    p = problem
    if not p.n:
        return Bound(0, "nothing to do")
    # A transfer may wait for its slot: through the predecessors that end last, then down the tails.
    precedence = (p.pred_ptr, p.pred_idx, p.succ_ptr, p.succ_idx)
    path = longest_path(precedence, head, p.duration, tail)
    words = path_in_words(path, p.task_names, p.duration) or "nothing takes time"
    return Bound(int((head + p.duration + tail).max()), words)


def _between(problem: Problem, name: str, capacity: int, bound: int, first: int, tail: int) -> str:
    many = "" if capacity == 1 else f" ({capacity} at once)"
    if problem.network is None:
        return f"{name}{many}, busy from period {first} to {bound - tail}"
    ms = problem.ms
    return load_in_words(f"{name}{many}", ms(first), ms(bound - tail), ms(tail))


def _dark_load(
    problem: Problem, tasks: Int, load: Load, capacity: int, dark_slots: int
) -> tuple[int, int, int]:
    """Return the load bound of one server's ports with a dark time for every circuit they must set up."""
    network = problem.switch_network
    carried = problem.duration[tasks] > 0
    if not carried.any():
        return 0, 0, 0
    kept = tasks[carried]
    code = network.source[kept].astype(np.int64) * network.servers + network.destination[kept]
    _, pair = np.unique(code, return_inverse=True)
    whole = (0, 0, 0)
    if network.repeats and (pairs := int(pair.max()) + 1) > capacity:
        # The whole period: one change more, wherever in time (bounds.unrounded._whole_period).
        needed = int(load.work[carried].sum()) + (pairs - capacity + 1) * dark_slots
        fullest = -(-pairs // capacity) * (int(load.work[carried].min()) + dark_slots)
        whole = (max(-(-needed // capacity), fullest) * problem.ticks_per_slot, 0, 0)
    return max(
        whole,
        pair_load_bound(
            Load(load.head[carried], load.work[carried], load.tail[carried]),
            pair.astype(np.int32),
            THRESHOLDS,
            capacity,
            problem.ticks_per_slot,
            dark_slots,
            False,
            np.zeros(int(pair.max()) + 2, np.int32),
        ),
    )
