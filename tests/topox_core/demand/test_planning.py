"""A demand matrix over parallel switches: never below the bounds, near the optimum, and served in full."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import examples
from tests.topox_core.demand.exact_plan import exact_ms
from topox_core.check.demand import check_demand_plan
from topox_core.demand.bounds import lower_bound
from topox_core.demand.demand_file import plan_record
from topox_core.demand.planning import METHODS, plan_demand
from topox_core.errors import InputError

D4 = np.array([[0, 6, 2, 1], [3, 0, 5, 0], [1, 2, 0, 4], [5, 0, 1, 0]], np.float64)
matrices = st.integers(1, 6).flatmap(
    lambda n: st.lists(
        st.sampled_from([0.0, 0.0, 0.1, 1.0, 2.5, 7.0]), min_size=n * n, max_size=n * n
    ).map(lambda cells: np.array(cells).reshape(n, n))
)


def assert_served(
    demand: np.ndarray, switches: int, delay: float, method: str, free: bool
) -> float:
    plan = plan_demand(demand, switches, delay, first_free=free, method=method)
    bound = lower_bound(demand, switches, delay, free)
    report = check_demand_plan(demand, plan_record(plan, bound))
    assert report.ok, report.lines()
    assert bound.ms <= plan.makespan_ms * (1 + 1e-9)
    return plan.makespan_ms


@pytest.mark.parametrize(
    ("switches", "delay_ms", "few", "bound", "peeled", "shared"),
    [
        (1, 0.0, 10, 9, 9, 9),
        (1, 0.5, 11.5, 10.5, 11, 11),
        (1, 2.0, 16, 15, 17, 17),
        (2, 0.0, 5, 4.5, 5, 4.5),
        (2, 0.5, 6, 5.25, 5.5, 6.5),
        (2, 2.0, 8, 7.5, 10, 12.5),
        (4, 0.5, 3.375, 2.625, 5.5, 4.25),
        (4, 2.0, 5, 3.75, 7, 10.25),
    ],
)
def test_a_matrix_of_four_lines_takes_what_was_computed_beforehand(
    switches: int, delay_ms: float, few: float, bound: float, peeled: float, shared: float
) -> None:
    times = {
        name: plan_demand(D4, switches, delay_ms, method=name).makespan_ms
        for name in ("few", "peeled", "shared")
    }
    assert times == pytest.approx({"few": few, "peeled": peeled, "shared": shared})
    assert lower_bound(D4, switches, delay_ms).ms == pytest.approx(bound)


@given(matrices, st.integers(1, 4), st.sampled_from([0.0, 0.3, 5.0]), st.booleans())
@examples(60)
def test_every_plan_serves_all_of_the_matrix_and_is_no_shorter_than_the_bounds(
    demand: np.ndarray, switches: int, delay: float, free: bool
) -> None:
    times = {name: assert_served(demand, switches, delay, name, free) for name in METHODS}
    assert times["best"] == min(times["few"], times["even"], times["mixed"])
    assert times["even"] <= times["peeled"] * (1 + 1e-9)


@given(matrices)
@examples(60)
def test_without_delay_one_switch_needs_as_long_as_the_fullest_line(demand: np.ndarray) -> None:
    """Birkhoff and von Neumann: a matrix with even lines is a sum of matchings of that length."""
    longest = max(demand.sum(axis=0).max(), demand.sum(axis=1).max())
    assert plan_demand(demand, 1, 0.0, method="even").makespan_ms == pytest.approx(longest)


@given(matrices, st.integers(1, 4), st.sampled_from([0.0, 0.3, 5.0]))
@examples(40)
def test_a_first_configuration_that_stands_already_never_costs_time(
    demand: np.ndarray, switches: int, delay: float
) -> None:
    paid = plan_demand(demand, switches, delay, method="peeled").makespan_ms
    free = plan_demand(demand, switches, delay, method="peeled", first_free=True).makespan_ms
    assert free == pytest.approx(max(0.0, paid - delay) if demand.any() else 0.0)


def assert_near_the_optimum(demand: np.ndarray, delay: float, each: int) -> float:
    best, proved = exact_ms(demand, 2, delay, each)
    ours = plan_demand(demand, 2, delay).makespan_ms
    assert lower_bound(demand, 2, delay).ms <= best * (1 + 1e-6)
    if proved and max(map(len, plan_demand(demand, 2, delay).switches)) <= each:
        assert best <= ours * (1 + 1e-6)
    return ours / best


@pytest.mark.parametrize("seed", range(3))
def test_small_plans_are_no_shorter_than_the_optimum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    demand = rng.integers(1, 9, (3, 3)) * (rng.random((3, 3)) < 0.7).astype(float)
    demand[0, 0] += 1.0
    assert assert_near_the_optimum(demand, 0.5, 3) <= 1.35


@pytest.mark.long
def test_plans_of_four_lines_are_within_a_few_per_cent_of_the_optimum() -> None:
    ratios = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        demand = rng.integers(1, 10, (4, 4)) * (rng.random((4, 4)) < 0.6).astype(float)
        demand[0, 1] += 1.0
        degree = int(max((demand > 0).sum(axis=0).max(), (demand > 0).sum(axis=1).max()))
        ratios.append(assert_near_the_optimum(demand, 0.5, degree + 1))
    assert np.mean(ratios) <= 1.05
    assert max(ratios) <= 1.2


def test_a_plan_that_breaks_a_rule_is_found_out() -> None:
    plan = plan_demand(D4, 2, 0.5)
    record = plan_record(plan, lower_bound(D4, 2, 0.5))
    assert check_demand_plan(D4, record).ok

    def broken(change) -> set[str]:
        other = copy.deepcopy(record)
        change(other)
        report = check_demand_plan(D4, other)
        return {one.name for one in report.constraints if not one.ok}

    first = record["switches"][0][0]
    i, j = first["circuits"][0]
    assert broken(lambda r: r["switches"][0][0]["circuits"].append([i, j])) >= {"matchings"}
    assert broken(lambda r: r["switches"][0][0]["circuits"].append([9, 9])) >= {"matchings"}
    assert broken(lambda r: r["switches"][0][0].update(start_ms=0.2)) >= {"set-ups"}
    assert broken(lambda r: r.update(makespan_ms=1.0)) == {"set-ups"}
    assert "demand" in broken(lambda r: r["switches"][0][0].update(duration_ms=0.1))
    assert "demand" in broken(lambda r: r["switches"][0].pop())


@pytest.mark.parametrize(
    ("demand", "settings", "words"),
    [
        (np.ones((2, 3)), {}, "square matrix (got 2 x 3)"),
        (np.ones((257, 257)), {}, "1 to 256 rows"),
        (np.array([[0.0, -1.0], [0.0, 0.0]]), {}, "row 1, column 2"),
        (np.array([[np.nan]]), {}, "row 1, column 1"),
        (D4, {"switches": 0}, "field switches"),
        (D4, {"delay_ms": -1.0}, "field delay_ms"),
        (D4, {"method": "magic"}, "field method"),
    ],
)
def test_what_cannot_be_planned_is_refused_in_one_line(
    demand: np.ndarray, settings: dict, words: str
) -> None:
    given = {"switches": 2, "delay_ms": 0.5} | settings
    with pytest.raises(InputError, match=words.replace("(", r"\(").replace(")", r"\)")):
        plan_demand(demand, given.pop("switches"), given.pop("delay_ms"), **given)
