"""The event loop of the fluid simulator: batches of simultaneous ends, then who starts, then new rates; runs made of them."""

import numpy as np

from topox_core.compiled import compiled, compiled_in_place
from topox_core.fabrics.kernels.max_min import (
    bring_up,
    join_links,
    leave_links,
    note_change,
    refill,
)
from topox_core.fabrics.kernels.state import (
    BATCHES,
    CHANGED,
    ENDED,
    EVENTS,
    FINISHING,
    FLOOR,
    GAINED,
    LOST,
    NEWS,
    NOW,
    STACK,
    TIE,
    TOUCHED,
    State,
    TaskTables,
)
from topox_core.model.arrays.heap import pop, push
from topox_core.model.transfer_graph import COMPUTE, TRANSFER, FloatArray


@compiled_in_place
def end_at(state: State, node: int, time: float) -> None:
    """Let ``node`` end at ``time``: now, or later by way of the heap of events."""
    state.end[node] = time
    if time <= state.clock[NOW]:
        state.stack[state.counts[STACK]] = node
        state.counts[STACK] += 1
    else:
        state.counts[EVENTS] = push(
            state.events.keys, state.events.items, 0, state.counts[EVENTS], state.end[node], node
        )


@compiled_in_place
def touch(state: State, device: int) -> None:
    """Remember that ``device`` may have to choose its next task."""
    state.touched[state.counts[TOUCHED]] = device
    state.counts[TOUCHED] += 1


@compiled_in_place
def add_part(plan: TaskTables, state: State, part: int) -> None:
    """Set one part of a transfer on its way."""
    c = plan.part_class[part]
    if state.active[c] == 0:
        join_links(plan, state, c)
        state.served[c] = 0.0
        state.since[c] = state.clock[NOW]
        state.rate[c] = np.inf
    bring_up(state, c)
    state.target[part] = state.served[c] + plan.part_bytes[part]
    push(
        state.flows.keys,
        state.flows.items,
        plan.flow_ptr[c],
        state.active[c],
        state.target[part],
        part,
    )
    state.active[c] += 1
    for e in range(plan.class_ptr[c], plan.class_ptr[c + 1]):
        state.link_flows[plan.class_link[e]] += 1
    note_change(state, c, GAINED)


@compiled_in_place
def make_ready(plan: TaskTables, state: State, node: int) -> None:
    """Let ``node``, whose last predecessor ended now, start or queue."""
    now = state.clock[NOW]
    state.start[node] = now
    length = plan.length_ms[node]
    device, group = plan.device[node], plan.group[node]
    if group >= 0 and state.open[group] < 0:
        state.open[group] = -state.open[group]
        state.counts[NEWS] += 1
    if plan.kind[node] == COMPUTE and device >= 0 and length > 0.0:
        # ``start`` holds the time at which it became ready until the device takes it.
        size, key = state.queue_size[device], now
        if len(plan.rank) > 0:
            key = float(plan.rank[node])
        state.queue_size[device] = push(
            state.queue.keys, state.queue.items, plan.queue_ptr[device], size, key, node
        )
        touch(state, device)
    elif plan.kind[node] == TRANSFER and plan.part_ptr[node + 1] > plan.part_ptr[node]:
        for part in range(plan.part_ptr[node], plan.part_ptr[node + 1]):
            add_part(plan, state, part)
        state.open_parts[node] = plan.part_ptr[node + 1] - plan.part_ptr[node]
    else:
        end_at(state, node, now + length)


@compiled_in_place
def finish_parts(plan: TaskTables, state: State, c: int) -> None:
    """Take the parts of class ``c`` that are through off the network."""
    now = state.clock[NOW]
    bring_up(state, c)
    base = plan.flow_ptr[c]
    # The class was called because its first part is through, whatever the last bit of ``served``
    # says.
    reached = max(state.served[c], state.flows.keys[base]) + state.rate[c] * TIE * now
    while state.active[c] > 0 and state.flows.keys[base] <= reached:
        part = pop(state.flows.keys, state.flows.items, base, state.active[c])
        state.active[c] -= 1
        for e in range(plan.class_ptr[c], plan.class_ptr[c + 1]):
            state.link_flows[plan.class_link[e]] -= 1
        node = plan.part_node[part]
        state.open_parts[node] -= 1
        if state.open_parts[node] == 0:
            end_at(state, node, now + plan.length_ms[node])
    note_change(state, c, LOST)
    if state.active[c] == 0:
        leave_links(plan, state, c)
        state.rate[c] = 0.0


@compiled_in_place
def release_successors(plan: TaskTables, state: State) -> None:
    """Make ready what waited for the nodes that ended now, and what these release in turn."""
    while state.counts[STACK] > 0:
        state.counts[STACK] -= 1
        state.counts[ENDED] += 1
        node = state.stack[state.counts[STACK]]
        device, group = plan.device[node], plan.group[node]
        if group >= 0:
            state.open[group] -= 1
            if state.open[group] == 0:
                state.counts[NEWS] += 1
        if device >= 0 and plan.length_ms[node] > 0.0:
            state.busy[device] = False
            touch(state, device)
        for e in range(plan.succ_ptr[node], plan.succ_ptr[node + 1]):
            follower = plan.succ_idx[e]
            state.waiting[follower] -= 1
            if state.waiting[follower] == 0:
                make_ready(plan, state, follower)


