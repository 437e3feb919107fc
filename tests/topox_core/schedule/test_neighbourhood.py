"""Large neighbourhoods: what fits the reduced problem fits the whole, and what does not fits nowhere."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
import pytest

from tests.conftest import some
from tests.topox_core.schedule.problem_builder import Fabric, random_problem
from topox_core.schedule.bounds import propagation
from topox_core.schedule.bounds.propagation import Propagator
from topox_core.schedule.bounds.windows import Windows, clocks, serial_schedule
from topox_core.schedule.engines import highs, mip
from topox_core.schedule.engines.best_known import initially_known
from topox_core.schedule.engines.engine import Limits, Progress
from topox_core.schedule.engines.highs import solve_highs
from topox_core.schedule.engines.step_model import StepModel
from topox_core.schedule.feasibility import violation
from topox_core.schedule.generation.list_scheduler import Generator
from topox_core.schedule.problem import Int, Problem
from topox_core.schedule.search import large_neighbourhood
from topox_core.schedule.search.large_neighbourhood import SubSolver, search_neighbourhoods
from topox_core.schedule.search.neighbourhood import Middle, Neighbourhood
from topox_core.schedule.source import TraceSource

FABRICS = {
    "full duplex": Fabric(servers=3),
    "several ports": Fabric(servers=3, switches=2, ports_per_server=2),
    "half duplex": Fabric(servers=3, half_duplex=True),
    "half duplex, several ports": Fabric(
        servers=4, switches=2, ports_per_server=3, half_duplex=True
    ),
    "binding total": Fabric(servers=4, circuits_per_switch=2),
    "eq. 6 shared": Fabric(servers=3, shares=True),
}
by_fabric = pytest.mark.parametrize("fabric", FABRICS.values(), ids=FABRICS.keys())


@dataclass
class Trying:
    """Every start in the windows, one task after another in a random order of starts; shares no code with any engine."""

    problem: Problem
    windows: Windows
    horizon: int
    seed: int
    most: int = 3_000  # starts tried before it is given up
    tried: int = 0
    start: dict[int, int] = field(default_factory=dict)

    def schedule(self) -> Int | None:
        """A schedule; None if there is none. ``tried`` beyond ``most``: nothing is known."""
        p = self.problem
        self.order, self.random = p.order.tolist(), random.Random(self.seed)
        self.length, self.device, self.pair, self.capacity = (
            a.tolist() for a in (p.duration, p.device, p.pair, p.capacity)
        )
        self.before = [p.pred_idx[p.pred_ptr[j] : p.pred_ptr[j + 1]].tolist() for j in range(p.n)]
        self.uses = [
            dict(
                zip(
                    p.demand_resource[p.demand_ptr[j] : p.demand_ptr[j + 1]].tolist(),
                    p.demand_amount[p.demand_ptr[j] : p.demand_ptr[j + 1]].tolist(),
                    strict=True,
                )
            )
            for j in range(p.n)
        ]
        if not self._place(0):
            return None
        return np.array([self.start[j] for j in range(self.problem.n)], np.int64)

    @property
    def gave_up(self) -> bool:
        return self.tried > self.most

    def _place(self, at: int) -> bool:
        if at == len(self.order):
            return True
        j = self.order[at]
        earliest, step = int(self.windows.earliest[j]), int(self.windows.clock[j])
        first = max([earliest, *(self.start[i] + self.length[i] for i in self.before[j])])
        last = min(int(self.windows.latest[j]), self.horizon - self.length[j])
        starts = list(range(earliest - (earliest - first) // step * step, last + 1, step))
        self.random.shuffle(starts)
        for t in starts:
            self.tried += 1
            if self.gave_up:
                return False
            self.start[j] = t
            if self._free(j, t) and self._place(at + 1):
                return True
            del self.start[j]
        return False

    def _free(self, j: int, first: int) -> bool:
        closed = first + self.length[j]
        others = [
            i
            for i, t in self.start.items()
            if i != j and self.length[i] > 0 and t < closed and first < t + self.length[i]
        ]
        if not self.length[j] or not others:
            return True
        if self.device[j] >= 0 and any(self.device[i] == self.device[j] for i in others):
            return False
        for resource, amount in self.uses[j].items():
            rivals = [i for i in others if resource in self.uses[i]]
            for t in range(first, closed) if rivals else ():
                circuits = {self._circuit(j): amount}
                circuits |= {
                    self._circuit(i): self.uses[i][resource]
                    for i in rivals
                    if self.start[i] <= t < self.start[i] + self.length[i]
                }
                if sum(circuits.values()) > self.capacity[resource]:
                    return False
        return True

    def _circuit(self, j: int) -> int:
        """A number of its own, or of the circuit that its pair shares."""
        return -1 - j if self.pair[j] < 0 else self.pair[j]


def middle_of(problem: Problem, slack: int) -> Middle:
    """A schedule improved a little, pushed to the right against an end ``slack`` ticks after its own."""
    start = serial_schedule(problem)
    generator = Generator.of(problem, int((start + problem.duration).max()))
    start, makespan = generator.improved(start, int((start + problem.duration).max()), 0, rounds=1)
    return Middle.of(generator, clocks(problem), start, makespan + slack)


def stretches(middle: Middle, seed: int, many: int = 5) -> list[Neighbourhood]:
    """Neighbourhoods of stretches anywhere, from a few ticks to the whole iteration."""
    rng = np.random.default_rng(seed)
    ends = [(-1, middle.horizon + 1)]
    for _ in range(many):
        first = int(rng.integers(0, middle.horizon + 1))
        ends.append((first, first + int(rng.integers(0, middle.horizon + 1))))
    return [chosen for first, last in ends if (chosen := middle.between(first, last)) is not None]


def pinned(middle: Middle, chosen: Neighbourhood) -> Windows:
    """The same question put to the whole problem: free tasks anywhere, the others where they are."""
    free = chosen.tasks[: chosen.free]
    earliest, latest, clock = (
        chosen.rest.copy(),
        chosen.rest.copy(),
        np.ones(middle.problem.n, np.int64),
    )
    earliest[free], latest[free], clock[free] = 0, chosen.horizon, middle.clock[free]
    return Windows(earliest, latest, clock)


@by_fabric
@pytest.mark.parametrize("ticks_per_slot", [1, 2])
def test_what_fits_a_neighbourhood_fits_the_whole(fabric, ticks_per_slot):
    found = 0
    for seed in range(12):
        problem = random_problem(
            seed, fabric, tasks=20, ticks_per_slot=ticks_per_slot, density=0.08
        )
        middle = middle_of(problem, slack=seed % 3 * ticks_per_slot)
        for chosen in stretches(middle, seed):
            start = Trying(
                chosen.problem, chosen.windows, chosen.horizon, seed, most=300
            ).schedule()
            if start is not None:
                whole, fixed = chosen.whole(start), np.ones(problem.n, np.bool_)
                fixed[chosen.tasks[: chosen.free]] = False
                assert violation(problem, whole) is None, seed
                assert int((whole + problem.duration).max()) <= chosen.horizon
                assert np.array_equal(whole[fixed], chosen.rest[fixed])
                found += 1
    assert found > 10


@by_fabric
def test_a_neighbourhood_without_a_schedule_has_none_in_the_whole_either(fabric):
    decided = {True: 0, False: 0}
    for seed in range(24):
        problem = random_problem(seed, fabric, tasks=8, longest=2, density=0.1)
        middle = middle_of(problem, slack=-1)
        for chosen in stretches(middle, seed, many=3):
            inner = Trying(chosen.problem, chosen.windows, chosen.horizon, seed)
            outer = Trying(problem, pinned(middle, chosen), chosen.horizon, seed)
            fits, fits_whole = inner.schedule() is not None, outer.schedule() is not None
            if not inner.gave_up and not outer.gave_up:
                assert fits == fits_whole, seed
                decided[fits] += 1
    assert decided[False] > 3


def by_highs(chosen: Neighbourhood, given: Windows) -> Int | None:
    model = StepModel(chosen.problem, given, chosen.horizon, chosen.horizon)
    if model.empty:
        return None
    outcome = mip.solve(
        model.build(),
        mip.Run(30.0, 0.0, 1.0),
        None,
        lambda: False,
        lambda values: None,
        lambda dual: False,
    )
    assert outcome.ended in ("optimal", "infeasible")
    return None if outcome.ended == "infeasible" else model.start(outcome.values)


@by_fabric
def test_propagation_and_highs_decide_a_neighbourhood_as_trying_every_start_does(fabric):
    decided = {True: 0, False: 0}
    for seed in range(12):
        problem = random_problem(seed, fabric, tasks=10, longest=2, density=0.1)
        for chosen in stretches(middle_of(problem, slack=-1), seed, many=3):
            trying = Trying(chosen.problem, chosen.windows, chosen.horizon, seed)
            fits = trying.schedule() is not None
            if trying.gave_up:
                continue
            narrowed = Propagator(chosen.problem).propagated(chosen.windows, chosen.horizon)
            start = None if narrowed is None else by_highs(chosen, narrowed)
            assert (start is not None) == fits, seed
            assert start is None or violation(problem, chosen.whole(start)) is None
            decided[fits] += 1
    assert decided[False]


@pytest.mark.sampled
@pytest.mark.parametrize("propagated", [True, False])
def test_a_model_too_large_for_one_search_is_left_to_neighbourhoods(monkeypatch, propagated):
    monkeypatch.setattr(highs, "WHOLE_COLUMNS", 4_000)
    monkeypatch.setattr(highs, "FREE_TASKS", 40)
    monkeypatch.setattr(large_neighbourhood, "SOLVE_S", 10.0)  # however busy the machine
    monkeypatch.setattr(large_neighbourhood, "WALK_S", 0.0)  # nobody else finds anything
    if not propagated:  # as where an iteration has very many ticks
        monkeypatch.setattr(propagation, "MAX_MOMENTS", 0)
    for seed in some((2, 0), quick=1):
        problem = random_problem(
            seed, Fabric(servers=5, half_duplex=True), tasks=80, longest=6, density=0.04
        )
        begun = serial_schedule(problem)
        heard: list[Progress] = []
        answer = solve_highs(
            problem,
            Limits(time_limit_s=120, start=begun),
            on_progress=heard.append,
            stop=lambda: any(p.start is not None for p in heard),  # noqa: B023 - asked in this round only
        )
        found = [p for p in heard if p.start is not None]
        assert {p.source.name for p in found} == {"HiGHS neighbourhoods"}
        assert violation(problem, answer.start) is None
        assert answer.bound <= answer.makespan(problem) < int((begun + problem.duration).max())


def test_where_exact_solves_decide_nothing_a_local_search_takes_their_turns():
    problem = random_problem(
        2, Fabric(servers=5, half_duplex=True), tasks=80, longest=6, density=0.04
    )
    heard: list[Progress] = []
    known = initially_known(
        problem, Limits(time_limit_s=60.0, start=serial_schedule(problem)), heard.append
    )
    before = known.makespan
    search_neighbourhoods(
        problem,
        1,
        1,
        known,
        SubSolver(lambda *_: "undecided", TraceSource("exact", "exact"), 40),
        lambda: known.makespan < before,
        None,
    )
    assert known.makespan < before
    assert {p.source.name for p in heard if p.start is not None} == {"local search"}
    assert violation(problem, known.start) is None
