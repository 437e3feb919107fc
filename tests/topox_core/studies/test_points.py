"""A point of a study gives the number that the command and the page of its subject give, and is kept as a page keeps it."""

import json
import zlib
from dataclasses import replace
from typing import Any

import pytest

from topox_core.check.checker import check
from topox_core.economics.clusters import same_cost_nic_gbps
from topox_core.economics.comparison import Question, tornado
from topox_core.economics.networks import Counting
from topox_core.economics.price_sets import DEFAULT_SET, PRICE_SETS, SET_BY_SPEED, price_set
from topox_core.errors import InputError
from topox_core.fabrics.comparison.compare import compare
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.planning.scheduled import schedule
from topox_core.fabrics.registry import FABRICS
from topox_core.library.rows import RunRecord
from topox_core.rails.builder import build
from topox_core.rails.delay import iteration_source, study
from topox_core.rails.iteration import Rail
from topox_core.rails.presets import preset
from topox_core.schedule.settings import FREE, Settings
from topox_core.studies.point import (
    KeptRun,
    StudyJob,
    fabric_run_of,
    point_of,
    record_of_fabric_run,
    record_of_solve,
    run_cell,
)
from topox_core.studies.ready import READY, rounds_record
from topox_core.studies.study import Study, dump_study, load_study, study_of
from topox_core.studies.subject import Subject, resolve, resolved_of, sha256
from topox_core.tdm.algorithms.catalogue import BASELINE, solve
from topox_core.tdm.algorithms.round_bounds import bounded
from topox_core.tdm.mixes.deployment import SetUp, deploy
from topox_core.tdm.model.jobs import Reading, TdmSettings
from topox_core.workloads.samples import load_sample


def measured(records: list[RunRecord], name: str) -> list[float | None]:
    return [record.measures[name] for record in records]


LIST = Settings.of(engine="list", free=FREE)
RACE = {"kind": "sample", "name": "race"}


def run(chosen: Study | dict[str, Any]) -> list[RunRecord]:
    study = chosen if isinstance(chosen, Study) else study_of(chosen, "study")
    job = StudyJob(resolve(study.subject))
    return [run_cell(job, job.cell(study.values(point))) for point in study.points]


def test_a_point_of_a_sample_is_the_row_of_the_comparison() -> None:
    graph, cluster = load_sample("race")
    rows = compare(graph, cluster.changed(reconfiguration_ms=5.0), LIST, FABRICS)
    axes = [{"key": "fabric", "values": list(FABRICS)}]
    records = run({"subject": RACE, "fixed": {"cluster.reconfiguration_ms": 5.0}, "axes": axes})
    for name, record in zip(FABRICS, records, strict=True):
        found = [record.measures[one] for one in ("iteration_ms", "bound_ms", "changes")]
        row = rows[name]
        assert found == [row.iteration_ms, row.bound_ms, row.circuits_changed], name


def test_options_of_a_fabric_that_a_study_sets_reach_it() -> None:
    graph, cluster = load_sample("race")
    slow = cluster.changed(reconfiguration_ms=2.0)
    chosen = {"reevaluate_ms": 5.0, "pause": "changed", "forwarding": False}
    mine, usual = (
        compare(graph, slow, LIST, ("reevaluated",), options)["reevaluated"].iteration_ms
        for options in (FabricOptions(**chosen), FabricOptions())
    )
    fixed = {f"fabric.{name}": value for name, value in chosen.items()}
    fixed |= {"cluster.reconfiguration_ms": 2.0, "fabric": "reevaluated"}
    (record,) = run({"subject": RACE, "fixed": fixed})
    assert record.measures["iteration_ms"] == mine != usual
    assert record.settings == record.settings | fixed


def test_a_point_does_not_hang_on_those_before_it() -> None:
    axes = [
        {"key": "cluster.reconfiguration_ms", "values": [0.0, 1.0, 20.0]},
        {"key": "fabric", "values": ["static", "scheduled"]},
    ]
    points = [[delay, fabric] for delay in (20.0, 0.0, 1.0) for fabric in ("scheduled", "static")]
    designs = ({}, {"design": {"kind": "listed", "points": points}})
    records = [run({"subject": RACE, "axes": axes, **design}) for design in designs]
    in_order, listed = ({one.key: one.measures for one in found} for found in records)
    assert in_order == listed


def test_a_seed_that_says_nothing_by_itself_counts_at_points_where_it_does() -> None:
    """Without skew both graphs of moe are one; with it the seed says who is sent most."""
    known: dict[str, tuple[str, float | None]] = {}
    for seed in (1, 2):
        parameters = {"layers": 1, "microbatches": 1, "seed": seed}
        job = {"kind": "workload", "generator": "moe", "parameters": parameters}
        axes = [{"key": "workload.skew", "values": [0.0, 2.0]}]
        for one in run({"subject": job, "axes": axes, "fixed": {"fabric": "fat_tree"}}):
            known[one.key] = (one.graph, one.measures["iteration_ms"])
    assert len(known) == 4
    assert len(set(known.values())) == 3