@compiled_in_place
def start_devices(plan: TaskTables, state: State) -> None:
    """Let every idle device take the first task of its queue."""
    now = state.clock[NOW]
    for i in range(state.counts[TOUCHED]):
        device = state.touched[i]
        size = state.queue_size[device]
        if size > 0 and not state.busy[device]:
            node = pop(state.queue.keys, state.queue.items, plan.queue_ptr[device], size)
            state.queue_size[device] = size - 1
            state.busy[device] = True
            state.start[node] = now
            state.end[node] = now + plan.length_ms[node]
            state.counts[EVENTS] = push(
                state.events.keys,
                state.events.items,
                0,
                state.counts[EVENTS],
                state.end[node],
                node,
            )
    state.counts[TOUCHED] = 0


@compiled_in_place
def settle(plan: TaskTables, state: State) -> None:
    """Do all that follows at once from what ended now: successors, devices, rates."""
    release_successors(plan, state)
    start_devices(plan, state)
    if state.counts[CHANGED] > 0:
        refill(plan, state)


@compiled_in_place
def begin(plan: TaskTables, state: State) -> None:
    """Start the iteration: whatever waits for nobody is ready at time 0."""
    state.clock[FLOOR] = np.inf
    for node in range(len(plan.kind)):
        if state.waiting[node] == 0:
            make_ready(plan, state, node)
    settle(plan, state)


@compiled_in_place
def next_time(state: State) -> float:
    """Return when the next thing ends, or infinity."""
    time, heap = np.inf, state.finishing
    while state.counts[FINISHING] > 0 and heap.keys[0] != state.finish[heap.items[0]]:
        pop(heap.keys, heap.items, 0, state.counts[FINISHING])
        state.counts[FINISHING] -= 1
    if state.counts[EVENTS] > 0:
        time = state.events.keys[0]
    if state.counts[FINISHING] > 0:
        time = min(time, heap.keys[0])
    return time


@compiled_in_place
def advance(plan: TaskTables, state: State, batches: int, latest: float) -> bool:
    """Run up to ``batches`` batches of simultaneous ends, none after ``latest``; return whether there is more to do.

    A batch in which a group begins or ends is the last one.
    """
    state.counts[NEWS] = 0
    for _ in range(batches):
        if state.counts[NEWS] > 0:
            break
        first = next_time(state)
        if first == np.inf or first > latest:
            return False
        until = first * (1.0 + TIE)
        # Everything that ends within the tie ends together, at the last of these times.
        called = 0
        now = first
        heap = state.finishing
        while state.counts[FINISHING] > 0 and heap.keys[0] <= until:
            finish = heap.keys[0]
            c = pop(heap.keys, heap.items, 0, state.counts[FINISHING])
            state.counts[FINISHING] -= 1
            if finish == state.finish[c]:
                now = max(now, finish)
                state.finish[c] = np.inf
                state.region_classes[called] = c
                called += 1
        before = state.counts[STACK]
        while state.counts[EVENTS] > 0 and state.events.keys[0] <= until:
            node = pop(state.events.keys, state.events.items, 0, state.counts[EVENTS])
            state.counts[EVENTS] -= 1
            now = max(now, state.end[node])
            state.stack[before] = node
            before += 1
        state.counts[STACK] = before
        state.clock[NOW] = now
        for i in range(called):
            finish_parts(plan, state, state.region_classes[i])
        settle(plan, state)
        state.counts[BATCHES] += 1
    first = next_time(state)
    return first < np.inf and first <= latest


# -- runs that begin in the middle, and that end for nothing but a time or when something happens ------------

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
def resume(plan: TaskTables, state: State, now: float, before: State) -> None:
    """Put a fresh state where the one ``before`` stood at ``now``, between two events.

    A transfer under way whose pair has no path in ``plan`` ends at infinity, that is, waits.
    """
    state.clock[NOW] = now
    state.clock[FLOOR] = np.inf
    waiting, end = before.waiting, before.end
    state.waiting[:] = waiting
    state.start[:] = before.start
    state.end[:] = end
    state.open[:] = before.open
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
                before.start[node],
                node,
            )
    refill(plan, state)


BETWEEN_LOOKS = 16


@compiled
def run_until(plan: TaskTables, state: State, tail: FloatArray, latest: float) -> bool:
    """Run an iteration from its beginning; return whether it is over by ``latest``, False as soon as it cannot be.

    ``tail`` is the least time from the start of each task to the end of the iteration.
    """
    begin(plan, state)
    enough = latest * (1.0 + 1e-12)
    while advance(plan, state, BETWEEN_LOOKS, latest):
        if ((state.waiting > 0) & (state.clock[NOW] + tail > enough)).any():
            return False
    return bool(state.counts[ENDED] == len(plan.kind))
