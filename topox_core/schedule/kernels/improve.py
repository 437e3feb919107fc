"""Iterated local search in one compiled loop: move, justify backwards and forwards, keep what is no later."""

from typing import Any, NamedTuple

import numpy as np

from topox_core.compiled import compiled
from topox_core.schedule.kernels.continuous import (
    Before,
    Ports,
    nothing_before,
    serial_on_ports,
)
from topox_core.schedule.kernels.moves import CIRCUIT, MOVES, Float, Move, Neighbours, Random, moved
from topox_core.schedule.kernels.serial import serial
from topox_core.schedule.kernels.tasks import Tasks, by_key, by_time
from topox_core.schedule.problem import Int, Int32

SEVERAL_FROM, MAX_MOVES = 5_000, 8  # tasks, from which on one move changes next to nothing; moves
KEYS_A_SLOT = 64  # finer differences between keys than this are none
# The numbers of a search: makespan and circuit changes of the best schedule, lateness and changes of the
# one it stands at, candidates so far, those since the last gain, and the horizon in slots.
NUMBERS = np.dtype(
    [
        (name, np.int64)
        for name in ("makespan", "changes", "late", "now_changes", "steps", "idle", "horizon")
    ]
)


class State(NamedTuple):
    """A search that can be taken up again: the schedule it stands at and the best one.

    ``best`` is the sequence that gives the best schedule, from ports that hold ``best_before``;
    ``before`` is what candidates find there: what the schedule that the search stands at has left.
    ``at`` has one entry of :data:`NUMBERS`.
    """

    now: Int
    best: Int32
    before: Before
    best_before: Before
    at: np.recarray[Any, Any]


class SearchSpace(NamedTuple):
    """What the search never changes.

    Attributes
    ----------
    tasks, back
        The tasks, and the same with the precedence turned round.
    ports, on_ports
        The ports that transfers are booked on, if they are.
    order, place
        A topological order, and every task's place in it.
    tail
        Least time from the end of a task to the end of the iteration.
    rows
        The tasks that share a resource, a device or a pair of servers.
    target
        A lower bound on the makespan: there only circuit changes are left to save.
    """

    tasks: Tasks
    back: Tasks
    ports: Ports
    on_ports: bool
    order: Int32
    place: Int32
    tail: Int
    rows: Neighbours
    target: int


class Candidate(NamedTuple):
    """A sequence and the schedule that it gives, with what ports hold afterwards; makespan -1 past the horizon."""

    sequence: Int32
    start: Int
    makespan: int
    changes: int
    after: Before


@compiled
def lateness(start: Int, duration: Int, tail: Int, enough: int) -> int:
    """Return by how much all tasks together miss an end of the iteration at ``enough``."""
    total = 0
    for j in range(len(start)):
        total += max(0, start[j] + duration[j] + tail[j] - enough)
    return total


@compiled
def missed(candidate: Candidate, space: SearchSpace, enough: int) -> int:
    """Return by how much a candidate misses an end at ``enough``: its tasks, and its ports where they come back."""
    late = lateness(candidate.start, space.tasks.duration, space.tail, enough)
    return late + (max(0, candidate.makespan - enough) if candidate.after.repeats else 0)


@compiled
def generate(
    sequence: Int32, space: SearchSpace, before: Before, backwards: bool, horizon: int
) -> Candidate:
    """Return the schedule of a sequence from what ports hold at first; backwards they hold nothing."""
    tasks = space.back if backwards else space.tasks
    if space.on_ports:
        begins = nothing_before(len(before.held), False) if backwards else before
        start, makespan, _, _, _, changed, after = serial_on_ports(
            sequence, tasks, space.ports, begins, horizon
        )
        return Candidate(sequence, start, makespan, changed, after)
    start, makespan = serial(sequence, tasks, horizon)
    return Candidate(sequence, start, makespan, 0, before)


@compiled
def justified(key: Float, space: SearchSpace, before: Before, horizon: int) -> Candidate:
    """Return the schedule after a pass backwards by the ends that keys give, and one forwards (Tormos and Lova 2001)."""
    back, unit, last = space.back, space.tasks.slot / KEYS_A_SLOT, len(space.order) - 1
    end, against = -(key + back.duration), space.order[::-1]
    latest_first = by_key(end, unit, against, last - space.place, back.pred_ptr, back.pred_idx)
    behind = generate(latest_first, space, before, True, horizon)
    if behind.makespan < 0:
        return behind
    time = behind.makespan - behind.start - space.tasks.duration
    return generate(by_time(time, space.order, space.place), space, before, False, horizon)


@compiled
def take(state: State, candidate: Candidate, late: int, space: SearchSpace) -> bool:
    """Stand at a candidate if it is no worse; return whether it is better."""
    at, makespan, changed = state.at[0], candidate.makespan, candidate.changes
    if late > at.late or (late == at.late and changed > at.now_changes):
        return False
    better = bool(late < at.late or changed < at.now_changes)
    state.now[:] = candidate.start
    at.late, at.now_changes = late, changed
    if makespan < at.makespan or (makespan == at.makespan and changed < at.changes):
        state.best[:] = candidate.sequence
        _note(state.best_before, state.before)
        if makespan < at.makespan:
            at.late = missed(candidate, space, max(space.target, makespan - 1))
        at.makespan, at.changes = makespan, changed
    if candidate.after.repeats:
        _note(state.before, candidate.after)
    return better


@compiled
def _note(kept: Before, ports: Before) -> None:
    """Keep what ports hold."""
    kept.held[:] = ports.held
    kept.free[:] = ports.free


@compiled
def improve(state: State, space: SearchSpace, candidates: int, random: Random) -> bool:
    """Try ``candidates`` moves; return False if the horizon in ``state`` was too short.

    The aim is the least sum of lateness against an end one tick before the best makespan (not
    before the lower bound), then the fewest changes. ``random`` goes on where it was, so the same
    seed and number of candidates give the same schedule, in however many calls.
    """
    at, tasks = state.at[0], space.tasks
    moves = MOVES if space.on_ports else CIRCUIT
    for _ in range(candidates):
        enough = max(space.target, at.makespan - 1)
        several = len(state.now) >= SEVERAL_FROM and random.random() < 0.5
        times = int(random.integers(2, MAX_MOVES + 1)) if several else 1
        move = Move(int(random.integers(0, moves)), times, random.random() < 0.5)
        key = moved(random, move, state.now, space.tail, enough, tasks, space.rows)
        candidate = justified(key, space, state.before, at.horizon)
        if candidate.makespan < 0:
            return False
        late = missed(candidate, space, enough)
        at.steps += 1
        at.idle += 1
        if take(state, candidate, late, space):
            at.idle = 0
        if at.makespan <= space.target and at.changes == 0:
            break
    return True
