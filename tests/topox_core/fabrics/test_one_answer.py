"""What is said of one job in different places does not exclude each other: sentences are read back and held against numbers."""

import re
import time as clock
from dataclasses import replace
from itertools import product

import pytest

from tests.conftest import long_after, some
from tests.topox_core.small_graphs import cluster, random_graph
from topox_core.check.checker import check
from topox_core.fabrics.comparison.compare import EQUAL, compare, run_with_best_lowering
from topox_core.fabrics.comparison.words import FULL, NO_PLAN, YARDSTICK, headline
from topox_core.fabrics.crossover.verdict import verdict, with_plans
from topox_core.fabrics.planning import scheduled
from topox_core.fabrics.planning.fixed_beside import FixedBeside
from topox_core.fabrics.planning.passed_plans import PassedPlan, PlanChoice
from topox_core.fabrics.planning.shipped import shipped_plan
from topox_core.fabrics.registry import PAYS_DELAY, SPOKEN
from topox_core.fabrics.run import FabricRequest, JobRequest
from topox_core.runs.run import Stop
from topox_core.schedule.results.result_file import to_record
from topox_core.schedule.results.story import (
    class_words,
    events_of,
    finding,
    found_by,
    summary_sentence,
)
from topox_core.schedule.settings import FREE, Settings
from topox_core.text.numbers import time
from topox_core.workloads.samples import SAMPLES, load_sample

LISTED = Settings.of(engine="list", free=FREE)
DELAYS_MS = (0.0, 1.0, 20.0, 0.01, 0.3, 4.0, 300.0)
SPEEDS = (0.5, 1.0, 2.0)
NEAR = 1 + 1e-9


def case_of(name, speed):
    if isinstance(name, str):
        graph, of = load_sample(name)
    else:
        graph, of = random_graph(name, tasks=30), cluster(4, ports_per_server=2, switches=2)
    return graph, of.changed(port_gbps=of.port_gbps * speed)


def assert_finding(result):
    """What one result is said to be: against everything that was allowed, one bound, and who found this schedule."""
    words = finding(result)
    met = result.makespan_ms <= result.bound_ms * NEAR
    assert ("nothing shorter exists" in words) == met == (result.status == "optimal")
    assert ("nothing shorter exists" in summary_sentence(events_of(result.trace))) == met
    assert time(result.makespan_ms) in words or f"{result.makespan_ms:.4g}"[:3] in words
    assert result.bound_ms == pytest.approx(min(one.bound_ms for one in result.classes))
    if not met and "proved best with" in words:
        assert result.own_class.proved and not result.other_class.proved
    for one in result.classes:
        assert ("proved best of its kind" in class_words(one)[1]) == one.proved
        assert one.best_ms >= result.makespan_ms / NEAR
    fixed = result.switching == "fixed"
    assert ("circuits" in found_by(result) and "searched" in found_by(result)) <= fixed
    assert result.trace[-1].incumbent_ms == pytest.approx(result.makespan_ms)


def assert_headline(runs):
    """Who is fastest, by how much, whether switching pays and whether a full fat-tree is faster."""
    words = headline(runs)
    own = {n: one for n, one in runs.items() if n not in (YARDSTICK, FULL)}
    best_ms = min(one.iteration_ms for one in own.values())
    changing = {n for n, one in own.items() if n in PAYS_DELAY}
    if (plan := own["scheduled"].result) is not None and plan.switching == "fixed":
        changing.discard("scheduled")
    stays_ms = min(one.iteration_ms for n, one in own.items() if n not in changing)
    if "switching does not pay" in words or NO_PLAN in words:
        assert stays_ms <= best_ms * (1 + EQUAL)
        # That it does not is said where a bound excludes it.
        excluded = plan is None or plan.excludes_change(best_ms / (1 + EQUAL))
        assert (NO_PLAN in words) != excluded
    elif words.startswith("It makes no difference"):
        assert all(one.iteration_ms <= best_ms * (1 + EQUAL) for one in own.values())
    else:
        assert ("switching pays" in words) <= (stays_ms > best_ms * (1 + EQUAL) / NEAR)
        told = re.match(r"(?:.+?: )?(.+?) takes? (.+?)(?:[;,]|\.(?= |$))(?= |$)", words)
        for n, one in own.items():
            named = SPOKEN[n].lower() in re.split(", | and ", told[1].lower())
            assert not named or one.iteration_ms <= best_ms * (1 + EQUAL) * NEAR
        assert time(best_ms) == told[2].split(" to ")[0]
    ordered = runs[YARDSTICK].iteration_ms * (1 + EQUAL) < runs[FULL].iteration_ms
    assert (f"at most {time(runs[YARDSTICK].iteration_ms)} where" in words) == ordered
    assert "fastest" not in words  # a full fat-tree in an order may be faster
    faster = runs[FULL].iteration_ms * (1 + EQUAL) < best_ms
    assert ("A full fat-tree is faster" in words) == faster


SAME = dict.fromkeys(
    [
        *product(("blackboard", "race"), SPEEDS),
        (4, 1.0),
        *product((n for n in SAMPLES if n != "llama3-70b"), SPEEDS),
        *product(range(0, 30, 6), SPEEDS),
        *product((4,), SPEEDS),
    ]
)


