"""Schedules that reveals draw: feasible by the independent checker, and as long as the closed forms say."""

from __future__ import annotations

import pytest

from topox_core.labs.generators.board import board
from topox_core.labs.generators.fan_out import fan_out
from topox_core.labs.generators.patience import patience
from topox_core.labs.hand_schedule import check_by_hand
from topox_core.labs.instance_plans import hand_plans

SEEDS = range(12)


@pytest.mark.parametrize("seed", SEEDS)
def test_both_orders_of_six_tasks_are_feasible_and_end_when_the_formula_says(seed: int) -> None:
    one = board(seed)
    plans = {plan.name: plan for plan in hand_plans(one)}
    for name, end in (("x_first", one.x_first_ms), ("y_first", one.y_first_ms)):
        verdict = check_by_hand(plans[name].graph, plans[name].cluster, plans[name].starts_ms)
        assert verdict.feasible, verdict.line
        assert verdict.makespan_ms == plans[name].makespan_ms == end


@pytest.mark.parametrize("seed", SEEDS)
def test_all_three_places_of_the_weights_are_feasible_and_end_when_the_formula_says(
    seed: int,
) -> None:
    one = patience(seed)
    ends = {"first": one.at_once_ms, "between": one.between_ms, "last": one.after_ms}
    for plan in hand_plans(one):
        verdict = check_by_hand(plan.graph, plan.cluster, plan.starts_ms)
        assert verdict.feasible, verdict.line
        assert verdict.makespan_ms == ends[plan.name]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_best_order_of_a_fan_out_is_the_optimum_with_any_ports_and_speed(seed: int) -> None:
    one = fan_out(seed)
    for ports, gbps, optimum in (
        (1, 8.0, one.one_port_ms),
        (2, 8.0, one.two_ports_ms),
        (1, 16.0, one.fast_port_ms),
    ):
        (plan,) = hand_plans(one, ports, gbps)
        assert plan.makespan_ms == optimum
    (plan,) = hand_plans(one)
    assert check_by_hand(plan.graph, plan.cluster, plan.starts_ms).feasible
