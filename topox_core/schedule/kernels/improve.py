"""Iterated local search in one compiled loop: move, generate, justify backwards and forwards, keep what is no later."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topox_core.compiled import compiled
from topox_core.schedule.kernels.continuous import Ports, serial_on_ports
from topox_core.schedule.kernels.moves import CIRCUIT, MOVES, Float, Neighbours, Random, moved
from topox_core.schedule.kernels.serial import serial
from topox_core.schedule.kernels.tasks import Tasks, by_key, by_time
from topox_core.schedule.problem import Int, Int32

SEASON = 64  # candidates between two looks at which moves paid
FADE = 0.9  # of what a season taught, a season later
# What is chosen for every candidate, each by what it paid: the move, the direction of the first
# pass, and how far tasks move.
FORWARDS, BACKWARDS, NEAR, FAR, CHOICES = MOVES, MOVES + 1, MOVES + 2, MOVES + 3, MOVES + 4
KEYS_A_SLOT = 64  # finer differences between keys than this are none
DOUBT = 16.0  # tries that count as average before a choice has a rate of its own
EVENLY = 0.3  # share of the candidates whose choices are not steered
# What ``State.number`` holds.
NUMBERS = 8
MAKESPAN, CHANGES, LATENESS, NOW_CHANGES, STEP, HORIZON, IDLE, BEST_MOVE = range(NUMBERS)


class State(NamedTuple):
    """A search that can be taken up again: the schedule it stands at, the best one, and how its moves fared.

    ``best`` is the sequence that gives the best schedule; ``number`` holds its makespan and circuit
    changes, lateness and changes of ``now``, the candidates so far, the horizon in slots, the
    candidates since the last gain and the move that led to the best; ``weight``, ``tried`` and
    ``paid`` have an entry a choice.
    """

    now: Int
    best: Int32
    number: Int
    weight: NDArray[np.float64]
    tried: NDArray[np.float64]
    paid: NDArray[np.float64]


@compiled
def lateness(start: Int, duration: Int, tail: Int, enough: int) -> int:
    """Return by how much all tasks together miss an end of the iteration at ``enough``."""
    total = 0
    for j in range(len(start)):
        total += max(0, start[j] + duration[j] + tail[j] - enough)
    return total


@compiled
def generate(
    sequence: Int32, tasks: Tasks, ports: Ports, on_ports: bool, horizon: int
) -> tuple[Int, int, int]:
    """Return (start ticks, makespan, circuit changes); makespan -1 past the horizon."""
    if on_ports:
        start, makespan, _, _, _, changed = serial_on_ports(sequence, tasks, ports, horizon)
        return start, makespan, changed
    start, makespan = serial(sequence, tasks, horizon)
    return start, makespan, 0


@compiled
def justified(
    start: Int,
    tasks: Tasks,
    back: Tasks,
    ports: Ports,
    on_ports: bool,
    order: Int32,
    place: Int32,
    horizon: int,
) -> Int32:
    """Return the sequence after one backward pass by latest end (Tormos and Lova 2001); empty past the horizon."""
    latest_first = by_time(-(start + tasks.duration), order, place, True)
    behind, length, _ = generate(latest_first, back, ports, on_ports, horizon)
    if length < 0:
        return np.empty(0, np.int32)
    return by_time(length - behind - tasks.duration, order, place, False)


@compiled
def forwards_first(
    key: Float,
    tasks: Tasks,
    back: Tasks,
    ports: Ports,
    on_ports: bool,
    order: Int32,
    place: Int32,
    tail: Int,
    enough: int,
    horizon: int,
) -> tuple[Int32, Int, int, int]:
    """Return (sequence, start, makespan, changes) by these keys, or after a pass backwards and forwards where that is no later.

    Makespan -1 past the horizon.
    """
    sequence = by_key(key, tasks.slot / KEYS_A_SLOT, order, place, tasks.pred_ptr, tasks.pred_idx)
    start, makespan, changed = generate(sequence, tasks, ports, on_ports, horizon)
    if makespan < 0:
        return sequence, start, -1, 0
    again = justified(start, tasks, back, ports, on_ports, order, place, horizon)
    if len(again) == 0:
        return again, start, -1, 0
    second, shorter, fewer = generate(again, tasks, ports, on_ports, horizon)
    if shorter < 0:
        return again, second, -1, 0
    late, sooner = (
        lateness(start, tasks.duration, tail, enough),
        lateness(second, tasks.duration, tail, enough),
    )
    if sooner < late or (sooner == late and fewer <= changed):
        return again, second, shorter, fewer
    return sequence, start, makespan, changed


@compiled
def backwards_first(
    key: Float,
    tasks: Tasks,
    back: Tasks,
    ports: Ports,
    on_ports: bool,
    order: Int32,
    place: Int32,
    horizon: int,
) -> tuple[Int32, Int, int, int]:
    """Return (sequence, start, makespan, changes) of a pass backwards by the ends that the keys give, then forwards.

    Two passes where :func:`forwards_first` has three. Makespan -1 past the horizon.
    """
    last = len(order) - 1
    latest_first = by_key(
        -(key + tasks.duration),
        tasks.slot / KEYS_A_SLOT,
        order[::-1],
        last - place,
        back.pred_ptr,
        back.pred_idx,
    )
    behind, length, _ = generate(latest_first, back, ports, on_ports, horizon)
    if length < 0:
        return latest_first, behind, -1, 0
    sequence = by_time(length - behind - tasks.duration, order, place, False)
    start, makespan, changed = generate(sequence, tasks, ports, on_ports, horizon)
    return sequence, start, makespan, changed


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
    for first, last in ((0, MOVES), (FORWARDS, NEAR), (NEAR, CHOICES)):
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
def take(
    state: State,
    sequence: Int32,
    start: Int,
    makespan: int,
    changed: int,
    late: int,
    tail: Int,
    tasks: Tasks,
    target: int,
    kind: int,
) -> bool:
    """Stand at a candidate if it is no worse; return whether it is better."""
    number = state.number
    worse = late > number[LATENESS] or (late == number[LATENESS] and changed > number[NOW_CHANGES])
    if worse:
        return False
    better = bool(late < number[LATENESS] or changed < number[NOW_CHANGES])
    state.now[:] = start
    number[LATENESS], number[NOW_CHANGES] = late, changed
    if makespan < number[MAKESPAN] or (makespan == number[MAKESPAN] and changed < number[CHANGES]):
        state.best[:] = sequence
        if makespan < number[MAKESPAN]:
            number[LATENESS] = lateness(start, tasks.duration, tail, max(target, makespan - 1))
        number[MAKESPAN], number[CHANGES], number[BEST_MOVE] = makespan, changed, kind
    return better


@compiled
def improve(
    state: State,
    tasks: Tasks,
    back: Tasks,
    ports: Ports,
    on_ports: bool,
    order: Int32,
    place: Int32,
    tail: Int,
    rows: Neighbours,
    target: int,
    candidates: int,
    random: Random,
) -> bool:
    """Try ``candidates`` moves; return False if the horizon in ``state`` was too short.

    The aim is the least sum of lateness against an end one tick before the best makespan (not
    before ``target``, a lower bound: there only circuit changes are left to save), then the fewest
    changes. ``random`` goes on where it was, so the same seed and number of candidates give the
    same schedule, in however many calls.
    """
    number = state.number
    moves = MOVES if on_ports else CIRCUIT
    for _ in range(candidates):
        enough = max(target, number[MAKESPAN] - 1)
        kind = drawn(random, state.weight, 0, moves)
        direction = drawn(random, state.weight, FORWARDS, NEAR)
        reach = drawn(random, state.weight, NEAR, CHOICES)
        key = moved(random, kind, reach == FAR, state.now, tail, enough, tasks, rows)
        if direction == BACKWARDS:
            found = backwards_first(
                key, tasks, back, ports, on_ports, order, place, number[HORIZON]
            )
        else:
            found = forwards_first(
                key, tasks, back, ports, on_ports, order, place, tail, enough, number[HORIZON]
            )
        sequence, start, makespan, changed = found
        if makespan < 0:
            return False
        late = lateness(start, tasks.duration, tail, enough)
        number[STEP] += 1
        for choice in (kind, direction, reach):
            state.tried[choice] += 1
        number[IDLE] += 1
        if take(state, sequence, start, makespan, changed, late, tail, tasks, target, kind):
            for choice in (kind, direction, reach):
                state.paid[choice] += 1
            number[IDLE] = 0
        if number[STEP] % SEASON == 0:
            turn_season(state)
        if number[MAKESPAN] <= target and number[CHANGES] == 0:
            break
    return True
