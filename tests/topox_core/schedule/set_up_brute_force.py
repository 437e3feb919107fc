"""The optimum of tiny problems with set-ups, from all orders and all choices of ports; shares no code with any engine."""

import random
from itertools import product
from typing import Any

from tests.topox_core.schedule.problem_builder import Fabric, predecessors, random_problem
from topox_core.schedule.circuits.held_ports import with_set_ups
from topox_core.schedule.problem import Problem

Place = tuple[Any, ...]


def random_case(seed: int) -> Problem:
    """A tiny problem with set-ups of 0 to 4 slots on one or two switches with one or two ports each."""
    rng = random.Random(seed)
    switches, each = rng.choice([(1, 1), (2, 1), (1, 2), (2, 2)])
    fabric = Fabric(
        servers=rng.randint(2, 4),
        switches=switches,
        ports_on_switch=each,
        ports_per_server=switches * each,
        half_duplex=rng.random() < 0.3,
    )
    tasks, ticks_per_slot = rng.randint(3, 6), rng.choice([1, 1, 2])
    problem = random_problem(seed, fabric, tasks, ticks_per_slot, density=0.15)
    return with_set_ups(problem, rng.randint(0, 4))


def optimum(problem: Problem) -> int:
    """Return the shortest makespan in ticks.

    Every schedule, taken in the order of its starts, can be made anew by appending each task to its
    device or ports as early as those allow, and is no longer then. Where the iteration repeats, the
    orders are what counts: :func:`period`.
    """
    p, best = problem, 1 << 60
    before = [predecessors(p, j) for j in range(p.n)]
    turns: list[tuple[int, tuple[Place, ...]]] = []

    def go_on(end: dict[int, int], held: dict[Place, Any], last: int) -> None:
        nonlocal best
        if last >= best:
            return
        if len(end) == p.n:
            best = period(p, turns, last, best) if p.network.repeats else last
        for j in range(p.n):
            if j in end or not end.keys() >= set(before[j]):
                continue
            lasts = int(p.duration[j])
            for circuit in places(p, j) if lasts else [()]:
                t = max((end[i] for i in before[j]), default=0)
                for free, was in (held[place] for place in circuit if place in held):
                    t = max(t, free + (0 if was == circuit else p.dark_ticks))
                if p.on_grid[j]:
                    t = -(-t // p.ticks_per_slot) * p.ticks_per_slot
                then = held | dict.fromkeys(circuit, (t + lasts, circuit))
                turns.append((j, circuit))
                go_on({**end, j: t + lasts}, then, max(last, t + lasts))
                turns.pop()

    go_on({}, {}, 0)
    return best


def period(
    problem: Problem, turns: list[tuple[int, tuple[Place, ...]]], least: int, most: int
) -> int:
    """Return the shortest time from an iteration to the next under orders, ``most`` if it is no shorter.

    Each time from ``least`` on is tried: starts rise until everybody waits long enough, around the
    clock as well, or somebody ends too late.
    """
    p, users = problem, dict[Place, list[tuple[int, Any]]]()
    for j, circuit in turns:
        for place in circuit:
            users.setdefault(place, []).append((j, circuit))
    waits = [(i, j, 0, 0) for j in range(p.n) for i in predecessors(p, j)]
    for held in users.values():
        for k, (j, circuit) in enumerate(held):
            i, was = held[k - 1]
            device = circuit[0][0] == "device"
            if k or not device:
                waits.append((i, j, 0 if device or was == circuit else p.dark_ticks, k == 0))
    for ticks in range(least, most):
        start, moved = [0] * p.n, True
        while moved and max(s + d for s, d in zip(start, p.duration, strict=True)) <= ticks:
            moved = False
            for i, j, gap, around in waits:
                t = start[i] + int(p.duration[i]) + gap - around * ticks
                if p.on_grid[j]:
                    t = -(-t // p.ticks_per_slot) * p.ticks_per_slot
                if t > start[j]:
                    start[j], moved = t, True
        if not moved:
            return ticks
    return most


def places(problem: Problem, j: int) -> list[tuple[Place, ...]]:
    """What a task may hold: its device, or any out-port and in-port of a switch, in half duplex the same for both ways."""
    if not problem.on_grid[j]:
        return [(("device", problem.device[j]),) if problem.device[j] >= 0 else ()]
    net = problem.network
    out, into = ("port", "port") if net.half_duplex else ("out", "in")
    ports = range(net.ports_on_switch)
    return [
        ((out, net.source[j], r, a), (into, net.destination[j], r, b))
        for r, a, b in product(range(net.switches), ports, ports)
    ]
