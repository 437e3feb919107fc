"""A small independent check of start ticks: no schedule that a solver hands back is believed unread."""

import numpy as np

from topox_core.model.arrays.csr import entries_of, row_of_entry
from topox_core.model.arrays.intervals import Line
from topox_core.schedule.problem import Int, Int32, Problem


def violation(problem: Problem, start: Int) -> str | None:
    """Return the first rule of the reduced problem that the start ticks break, in words, or None.

    Works from intervals and events, not from any engine's matrix, so that an error in a model
    shows.
    """
    if start.shape != (problem.n,) or start.dtype.kind not in "iu":
        return (
            f"{problem.n} whole start ticks are needed (got {start.dtype} of shape {start.shape})"
        )
    if problem.n == 0:
        return None
    names = problem.task_names
    if start.min() < 0:
        return f"task {names[int(start.argmin())]} starts before 0"
    off = np.flatnonzero(problem.on_grid & (start % problem.ticks_per_slot != 0))
    if len(off):
        return f"transfer {names[int(off[0])]} does not start on a slot boundary"
    end = start + problem.duration
    owner = row_of_entry(problem.pred_ptr)
    early = np.flatnonzero(start[owner] < end[problem.pred_idx])
    if len(early):
        return f"task {names[int(owner[early[0]])]} starts before {names[int(problem.pred_idx[early[0]])]} ends"
    return _device_violation(problem, start, end) or _resource_violation(problem, start)


def _device_violation(problem: Problem, start: Int, end: Int) -> str | None:
    held = np.flatnonzero((problem.device >= 0) & (problem.duration > 0))
    held = held[np.lexsort((start[held], problem.device[held]))]
    before, after = held[:-1], held[1:]
    clash = np.flatnonzero(
        (problem.device[before] == problem.device[after]) & (start[after] < end[before])
    )
    if not len(clash):
        return None
    a, b = int(before[clash[0]]), int(after[clash[0]])
    return f"tasks {problem.task_names[a]} and {problem.task_names[b]} overlap on {problem.device_names[problem.device[a]]}"


def circuit_intervals(problem: Problem, start: Int) -> tuple[Int, Int, Int]:
    """Return (task, from, until): when circuits are held; of transfers that share one, the union of their times."""
    end = start + problem.duration
    tasks = np.flatnonzero((np.diff(problem.demand_ptr) > 0) & (problem.duration > 0))
    circuit = np.where(problem.pair[tasks] >= 0, problem.pair[tasks], -1 - tasks)
    line = Line.of(circuit, start[tasks], end[tasks])
    first, tasks = np.flatnonzero(line.start > line.before), tasks[line.order]
    return tasks[first], start[tasks[first]], np.maximum.reduceat(end[tasks], first)


def _resource_violation(problem: Problem, start: Int) -> str | None:
    task, opened, closed = circuit_intervals(problem, start)
    count = np.diff(problem.demand_ptr)[task]
    entry = entries_of(problem.demand_ptr, task)
    resource = problem.demand_resource[entry].astype(np.int64)
    amount = problem.demand_amount[entry].astype(np.int64)
    over = first_overfull(
        resource, np.repeat(opened, count), np.repeat(closed, count), amount, problem.capacity
    )
    if over is None:
        return None
    which, when = over
    slot = when // problem.ticks_per_slot
    return f"more than {problem.capacity[which]} of {problem.resource_names[which]} in slot {slot}"


def first_overfull(
    which: Int, opened: Int, closed: Int, amount: Int, room: Int | Int32
) -> tuple[int, int] | None:
    """Return the first thing of which more is held than there is room for, and when; None if there is none."""
    held, when = np.concatenate((which, which)), np.concatenate((opened, closed))
    change = np.concatenate((amount, -amount))
    # Ends come before starts at one moment; each thing's changes cancel, so one running sum serves
    # all.
    order = np.lexsort((change, when, held))
    over = order[np.cumsum(change[order]) > room[held[order]]]
    return (int(held[over[0]]), int(when[over[0]])) if len(over) else None


def impossible(problem: Problem) -> str | None:
    """Return why no schedule exists: a task that needs more of a resource than there is; None if one exists."""
    owner = row_of_entry(problem.demand_ptr)
    over = np.flatnonzero(
        (problem.demand_amount > problem.capacity[problem.demand_resource])
        & (problem.duration[owner] > 0)
    )
    if not len(over):
        return None
    entry = int(over[0])
    resource = int(problem.demand_resource[entry])
    return (
        f"task {problem.task_names[int(owner[entry])]} needs {problem.demand_amount[entry]} of "
        f"{problem.resource_names[resource]}, which has {problem.capacity[resource]}"
    )
