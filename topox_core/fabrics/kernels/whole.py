"""Runs that stop for nothing but a time, or when something that is watched happens."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topox_core.compiled import compiled_in_place
from topox_core.fabrics.kernels.events import advance, begin
from topox_core.fabrics.kernels.state import ENDED, NOW, State, TaskTables
from topox_core.model.transfer_graph import FloatArray, IntArray

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
