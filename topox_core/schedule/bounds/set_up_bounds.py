"""Heads and tails that count set-ups between transfers that the graph orders (and those of cones)."""

from __future__ import annotations

import numpy as np

from topox_core.model.csr import grouped
from topox_core.schedule.bounds.ancestor_bounds import ancestor_heads_and_tails
from topox_core.schedule.kernels.lags import Sides, lag_heads
from topox_core.schedule.kernels.tasks import Precedence
from topox_core.schedule.problem import Int, Problem

ROUNDS = 4  # of cones and set-ups by turns; two or three are enough on every graph tried
MAX_STEPS = 200_000_000  # sides x (tasks and edges) of one sweep; larger ones take too long
# Ancestors counted for every task of a problem with set-ups, and up to how many tasks.
NEAR, NEAR_TASKS = 1_000, 2_000


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


def set_up_heads_and_tails(
    problem: Problem,
    clock: Int,
    near: int,
    dark_ticks: int,
    known: tuple[Int, Int] | None = None,
) -> tuple[Int, Int]:
    """Return (heads, tails) in ticks that count the work and the set-ups of ancestors and successors.

    Cones of ancestors and set-ups along paths raise each other and take turns until nothing rises.

    Parameters
    ----------
    clock, near, dark_ticks, known
        See :func:`topox_core.schedule.bounds.ancestor_bounds.ancestor_heads_and_tails`.
    """
    p = problem
    head, tail = ancestor_heads_and_tails(p, clock, near, dark_ticks, known)
    if p.network is None or dark_ticks <= 0:
        return head, tail
    ports = p.network.ports_on_switch * p.network.switches
    sides = sides_of(p)
    if ports > 2 or (len(sides.ptr) - 1) * (p.n + len(p.pred_idx)) > MAX_STEPS:
        return head, tail
    ahead = Precedence(p.order, p.pred_ptr, p.pred_idx, p.duration, clock)
    behind = Precedence(
        p.order[::-1].copy(), p.succ_ptr, p.succ_idx, p.duration, np.ones_like(p.duration)
    )
    for _ in range(ROUNDS):
        rose = False
        while lag_heads(head, ahead, sides, ports, dark_ticks):
            rose = True
        while lag_heads(tail, behind, sides, ports, dark_ticks):
            rose = True
        if not rose:
            break
        before = int(head.sum() + tail.sum())
        head, tail = ancestor_heads_and_tails(p, clock, near, dark_ticks, (head, tail))
        if int(head.sum() + tail.sum()) == before:
            break
    return head, tail


def near_of(problem: Problem, otherwise: int) -> int:
    """Return how many ancestors count where set-ups do: more of them, unless there are many tasks."""
    return NEAR if problem.n <= NEAR_TASKS else otherwise
