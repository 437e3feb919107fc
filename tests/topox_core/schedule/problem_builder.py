"""Small reduced problems for tests, made from durations, transfers, precedences and a network."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from topox_core.schedule.bounds.best_bound import best_bound
from topox_core.schedule.bounds.windows import Windows
from topox_core.schedule.circuits.held_ports import NOT_CARRIED, Solution, carried_tasks
from topox_core.schedule.planning.local_search import LocalSearch
from topox_core.schedule.planning.planner import Planner, SchedulePlan
from topox_core.schedule.problem import Problem, SwitchNetwork


@dataclass(frozen=True)
class Fabric:
    """The switches of a test: Table I's symbols in words."""

    servers: int = 3
    switches: int = 1
    circuits_per_switch: int = 99
    ports_per_server: int = 1
    ports_on_switch: int = 1
    half_duplex: bool = False
    shares: bool = False


def compressed(rows: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    pointer = np.cumsum([0, *map(len, rows)]).astype(np.int32)
    return pointer, np.array([value for row in rows for value in row], np.int32)


def build(
    durations: Sequence[int],
    transfers: Mapping[int, tuple[int, int]] = {},
    edges: Sequence[tuple[int, int]] = (),
    fabric: Fabric | None = None,
    devices: Mapping[int, int] = {},
    ticks_per_slot: int = 1,
) -> Problem:
    """Make a problem: ``transfers`` maps tasks to (source, destination), ``devices`` maps tasks to devices.

    Capacities are written down plainly: out and in of every server, their sum for half duplex, and
    the total.
    """
    fabric = fabric or Fabric()
    n, s = len(durations), fabric.servers
    each_way = fabric.switches * fabric.ports_on_switch
    if not fabric.half_duplex:
        each_way = min(each_way, fabric.ports_per_server)
    capacity = (
        [each_way] * (2 * s)
        + [fabric.ports_per_server] * s
        + [fabric.switches * fabric.circuits_per_switch]
    )
    demands: list[list[int]] = []
    for j in range(n):
        x, y = transfers.get(j, (-1, -1))
        both = [2 * s + x, 2 * s + y] if fabric.half_duplex else []
        demands.append([x, s + y, *both, 3 * s] if j in transfers else [])
    before: list[list[int]] = [[] for _ in range(n)]
    after: list[list[int]] = [[] for _ in range(n)]
    for i, j in edges:
        before[j].append(i)
        after[i].append(j)
    demand_ptr, demand_resource = compressed(demands)
    pred_ptr, pred_idx = compressed(before)
    succ_ptr, succ_idx = compressed(after)
    ends = np.array([transfers.get(j, (-1, -1)) for j in range(n)], np.int32).reshape(n, 2)
    pair = [x * s + y if fabric.shares and x >= 0 else -1 for x, y in ends.tolist()]
    places = max(devices.values(), default=-1) + 1
    return Problem(
        duration=np.array(durations, np.int64),
        on_grid=np.array([j in transfers for j in range(n)], np.bool_),
        device=np.array([devices.get(j, -1) for j in range(n)], np.int32),
        capacity=np.array(capacity, np.int32),
        demand_ptr=demand_ptr,
        demand_resource=demand_resource,
        demand_amount=np.ones(len(demand_resource), np.int32),
        server_ports=np.arange(len(capacity)) < 3 * s,
        pair=np.array(pair, np.int32),
        pred_ptr=pred_ptr,
        pred_idx=pred_idx,
        succ_ptr=succ_ptr,
        succ_idx=succ_idx,
        ticks_per_slot=ticks_per_slot,
        tick_ms=1.0,
        device_names=tuple(f"the device of server {d}" for d in range(places)),
        resource_names=(
            *(f"{way}-ports of server {x}" for way in ("out", "in") for x in range(s)),
            *(f"ports of server {x}" for x in range(s)),
            "all switches together",
        ),
        task_names=tuple(f"t{j}" for j in range(n)),
        network=SwitchNetwork(
            ends[:, 0],
            ends[:, 1],
            s,
            fabric.switches,
            fabric.circuits_per_switch,
            fabric.ports_per_server,
            fabric.ports_on_switch,
            fabric.half_duplex,
            fabric.shares,
        ),
    )


def makespan(problem: Problem, start: np.ndarray) -> int:
    """Return the last end in ticks."""
    return int((start + problem.duration).max(initial=0))


def random_problem(
    seed: int,
    fabric: Fabric,
    tasks: int = 6,
    ticks_per_slot: int = 1,
    longest: int = 3,
    exclusive_devices: bool = True,
    density: float = 0.25,
) -> Problem:
    """Make a random problem: about two thirds transfers, the rest compute (now and then of zero time)."""
    rng = random.Random(seed)
    durations: list[int] = []
    transfers: dict[int, tuple[int, int]] = {}
    devices: dict[int, int] = {}
    for j in range(tasks):
        if rng.random() < 0.65:
            x = rng.randrange(fabric.servers)
            transfers[j] = (x, (x + rng.randrange(1, fabric.servers)) % fabric.servers)
            durations.append(rng.randint(1, longest) * ticks_per_slot)
        else:
            if exclusive_devices:
                devices[j] = rng.randrange(fabric.servers)
            durations.append(rng.randint(0, longest * ticks_per_slot))
    edges = [(i, j) for j in range(tasks) for i in range(j) if rng.random() < density]
    return build(durations, transfers, edges, fabric, devices, ticks_per_slot)


@dataclass
class Trying:
    """Every start in the windows, one task after another, in order or at random; shares no code with any engine."""

    problem: Problem
    windows: Windows
    horizon: int
    random: random.Random | None = None
    most: float = math.inf  # starts tried before it is given up
    tried: int = 0
    start: dict[int, int] = field(default_factory=dict)

    def schedule(self) -> np.ndarray | None:
        """A schedule; None if there is none. ``tried`` beyond ``most``: nothing is known."""
        if not self._place(self.problem.order.tolist()):
            return None
        return np.array([self.start[j] for j in range(self.problem.n)], np.int64)

    def _place(self, left: list[int]) -> bool:
        if not left:
            return True
        p, (j, *others) = self.problem, left
        ready = max((self._end(i) for i in predecessors(p, j)), default=0)
        last = min(self.windows.latest[j], self.horizon - p.duration[j])
        starts = range(self.windows.earliest[j], last + 1, self.windows.clock[j])
        order = self.random.sample(starts, len(starts)) if self.random else starts
        for t in (t for t in order if t >= ready):
            self.tried += 1
            if self.tried > self.most:
                return False
            self.start[j] = t
            if self._free(j) and self._place(others):
                return True
            del self.start[j]
        return False

    def _end(self, i: int) -> int:
        return self.start[i] + int(self.problem.duration[i])

    def _free(self, j: int) -> bool:
        """Whether no device and no resource is overdrawn while a task runs: more is used only where one begins."""
        p, end = self.problem, self._end(j)
        for t in {t for t in self.start.values() if self.start[j] <= t < end}:
            now = [i for i, since in self.start.items() if since <= t < self._end(i)]
            if p.device[j] >= 0 and sum(p.device[i] == p.device[j] for i in now) > 1:
                return False
            circuits: defaultdict[int, dict[int, int]] = defaultdict(dict)
            for i in now:
                uses = slice(p.demand_ptr[i], p.demand_ptr[i + 1])
                # A circuit of its own, or the one that its pair shares.
                circuit = -1 - i if p.pair[i] < 0 else int(p.pair[i])
                for r, amount in zip(p.demand_resource[uses], p.demand_amount[uses], strict=True):
                    circuits[r][circuit] = amount
            if any(sum(drawn.values()) > p.capacity[r] for r, drawn in circuits.items()):
                return False
        return True


def predecessors(problem: Problem, j: int) -> list[int]:
    return problem.pred_idx[problem.pred_ptr[j] : problem.pred_ptr[j + 1]].tolist()


def brute_force(problem: Problem) -> int:
    """Return the optimum in ticks by trying all starts within T, for T from the longest chain on."""
    tail = problem.duration.copy()
    for j in reversed(problem.order):
        for i in predecessors(problem, j):
            tail[i] = max(tail[i], problem.duration[i] + tail[j])
    clock = np.where(problem.on_grid, problem.ticks_per_slot, 1)

    def fits(horizon: int) -> bool:
        given = Windows(np.zeros_like(tail), horizon - tail, clock)
        return Trying(problem, given, horizon).schedule() is not None

    return next(filter(fits, count(int(tail.max(initial=0)))))


def planner_of(problem: Problem, continuous: bool = False, dark_slots: int = 0) -> Planner:
    return Planner.of(problem, best_bound(problem, 0).ticks, continuous, dark_slots)


def searched(planner: Planner, plan: SchedulePlan, seed: int, candidates: int) -> SchedulePlan:
    """Return the better of a plan and what so many candidates of the local search make of it."""
    search = LocalSearch(planner, plan, seed)
    search.go_on(candidates)
    return min(plan, search.best_plan(), key=lambda one: one.cost)


def one_after_another(problem: Problem) -> Solution:
    """A plain schedule with set-ups: one task at a time, a set-up between any two."""
    dark, slot = problem.dark_ticks or 0, problem.ticks_per_slot
    start = np.zeros(problem.n, np.int64)
    at = 0
    for j in problem.order.tolist():
        if problem.on_grid[j]:
            at = -(-at // slot) * slot
        start[j] = at
        at += int(problem.duration[j]) + (dark if problem.on_grid[j] else 0)
    ports = np.full((3, problem.n), NOT_CARRIED, np.int32)
    ports[:, carried_tasks(problem)] = 0
    return Solution(start, ports)
