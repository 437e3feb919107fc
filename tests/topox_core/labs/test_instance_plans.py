"""Schedules that reveals draw: feasible by the independent checker, and as long as the closed forms say."""

from __future__ import annotations

import json

import pytest

from tests.topox_core.labs.test_labs import EXAMPLE
from topox_core.figures.instance_pictures import pictures_of
from topox_core.figures.palette import theme_of
from topox_core.figures.picture import Asking
from topox_core.labs.generators.board import board
from topox_core.labs.generators.fan_out import fan_out
from topox_core.labs.generators.patience import patience
from topox_core.labs.hand_schedule import check_by_hand
from topox_core.labs.instance_plans import drawn_or_read, hand_plans
from topox_core.labs.lab_file import load_lab
from topox_core.labs.texts_in import texts_in
from topox_core.workloads.samples import load_sample

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


@pytest.mark.parametrize(("sample", "drawn"), [("llama3-8b", True), ("fsdp", True), ("moe", False)])
def test_a_chart_of_files_has_400_bars_and_60_kB_at_most(sample: str, drawn: bool) -> None:
    record = json.loads(json.dumps(EXAMPLE))
    files = {"graph": f"sample:{sample}", "cluster": f"sample:{sample}"}
    record["instances"]["mine"]["files"] = files
    record["screens"][1]["show"] = ["gantt"]
    lab = load_lab(json.dumps(record).encode(), "x.lab.json")
    screen = lab.screens[1]
    instance = drawn_or_read(lab, screen, 0)
    asking = Asking(lab, screen, instance, texts_in("en"), theme_of("light"), computed=True)
    pictures = pictures_of(asking)
    assert bool(pictures) == drawn
    for one in pictures:
        bars = sum(len(trace.y) for trace in one.figure.data if trace.type == "bar")
        assert 0 < bars <= 400 and len(one.figure.to_json()) <= 60_000
        every = load_sample(sample)[1].servers
        assert (f"of {every} servers are drawn" in one.note) == (sample == "fsdp")
