"""Compare: every fabric on one clock, who wins, the map beside the page, and what breaks."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from tests.patience import wait_until
from tests.topox_ui.conftest import (
    SCHEDULE,
    address,
    buttons,
    chart,
    charts,
    choose,
    control,
    metric,
    press,
    spoken,
    the_error,
    turn_to,
    unbroken,
    words,
)
from tools.make_answers import first_visit
from topox_core.economics.price_sets import PRICE_SETS, SET_BY_SPEED
from topox_core.fabrics.comparison.compare import compare, run_with_best_lowering
from topox_core.fabrics.comparison.gated_iterations import (
    FAT_TREE,
    NETWORKS,
    REGIONAL,
    gated_networks,
)
from topox_core.fabrics.crossover.map_run import run_call
from topox_core.fabrics.crossover.sweep import MAP_DELAYS_MS, MAP_SPEEDS_GBPS, at_point
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.planning.passed_plans import Passed, PassedPlan
from topox_core.fabrics.registry import FABRICS
from topox_core.fabrics.run import FabricRequest, JobRequest
from topox_core.model.lowering.lowering import lower
from topox_core.runs.run import never
from topox_core.schedule.settings import FREE, Settings
from topox_core.text.numbers import short
from topox_core.workloads.samples import load_sample
from topox_ui.answers.contest import contest_of, sweep_of
from topox_ui.answers.other_times import what_pages_model
from topox_ui.answers.solving import with_plans

COMPARE, MAP = "Compare", "Where which wins"


LISTED = Settings.of(engine="list", free=FREE)


def times(at) -> list[str]:
    """Return the iteration time of every fabric, as the table has them."""
    return [one.replace("\u00a0", " ") for one in at.dataframe[0].value["Iteration time"]]


def test_resetting_what_ifs_builds_the_fat_tree_as_before_and_keeps_which_fabrics_compete(visit):
    chosen = {"fabrics": "static,fat_tree", "fat_tree": "racks", "oversubscription": "2"}
    at = visit(COMPARE, sample="blackboard", **chosen)
    (reset,) = [one for one in at.button if one.label == "Reset what-ifs"]
    unbroken(reset.click().run())
    assert address(at) == {"sample": "blackboard", "fabrics": "static,fat_tree"}
    assert not [one for one in at.button if one.label == "Reset what-ifs"]


def test_a_plan_that_another_page_made_shorter_is_said_in_schedule_s_sentence(visit):
    at = visit(COMPARE, sample="patience")
    assert "Searching beside the page" not in words(at)
    at.session_state["first_plan_ms"] = (at.session_state["first_plan_ms"][0], 20.0)
    told = "made the planned iteration 35 % shorter than the first plan, 20 ms."
    assert told in words(unbroken(at.run()))
    turn_to(at, SCHEDULE)
    assert told in words(at)


def test_the_times_of_the_core_and_a_winner_that_schedule_shows_as_well(visit):
    job = first_visit("moe")
    runs = compare(job.task_graph, job.cluster, LISTED)
    best = spoken(with_plans(job, runs["scheduled"].result).makespan_ms)  # the release has a plan
    at = visit(COMPARE, sample="moe")
    rivals = {name: spoken(run.iteration_ms) for name, run in runs.items()}
    assert times(at) == list((rivals | {"scheduled": best}).values())
    assert "strips" not in charts(at)  # small timelines wait until they are asked for
    at.session_state["clock"] = True
    assert "strips" in charts(unbroken(at.run()))
    full, same_cost = rivals["fat_tree_full"], rivals["fat_tree"]
    assert (
        f"Without a delay switching pays: planned circuits take {best}, circuits fixed by the task graph "
        f"{rivals['static_graph']} and a fat-tree of the same cost {same_cost}. A full fat-tree, "
        f"3.76 times the price of planned circuits, takes "
        f"{full} where its hosts share links and at most {rivals['ideal']} where they send in an order."
    ) in words(at)
    assert "fastest after the ideal" in str(chart(at, "iterations")["layout"]["yaxis"])
    assert "take the same time: without a delay" in words(at)
    assert full == "119 ms" and "A full fat-tree takes 1" in words(at)
    turn_to(at, SCHEDULE)
    assert metric(at, "Iteration time") == best


def test_why_other_pages_show_other_times_is_said_for_each_with_a_link_and_as_they_say_it(visit):
    at = visit(COMPARE, sample="moe")
    said = words(at)
    assert [one for one in what_pages_model(True).items() if one[1] not in said] == []
    at = visit("Rails", sample="moe", **{"rails.source": "job"})
    assert what_pages_model(True)["Rails"] in words(at)
    said = words(visit(COMPARE, sample="blackboard"))
    assert what_pages_model(False)["Rails"] in said and "Closed form" not in said


def test_choices_move_what_they_concern_and_are_in_the_address(visit):
    at = choose(visit(COMPARE, sample="race"), fabrics=["static", "scheduled"])
    assert address(at)["fabrics"] == "static,scheduled"
    before = times(at)
    choose(at, reconfiguration_ms=5.0)
    assert times(at)[0] == before[0] and times(at)[1] != before[1]
    assert address(at)["reconfiguration_ms"] == "5"
    for name in ("static", "scheduled"):
        choose(at, lanes=name)
        assert any(trace["type"] == "bar" for trace in chart(at, "lanes_gantt")["data"])


@pytest.mark.parametrize(
    ("query", "says", "compared"),
    [
        ({"reconfiguration_ms": "1e12"}, "cluster, field reconfiguration_ms", 0),
        # One that cannot run is a line, and the others are compared.
        ({"tick": "0.0371"}, "must divide the slot", 7),
        ({"reconfiguration_ms": "1000000"}, "Planned circuits cannot run: cluster, field", 7),
    ],
)
def test_a_setting_that_cannot_be_is_one_line(visit, query, says, compared):
    at = visit(COMPARE, sample="moe", fabrics="token_ring", **query)
    assert says in the_error(at)
    assert len(at.dataframe[0].value if at.dataframe else []) == compared
    assert compared == 0 or "fabrics=token_ring" in at.warning[0].value


@pytest.fixture
def map_beside(monkeypatch):
    """Compute maps by themselves, as a visitor has them, in a thread of this process."""
    monkeypatch.setattr("topox_ui.compare.map.AUTOMATIC", True)
    with ThreadPoolExecutor(1) as one:
        monkeypatch.setattr("topox_ui.compare.map.shared_workers", lambda: one)
        yield


def computed(at):
    wait_until(lambda: "cancel_map" not in buttons(at), at.run)
    return unbroken(at)


def test_the_map_is_computed_beside_the_page_without_being_asked_for_and_for_all_sessions(
    visit, map_beside
):
    at = computed(visit(MAP, sample="race", fabrics="static,provisioned"))
    assert not at.error and not at.warning and "compute_map" not in buttons(at)
    # Who has no pointer chooses a point from a list, and the sliders go there as after a click.
    point = control(at, "map_point")
    places = [one for one in point.options if one[0].isdigit()]
    assert len(places) == len(MAP_DELAYS_MS) * len(MAP_SPEEDS_GBPS)
    unbroken(point.select(next(one for one in places if one.startswith("800G, 50 ms: "))).run())
    moved = (control(at, "port_gbps").value, control(at, "reconfiguration_ms").value)
    assert moved == (800.0, 50.0)
    at = visit(MAP, sample="race", fabrics="static,provisioned")
    assert not {"cancel_map", "compute_map"} & buttons(at) and chart(at, "map")
    at = computed(visit(MAP, sample="race", fabrics="static,provisioned", port_gbps="799"))
    assert (
        "Without a full fat-tree, the fastest between 400G and 800G, where your 799G lies"
        in words(at)
    )


def test_a_map_that_is_cancelled_keeps_its_points_and_goes_on_only_when_asked(visit, map_beside):
    at = press(visit(MAP, sample="moe", fabrics="reactive,provisioned"), "cancel_map")
    assert "kept" in at.warning[0].value
    assert "cancel_map" not in buttons(at.run())
    assert "cancel_map" in buttons(press(at, "compute_map"))
    press(at, "cancel_map")


def failing(visit, sample: str):
    """Open what happens if something breaks."""
    at = visit(COMPARE, sample=sample, fabrics="static,scheduled")
    at.session_state["failures"] = True
    return unbroken(at.run())


def test_each_element_that_fails_has_its_own_outcome(visit):
    at = failing(visit, "fsdp")
    done = set()
    for circuit in control(at, "failed_circuit").options[:2]:
        unbroken(control(at, "failed_circuit").select(circuit).run())
        done |= {one.proto.body for one in at.get("html") if one.proto.body.startswith("<ul")}
    assert len(done) == 2
    assert f"{FABRICS['static']}, repaired" in words(at) and "Scheduled" not in words(at)


def test_a_failure_that_leaves_nothing_is_told_in_a_line(visit):
    assert "no switch would be left" in words(choose(failing(visit, "race"), fails="switch"))


@pytest.mark.parametrize(("by", "values"), [("port_gbps", (100.0, 400.0)), ("degree", (1.0, 4.0))])
def test_on_the_map_a_fat_tree_of_the_same_cost_is_the_one_that_compare_has_there(by, values):
    graph, cluster = load_sample("race")
    job = JobRequest(graph, cluster, Settings.of(free=FREE))
    sweep = replace(sweep_of(job, contest_of(job), by), fabrics=("fat_tree",))
    taken = []
    for value in values:
        there = replace(job, cluster=at_point(cluster, by, value, 1.0))
        options = contest_of(there).options
        assert sweep.options_at(value) == options
        alone = compare(graph, there.cluster, LISTED, ("fat_tree",), options)["fat_tree"]
        taken.append(run_call(sweep, (value, 1.0)).outcomes["fat_tree"].iteration_ms)
        assert taken[-1] == pytest.approx(alone.iteration_ms)
    assert taken[0] > taken[1]


def test_a_plan_of_the_map_that_is_better_is_what_every_page_shows(visit, monkeypatch):
    """The map has a plan for a longer delay: Compare takes it over, and Schedule shows the same."""
    graph, cluster = load_sample("race")
    slow = run_with_best_lowering("scheduled", JobRequest(graph, cluster, LISTED))
    plan = PassedPlan.of(slow.result)
    assert plan is not None
    plan = replace(plan, cluster=cluster.changed(reconfiguration_ms=9.0))
    monkeypatch.setattr(
        "topox_ui.answers.contest.map_plans",
        lambda job, _contest: (plan,) if job.cluster == cluster else (),
    )
    shorter_ms = 0.9 * slow.iteration_ms  # as if planning alone had found less
    monkeypatch.setattr(
        "topox_core.fabrics.planning.passed_plans.best_passed",
        lambda job, plans, _than_ms: (
            Passed(plan, job, job.lowered(plan.lowering), shortened(slow.execution, 0.9))
            if plans
            else None
        ),
    )
    at = visit(COMPARE, sample="race", fabrics="static,scheduled")
    assert times(at)[-1] == spoken(shorter_ms)
    turn_to(at, SCHEDULE)
    assert metric(at, "Iteration time") == spoken(shorter_ms)


def shortened(execution, share):
    """Return an execution that runs faster by a share: only its length matters here."""
    circuits = execution.circuits
    return replace(
        execution,
        start_ms=execution.start_ms * share,
        end_ms=execution.end_ms * share,
        circuits=replace(
            circuits,
            setup_ms=circuits.setup_ms * share,
            start_ms=circuits.start_ms * share,
            end_ms=circuits.end_ms * share,
        ),
    )


# -- gating that changes -------------------------------------------------------------------------


def opened(visit, **query):
    given = {"sample": "moe", "fabrics": "static", "gated": "yes", "gating_iterations": "2"}
    return visit(COMPARE, **given | query)


def test_a_link_brings_every_choice_back_with_the_numbers_of_the_core(visit):
    link = {
        "gating": "dirichlet",
        "gating_skew": "0.5",
        "gating_seed": "3",
        "regional_circuits": "foreseen",
        "reevaluate_ms": "20",
        "pause": "changed",
    }
    at = opened(visit, **link)
    assert not at.error
    graph, cluster = load_sample("moe")
    settings = Settings.of(engine="list", free=FREE, seed=3)
    options = FabricOptions(
        regional_packet_ports=1,
        regional_circuits="foreseen",
        gating="dirichlet",
        gating_skew=0.5,
        gating_iterations=2,
        reevaluate_ms=20.0,
        pause="changed",
    )
    order = FabricRequest(lower(graph, settings.lowering), cluster, settings, options)
    runs = gated_networks(order, PRICE_SETS[SET_BY_SPEED], NETWORKS, never)
    assert metric(at, "Regional circuits") == spoken(runs[REGIONAL].mean_ms)
    over = runs[REGIONAL].work_a_dollar_over(runs[FAT_TREE])
    assert metric(at, "Work per dollar") == f"{short(over)}×"
    assert f"They do {short(over)}× its work per dollar." in words(at)
    lines = {one["name"]: one["y"] for one in chart(at, "gated")["data"]}
    assert lines["Regional circuits"] == list(runs[REGIONAL].iterations_ms)
    assert address(at).items() >= link.items()


def test_what_is_missing_for_it_is_said(visit):
    at = opened(visit, sample="race")
    assert "This job has no transfers between experts" in words(at)
    assert "regional_packet_ports" in the_error(opened(visit, packet_ports="0"))
