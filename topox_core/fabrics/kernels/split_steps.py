"""Steps of one collective over several ports: how long they take when given ports share each step, and a search over which."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topox_core.compiled import compiled
from topox_core.model.transfer_graph import FloatArray, IntArray

Pattern = NDArray[np.bool_]  # which ports serve a step


class StepTimes(NamedTuple):
    """Of each step: its time on one port in ms, and a number for its circuits; latency and delay in ms."""

    busy: FloatArray
    circuits: IntArray
    latency: float
    delay: float


@compiled
def shared_steps(steps: StepTimes, pattern: Pattern, share: FloatArray, start: FloatArray) -> float:
    """Return when the last step ends; fill in what each port sends of each step, and from when.

    A step begins when the one before has ended on every port. A port that holds other circuits is
    set up anew as soon as it is idle. The ports of a step end together: those that are ready early
    send more, and one that is ready too late sends nothing and keeps its circuits.
    """
    m, c = pattern.shape
    held = np.full(c, -1, np.int32)
    free, ready = np.zeros(c), np.zeros(c)
    now = 0.0
    for q in range(m):
        for r in range(c):
            share[q, r] = 0.0
            ready[r] = np.inf
            if pattern[q, r]:
                changes = held[r] >= 0 and held[r] != steps.circuits[q]
                ready[r] = max(now, free[r] + (steps.delay if changes else 0.0))
        order = np.argsort(ready, kind="mergesort")
        end, total = np.inf, 0.0
        for k in range(c):
            if ready[order[k]] >= end:
                break
            total += ready[order[k]]
            end = (steps.busy[q] + total) / (k + 1)
        for r in range(c):
            if ready[r] < end:
                share[q, r], start[q, r] = end - ready[r], ready[r]
                free[r], held[r] = end + steps.latency, steps.circuits[q]
        now = end + steps.latency
    return now


@compiled
def best_pattern(steps: StepTimes, begin: Pattern, rounds: int) -> tuple[float, Pattern]:
    """Return the shortest time found and its ports, by changes of one or two entries from ``begin`` on.

    A change takes a port from a step or gives it one, or moves a port from one step to another.
    """
    m, c = begin.shape
    best = begin.copy()
    share, start = np.zeros((m, c)), np.zeros((m, c))
    least = shared_steps(steps, best, share, start)
    for _ in range(rounds):
        improved = False
        for i in range(m * c):
            for j in range(i, m * c):
                qi, qj = i // c, j // c
                if j > i and qj - qi > 3:
                    break
                best[qi, i % c] = not best[qi, i % c]
                if j > i:
                    best[qj, j % c] = not best[qj, j % c]
                took = np.inf
                if best[qi].any() and best[qj].any():
                    took = shared_steps(steps, best, share, start)
                if took < least * (1 - 1e-9):
                    least, improved = took, True
                else:
                    best[qi, i % c] = not best[qi, i % c]
                    if j > i:
                        best[qj, j % c] = not best[qj, j % c]
        if not improved:
            break
    return least, best
