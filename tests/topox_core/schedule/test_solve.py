"""One front door, one result, one file: engines agree, bounds hold, choices are kept, what is written is read."""

import json
import time
from dataclasses import replace
from typing import Any

import pytest
from numba.core import event

from tests.conftest import long_after, some, suite_instance
from tests.past import load_past
from tests.refusal import refusal
from tests.topox_core.schedule.fake_solvers import READY, SLEEP, saying
from tests.topox_core.small_graphs import (
    GBIT_MS,
    cluster,
    compute,
    graph,
    list_schedule,
    random_graph,
    sample_with,
    transfer,
)
from topox_core.check.checker import check
from topox_core.check.schedule_file import columns_of, read_linked, read_schedule
from topox_core.compiled import working_s
from topox_core.fabrics.planning.scheduled import schedule
from topox_core.io.cluster_file import load_cluster
from topox_core.io.task_graph_file import load_graph
from topox_core.model.cluster import Cluster
from topox_core.model.lowering_choices import Lowering
from topox_core.model.task_graph import Task
from topox_core.schedule.engines import solver_process
from topox_core.schedule.engines.waiting_workers import start_worker
from topox_core.schedule.results.result import Result, gap
from topox_core.schedule.results.result_file import from_record, to_record
from topox_core.schedule.settings import FREE, Settings
from topox_core.schedule.solve import prove, solve
from topox_core.workloads.samples import load_sample

SUITE = Settings.of(circuits="per-slot", tick="slot", time_limit_s=200)


def bench(name):
    graph_file, cluster_file = suite_instance(name)
    return (
        load_graph(graph_file.read_bytes(), graph_file.name),
        load_cluster(cluster_file.read_bytes(), name),
    )


def best_known(real_inputs) -> dict[str, int]:
    lines = (real_inputs.parent / "bench" / "README.md").read_text().splitlines()
    rows = [line.split("|") for line in lines if line.startswith("| ")]
    return {row[1].strip(): int(row[4]) for row in rows if row[2].strip().isdigit()}


@pytest.mark.parametrize("engine", ["list", "auto", "highs", "cpsat", "printed"])
@pytest.mark.parametrize(
    ("model", "circuits"),
    [("physical", "per-slot"), ("physical", "continuous"), ("paper", "per-slot")],
)
def test_every_engine_passes_the_checker_and_stays_between_bound_and_list(engine, model, circuits):
    settings = Settings.of(
        model, circuits=circuits, clock="slots", tick=0.5, engine=engine, time_limit_s=120
    )
    for seed in some(range(3), quick=1):
        g, c = random_graph(seed, tasks=9, servers=3, collectives=False), cluster(3)
        listed, result = list_schedule(g, c, settings), solve(g, c, settings)
        assert listed.bound_ms <= result.bound_ms <= result.makespan_ms <= listed.makespan_ms
        assert check(g, c, to_record(result)).ok
        if model == "paper" and engine not in ("list", "cpsat"):
            assert (result.status, result.message) == ("optimal", "")


def test_lists_are_within_a_tenth_of_the_best_known_value_on_the_whole_suite(real_inputs):
    known = sorted(best_known(real_inputs).items(), key=lambda one: one[1])
    for name, best in some(known, quick=15):
        g, c = bench(name)
        result = list_schedule(g, c, SUITE)
        assert result.makespan_ms / c.slot_ms <= 1.1 * best, name
        assert check(g, c, to_record(result)).ok, name


@pytest.mark.parametrize(
    "name",
    [
        "tiny-1f1b-p3m3",
        "tiny-dlrm-n3",
        "tiny-fsdp-n3l2",
        "tiny-interleaved-p2v2m2",
        "tiny-moe-n3l1",
        "tiny-random-35",
    ],
)
@pytest.mark.parametrize("engine", ["highs", "cpsat", "auto"])
def test_exact_engines_prove_every_tiny_instance_of_the_suite(real_inputs, name, engine):
    result = solve(*bench(name), replace(SUITE, engine=engine))
    assert (result.status, result.makespan_ms) == ("optimal", best_known(real_inputs)[name])


@pytest.mark.parametrize(
    ("port_gbps", "paper_ms"),
    long_after(2, [(10.0, 32.226), (100.0, 20.227), (25.0, 23.278), (40.0, 21.236)]),
)
def test_table_iii_rows_5_to_8_come_out_near_the_paper_with_all_reduce_off_the_network(
    real_inputs, port_gbps, paper_ms
):
    g = load_graph((real_inputs / "flexnet" / "10dlrm_16.fbuf").read_bytes(), "10dlrm_16.fbuf")
    settings = Settings.of(clock="slots", lowering=Lowering(all_reduce_on_network=False))
    result = list_schedule(g, Cluster(16, 4, 4, 16, port_gbps), settings)
    floor = list_schedule(g, Cluster(16, 4, 4, 16, 1e9), settings)
    assert result.makespan_ms == pytest.approx(paper_ms, abs=3.5)
    assert floor.unrounded_bound_ms == pytest.approx(14.543, abs=0.001)


