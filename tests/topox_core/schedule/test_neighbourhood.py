"""Large neighbourhoods: what fits the reduced problem fits the whole, and what does not fits nowhere."""

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tests.conftest import some
from tests.topox_core.schedule.fake_solvers import solved_by_cpsat
from tests.topox_core.schedule.problem_builder import Fabric, Trying, makespan, random_problem
from tests.topox_core.schedule.test_exact_engines import sample, solved
from topox_core.schedule.bounds import propagation
from topox_core.schedule.bounds.propagation import Propagator
from topox_core.schedule.bounds.windows import Windows, clocks, windows
from topox_core.schedule.circuits.held_ports import (
    Solution,
    ports_of,
    solution_violation,
    with_set_ups,
)
from topox_core.schedule.engines import highs
from topox_core.schedule.engines.disjunctions import (
    Disjunctions,
    kept_apart,
    neighbourhoods_fit,
    sides_in_turn,
)
from topox_core.schedule.engines.engine import Limits, Progress
from topox_core.schedule.engines.highs import solve_highs
from topox_core.schedule.engines.step_model import StepModel
from topox_core.schedule.feasibility import violation
from topox_core.schedule.generation.list_scheduler import Generator, serial_schedule
from topox_core.schedule.planner import Planner
from topox_core.schedule.problem import Int, Problem
from topox_core.schedule.search import large_neighbourhood
from topox_core.schedule.search.large_neighbourhood import Middle, Neighbourhood

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


def middle_of(problem: Problem, slack: int) -> Middle:
    """A schedule improved a little, pushed to the right against an end ``slack`` ticks after its own."""
    start = serial_schedule(problem)
    generator = Generator.of(problem, makespan(problem, start))
    start, end = generator.improved(start, makespan(problem, start), 0, rounds=1)
    return Middle.of(generator, clocks(problem), start, end + slack)


def stretches(middle: Middle, seed: int) -> list[Neighbourhood]:
    """Neighbourhoods of stretches anywhere, from a few ticks to the whole iteration."""
    firsts, lengths = np.random.default_rng(seed).integers(0, middle.horizon + 1, (2, 3))
    ends = [(-1, middle.horizon + 1), *zip(firsts, firsts + lengths, strict=True)]
    return [chosen for end in ends if (chosen := middle.between(*end)) is not None]


def pinned(middle: Middle, chosen: Neighbourhood) -> Windows:
    """The same question put to the whole problem: free tasks anywhere, the others where they are."""
    free = np.isin(np.arange(middle.problem.n), chosen.tasks[: chosen.free])
    return Windows(
        np.where(free, 0, chosen.rest),
        np.where(free, chosen.horizon, chosen.rest),
        np.where(free, middle.clock, 1),
    )


def by_highs(chosen: Neighbourhood) -> Int | None:
    given = Propagator(chosen.problem).propagated(chosen.windows, chosen.horizon)
    if given is None:
        return None
    # The shortest makespan asked for is on a slot: the last end of transfers is.
    least = chosen.horizon - chosen.horizon % chosen.problem.ticks_per_slot
    model = StepModel(chosen.problem, given, least, chosen.horizon)
    if model.empty:
        return None
    found = solved(model.build())
    assert found.ended in ("optimal", "infeasible")
    return None if found.ended == "infeasible" else model.start(found.values)


@pytest.mark.parametrize("fabric", FABRICS.values(), ids=FABRICS.keys())
def test_a_neighbourhood_has_a_schedule_exactly_where_the_whole_has_one_around_what_is_fixed(
    fabric,
):
    decided: Counter[bool] = Counter()
    for seed in some(range(40), quick=8):
        problem = random_problem(seed, fabric, 8, 1 + seed % 5 // 4, longest=2, density=0.1)
        middle = middle_of(problem, slack=seed % 3 - 1)
        for chosen in stretches(middle, seed):
            inner, outer = (
                Trying(of, given, chosen.horizon, random.Random(seed), most=1_000)
                for of, given in (
                    (chosen.problem, chosen.windows),
                    (problem, pinned(middle, chosen)),
                )
            )
            tried, fits_whole = inner.schedule(), outer.schedule() is not None
            if max(inner.tried, outer.tried) > inner.most:
                continue
            found = by_highs(chosen)
            assert fits_whole == (tried is not None) == (found is not None), seed
            decided[fits_whole] += 1
            for start in (tried, found) if fits_whole else ():
                whole = chosen.whole(start)
                assert violation(problem, whole) is None, seed
                assert makespan(problem, whole) <= chosen.horizon
    assert min(decided[True], decided[False]) > 3


BUSY = random_problem(2, Fabric(servers=5, half_duplex=True), tasks=80, longest=6, density=0.04)


@pytest.mark.parametrize("propagated", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_model_too_large_for_one_search_is_left_to_neighbourhoods(monkeypatch, propagated):
    monkeypatch.setattr(highs, "WHOLE_COLUMNS", 4_000)
    monkeypatch.setattr(highs, "FREE_TASKS", 40)
    monkeypatch.setattr(large_neighbourhood, "SOLVE_S", 10.0)  # however busy the machine
    if not propagated:  # as where an iteration has very many ticks
        monkeypatch.setattr(propagation, "MAX_MOMENTS", 0)
    begun, found = serial_schedule(BUSY), []

    def heard(progress: Progress) -> None:
        found.extend([progress.source.name] if progress.start is not None else [])

    limits = Limits(time_limit_s=120, start=begun)
    answer = solve_highs(BUSY, limits, on_progress=heard, stop=lambda: bool(found))
    assert set(found) == {"HiGHS neighbourhoods"}
    assert violation(BUSY, answer.start) is None
    assert answer.bound <= makespan(BUSY, answer.start) < makespan(BUSY, begun)


def test_every_schedule_keeps_the_turns_that_it_says():
    fabric = Fabric(servers=4, switches=2, ports_on_switch=1, ports_per_server=2)
    for seed in range(20):
        problem = with_set_ups(random_problem(seed, fabric, 25, density=0.1), seed % 4)
        plan = Planner.of(problem, 0, continuous=True, dark_slots=seed % 4).best_plan()
        known = Solution(plan.start, ports_of(problem, plan.booking))
        free = np.random.default_rng(seed).random(problem.n) < 0.3
        sides = sides_in_turn(problem, known)
        end = plan.start + problem.duration
        for pair in kept_apart(problem, sides, known, free, windows(problem, plan.makespan)):
            i, j = pair.first, pair.second
            apart_on_two = pair.on_one_switch and known.ports[0, i] != known.ports[0, j]
            follows = plan.start[j] >= end[i] + pair.apart
            leads = plan.start[i] >= end[j] + pair.apart
            assert apart_on_two or follows or (pair.either and leads)


def test_what_neighbourhoods_with_set_ups_find_keeps_every_rule():
    """Sample moe has too many pairs of transfers for one model."""
    problem, limits = sample("moe", 1.0)
    assert neighbourhoods_fit(problem)
    assert not Disjunctions.may_be_few(problem)
    (answer,) = solved_by_cpsat([problem], replace(limits, time_limit_s=0.5))
    assert answer.message == ""
    assert solution_violation(problem, Solution(answer.start, answer.ports)) is None
    assert answer.bound <= makespan(problem, answer.start) <= makespan(problem, limits.start)
