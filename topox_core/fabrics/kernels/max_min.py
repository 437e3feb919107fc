"""Rates: max-min fair by progressive filling, recomputed only where a change can be felt, or by priority.

Progressive filling (Bertsekas and Gallager, Data Networks, section 6.5.2) raises all rates
together; whenever a link is full, everything that crosses it keeps the rate it has. Below the level
at which the first change is felt the filling runs as it did before, so every class with a lower
rate keeps it. Of the others only those matter that are joined to the change by links they share.
"""

import numpy as np

from topox_core.compiled import compiled_in_place
from topox_core.fabrics.kernels.state import (
    CHANGED,
    EPOCH,
    FINISHING,
    FLOOR,
    GAINED,
    LOST,
    NOW,
    RANKED,
    WORK,
    State,
    TaskTables,
)
from topox_core.model.arrays.heap import pop, push

SAFE = 1.0 - 1e-9  # rates this close below the first change are filled again: floats only


@compiled_in_place
def join_links(plan: TaskTables, state: State, c: int) -> None:
    """Enter class ``c`` in the lists of its links."""
    for e in range(plan.class_ptr[c], plan.class_ptr[c + 1]):
        link = plan.class_link[e]
        at = plan.link_ptr[link] + state.link_classes[link]
        state.members[at] = c
        state.member_hop[at] = e
        state.member_at[e] = at
        state.link_classes[link] += 1


@compiled_in_place
def leave_links(plan: TaskTables, state: State, c: int) -> None:
    """Take class ``c`` out of the lists of its links."""
    for e in range(plan.class_ptr[c], plan.class_ptr[c + 1]):
        link = plan.class_link[e]
        state.link_classes[link] -= 1
        last = plan.link_ptr[link] + state.link_classes[link]
        at = state.member_at[e]
        state.members[at] = state.members[last]
        state.member_hop[at] = state.member_hop[last]
        state.member_at[state.member_hop[at]] = at


@compiled_in_place
def note_finish(state: State, c: int, finish: float) -> None:
    """Remember when the next part of class ``c`` is through."""
    heap, size = state.finishing, state.counts[FINISHING]
    if size == len(heap.keys):  # of each class at most one entry counts
        size = 0
        for other in range(len(state.finish)):
            if other != c and state.active[other] > 0:
                size = push(heap.keys, heap.items, 0, size, state.finish[other], other)
    state.finish[c] = finish
    state.counts[FINISHING] = push(heap.keys, heap.items, 0, size, finish, c)


@compiled_in_place
def level_of(plan: TaskTables, state: State, link: int, enough: float) -> float:
    """Return the level at which a link with new parts would be full if nobody else's rate changed, or ``enough``."""
    flows = float(state.link_flows[link])
    left = float(plan.capacity[link])
    level = left / flows
    first = plan.link_ptr[link]
    while level < enough:
        fixed, used = 0.0, 0.0
        for at in range(first, first + state.link_classes[link]):
            c = state.members[at]
            if state.rate[c] < level and not state.change[c] & GAINED:
                fixed += state.active[c]
                used += state.active[c] * state.rate[c]
        higher = (left - used) / (flows - fixed) if fixed < flows else level
        if higher <= level * (1.0 + 1e-12):
            return level
        level = higher
    return enough


@compiled_in_place
def first_change(plan: TaskTables, state: State, mark: int) -> float:
    """Return the lowest level at which this batch's changes can be felt."""
    floor = float(state.clock[FLOOR])
    for i in range(state.counts[CHANGED]):
        c = state.changed[i]
        if not state.change[c] & GAINED or state.active[c] == 0:
            continue
        for e in range(plan.class_ptr[c], plan.class_ptr[c + 1]):
            link = plan.class_link[e]
            if state.link_mark[link] != mark:
                state.link_mark[link] = mark
                floor = level_of(plan, state, link, floor)
    return floor


@compiled_in_place
def gather(plan: TaskTables, state: State, floor: float, mark: int) -> tuple[int, int]:
    """Collect links and classes that have to be filled again; return how many of each.

    Leaves the capacity that is left to them in ``residual``, and their parts in ``unfilled``.
    """
    links, classes = 0, 0
    for i in range(state.counts[CHANGED]):
        c = state.changed[i]
        for e in range(plan.class_ptr[c], plan.class_ptr[c + 1]):
            link = plan.class_link[e]
            if state.link_mark[link] != mark:
                state.link_mark[link] = mark
                state.region_links[links] = link
                links += 1
    visited = 0
    while visited < links:
        link = state.region_links[visited]
        visited += 1
        left = plan.capacity[link]
        unfilled = 0
        first = plan.link_ptr[link]
        for at in range(first, first + state.link_classes[link]):
            c = state.members[at]
            if state.rate[c] < floor:
                left -= state.active[c] * state.rate[c]
                continue
            unfilled += state.active[c]
            if state.class_mark[c] != mark:
                state.class_mark[c] = mark
                state.region_classes[classes] = c
                classes += 1
                for e in range(plan.class_ptr[c], plan.class_ptr[c + 1]):
                    other = plan.class_link[e]
                    if state.link_mark[other] != mark:
                        state.link_mark[other] = mark
                        state.region_links[links] = other
                        links += 1
        state.residual[link] = left
        state.unfilled[link] = unfilled
        state.counts[WORK] += state.link_classes[link]
    return links, classes