def test_a_graph_too_large_for_an_exact_engine_still_gets_its_list_schedule():
    result = solve(*bench("medium-random-2k"), replace(SUITE, engine="printed"))
    assert "columns (limit" in result.message
    assert (result.status, result.stopped_by) == ("feasible", "heuristic")


HARD = load_past("moe")


def test_a_solver_that_is_killed_is_reported_and_the_last_schedule_kept(monkeypatch):
    children = []

    def child(_engine):
        children.append(start_worker())
        return children[-1]

    monkeypatch.setattr(solver_process, "worker_of", child)
    proof = prove(*HARD, Settings.of(engine="highs", time_limit_s=60))
    children[0].kill()
    result = proof.finish()
    assert result.stopped_by == "failed"
    assert "ended" in result.message
    assert check(*HARD, to_record(result)).ok


@pytest.mark.parametrize("clock", ["continuous", "slots"])
def test_an_engine_that_does_not_heed_its_limit_was_not_cancelled(monkeypatch, clock):
    hangs = saying(READY, then=SLEEP)
    monkeypatch.setattr(solver_process, "worker_of", lambda _engine: start_worker(hangs))
    settings = Settings.of(engine="cpsat", clock=clock, threads=1, time_limit_s=1.0)
    proof = prove(*HARD, settings)
    assert proof.finish().stopped_by == "time_limit"
    assert proof.result().stopped_by == "time_limit"  # and not for being closed since


def test_highs_on_continuous_time_says_that_it_planned_on_slots_and_proves_nothing() -> None:
    """Of three transfers two at a time, 4 ms each; 1.5 ms on a device; 2 ms each: 13.5 ms, or 14 on slots."""
    reduced = Task("a", "all_reduce", dependencies=(), members=(0, 1, 3), size_bytes=3 * GBIT_MS)
    gathered = Task(
        "b", "all_gather", dependencies=("f",), members=(0, 2, 3), size_bytes=3 * GBIT_MS
    )
    g = graph(reduced, compute("f", 3, 1.5, "a"), gathered)
    c = cluster(4, ports_per_server=2, ports_per_switch=2)
    result = solve(g, c, Settings.of(engine="highs"))
    assert (result.makespan_ms, result.stopped_by) == (13.5, "heuristic")
    assert result.bound_ms < 13.5
    assert result.message == (
        "HiGHS plans on slots of 1 ms here; its plans are carried out without them, where its bounds do not hold."
    )
    for proves in ({"engine": "cpsat"}, {"engine": "highs", "clock": "slots"}):
        result = solve(g, c, Settings.of(**proves))
        assert (result.status, result.gap, result.message) == ("optimal", 0.0, "")


def test_a_bound_that_is_met_but_for_the_last_digits_leaves_no_gap() -> None:
    assert [gap(10.0, bound) for bound in (10.0, 10.0 * (1 - 1e-13), 9.0, 0.0)] == [0, 0, 0.1, 1]
    assert gap(0.0, 0.0) == 0


def test_a_time_limit_of_nothing_returns_the_list_schedule():
    settings = Settings.of(time_limit_s=0.0)
    result = solve(*HARD, settings)
    assert result.makespan_ms == list_schedule(*HARD, settings).makespan_ms
    assert result.stopped_by == "time_limit"
    assert check(*HARD, to_record(result)).ok


def test_a_graph_without_any_time_takes_none():
    g = graph(compute("f", 0, 0.0), transfer("x", 0, 1, 0.0, "f"))
    result = solve(g, cluster(), Settings.of())
    assert (result.status, result.makespan_ms, result.gap) == ("optimal", 0.0, 0.0)
    assert check(g, cluster(), to_record(result)).ok


def test_compiling_a_kernel_takes_nothing_from_the_time_limit() -> None:
    began, began_working_s = time.monotonic(), working_s()
    with event.trigger_event("numba:compiler_lock"):
        time.sleep(0.05)
    compiling_s = (time.monotonic() - began) - (working_s() - began_working_s)
    assert compiling_s >= 0.05


LIST = Settings.of(engine="list")
FREELY = replace(LIST, free=FREE)
FIXED = replace(LIST, switching="fixed")


def written(name: str, settings: Settings = LIST, **changes: Any) -> Result:
    graph, cluster = load_sample(name)
    return schedule(graph, cluster.changed(**changes), settings)