def test_a_rail_is_the_delay_study_of_its_page() -> None:
    job, delays = preset("llama3-8b-perlmutter"), (0.0, 10.0, 200.0)
    rows = study(
        iteration_source(build(job, fold=True), Rail(nic_gbps=job.machine.nic_gbps)), delays
    ).rows
    axes = [
        {"key": "rails.reconfiguration_ms", "values": list(delays)},
        {"key": "rails.control", "values": ["on_demand", "provisioned"]},
    ]
    records = run({"subject": {"kind": "rails", "preset": job.name}, "axes": axes})
    both = [time for row in rows for time in (row.on_demand_ms, row.provisioned_ms)]
    assert measured(records, "iteration_ms") == both
    # A window is what a switch has time in, whatever the switch: 3.54 ms, as the page says.
    assert [round(one, 2) for one in measured(records, "window_ms")] == [3.54] * 6


def test_jobs_in_turns_are_the_study_of_their_page() -> None:
    names = (BASELINE, "best-grouping", "all-train")
    fixed = {"tdm.jobs": 16, "seed": 3, "tdm.physical_ring": True, "tdm.port_gbps": 100.0}
    axes = [{"key": "tdm.algorithm", "values": list(names)}]
    records = run({"subject": {"kind": "tdm"}, "fixed": fixed, "axes": axes})
    jobs = deploy(SetUp(jobs=16, context=8192, seed=3, port_gbps=100.0))
    reading = Reading(physical_ring=True)
    # Over any rings, not over the rings that were tried: with those all-train phases would seem to be proved.
    rounds = [bounded(solve(jobs, TdmSettings(name, reading, 3))) for name in names]
    for one, record in zip(rounds, records, strict=True):
        found = [record.measures[name] for name in ("round_s", "bound_s", "reduction")]
        assert found == [one.round_s, one.bound_s, 1 - one.round_s / rounds[0].round_s]
        assert record.status == one.status == "feasible"


def test_no_algorithm_loses_to_the_round_without_turns_whatever_the_seed() -> None:
    small = {
        "tdm.pod_groups": 2,
        "tdm.pods_per_group": 4,
        "tdm.ports_per_pod": 8,
        "tdm.degree_max": 6,
    }
    names = (BASELINE, "hill-climbing", "all-train")
    records = run(rounds_record((4, 8), (8192, 131_072), 3, names, small))
    assert len(records) == 3 * 4 * 3
    assert all(one.measures["reduction"] >= -1e-9 for one in records)
    assert all(0 <= one.measures["gap"] < 1 for one in records)
    assert {one.measures["reduction"] for one in records[::3]} == {0.0}


def test_jobs_that_do_not_fit_their_pods_are_failed_points_with_their_line() -> None:
    crowded = {"tdm.pod_groups": 1, "tdm.pods_per_group": 4, "tdm.ports_per_pod": 1}
    (record,) = run(rounds_record((4,), (), 1, ("all-train",), crowded))
    assert record.status == "failed" and "ports" in record.message


def test_values_that_hold_anyway_and_labels_are_the_same_run() -> None:
    said = {"fabric": "scheduled", "seed": 0, "settings.effort": "first", "prices": "mixnet"}
    fixed = ({}, said, {"label": "MEMS"})
    assert len({run({"subject": RACE, "fixed": one})[0].key for one in fixed}) == 1


def test_what_cannot_be_run_is_a_failed_record_with_its_line() -> None:
    axes = [{"key": "cluster.ports_per_server", "values": [1, 2, 3]}]
    records = run({"subject": RACE, "axes": axes, "fixed": {"cluster.switches": 2}})
    assert [record.status == "failed" for record in records] == [True, False, True]
    assert "ports_per_server" in records[0].message and records[0].measures == {}
    job = StudyJob(resolve(Subject("sample", {"name": "moe"})), seconds_per_point=1e-9)
    late = run_cell(job, job.cell({}))
    assert (late.status, late.stopped_by) == ("failed", "time_limit")


def test_a_kept_run_of_a_task_graph_can_be_drawn_again() -> None:
    axes = [{"key": "workload.seed", "values": [4]}, {"key": "cluster.degree", "values": [2]}]
    subject = {"kind": "workload", "generator": "random-layered"}
    (kept,) = run({"subject": subject, "axes": axes})
    again = fabric_run_of(kept.settings)
    assert again.iteration_ms == kept.measures["iteration_ms"]
    assert again.execution.cluster.digest == kept.cluster
    assert run_cell(*point_of(kept.settings)).measures == kept.measures


def test_what_a_time_limit_decided_keeps_its_result_file() -> None:
    subject = {"kind": "sample", "name": "blackboard"}
    fixed = {"settings.effort": "search", "settings.time_limit_s": 5.0}
    (searched,), (first,) = run({"subject": subject, "fixed": fixed}), run({"subject": subject})
    assert searched.status == "optimal" and searched.result is not None
    assert first.result is None


