"""Heads and tails of tasks that count what their ancestors and successors need of devices and ports, set-ups included."""

import numpy as np

from topox_core.model.csr import grouped, pointer_of
from topox_core.schedule.bounds.best_bound import Bound, load_bounds
from topox_core.schedule.kernels.ancestors import Uses, ancestor_heads
from topox_core.schedule.kernels.lags import Sides, lag_heads
from topox_core.schedule.kernels.tasks import Precedence
from topox_core.schedule.problem import Int, Problem

ROUNDS = 4  # of cones and set-ups by turns; two or three are enough on every graph tried
MAX_STEPS = 200_000_000  # sides x (tasks and edges) of one sweep; larger ones take too long
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
    order = np.lexsort((resource, task))
    return Uses(pointer_of(task, p.n), resource[order], work[order], pair[order], pairs, p.rooms)


def sides_of(problem: Problem) -> Sides:
    """Return the transfers at the out-side and the in-side of each server, or at the server (half duplex).

    The peer is the server at the other end and the way there: twice the destination of a transfer
    that leaves, the number behind twice the source of one that arrives. A circuit the other way is
    another circuit.
    """
    network = problem.switch_network
    carried = np.flatnonzero(problem.on_grid & (problem.duration > 0)).astype(np.int32)
    source = network.source[carried].astype(np.int64)
    destination = network.destination[carried].astype(np.int64)
    ways = 0 if network.half_duplex else 1
    server = np.concatenate([(1 + ways) * source, (1 + ways) * destination + ways])
    peer = np.concatenate([2 * destination, 2 * source + 1])
    _, side = np.unique(server, return_inverse=True)
    ptr, entry = grouped(side, np.arange(len(side), dtype=np.int32), int(side.max(initial=-1)) + 1)
    task = np.concatenate([carried, carried])
    return Sides(ptr, task[entry].astype(np.int32), peer[entry].astype(np.int32))


def ancestor_heads_and_tails(
    problem: Problem,
    clock: Int,
    near: int,
    dark_ticks: int = 0,
    known: tuple[Int, Int] | None = None,
) -> tuple[Int, Int]:
    """Return (heads, tails) in ticks, each at least the critical path's, set-ups included.

    A task cannot start before every resource has done the work of its ancestors: for each resource
    and thresholds H and Q, H + work / capacity + Q, where H is the least head and Q the shortest
    way to the task of the ancestors counted. These cones and set-ups along paths raise each other
    and take turns until nothing rises.

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

    def rose_by_cones() -> bool:
        before = int(head.sum() + tail.sum())
        ancestor_heads(head, ahead, uses, near, dark_ticks)
        ancestor_heads(tail, behind, uses, near, dark_ticks)
        return int(head.sum() + tail.sum()) > before

    rose_by_cones()
    if p.network is None or dark_ticks <= 0:
        return head, tail
    ports, sides = p.network.ports_each_way, sides_of(p)
    if ports > 2 or (len(sides.ptr) - 1) * (p.n + len(p.pred_idx)) > MAX_STEPS:
        return head, tail
    for _ in range(ROUNDS):
        rose = False
        while lag_heads(head, ahead, sides, ports, dark_ticks):
            rose = True
        while lag_heads(tail, behind, sides, ports, dark_ticks):
            rose = True
        if not rose or not rose_by_cones():
            break
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