@pytest.mark.parametrize(("name", "speed"), long_after(7, SAME))
def test_result_comparison_and_verdict_say_the_same(name, speed):
    graph, of = case_of(name, speed)
    known = verdict(graph, of, LISTED)
    ideal_ms, packets_ms = set(), set()
    for delay_ms in some(DELAYS_MS, quick=3):
        at = of.changed(reconfiguration_ms=delay_ms)
        runs = compare(graph, at, LISTED)
        job = JobRequest(graph, at, LISTED)
        made = PassedPlan.of(runs["scheduled"].result)
        known = with_plans(known, job, [] if made is None else [made])
        result = PlanChoice(job, runs["scheduled"].result).among(known.plans)
        assert_finding(runs["scheduled"].result)
        assert_finding(result)
        assert_headline(runs)
        ideal_ms.add(round(runs["ideal"].iteration_ms, 6))
        packets_ms.add((runs["fat_tree"].iteration_ms, runs[FULL].iteration_ms))
        changing = next(one for one in result.classes if one.changes_circuits)
        rival_ms = {
            "fixed": min(runs[n].iteration_ms for n in ("static", "static_graph") if n in runs),
            "fat_tree_same_cost": runs["fat_tree"].iteration_ms,
            "fat_tree_full": runs[FULL].iteration_ms,
        }
        for one in known.brackets:
            if one.laid_by != "a plan that changes none":
                assert one.iteration_ms == pytest.approx(rival_ms[one.name])
            target_ms = one.iteration_ms / (1 + EQUAL)
            if made is not None and made.circuits.changed.any() and made.end_ms.max() < target_ms:
                assert one.pays_up_to_ms is not None and delay_ms <= one.pays_up_to_ms, one.name
            if one.pays_up_to_ms is not None and delay_ms <= one.pays_up_to_ms:
                assert result.makespan_ms < target_ms * NEAR, (one.name, delay_ms)
            if one.cannot_pay_from_ms is not None and delay_ms >= one.cannot_pay_from_ms:
                assert changing.best_ms >= target_ms / NEAR, (one.name, delay_ms)
    assert len(ideal_ms) == len(packets_ms) == 1


def test_a_rule_may_take_longer_with_a_shorter_delay():
    graph, of = case_of("moe", 1.0)
    jobs = [JobRequest(graph, of.changed(reconfiguration_ms=ms), LISTED) for ms in (0.0, 0.005)]
    for name in ("reactive", "provisioned"):
        at_once, later = (run_with_best_lowering(name, job).iteration_ms for job in jobs)
        assert at_once == pytest.approx(124.6, abs=0.1) and later == pytest.approx(119.1, abs=0.1)


@pytest.mark.parametrize("how", ["list, free", "list", "auto", "proof"])
def test_what_found_a_schedule_did_so_before_the_solve_ended_by_one_clock(
    monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    find = scheduled.fixed_beside

    def slowly(request: FabricRequest, stop: Stop) -> FixedBeside | None:
        clock.sleep(0.5)
        found = find(request, stop)
        assert found is not None
        longer_s = found.standing.wall_s + 0.5
        return replace(found, standing=replace(found.standing, wall_s=longer_s))

    monkeypatch.setattr(scheduled, "fixed_beside", slowly)
    job, engine = load_sample("race"), "list" if how.startswith("list") else "auto"
    free = FREE if how == "list, free" else ()
    settings, began = Settings.of(engine=engine, free=free, time_limit_s=0.0), clock.monotonic()
    if how == "proof":
        proof = scheduled.prove(*job, settings)
        assert proof.story[-1].elapsed_s <= proof.elapsed_s
        result = proof.finish()
    else:
        result = scheduled.schedule(*job, settings)
    assert 0.5 <= result.trace[-1].elapsed_s <= result.wall_s <= clock.monotonic() - began


# -- the plan that comes with the release ----------------------------------------------------------


def test_every_comparison_of_a_sample_has_its_plan_of_the_release_where_that_is_shorter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So that command, page, map and study say one number."""
    graph, of = load_sample("moe")
    job = JobRequest(graph, of, LISTED)
    plan = shipped_plan(job)
    assert plan is not None
    assert shipped_plan(replace(job, cluster=of.changed(port_gbps=90.0))) is plan
    run = run_with_best_lowering("scheduled", job)
    assert run.iteration_ms == plan.on(job)[1].makespan_ms
    assert check(graph, of, to_record(run.result)).ok
    assert run.as_record()["chosen"] == run.execution.graph.lowering.choices()
    monkeypatch.setattr(scheduled, "shipped_plan", lambda _job: None)
    assert run.iteration_ms < run_with_best_lowering("scheduled", job).iteration_ms


def test_a_plan_of_the_release_serves_no_other_choices_than_those_it_was_made_with() -> None:
    graph, of = load_sample("moe")
    on_trees = replace(LISTED.lowering, algorithm=(("all_reduce", "tree"),))
    for other in (
        replace(LISTED, free=()),
        replace(LISTED, exclusive_devices=False),
        replace(LISTED, lowering=on_trees),
    ):
        assert shipped_plan(JobRequest(graph, of, other)) is None
    assert shipped_plan(JobRequest(*load_sample("race"), LISTED)) is None
