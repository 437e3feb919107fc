"""The reduction equals the printed model, both equal brute force, and limits keep what was found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.conftest import some
from tests.topox_core.schedule.problem_builder import Fabric, brute_force, build, random_problem
from topox_core.errors import InputError
from topox_core.schedule.bounds.windows import coarsened, critical_path, serial_schedule, windows
from topox_core.schedule.engines import mip, step_model
from topox_core.schedule.engines.engine import Limits, Progress
from topox_core.schedule.engines.highs import solve_highs
from topox_core.schedule.engines.printed import printed_model, solve_printed
from topox_core.schedule.feasibility import violation
from topox_core.schedule.problem import Problem

FABRICS = {
    "full duplex": Fabric(servers=3, switches=2, ports_per_server=2),
    "full duplex, one switch": Fabric(servers=3),
    "full duplex, fewer ports than switches": Fabric(servers=3, switches=3, ports_per_server=2),
    "half duplex, d_S < N_OCS": Fabric(switches=2, ports_per_server=1, half_duplex=True),
    "half duplex, d_S = N_OCS": Fabric(switches=2, ports_per_server=2, half_duplex=True),
    "half duplex, d_S > N_OCS": Fabric(switches=2, ports_per_server=3, half_duplex=True),
    "eq. 6 shared": Fabric(servers=3, shares=True),
    "eq. 6 shared, half duplex": Fabric(
        switches=2, ports_per_server=2, half_duplex=True, shares=True
    ),
    "binding total": Fabric(servers=4, circuits_per_switch=2),
    "binding total, eq. 6 shared": Fabric(
        servers=4, switches=2, circuits_per_switch=1, ports_per_server=2, shares=True
    ),
    "two ports a switch": Fabric(servers=3, ports_per_server=2, ports_on_switch=2),
}
by_fabric = pytest.mark.parametrize("fabric", FABRICS.values(), ids=FABRICS.keys())
LIMITS = Limits(time_limit_s=60)


def proved(problem: Problem, engine=solve_highs, limits: Limits = LIMITS) -> int:
    """The optimum that an engine proves; its schedule must keep every rule."""
    answer = engine(problem, limits)
    assert answer.stopped_by == "proof"
    assert answer.start is not None
    assert violation(problem, answer.start) is None
    assert answer.bound == answer.makespan(problem)
    return answer.bound


def busy_problem(seed: int = 0) -> Problem:
    """Transfers of uneven length between single half-duplex ports: found at once, proved in no short time."""
    return random_problem(
        seed, Fabric(servers=5, half_duplex=True), tasks=40, longest=9, density=0.05
    )


def step_optimum(problem: Problem) -> int:
    """The optimum of the step formulation by itself, within plain critical-path windows of a serial schedule."""
    horizon = int((serial_schedule(problem) + problem.duration).max())
    model = step_model.StepModel(
        problem, windows(problem, horizon), critical_path(problem), horizon
    )
    outcome = mip.solve(
        model.build(),
        mip.Run(60.0, 0.0, 1.0),
        None,
        lambda: False,
        lambda values: None,
        lambda dual: False,
    )
    start = model.start(outcome.values)
    assert outcome.ended == "optimal"
    assert violation(problem, start) is None
    return int((start + problem.duration).max())


@pytest.mark.sampled
@by_fabric
def test_the_reduction_equals_the_printed_model(fabric):
    for seed in some(range(8), quick=2):
        problem = random_problem(
            seed, fabric, tasks=8, exclusive_devices=seed % 2 == 0, density=0.12
        )
        assert step_optimum(problem) == proved(problem) == proved(problem, solve_printed)


@pytest.mark.sampled
@by_fabric
def test_the_reduction_equals_the_printed_model_on_a_tick_finer_than_the_slot(fabric):
    for seed in some(range(20, 24), quick=1):
        problem = random_problem(seed, fabric, tasks=8, ticks_per_slot=3, density=0.15)
        assert step_optimum(problem) == proved(problem) == proved(problem, solve_printed)


@pytest.mark.sampled
@by_fabric
@pytest.mark.parametrize("ticks_per_slot", [1, 2, 3])
def test_the_proved_optimum_is_what_trying_every_start_finds(fabric, ticks_per_slot):
    for seed in some(range(40, 43), quick=1):
        problem = random_problem(seed, fabric, tasks=6, ticks_per_slot=ticks_per_slot, density=0.15)
        assert step_optimum(problem) == proved(problem) == brute_force(problem)


def test_a_finer_tick_lets_compute_end_between_slots():
    # Two ticks a slot: compute of 3 ticks, then a transfer of one slot, then compute of 1 tick.
    problem = build(
        [3, 2, 1], {1: (0, 1)}, [(0, 1), (1, 2)], devices={0: 0, 2: 1}, ticks_per_slot=2
    )
    answer = solve_highs(problem, LIMITS)
    assert answer.start.tolist() == [0, 4, 6]
    assert answer.bound == 7


def test_two_transfers_of_a_pair_share_one_circuit_only_where_eq_6_is_as_printed():
    transfers = {0: (0, 1), 1: (0, 1)}
    assert proved(build([3, 3], transfers, fabric=Fabric(shares=True))) == 3
    assert proved(build([3, 3], transfers, fabric=Fabric(shares=False))) == 6
    assert proved(build([3, 3], transfers, fabric=Fabric(shares=True)), solve_printed) == 3
    assert proved(build([3, 3], transfers, fabric=Fabric(shares=False)), solve_printed) == 6


def test_devices_run_one_task_at_a_time_only_where_they_are_exclusive():
    assert proved(build([4, 5], devices={0: 0, 1: 0})) == 9
    assert proved(build([4, 5])) == 5


def test_half_duplex_makes_sending_and_receiving_take_turns():
    transfers = {0: (0, 1), 1: (1, 0)}
    assert proved(build([2, 2], transfers, fabric=Fabric(half_duplex=False))) == 2
    assert proved(build([2, 2], transfers, fabric=Fabric(half_duplex=True))) == 4
    assert proved(build([2, 2], transfers, fabric=Fabric(half_duplex=True)), solve_printed) == 4


@pytest.mark.sampled
@pytest.mark.parametrize("half_duplex", [False, True])
def test_more_ports_never_raise_the_optimum(half_duplex):
    for seed in some(range(6), quick=1):
        optima = [
            proved(
                random_problem(
                    seed,
                    Fabric(servers=3, switches=k, ports_per_server=k, half_duplex=half_duplex),
                    tasks=12,
                    density=0.08,
                )
            )
            for k in (1, 2, 3)
        ]
        assert optima == sorted(optima, reverse=True)


def test_scaling_all_durations_scales_the_optimum_and_not_the_model():
    problem = random_problem(3, FABRICS["full duplex"], tasks=10)
    longer = replace(problem, duration=problem.duration * 7)
    assert proved(longer) == 7 * proved(problem)
    coarse, tick = coarsened(replace(longer, ticks_per_slot=7))
    assert tick == 7
    assert np.array_equal(coarse.duration, problem.duration)


def test_a_proof_needs_no_search_when_the_bound_meets_the_schedule_given():
    problem = busy_problem()
    start = serial_schedule(problem)
    makespan = int((start + problem.duration).max())
    heard: list[Progress] = []
    answer = solve_highs(problem, Limits(bound=makespan, start=start), on_progress=heard.append)
    assert (answer.stopped_by, answer.bound, heard) == ("proof", makespan, [])
    assert np.array_equal(answer.start, start)


def test_the_serial_schedule_keeps_every_rule_and_the_critical_path_bounds_it():
    for fabric in FABRICS.values():
        for seed in range(10):
            problem = random_problem(
                seed, fabric, tasks=25, ticks_per_slot=1 + seed % 3, density=0.1
            )
            start = serial_schedule(problem)
            assert violation(problem, start) is None
            assert critical_path(problem) <= int((start + problem.duration).max())


@pytest.mark.parametrize("engine", [solve_highs, solve_printed])
def test_progress_tells_falling_makespans_with_schedules_and_rising_bounds(engine):
    problem = random_problem(11, Fabric(servers=3, half_duplex=True), tasks=12, density=0.08)
    heard: list[Progress] = []
    answer = engine(problem, LIMITS, on_progress=heard.append)
    incumbents = [p.incumbent for p in heard]
    bounds = [p.bound for p in heard]
    assert incumbents == sorted(incumbents, reverse=True)
    assert bounds == sorted(bounds)
    assert bounds[-1] == incumbents[-1] == answer.bound
    for progress in heard:
        if progress.start is not None:
            assert violation(problem, progress.start) is None
            assert int((progress.start + problem.duration).max()) == progress.incumbent


@pytest.mark.parametrize("engine", [solve_highs, solve_printed])
def test_the_time_limit_keeps_the_schedule_and_a_valid_bound(engine):
    problem = busy_problem()
    start = serial_schedule(problem)
    answer = engine(problem, Limits(time_limit_s=0.0, start=start))
    assert answer.stopped_by == "time_limit"
    assert np.array_equal(answer.start, start)
    assert critical_path(problem) <= answer.bound <= answer.makespan(problem)


def test_stop_ends_the_search_and_keeps_the_best_schedule():
    problem = busy_problem()
    heard: list[Progress] = []
    limits = replace(LIMITS, start=serial_schedule(problem))
    answer = solve_highs(problem, limits, stop=lambda: bool(heard), on_progress=heard.append)
    assert answer.stopped_by == "cancelled"
    assert violation(problem, answer.start) is None
    assert answer.bound < answer.makespan(problem)
    assert answer.makespan(problem) == heard[-1].incumbent


def test_a_relative_gap_ends_the_search_early():
    problem = busy_problem()
    answer = solve_highs(problem, Limits(time_limit_s=60, gap=0.9))
    assert answer.stopped_by == "gap"
    assert answer.makespan(problem) - answer.bound <= 0.9 * answer.makespan(problem)


@pytest.mark.parametrize("engine", [solve_highs, solve_printed])
def test_a_task_that_needs_more_than_there_is_makes_the_problem_infeasible_by_name(engine):
    problem = build([2, 1], {0: (0, 1)})
    problem = replace(problem, demand_amount=problem.demand_amount * 2)
    answer = engine(problem, LIMITS)
    assert answer.infeasible
    assert answer.start is None
    assert answer.message == "task t0 needs 2 of out-ports of server 0, which has 1"


@pytest.mark.parametrize("engine", [solve_highs, solve_printed])
def test_nothing_to_do_takes_no_time(engine):
    assert proved(build([]), engine) == 0
    assert proved(build([0, 0], edges=[(0, 1)]), engine) == 0


def test_a_model_too_large_is_refused_with_its_size(monkeypatch):
    problem = busy_problem()
    horizon = int((serial_schedule(problem) + problem.duration).max())
    model = step_model.StepModel(
        problem, windows(problem, horizon), critical_path(problem), horizon
    )
    monkeypatch.setattr(step_model, "MAX_COLUMNS", 100)
    with pytest.raises(
        InputError, match=r"the exact model would have [\d,]+ columns \(limit 100\): use list"
    ) as refusal:
        model.refuse_if_too_large()
    assert (refusal.value.file, refusal.value.field) == ("settings", "engine")


def test_the_printed_model_is_refused_by_size_before_it_is_built():
    problem = random_problem(
        1, Fabric(servers=16, switches=8, ports_per_server=8), tasks=300, longest=40, density=0.01
    )
    with pytest.raises(
        InputError,
        match=r"the printed model would have [\d,]+ (columns|matrix entries) \(limit [\d,]+\)",
    ):
        solve_printed(problem, LIMITS)


def test_the_size_named_before_building_bounds_what_is_built():
    for fabric in FABRICS.values():
        problem = random_problem(2, fabric, tasks=15, ticks_per_slot=2)
        horizon = int((serial_schedule(problem) + problem.duration).max())
        model = step_model.StepModel(
            problem, windows(problem, horizon), critical_path(problem), horizon
        )
        columns, nonzeros = model.size()
        built = model.build()
        assert int(built.integer.sum()) == columns
        assert built.nonzeros <= nonzeros + 3 * int((~built.integer).sum()) * problem.n
        printed = printed_model(problem, horizon, 0)
        whole = printed.build()
        assert (whole.columns, whole.nonzeros <= printed.nonzeros()) == (printed.columns, True)


def test_a_wrong_schedule_to_start_from_is_not_believed():
    problem = build([2, 2], {0: (0, 1), 1: (0, 2)})
    with pytest.raises(ValueError, match="more than 1 of out-ports of server 0 in slot 0"):
        solve_highs(problem, Limits(start=np.array([0, 0])))


def test_every_kind_of_broken_schedule_is_told_by_name():
    problem = build(
        [3, 2, 2, 2], {1: (0, 1), 2: (0, 2)}, [(0, 1)], devices={0: 0, 3: 0}, ticks_per_slot=2
    )
    good = np.array([0, 4, 6, 3])
    assert violation(problem, good) is None
    broken = {
        "t0 starts before 0": [-1, 4, 6, 3],
        "t1 does not start on a slot boundary": [0, 5, 8, 3],
        "t1 starts before t0 ends": [0, 2, 6, 3],
        "t0 and t3 overlap on the device of server 0": [0, 4, 6, 2],
        "more than 1 of out-ports of server 0 in slot 2": [0, 4, 4, 3],
    }
    for words, start in broken.items():
        assert words in violation(problem, np.array(start))
    assert "4 whole start ticks" in violation(problem, np.array([0.0, 4.0, 6.0, 3.0]))
    assert "4 whole start ticks" in violation(problem, np.array([0, 4, 6]))


def test_shared_circuits_count_once_however_many_transfers_ride_on_them():
    fabric = Fabric(servers=3, shares=True)
    problem = build([2, 3, 2], {0: (0, 1), 1: (0, 1), 2: (0, 2)}, fabric=fabric)
    assert violation(problem, np.array([0, 1, 4])) is None
    assert "out-ports of server 0 in slot 3" in violation(problem, np.array([0, 1, 3]))


@pytest.mark.parametrize("fits", [True, False])
def test_a_model_whose_starts_are_all_fixed_is_decided_without_a_search(fits):
    nothing, none = np.zeros(0), np.zeros(0, np.int32)
    row = np.array([0.0 if fits else 1.0])
    fixed = mip.Mip(
        nothing,
        nothing,
        nothing,
        np.zeros(0, np.bool_),
        row,
        np.array([np.inf]),
        np.zeros(2, np.int32),
        none,
        nothing,
        7.0,
    )
    outcome = mip.solve(
        fixed, mip.Run(1.0, 0.0, 1.0), None, lambda: False, lambda values: None, lambda dual: False
    )
    assert outcome.ended == ("optimal" if fits else "infeasible")
