"""Iterated local search in one compiled loop: move, generate, justify backwards and forwards, keep what is no later."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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

SEASON = 64  # candidates between two looks at which moves paid
FADE = 0.9  # of what a season taught, a season later
# What is chosen for every candidate, each by what it paid: the move, the direction of the first
# pass, how far tasks move, and in large problems, where one move changes next to nothing, whether
# there is one move or several.
FORWARDS, BACKWARDS, NEAR, FAR, ONE, SEVERAL, CHOICES = range(MOVES, MOVES + 7)
SEVERAL_FROM, MAX_MOVES = 5_000, 8  # tasks; moves
KEYS_A_SLOT = 64  # finer differences between keys than this are none
DOUBT = 16.0  # tries that count as average before a choice has a rate of its own
EVENLY = 0.3  # share of the candidates whose choices are not steered
# What ``State.number`` holds.
NUMBERS = 8
MAKESPAN, CHANGES, LATENESS, NOW_CHANGES, STEP, HORIZON, IDLE, BEST_MOVE = range(NUMBERS)


class State(NamedTuple):
    """A search that can be taken up again: the schedule it stands at, the best one, and how its moves fared.

    ``best`` is the sequence that gives the best schedule, from ports that hold ``best_before``;
    ``before`` is what candidates find there: what the schedule that the search stands at has left.
    ``number`` holds its makespan and circuit
    changes, lateness and changes of ``now``, the candidates so far, the horizon in slots, the
    candidates since the last gain and the move that led to the best; ``weight``, ``tried`` and
    ``paid`` have an entry a choice.
    """

    now: Int
    best: Int32
    before: Before
    best_before: Before
    number: Int
    weight: NDArray[np.float64]
    tried: NDArray[np.float64]
    paid: NDArray[np.float64]


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
def justified(latest_first: Int32, space: SearchSpace, before: Before, horizon: int) -> Candidate:
    """Return the schedule after a pass backwards by latest end and one forwards (Tormos and Lova 2001)."""
    behind = generate(latest_first, space, before, True, horizon)
    if behind.makespan < 0:
        return behind
    time = behind.makespan - behind.start - space.tasks.duration
    return generate(by_time(time, space.order, space.place, False), space, before, False, horizon)


@compiled
def forwards_first(
    key: Float, space: SearchSpace, before: Before, enough: int, horizon: int
) -> Candidate:
    """Return the schedule by these keys, or after a pass backwards and forwards where that is no later."""
    tasks, unit = space.tasks, space.tasks.slot / KEYS_A_SLOT
    sequence = by_key(key, unit, space.order, space.place, tasks.pred_ptr, tasks.pred_idx)
    once = generate(sequence, space, before, False, horizon)
    if once.makespan < 0:
        return once
    latest_first = by_time(-(once.start + tasks.duration), space.order, space.place, True)
    twice = justified(latest_first, space, before, horizon)
    if twice.makespan < 0:
        return twice
    late, sooner = missed(once, space, enough), missed(twice, space, enough)
    better = sooner < late or (sooner == late and twice.changes <= once.changes)
    return twice if better else once


@compiled
def backwards_first(key: Float, space: SearchSpace, before: Before, horizon: int) -> Candidate:
    """Return the schedule after a pass backwards by the ends that the keys give, then forwards.

    Two passes where :func:`forwards_first` has three.
    """
    back, unit, last = space.back, space.tasks.slot / KEYS_A_SLOT, len(space.order) - 1
    end, against = -(key + back.duration), space.order[::-1]
    latest_first = by_key(end, unit, against, last - space.place, back.pred_ptr, back.pred_idx)
    return justified(latest_first, space, before, horizon)


@compiled
def drawn(random: Random, weight: NDArray[np.float64], first: int, last: int) -> int:
    """Return one of the choices ``first`` to ``last`` - 1, drawn by weight."""
    left = random.random() * weight[first:last].sum()
    for choice in range(first, last):
        left -= weight[choice]
        if left <= 0:
            return choice
    return first


@compiled
def turn_season(state: State) -> None:
    """Give choices that paid more weight, and forget what is long ago."""
    for first, last in ((0, MOVES), (FORWARDS, NEAR), (NEAR, ONE), (ONE, CHOICES)):
        mean = (state.paid[first:last].sum() + 1e-9) / (state.tried[first:last].sum() + 1e-6)
        total = 0.0
        for choice in range(first, last):
            state.weight[choice] = (state.paid[choice] + DOUBT * mean) / (
                state.tried[choice] + DOUBT
            )
            total += state.weight[choice]
        for choice in range(first, last):
            state.weight[choice] = (
                EVENLY / (last - first) + (1 - EVENLY) * state.weight[choice] / total
            )
    state.tried[:] *= FADE
    state.paid[:] *= FADE


@compiled
def take(state: State, candidate: Candidate, late: int, space: SearchSpace, kind: int) -> bool:
    """Stand at a candidate if it is no worse; return whether it is better."""
    number, makespan, changed = state.number, candidate.makespan, candidate.changes
    worse = late > number[LATENESS] or (late == number[LATENESS] and changed > number[NOW_CHANGES])
    if worse:
        return False
    better = bool(late < number[LATENESS] or changed < number[NOW_CHANGES])
    state.now[:] = candidate.start
    number[LATENESS], number[NOW_CHANGES] = late, changed
    if makespan < number[MAKESPAN] or (makespan == number[MAKESPAN] and changed < number[CHANGES]):
        state.best[:] = candidate.sequence
        _note(state.best_before, state.before)
        if makespan < number[MAKESPAN]:
            number[LATENESS] = missed(candidate, space, max(space.target, makespan - 1))
        number[MAKESPAN], number[CHANGES], number[BEST_MOVE] = makespan, changed, kind
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
    number, tasks = state.number, space.tasks
    moves = MOVES if space.on_ports else CIRCUIT
    for _ in range(candidates):
        enough = max(space.target, number[MAKESPAN] - 1)
        kind = drawn(random, state.weight, 0, moves)
        direction = drawn(random, state.weight, FORWARDS, NEAR)
        reach = drawn(random, state.weight, NEAR, ONE)
        large = len(state.now) >= SEVERAL_FROM
        often = drawn(random, state.weight, ONE, CHOICES) if large else ONE
        times = int(random.integers(2, MAX_MOVES + 1)) if often == SEVERAL else 1
        move = Move(kind, times, reach == FAR)
        key = moved(random, move, state.now, space.tail, enough, tasks, space.rows)
        if direction == BACKWARDS:
            candidate = backwards_first(key, space, state.before, number[HORIZON])
        else:
            candidate = forwards_first(key, space, state.before, enough, number[HORIZON])
        if candidate.makespan < 0:
            return False
        late = missed(candidate, space, enough)
        number[STEP] += 1
        for choice in (kind, direction, reach, often):
            state.tried[choice] += 1
        number[IDLE] += 1
        if take(state, candidate, late, space, kind):
            for choice in (kind, direction, reach, often):
                state.paid[choice] += 1
            number[IDLE] = 0
        if number[STEP] % SEASON == 0:
            turn_season(state)
        if number[MAKESPAN] <= space.target and number[CHANGES] == 0:
            break
    return True