CASES: dict[str, tuple[str, dict[str, Any], Settings]] = {
    "continuous time": ("race", {}, LIST),
    "slots and a delay": ("patience", {"reconfiguration_ms": 1.0}, replace(LIST, clock="slots")),
    "fixed as asked": ("race", {"reconfiguration_ms": 10.0}, replace(FREELY, switching="fixed")),
    "as printed": ("patience", {}, Settings.of("paper", engine="list")),
    "free choices": ("race", {}, FREELY),
    "half duplex": ("patience", {"duplex": "half"}, FREELY),
    "per slot": ("patience", {}, replace(LIST, circuits="per-slot", clock="slots")),
    "provisioned": ("race", {"reconfiguration_ms": 3.0}, replace(FREELY, switching="provisioned")),
}


@pytest.mark.parametrize("case", long_after(4, CASES))
def test_a_result_that_went_through_its_file_is_the_one_that_was_written_and_holds(
    case: str,
) -> None:
    name, changes, settings = CASES[case]
    graph, cluster = sample_with(name, **changes)
    result = schedule(graph, cluster, settings)
    record = to_record(result, cluster)
    read = read_schedule(json.dumps(record, allow_nan=False).encode(), "r.schedule.json")
    assert read == record
    assert columns_of(read).clock == ("slots" if settings.on_slots else "continuous")
    assert columns_of(read).makespan_ms == result.makespan_ms
    back = from_record(read, graph, cluster, settings)
    again = to_record(back, cluster)
    for one in (record, again):
        report = check(graph, cluster, one)
        assert report.ok, report.lines()
    assert record == again
    assert back.execution.makespan_ms == result.execution.makespan_ms


def test_each_clock_has_its_own_time_and_bound() -> None:
    on_time = to_record(written("race"))
    on_slots = to_record(written("race", replace(LIST, clock="slots")))
    assert on_time["bound_ms"] <= on_time["makespan_ms"] <= on_time["slotted_ms"]
    assert on_time["slotted_ms"] == on_slots["makespan_ms"] == on_slots["slotted_ms"]
    assert on_slots["bound_slotted_ms"] == on_slots["bound_ms"]
    assert on_time["bound_ms"] == min(on_time["bound_switching_ms"], on_time["bound_fixed_ms"])
    assert on_slots["bound_fixed_ms"] is None
    # The best plan is on finer slots.
    assert on_time["chosen"]["slot_ms"] < on_time["slot_ms"]


@pytest.mark.parametrize(
    ("name", "settings"),
    [("race", FIXED), ("moe", FIXED), ("fsdp", LIST)],  # fixed is faster
)
def test_fixed_circuits_are_written_as_such_and_pass_the_checker(
    name: str, settings: Settings
) -> None:
    record = to_record(written(name, settings))
    assert record["chosen"]["switching"] == "fixed"
    assert check(*load_sample(name), record).ok
    assert settings is LIST or record["slotted_ms"] is None  # nothing was planned on slots


def test_a_result_of_other_choices_or_another_cluster_is_refused_with_the_field() -> None:
    graph, cluster = load_sample("blackboard")
    record = to_record(written("blackboard", FREELY))
    on_trees = replace(FREELY, lowering=Lowering(algorithm=(("all_reduce", "tree"),)))
    for wrong, of, settings, words in (
        ({}, cluster.changed(port_gbps=77.0), FREELY, "cluster.port_gbps: was made with"),
        ({}, cluster, FIXED, "switching: was made with 'auto', here it is 'fixed'"),
        (
            {},
            cluster,
            on_trees,
            "algorithm: was made with 'auto', here it is 'all_reduce=tree'",
        ),
        ({"engine": "abacus"}, cluster, FREELY, "engine: must be one of"),
    ):
        assert words in refusal(
            from_record, record | wrong, graph, of, replace(settings, free=FREE)
        )


def test_a_link_with_its_result_is_read_and_what_is_no_link_is_named() -> None:
    record, sample = to_record(written("blackboard", FREELY)), {"sample": "blackboard"}
    linked = record | {"format": "topox-link", "version": 1, "link": sample, "graph_digest": "d"}
    assert read_linked(json.dumps(linked).encode(), "f.link.json") == (sample, "d", record)
    for wrong, words in (
        ({"link": ["sample"]}, "field link: must be an object"),
        ({"link": {"sample": 1}}, "field link: must be an object"),
        ({"graph_digest": 1}, "field graph_digest: must be text"),
        ({"format": "topox-schedule"}, "this is a schedule file"),
        ({"tasks": 1}, "field tasks: must be a list"),
    ):
        assert words in refusal(read_linked, json.dumps(linked | wrong).encode(), "f.link.json")
