"""Heads and tails of tasks that count what their ancestors and successors need of devices and ports, set-ups included."""

import numpy as np

from topox_core.model.arrays.csr import pointer_of
from topox_core.schedule.bounds.best_bound import Bound, load_bounds
from topox_core.schedule.kernels.ancestors import Uses, ancestor_heads
from topox_core.schedule.kernels.tasks import Precedence
from topox_core.schedule.problem import Int, Problem

# Ancestors counted for every task of a problem with set-ups, and up to how many tasks.
NEAR, NEAR_TASKS = 1_000, 2_000


def uses_of(problem: Problem) -> Uses:
    """Return the uses; transfers that may share a circuit are left out, which only weakens what follows."""
    p = problem
    task, resource, amount = p.uses
    lone = (p.pair[task] < 0) & (p.duration[task] > 0)
    task, resource = task[lone], resource[lone]
    work = p.duration[task] * amount[lone]
    pair = np.full(len(task), -1, np.int32)
    pairs = 0
    if p.network is not None:
        # The row of all switches together holds no ports of its own.
        holds_ports = np.append(p.server_ports, np.zeros(p.devices, np.bool_))
        on_port = np.flatnonzero(holds_ports[resource])
        carried = task[on_port]
        code = (
            p.network.source[carried].astype(np.int64) * p.network.servers
            + p.network.destination[carried]
        )
        unique, number = np.unique(code, return_inverse=True)
        pair[on_port], pairs = number.astype(np.int32), len(unique)
    return Uses(pointer_of(task, p.n), resource, work, pair, pairs, p.rooms)


def ancestor_heads_and_tails(
    problem: Problem,
    clock: Int,
    near: int,
    dark_ticks: int = 0,
    known: tuple[Int, Int] | None = None,
) -> tuple[Int, Int]:
    """Return (heads, tails) in ticks, each at least the critical path's, dark times included.

    A task cannot start before every resource has done the work of its ancestors: for each resource
    and thresholds H and Q, H + work / capacity + Q, where H is the least head and Q the shortest
    way to the task of the ancestors counted.

    Parameters
    ----------
    clock
        Ticks that each task's start is a multiple of.
    near
        How many of a task's ancestors count, the nearest first; all of them are much work for
        thousands of tasks.
    dark_ticks
        What a port is dark for before each circuit but its first; c ports that serve P pairs of
        what is counted change at least P - c times in between.
    known
        Valid heads and tails to raise.
    """
    p, uses, near = problem, uses_of(problem), min(near, problem.n)
    head, tail = (np.zeros(p.n, np.int64), np.zeros(p.n, np.int64)) if known is None else known
    head, tail = head.copy(), tail.copy()
    ahead = Precedence(p.order, p.pred_ptr, p.pred_idx, p.duration, clock)
    # Backwards the tail plus the duration of a task is what its head is forwards, on no clock.
    behind = Precedence(
        p.order[::-1].copy(), p.succ_ptr, p.succ_idx, p.duration, np.ones_like(p.duration)
    )
    ancestor_heads(head, ahead, uses, near, dark_ticks)
    ancestor_heads(tail, behind, uses, near, dark_ticks)
    return head, tail


def near_of(problem: Problem, otherwise: int) -> int:
    """Return how many ancestors count where set-ups do: more of them, unless there are many tasks."""
    return NEAR if problem.n <= NEAR_TASKS else otherwise


def ancestor_bound(
    problem: Problem, head: Int, tail: Int, beat: int, dark_slots: int = 0
) -> Bound | None:
    """Return the best bound above ``beat`` ticks that raised heads and tails give, naming what binds.

    They count set-ups where there are ``dark_slots``.
    """
    best: Bound | None = None
    through = head + problem.duration + tail
    if len(through) and int(through.max()) > beat:
        j = int(np.argmax(through))
        beat = int(through[j])
        name = problem.task_names[j] or "a lowered transfer"
        included = ", set-ups included" if dark_slots else ""
        best = Bound(beat, f"what must run before and after {name}{included}")
    return load_bounds(problem, head, tail, beat, dark_slots) or best
