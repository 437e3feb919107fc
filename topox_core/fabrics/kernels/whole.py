"""Runs that stop for nothing but a time, or when something that is watched happens."""

import numpy as np
from numpy.typing import NDArray

from topox_core.compiled import compiled, compiled_in_place
from topox_core.fabrics.kernels.events import add_part, advance, begin
from topox_core.fabrics.kernels.max_min import refill
from topox_core.fabrics.kernels.state import ENDED, EVENTS, FLOOR, NOW, State, TaskTables
from topox_core.model.heap import push
from topox_core.model.transfer_graph import COMPUTE, TRANSFER, FloatArray, IntArray

# Rounding may leave nothing of a part that has not been called yet.
MIN = 1e-12


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
            left[part] = max(state.target[part] - served, plan.part_bytes[part] * MIN)
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


BETWEEN_LOOKS = 16


@compiled_in_place
def is_late(state: State, tail: FloatArray, latest: float) -> bool:
    """Return whether some task that has not begun cannot lead to an end by ``latest``.

    ``tail`` is the least time from the start of each task to the end of the iteration.
    """
    now = state.clock[NOW]
    late = False
    for node in range(len(tail)):
        late |= state.waiting[node] > 0 and now + tail[node] > latest
    return late


@compiled_in_place
def run_until(plan: TaskTables, state: State, tail: FloatArray, latest: float) -> bool:
    """Run an iteration from its beginning; return whether it is over by ``latest``, False as soon as it cannot be."""
    begin(plan, state)
    enough = latest * (1.0 + 1e-12)
    while advance(plan, state, BETWEEN_LOOKS, latest):
        if is_late(state, tail, enough):
            return False
    return bool(state.counts[ENDED] == len(plan.kind))


@compiled_in_place
def news_of(state: State, group_ptr: IntArray, member: IntArray, open_members: IntArray) -> bool:
    """Note which groups of transfers have begun or have ended since; return whether any.

    ``open_members`` is -1 for a group of which nobody is ready yet, else how many have not ended.
    """
    now = state.clock[NOW]
    news = False
    for group in range(len(group_ptr) - 1):
        if open_members[group] == 0:
            continue
        ready, left = False, 0
        for e in range(group_ptr[group], group_ptr[group + 1]):
            node = member[e]
            ready = ready or state.waiting[node] == 0
            if not state.end[node] <= now:
                left += 1
        known = open_members[group]
        if ready or left == 0:
            open_members[group] = left
        if (known < 0 and ready) or (known != 0 and left == 0):
            news = True
    return news


@compiled_in_place
def advance_to_news(
    plan: TaskTables,
    state: State,
    latest: float,
    group_ptr: IntArray,
    member: IntArray,
    open_members: NDArray[np.int32],
    batches: int,
) -> bool:
    """Run batches of events until a group of transfers begins or ends; return whether one did."""
    for _ in range(batches):
        more = advance(plan, state, 1, latest)
        if news_of(state, group_ptr, member, open_members):
            return True
        if not more:
            return False
    return False