@compiled_in_place
def fill(plan: TaskTables, state: State, links: int, classes: int, floor: float, mark: int) -> None:
    """Fill the region from ``floor`` upwards; the rates go to ``new_rate``."""
    size = 0
    for i in range(links):
        link = state.region_links[i]
        if state.unfilled[link] > 0:
            state.level[link] = state.residual[link] / state.unfilled[link]
            size = push(state.heap.keys, state.heap.items, 0, size, state.level[link], link)
    level = floor
    while classes > 0:
        link = pop(state.heap.keys, state.heap.items, 0, size)
        size -= 1
        if state.unfilled[link] == 0:
            continue
        share = state.residual[link] / state.unfilled[link]
        if share > state.level[link] * (1.0 + 1e-14):
            # Others that cross it were held back elsewhere meanwhile, so it fills later than
            # thought.
            state.level[link] = share
            size = push(state.heap.keys, state.heap.items, 0, size, state.level[link], link)
            continue
        level = max(level, share)
        first = plan.link_ptr[link]
        for at in range(first, first + state.link_classes[link]):
            c = state.members[at]
            if state.class_mark[c] != mark:
                continue
            state.class_mark[c] = -mark
            state.new_rate[c] = level
            classes -= 1
            for e in range(plan.class_ptr[c], plan.class_ptr[c + 1]):
                state.residual[plan.class_link[e]] -= state.active[c] * level
                state.unfilled[plan.class_link[e]] -= state.active[c]


@compiled_in_place
def bring_up(state: State, c: int) -> None:
    """Move the clock of class ``c`` to now."""
    now = state.clock[NOW]
    if now > state.since[c]:
        state.served[c] += state.rate[c] * (now - state.since[c])
        state.since[c] = now


@compiled_in_place
def fill_by_rank(plan: TaskTables, state: State) -> int:
    """Give each class, the most urgent first, what its links have left; return how many there are."""
    ranked, size = state.ranked, 0
    for i in range(state.counts[RANKED]):
        if state.active[ranked[i]] > 0:
            ranked[size] = ranked[i]
            size += 1
    for i in range(state.counts[CHANGED]):
        c = state.changed[i]
        if state.active[c] > 0:
            at, rank = size, plan.rank[plan.part_node[c]]
            while at > 0 and plan.rank[plan.part_node[ranked[at - 1]]] > rank:
                ranked[at] = ranked[at - 1]
                at -= 1
            ranked[at] = c
            size += 1
    state.counts[RANKED] = size
    for link in range(len(plan.capacity)):
        state.residual[link] = plan.capacity[link]
    for i in range(size):
        c = ranked[i]
        state.region_classes[i] = c
        rate = np.inf
        for e in range(plan.class_ptr[c], plan.class_ptr[c + 1]):
            rate = min(rate, state.residual[plan.class_link[e]])
        # What rounding leaves over is nothing: a millionth of a millionth would make an event each.
        if rate < 1e-9 * plan.capacity[plan.class_link[plan.class_ptr[c]]]:
            rate = 0.0
        state.new_rate[c] = rate
        for e in range(plan.class_ptr[c], plan.class_ptr[c + 1]):
            state.residual[plan.class_link[e]] -= rate
    return size


@compiled_in_place
def fill_fairly(plan: TaskTables, state: State) -> int:
    """Give the classes that this batch's changes reach their max-min fair rates; return how many those are."""
    mark = int(state.counts[EPOCH]) + 2
    state.counts[EPOCH] = mark
    floor = first_change(plan, state, mark - 1) * SAFE
    links, classes = gather(plan, state, floor, mark)
    fill(plan, state, links, classes, floor, mark)
    return classes


@compiled_in_place
def refill(plan: TaskTables, state: State) -> None:
    """Give every class its rate after this batch's changes, and its next finish."""
    classes = fill_by_rank(plan, state) if len(plan.rank) > 0 else fill_fairly(plan, state)
    now = state.clock[NOW]
    for i in range(classes):
        c = state.region_classes[i]
        if state.change[c] == 0 and state.new_rate[c] == state.rate[c]:
            continue
        bring_up(state, c)
        state.rate[c] = state.new_rate[c]
        finish = np.inf
        if state.rate[c] > 0.0:
            left = state.flows.keys[plan.flow_ptr[c]] - state.served[c]
            finish = now + max(0.0, left) / state.rate[c]
        note_finish(state, c, finish)
    for i in range(state.counts[CHANGED]):
        state.change[state.changed[i]] = 0
    state.counts[CHANGED] = 0
    state.clock[FLOOR] = np.inf


@compiled_in_place
def note_change(state: State, c: int, what: int) -> None:
    """Remember that class ``c`` lost or gained parts; a loss is felt from the rate it had."""
    if state.change[c] == 0:
        state.changed[state.counts[CHANGED]] = c
        state.counts[CHANGED] += 1
    state.change[c] |= np.uint8(what)
    if what == LOST:
        state.clock[FLOOR] = min(state.clock[FLOOR], state.rate[c])
