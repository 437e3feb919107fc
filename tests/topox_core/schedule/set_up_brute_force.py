"""The optimum of tiny problems with set-ups, from all orders and all choices of ports; shares no code with any engine."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import product

from tests.topox_core.schedule.problem_builder import Fabric, random_problem
from topox_core.schedule.circuits.held_ports import with_set_ups
from topox_core.schedule.problem import Problem


def random_case(seed: int, half_duplex: bool | None = None) -> Problem:
    """A tiny problem with set-ups of 0 to 4 slots on one port, two switches with one each, or one with two."""
    rng = random.Random(seed)
    switches, each = rng.choice([(1, 1), (2, 1), (1, 2)])
    fabric = Fabric(
        servers=rng.randint(2, 4),
        switches=switches,
        ports_on_switch=each,
        ports_per_server=switches * each,
        half_duplex=rng.random() < 0.3 if half_duplex is None else half_duplex,
    )
    tasks = rng.randint(3, 6)
    problem = random_problem(
        seed, fabric, tasks, ticks_per_slot=rng.choice([1, 1, 2]), density=0.15
    )
    return with_set_ups(problem, rng.randint(0, 4))


def optimum(problem: Problem) -> int:
    """Return the shortest makespan in ticks.

    Every schedule, taken in the order of its starts, can be made anew by appending each task to its
    device or ports as early as those allow, and is no longer then.
    """
    search = _Search(problem)
    search.go_on(frozenset(), {}, {}, {}, 0)
    return search.best


@dataclass
class _Search:
    problem: Problem
    best: int = 1 << 60
    before: list[list[int]] = field(init=False)

    def __post_init__(self) -> None:
        p = self.problem
        self.before = [p.pred_idx[p.pred_ptr[j] : p.pred_ptr[j + 1]].tolist() for j in range(p.n)]

    def choices(self, j: int) -> list[tuple[tuple[object, ...], tuple[object, ...]]]:
        """Every (out-port, in-port) of a transfer; one and the same port both ways in half duplex."""
        net = self.problem.network
        assert net is not None
        x, y = int(net.source[j]), int(net.destination[j])
        sides = ("", "") if net.half_duplex else ("out", "in")
        ports = range(net.ports_on_switch)
        return [
            ((sides[0], x, r, a), (sides[1], y, r, b))
            for r, a, b in product(range(net.switches), ports, ports)
        ]

    def go_on(self, done: frozenset[int], end: dict, port: dict, device: dict, last: int) -> None:  # type: ignore[type-arg]
        p = self.problem
        if last >= self.best:
            return
        if len(done) == p.n:
            self.best = last
            return
        for j in range(p.n):
            if j in done or any(i not in done for i in self.before[j]):
                continue
            ready = max((end[i] for i in self.before[j]), default=0)
            lasts = int(p.duration[j])
            if p.on_grid[j] and lasts > 0:
                for out_port, in_port in self.choices(j):
                    circuit, t = (out_port, in_port), ready
                    for held in circuit:
                        if held in port:
                            free, was = port[held]
                            t = max(t, free + (0 if was == circuit else p.dark_ticks))
                    t = -(-t // p.ticks_per_slot) * p.ticks_per_slot
                    held_now = {**port, **dict.fromkeys(circuit, (t + lasts, circuit))}
                    self.go_on(
                        done | {j}, {**end, j: t + lasts}, held_now, device, max(last, t + lasts)
                    )
            else:
                place = int(p.device[j]) if lasts > 0 else -1
                t = max(ready, device.get(place, 0)) if place >= 0 else ready
                if p.on_grid[j]:
                    t = -(-t // p.ticks_per_slot) * p.ticks_per_slot
                taken = {**device, place: t + lasts} if place >= 0 else device
                self.go_on(done | {j}, {**end, j: t + lasts}, port, taken, max(last, t + lasts))
