"""Iterated local search in one compiled loop: move, generate, justify backwards and forwards, keep what is no later."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topox_core.compiled import compiled
from topox_core.schedule.kernels.continuous import Ports, serial_on_ports
from topox_core.schedule.kernels.moves import ALL, CIRCUIT, MOVES, Neighbours, Random, moved, thrown
from topox_core.schedule.kernels.serial import serial
from topox_core.schedule.kernels.tasks import Tasks, by_key, by_time
from topox_core.schedule.problem import Int, Int32

SEASON = 64  # candidates between two looks at which moves paid
FADE = 0.7
LEAST_WEIGHT = 0.04
PATIENCE, PATIENCE_A_TASK = 2_000, 20  # candidates without gain after which the search begins anew elsewhere
# What ``State.number`` holds.
NUMBERS = 8
MAKESPAN, CHANGES, LATENESS, NOW_CHANGES, STEP, HORIZON, IDLE, BEST_MOVE = range(NUMBERS)


class State(NamedTuple):
    """A search that can be taken up again: the schedule it stands at, the best one, and how its moves fared.

    ``best`` is the sequence that gives the best schedule; ``number`` holds its makespan and circuit
    changes, lateness and changes of ``now``, the candidates so far, the horizon in slots, the candidates since
    the last gain and the move that led to the best.
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
def generate(sequence: Int32, tasks: Tasks, ports: Ports, on_ports: bool, horizon: int) -> tuple[Int, int, int]:
    """Return (start ticks, makespan, circuit changes); makespan -1 past the horizon."""
    if on_ports:
        start, makespan, _, _, _, changed = serial_on_ports(sequence, tasks, ports, horizon)
        return start, makespan, changed
    start, makespan = serial(sequence, tasks, horizon)
    return start, makespan, 0


@compiled
def justified(start: Int, tasks: Tasks, back: Tasks, ports: Ports, on_ports: bool, order: Int32, place: Int32,
              horizon: int) -> Int32:
    """Return the sequence after one backward pass by latest end (Tormos and Lova 2001); empty past the horizon."""
    latest_first = by_time(-(start + tasks.duration), order, place, True)
    behind, length, _ = generate(latest_first, back, ports, on_ports, horizon)
    if length < 0:
        return np.empty(0, np.int32)
    return by_time(length - behind - tasks.duration, order, place, False)


@compiled
def chosen_move(random: Random, weight: NDArray[np.float64], moves: int) -> int:
    """Return a move, drawn by weight."""
    left = random.random() * weight[:moves].sum()
    for kind in range(moves):
        left -= weight[kind]
        if left <= 0:
            return kind
    return ALL


@compiled
def turn_season(state: State) -> None:
    """Give moves that paid more weight, and forget what is long ago."""
    for kind in range(MOVES):
        rate = state.paid[kind] / max(1.0, state.tried[kind])
        state.weight[kind] = max(LEAST_WEIGHT, FADE * state.weight[kind] + (1 - FADE) * rate)
    state.tried[:] = 0
    state.paid[:] = 0
    state.weight[:] /= state.weight.sum()


@compiled
def take(state: State, sequence: Int32, start: Int, makespan: int, changed: int, late: int, tail: Int, tasks: Tasks,
         target: int, kind: int) -> bool:
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
def improve(state: State, tasks: Tasks, back: Tasks, ports: Ports, on_ports: bool, order: Int32, place: Int32, tail: Int,
            rows: Neighbours, target: int, candidates: int, random: Random) -> bool:
    """Try ``candidates`` moves; return False if the horizon in ``state`` was too short.

    The aim is the least sum of lateness against an end one tick before the best makespan (not before
    ``target``, a lower bound: there only circuit changes are left to save), then the fewest changes.
    ``random`` goes on where it was, so the same seed and number of candidates give the same schedule, in
    however many calls.
    """
    number = state.number
    moves = MOVES if on_ports else CIRCUIT
    for _ in range(candidates):
        enough = max(target, number[MAKESPAN] - 1)
        kind = chosen_move(random, state.weight, moves)
        if number[IDLE] < 0:
            key = thrown(random, state.now, number[MAKESPAN])
        else:
            key = moved(random, kind, state.now, tail, enough, tasks, rows)
        sequence = by_key(key, tasks.slot / 64, order, place, tasks.pred_ptr, tasks.pred_idx)
        start, makespan, changed = generate(sequence, tasks, ports, on_ports, number[HORIZON])
        if makespan < 0:
            return False
        late = lateness(start, tasks.duration, tail, enough)
        again = justified(start, tasks, back, ports, on_ports, order, place, number[HORIZON])
        if len(again) == 0:
            return False
        second, shorter, fewer = generate(again, tasks, ports, on_ports, number[HORIZON])
        if shorter < 0:
            return False
        sooner = lateness(second, tasks.duration, tail, enough)
        if sooner < late or (sooner == late and fewer <= changed):
            sequence, start, makespan, changed, late = again, second, shorter, fewer, sooner
        number[STEP] += 1
        state.tried[kind] += 1
        number[IDLE] += 1
        if number[IDLE] == 0:
            state.now[:] = start
            number[LATENESS], number[NOW_CHANGES] = late, changed
        if take(state, sequence, start, makespan, changed, late, tail, tasks, target, kind):
            state.paid[kind] += 1
            number[IDLE] = 0
        elif number[IDLE] > PATIENCE + PATIENCE_A_TASK * len(start):
            number[IDLE] = -1
        if number[STEP] % SEASON == 0:
            turn_season(state)
        if number[MAKESPAN] <= target and number[CHANGES] == 0:
            break
    return True
