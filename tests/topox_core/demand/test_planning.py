"""A demand matrix over parallel switches: never below the bounds, near the optimum, and served in full."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given
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


# Two entries of a line on two switches whose first configurations stand: nobody pays for a set-up.
@example(np.array([[0.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]), 2, 5.0, True)
@given(matrices, st.integers(1, 4), st.sampled_from([0.0, 0.3, 5.0]), st.booleans())
@examples(60)
def test_every_plan_serves_all_of_the_matrix_and_is_no_shorter_than_the_bounds(
    demand: np.ndarray, switches: int, delay: float, free: bool
) -> None:
    bound, times = lower_bound(demand, switches, delay, free), {}
    for name in METHODS:
        plan = plan_demand(demand, switches, delay, first_free=free, method=name)
        times[name] = plan.makespan_ms
        assert check_demand_plan(demand, plan_record(plan, bound)).lines() == ()
        assert bound.ms <= times[name] * (1 + 1e-9)
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


def ratio_to_the_optimum(seed: int, n: int, share: float, each: int = 0) -> float:
    """Return how much longer a plan takes than the best one of so many configurations a switch."""
    rng = np.random.default_rng(seed)
    demand = rng.integers(1, 10, (n, n)) * (rng.random((n, n)) < share).astype(float)
    demand[0, 1] += 1.0
    degree = int(max((demand > 0).sum(axis=0).max(), (demand > 0).sum(axis=1).max()))
    best, proved = exact_ms(demand, 2, 0.5, each or degree + 1)
    plan = plan_demand(demand, 2, 0.5)
    assert lower_bound(demand, 2, 0.5).ms <= best * (1 + 1e-6)
    if proved and max(map(len, plan.switches)) <= (each or degree + 1):
        assert best <= plan.makespan_ms * (1 + 1e-6)
    return plan.makespan_ms / best


@pytest.mark.parametrize("seed", range(2))
def test_small_plans_are_no_shorter_than_the_optimum_and_near_it(seed: int) -> None:
    assert ratio_to_the_optimum(seed, 3, 0.7, each=3) <= 1.35


@pytest.mark.long
def test_plans_of_four_lines_are_within_a_few_per_cent_of_the_optimum() -> None:
    ratios = [ratio_to_the_optimum(seed, 4, 0.6) for seed in range(6)]
    assert np.mean(ratios) <= 1.05
    assert max(ratios) <= 1.2


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        (lambda plan: plan["switches"][0][0]["circuits"].append([0, 1]), "matchings"),
        (lambda plan: plan["switches"][0][0]["circuits"].append([9, 9]), "matchings"),
        (lambda plan: plan["switches"][0][0].update(start_ms=0.2), "set-ups"),
        (lambda plan: plan.update(makespan_ms=1.0), "set-ups"),
        (lambda plan: plan["switches"][0][0].update(duration_ms=0.1), "demand"),
        (lambda plan: plan["switches"][0].pop(), "demand"),
    ],
)
def test_a_plan_that_breaks_a_rule_is_found_out(change: Callable, broken: str) -> None:
    record = plan_record(plan_demand(D4, 2, 0.5), lower_bound(D4, 2, 0.5))
    assert check_demand_plan(D4, record).ok
    change(record)
    report = check_demand_plan(D4, record)
    assert broken in {one.name for one in report.constraints if not one.ok}


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