@pytest.mark.parametrize(("name", "gpus"), [("moe", 8), ("dlrm-16", 1)])
def test_the_gpus_of_a_training_job_are_its_machine_s(name: str, gpus: int) -> None:
    assert resolve(Subject("sample", {"name": name})).gpus_per_server == gpus


# what pages keep


def kept(subject: Subject | None = None, **changes: float) -> KeptRun:
    graph, cluster = load_sample("race")
    here, prices = cluster.changed(**changes), PRICE_SETS[SET_BY_SPEED]
    options = FabricOptions(equivalent_gbps=same_cost_nic_gbps(here, prices))
    resolved = resolved_of(subject, graph, cluster)
    return KeptRun(resolved, here, LIST, options, prices, SET_BY_SPEED, "sample=race")


SAMPLE = Subject("sample", {"name": "race"})


def run_of(one: KeptRun, fabric: str):
    return compare(one.resolved.graph, one.cluster, LIST, (fabric,), one.options)[fabric]


@pytest.mark.parametrize("fabric", ["ideal", "fat_tree", "static", "reactive", "provisioned"])
def test_a_fabric_s_run_is_kept_as_the_point_of_a_study(fabric: str) -> None:
    one = kept(SAMPLE, reconfiguration_ms=5.0, port_gbps=50.0)
    record = record_of_fabric_run(run_of(one, fabric), one)
    fixed = {"cluster.reconfiguration_ms": 5.0, "cluster.port_gbps": 50.0, "fabric": fabric}
    (point,) = run({"subject": RACE, "fixed": fixed})
    for field in ("key", "graph", "cluster", "kind", "measures", "settings"):
        assert getattr(record, field) == getattr(point, field), field
    assert fabric_run_of(record.settings).iteration_ms == record.measures["iteration_ms"]


def test_own_files_are_kept_by_their_digest_and_own_choices_under_a_key_of_their_own() -> None:
    one = kept()
    record = record_of_fabric_run(run_of(one, "fat_tree"), one)
    contents = {one.digest: one.content for one in one.resolved.files}
    assert set(record.settings["subject"]["digests"].values()) == set(contents)
    assert all(sha256(content) == digest for digest, content in contents.items())
    again = fabric_run_of(record.settings, contents.get)
    assert again.iteration_ms == record.measures["iteration_ms"]
    other = replace(one, options=replace(one.options, equivalent_gbps=77.0))
    unnamed = record_of_fabric_run(run_of(other, "fat_tree"), other)
    assert unnamed.key != record.key
    assert "cannot be computed again" in unnamed.message


PORTS = ("ocs_port", "patch_panel_port")


@pytest.mark.parametrize("fabric", ["static", "scheduled"])
def test_a_run_at_other_prices_is_another_run(fabric: str) -> None:
    one = kept(SAMPLE)
    found, parts = run_of(one, fabric), ({}, {"price_usd": 1.0}, {"price_usd": 2.0})
    records = [
        record_of_fabric_run(
            found,
            replace(one, catalogue=one.catalogue.changed(dict.fromkeys(PORTS, edit))),
        )
        for edit in parts
    ]
    assert len({record.key for record in records}) == len(parts)
    assert len(set(measured(records, "dollars"))) == len(parts)


def test_a_solve_is_kept_with_its_result_which_the_checker_finds_sound() -> None:
    one = kept(SAMPLE, reconfiguration_ms=1.0)
    result = schedule(one.resolved.graph, one.cluster, LIST)
    record = record_of_solve(result, one, 12.0)
    assert (record.kind, record.started) == ("schedule", 12.0)
    measures, settings = record.measures, record.settings
    assert (measures["iteration_ms"], measures["gap"]) == (result.makespan_ms, result.gap)
    assert (settings["cluster.reconfiguration_ms"], settings["subject"]) == (1.0, RACE)
    file = json.loads(zlib.decompress(record.result))
    assert check(one.resolved.graph, one.cluster, file).ok
    with pytest.raises(InputError, match="no schedule to keep"):
        record_of_solve(replace(result, execution=None, status="infeasible"), one)
    # What a time limit decided is part of what was computed.
    searched = replace(result, engine="cpsat")
    better = replace(searched, makespan_ms=result.makespan_ms - 1)
    keys = [record_of_solve(r, one).key for r in (result, result, searched, better)]
    assert keys[0] == keys[1] and len(set(keys)) == 3


# ready studies


@pytest.mark.parametrize("name", READY)
def test_every_ready_study_is_a_file(name: str) -> None:
    study = READY[name].study()
    assert load_study(dump_study(study), "again") == study


def test_the_tornado_of_the_cost_page() -> None:
    question = Question(1024, price_set(DEFAULT_SET), Counting())
    records = run(READY["cost-tornado"].study())
    for measure in ("cost", "power"):
        savings = measured(records, f"{measure}_saving")
        assert savings[0] == question.saving("photonic_rails", "rail_optimized", measure)
        rows = tornado(question, measure=measure)
        ends = {round(end[1], 12) for row in rows for end in (row.low, row.high) if end}
        assert ends <= {round(value, 12) for value in savings if value is not None}
