"""A run carried over to another network: what is left to send, and the state to go on from."""

from __future__ import annotations

import numpy as np

from topox_core.compiled import compiled
from topox_core.fabrics.kernels.events import add_part
from topox_core.fabrics.kernels.max_min import refill
from topox_core.fabrics.kernels.state import ENDED, EVENTS, FLOOR, NOW, State, TaskTables
from topox_core.model.heap import push
from topox_core.model.transfer_graph import COMPUTE, TRANSFER, FloatArray, IntArray

# Rounding may leave nothing of a part that has not been called yet.
LEAST = 1e-12


@compiled
def unsent(plan: TaskTables, state: State, now: float) -> FloatArray:
    """Return the bytes of every part that are not sent by ``now``, at or after the last event."""
    left = plan.part_bytes.copy()
    for node in range(len(plan.kind)):
        if state.waiting[node] == 0 and plan.kind[node] == TRANSFER:
            left[plan.part_ptr[node] : plan.part_ptr[node + 1]] = 0.0
    for c in range(len(state.active)):
        served = state.served[c] + state.rate[c] * (now - state.since[c])
        for i in range(state.active[c]):
            part = state.flows.items[plan.flow_ptr[c] + i]
            left[part] = max(state.target[part] - served, plan.part_bytes[part] * LEAST)
    return left


@compiled
def resume(
    plan: TaskTables,
    state: State,
    now: float,
    waiting: IntArray,
    start: FloatArray,
    end: FloatArray,
) -> None:
    """Put a fresh state where another one stood at ``now``, between two events.

    A transfer under way whose pair has no path in ``plan`` ends at infinity, that is, waits.
    """
    state.clock[NOW] = now
    state.clock[FLOOR] = np.inf
    state.waiting[:] = waiting
    state.start[:] = start
    state.end[:] = end
    for node in range(len(plan.kind)):
        if waiting[node] > 0:
            continue
        device = plan.device[node]
        if end[node] <= now:
            state.counts[ENDED] += 1
        elif end[node] < np.inf:
            if plan.kind[node] == COMPUTE and device >= 0:
                state.busy[device] = True
            state.counts[EVENTS] = push(
                state.events.keys, state.events.items, 0, state.counts[EVENTS], end[node], node
            )
        elif plan.kind[node] == TRANSFER:
            first, last = plan.part_ptr[node], plan.part_ptr[node + 1]
            state.end[node] = np.nan if last > first else np.inf
            for part in range(first, last):
                add_part(plan, state, part)
            state.open_parts[node] = last - first
        else:
            size = state.queue_size[device]
            state.queue_size[device] = push(
                state.queue.keys,
                state.queue.items,
                plan.queue_ptr[device],
                size,
                start[node],
                node,
            )
    refill(plan, state)
