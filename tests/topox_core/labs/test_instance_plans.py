"""Schedules that reveals draw: feasible by the independent checker, and as long as the closed forms say."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.conftest import long_after
from tests.topox_core.labs.test_labs import EXAMPLE
from topox_core.figures.instance_pictures import pictures_of
from topox_core.figures.palette import theme_of
from topox_core.figures.picture import Asking
from topox_core.labs.generators.board import board
from topox_core.labs.generators.fan_out import fan_out
from topox_core.labs.generators.patience import patience
from topox_core.labs.hand_schedule import check_by_hand
from topox_core.labs.instance_plans import HandPlan, drawn_or_read, hand_plans
from topox_core.labs.lab_file import load_lab
from topox_core.labs.texts_in import texts_in
from topox_core.workloads.samples import load_sample


def plans_of(seed: int) -> Iterator[tuple[HandPlan, float]]:
    """Yield every plan by hand of a seed, and when its closed form says that it ends."""
    six, weights, star = board(seed), patience(seed), fan_out(seed)
    ends = {
        "x_first": six.x_first_ms,
        "y_first": six.y_first_ms,
        "first": weights.at_once_ms,
        "between": weights.between_ms,
        "last": weights.after_ms,
        "best": star.one_port_ms,
    }
    for one in (six, weights, star):
        yield from ((plan, ends[plan.name]) for plan in hand_plans(one))
    yield from ((plan, star.two_ports_ms) for plan in hand_plans(star, 2, 8.0))
    yield from ((plan, star.fast_port_ms) for plan in hand_plans(star, 1, 16.0))


@pytest.mark.parametrize("seed", long_after(4, range(12)))
def test_every_plan_by_hand_is_feasible_and_ends_when_its_formula_says(seed: int) -> None:
    for plan, end in plans_of(seed):
        assert plan.makespan_ms == end
        if plan.cluster.ports_per_server == 1:  # a sheet for schedules by hand has one port
            verdict = check_by_hand(plan.graph, plan.cluster, plan.starts_ms)
            assert verdict.feasible, verdict.line
            assert verdict.makespan_ms == end


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
