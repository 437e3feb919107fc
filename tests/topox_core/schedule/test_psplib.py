"""PSPLIB instances: published optima are proved, bad files get one clear line."""

import pytest

from tests.conftest import long_after
from tests.refusal import refusal
from tests.topox_core.schedule.problem_builder import makespan
from topox_core.schedule.bounds.best_bound import best_bound
from topox_core.schedule.engines.engine import Limits
from topox_core.schedule.engines.highs import solve_highs
from topox_core.schedule.planning.local_search import LocalSearch
from topox_core.schedule.planning.planner import Planner
from topox_core.schedule.problem import Problem
from topox_core.schedule.rcpsp.feasibility import violation
from topox_core.schedule.rcpsp.psplib import read_psplib
from topox_core.schedule.settings import Settings
from topox_core.schedule.solve import solve_problem

# Written for this test in PSPLIB's layout: two jobs compete for R1, optimum 3 + 4 + 2.
SMALL = """************************************************************************
file with basedata            : ours.bas
************************************************************************
projects                      :  1
jobs (incl. supersource/sink ):  5
horizon                       :  9
RESOURCES
  - renewable                 :  2   R
  - nonrenewable              :  0   N
  - doubly constrained        :  0   D
************************************************************************
PRECEDENCE RELATIONS:
jobnr.    #modes  #successors   successors
   1        1          2           2   3
   2        1          1           4
   3        1          1           4
   4        1          1           5
   5        1          0
************************************************************************
REQUESTS/DURATIONS:
jobnr. mode duration  R 1  R 2
------------------------------------------------------------------------
  1      1     0       0    0
  2      1     3       2    0
  3      1     4       2    1
  4      1     2       0    1
  5      1     0       0    0
************************************************************************
RESOURCEAVAILABILITIES:
  R 1  R 2
    3    1
************************************************************************
"""


def instance(real_inputs, name: str) -> Problem:
    return read_psplib((real_inputs / "psplib" / f"{name}.sm").read_bytes(), f"{name}.sm")


def test_a_small_instance_is_read_and_solved():
    problem = read_psplib(SMALL.encode(), "ours.sm")
    assert problem.task_names == ("1", "2", "3", "4", "5")
    found = (problem.duration, problem.capacity, problem.succ_idx)
    assert [values.tolist() for values in found] == [[0, 3, 4, 2, 0], [3, 1], [1, 2, 3, 3, 4]]
    answer = solve_highs(problem, Limits(time_limit_s=20))
    assert (answer.bound, makespan(problem, answer.solution.start), answer.stopped_by) == (
        9,
        9,
        "proof",
    )


@pytest.mark.parametrize(("name", "optimum"), [("j301_1", 43), ("j302_1", 38), ("j305_1", 53)])
def test_published_optima_are_proved(real_inputs, name, optimum):
    problem = instance(real_inputs, name)
    answer = solve_highs(problem, Limits(time_limit_s=120))
    assert violation(problem, answer.solution.start) is None
    assert makespan(problem, answer.solution.start) == answer.bound == optimum
    assert answer.stopped_by == "proof"


PUBLISHED = pytest.mark.parametrize(
    ("name", "optimum"),
    long_after(
        2, [("j301_1", 43), ("j302_1", 38), ("j305_1", 53), ("j3013_1", 58), ("j3037_1", 79)]
    ),
)


@PUBLISHED
def test_the_local_search_finds_every_published_optimum(real_inputs, name, optimum):
    problem = instance(real_inputs, name)
    planner = Planner.of(problem, best_bound(problem, 0).ticks, continuous=False, dark_slots=0)
    search = LocalSearch(planner, planner.best_plan())
    while search.cost[0] > optimum and search.steps < 150_000:  # some seconds of one core
        search.go_on(500)
    assert search.best_plan().makespan == optimum
    assert violation(problem, search.best_plan().start) is None


@PUBLISHED
def test_five_seconds_of_all_engines_leave_a_bound_below_and_a_schedule_near_the_published_optimum(
    real_inputs, name, optimum
):
    problem = instance(real_inputs, name)
    result = solve_problem(problem, Settings.of(engine="auto", time_limit_s=5, threads=2))
    assert result.bound_ms <= optimum <= result.makespan_ms <= 1.06 * optimum
    assert (result.stopped_by == "proof") == (result.bound_ms == result.makespan_ms)


@pytest.mark.parametrize("units", [1, 0])
def test_an_overdemanding_job_is_infeasible_by_name(units):
    problem = read_psplib(SMALL.replace("    3    1\n", f"    {units}    1\n").encode(), "ours.sm")
    answer = solve_problem(problem, Settings.of(engine="highs", time_limit_s=5))
    assert (answer.status, answer.message) == (
        "infeasible",
        f"task 2 needs 2 of resource R1, which has {units}",
    )


def line_of(data: bytes) -> str:
    return refusal(read_psplib, data, "ours.sm").removeprefix("ours.sm")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "   2        1          1           4",
            "   2        1          2           4",
            "line 15: announces 2 successors",
        ),
        (
            "   2        1          1           4",
            "   2        1          1           9",
            "line 15: names job 9, expected 1 to 5",
        ),
        (
            "   2        1          1           4",
            "   2        1          1           2",
            "line 15: makes job 2 its own successor",
        ),
        (
            "   2        1          1           4",
            "   2        2          1           4",
            "line 15: must have 1 mode",
        ),
        (
            "   2        1          1           4",
            "   1        1          1           4",
            "line 15: repeats job 1",
        ),
        (
            "   2        1          1           4",
            "   2        1          x           4",
            "line 15: must hold whole numbers",
        ),
        (
            "   5        1          0",
            "   5        1          1           2",
            "the precedence has a cycle",
        ),
        ("   5        1          0\n", "", "line 18: PRECEDENCE RELATIONS ends without job 5"),
        (
            "  3      1     4       2    1",
            "  3      1     4       2",
            "line 25: must hold job number, mode, duration and 2 requests",
        ),
        (
            "  3      1     4       2    1",
            "  3      1    -4       2    1",
            "line 25: must hold durations and requests from 0",
        ),
        (
            "  3      1     4       2    1",
            "  3      1  2000000    2    1",
            "line 25: must hold durations and requests from 0",
        ),
        ("    3    1\n", "    3\n", "ends with 1 of 2 capacities"),
        ("    3    1\n", "    3   -1\n", "line 31: must hold 2 capacities of at least 0"),
        (
            "nonrenewable              :  0",
            "nonrenewable              :  2",
            "line 9: must be 0: only renewable resources",
        ),
        (
            "jobs (incl. supersource/sink ):  5",
            "jobs (incl. supersource/sink ):  999999",
            "line 5: must name 1 to 100,000 jobs",
        ),
        ("PRECEDENCE RELATIONS:", "", "has no line 'PRECEDENCE RELATIONS:'"),
        ("RESOURCEAVAILABILITIES:", "", "has no line 'RESOURCEAVAILABILITIES:'"),
    ],
)
def test_a_bad_file_is_told_by_line(old, new, says):
    assert old in SMALL
    assert says in line_of(SMALL.replace(old, new).encode())


@pytest.mark.parametrize(
    "data", [b"", b"\n \n", b"\xff\xfe\x00", b"hello", b"{}" * 50, SMALL[:900].encode()]
)
def test_what_is_no_psplib_file_is_refused_in_one_line(data):
    assert line_of(data)
