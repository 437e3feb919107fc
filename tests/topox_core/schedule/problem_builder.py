"""Small reduced problems for tests, made from durations, transfers, precedences and a network."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from topox_core.schedule.planner import Planner, SchedulePlan
from topox_core.schedule.problem import Problem, SwitchNetwork
from topox_core.schedule.search.local_search import LocalSearch


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


def brute_force(problem: Problem) -> int:
    """Return the optimum in ticks by trying all starts within T, for T = 0, 1, 2, ...

    Counts circuits slot by slot from the network itself, not from the problem's capacities.
    """
    duration = problem.duration.tolist()
    before = [
        problem.pred_idx[problem.pred_ptr[j] : problem.pred_ptr[j + 1]].tolist()
        for j in range(problem.n)
    ]
    tail = list(duration)
    for j in reversed(range(problem.n)):
        for i in before[j]:
            tail[i] = max(tail[i], duration[i] + tail[j])
    horizon = max((j_tail for j_tail in tail), default=0)
    while not _fits(problem, before, tail, horizon, []):
        horizon += 1
    return horizon


def _fits(
    problem: Problem, before: list[list[int]], tail: list[int], horizon: int, start: list[int]
) -> bool:
    j = len(start)  # tasks of random problems are in topological order
    if j == problem.n:
        return True
    step = problem.ticks_per_slot if problem.on_grid[j] else 1
    earliest = max((start[i] + int(problem.duration[i]) for i in before[j]), default=0)
    for t in range(-(-earliest // step) * step, horizon - tail[j] + 1, step):
        if _allowed(problem, [*start, t]) and _fits(problem, before, tail, horizon, [*start, t]):
            return True
    return False


def _allowed(problem: Problem, start: list[int]) -> bool:
    """Whether the newest task agrees with those placed before: its device, and every slot's circuits."""
    net = problem.network
    assert net is not None
    j = len(start) - 1
    opened, closed = start[j], start[j] + int(problem.duration[j])
    if not problem.on_grid[j]:
        return not any(
            problem.device[i] == problem.device[j] >= 0
            and problem.duration[i] > 0
            and opened < closed
            and start[i] < closed
            and opened < start[i] + int(problem.duration[i])
            for i in range(j)
        )
    for t in range(opened, closed, problem.ticks_per_slot):
        active = [
            (int(net.source[i]), int(net.destination[i]))
            for i in range(j + 1)
            if problem.on_grid[i] and start[i] <= t < start[i] + int(problem.duration[i])
        ]
        circuits = sorted(set(active)) if net.shares else active
        for server in range(net.servers):
            out = sum(x == server for x, _ in circuits)
            into = sum(y == server for _, y in circuits)
            used = (out + into,) if net.half_duplex else (out, into)
            if (
                max(out, into) > net.switches * net.ports_on_switch
                or max(used) > net.ports_per_server
            ):
                return False
        if len(circuits) > net.switches * net.circuits_per_switch:
            return False
    return True


def searched(planner: Planner, plan: SchedulePlan, seed: int, candidates: int) -> SchedulePlan:
    """Return the better of a plan and what so many candidates of the local search make of it."""
    search = LocalSearch(planner, plan, seed)
    search.go_on(candidates)
    return min(plan, search.best_plan(), key=lambda one: one.cost)
