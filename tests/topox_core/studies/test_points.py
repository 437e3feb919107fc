"""A point of a study gives the number that the command and the page of its subject give."""

from __future__ import annotations

from typing import Any

import pytest

from topox_core.fabrics.compare import compare
from topox_core.fabrics.registry import FABRICS
from topox_core.fabrics.run import FabricOptions
from topox_core.library.record import RunRecord
from topox_core.rails.builder import build
from topox_core.rails.delay import iteration_source, study
from topox_core.rails.iteration import Rail
from topox_core.rails.presets import preset
from topox_core.schedule.settings import FREE, Settings
from topox_core.studies.point import StudyJob, fabric_run_of, point_of, run_cell
from topox_core.studies.study_file import study_of
from topox_core.studies.subject import Subject, resolve
from topox_core.tdm.mixes.deployment import SetUp
from topox_core.tdm.model.round import TdmSettings
from topox_core.tdm.study import BASELINE, StudyCell
from topox_core.tdm.study import run_cell as run_tdm_cell
from topox_core.workloads.samples import load_sample

LIST = Settings.of(engine="list", free=FREE)
RACE = {"kind": "sample", "name": "race"}


def run(record: dict[str, Any]) -> list[RunRecord]:
    chosen = study_of(record, "study")
    job = StudyJob(resolve(chosen.subject))
    return [run_cell(job, job.cell(chosen.values(point))) for point in chosen.points]


def test_a_point_of_a_sample_is_the_row_of_the_comparison() -> None:
    graph, cluster = load_sample("race")
    rows = compare(graph, cluster.changed(reconfiguration_ms=5.0), LIST, FABRICS)
    axes = [{"key": "fabric", "values": list(FABRICS)}]
    records = run({"subject": RACE, "fixed": {"cluster.reconfiguration_ms": 5.0}, "axes": axes})
    for name, record in zip(FABRICS, records, strict=True):
        found = [record.measures[one] for one in ("iteration_ms", "bound_ms", "changes")]
        expected = rows[name]
        assert found == [expected.iteration_ms, expected.bound_ms, expected.circuits_changed], name


def test_options_of_a_fabric_that_a_study_sets_reach_it() -> None:
    graph, cluster = load_sample("race")
    cluster = cluster.changed(reconfiguration_ms=2.0)
    chosen = {"reevaluate_ms": 5.0, "pause": "changed", "forwarding": False}
    times = [
        compare(graph, cluster, LIST, ("reevaluated",), options)["reevaluated"].iteration_ms
        for options in (FabricOptions(**chosen), FabricOptions())  # type: ignore[arg-type]
    ]
    set_here = {f"fabric.{name}": value for name, value in chosen.items()}
    fixed = {"cluster.reconfiguration_ms": 2.0, "fabric": "reevaluated", **set_here}
    (record,) = run({"subject": RACE, "fixed": fixed})
    assert record.measures["iteration_ms"] == times[0] != times[1]
    assert {name: record.settings[name] for name in set_here} == set_here


def test_a_point_does_not_hang_on_those_before_it() -> None:
    axes = [
        {"key": "cluster.reconfiguration_ms", "values": [0.0, 1.0, 20.0]},
        {"key": "fabric", "values": ["static", "scheduled"]},
    ]
    record = {"subject": RACE, "axes": axes}
    points = [[delay, fabric] for delay in (20.0, 0.0, 1.0) for fabric in ("scheduled", "static")]
    listed = {**record, "design": {"kind": "listed", "points": points}}
    measures = [{one.key: one.measures for one in run(which)} for which in (record, listed)]
    assert measures[0] == measures[1]


def test_a_rail_is_the_delay_study_of_its_page() -> None:
    job, delays = preset("llama3-8b-perlmutter"), (0.0, 10.0, 200.0)
    rows = study(iteration_source(build(job, fold=True), Rail(nic_gbps=job.nic_gbps)), delays).rows
    axes = [
        {"key": "rails.reconfiguration_ms", "values": list(delays)},
        {"key": "rails.control", "values": ["on_demand", "provisioned"]},
    ]
    records = run({"subject": {"kind": "rails", "preset": job.name}, "axes": axes})
    times = [record.measures["iteration_ms"] for record in records]
    assert times == [time for row in rows for time in (row.on_demand_ms, row.provisioned_ms)]


def test_jobs_in_turns_are_the_study_of_their_page() -> None:
    names = ("best-grouping", "all-train")
    settings = TdmSettings(algorithm=BASELINE)
    theirs = run_tdm_cell(SetUp(), settings, (BASELINE, *names), StudyCell(16, 8192, 3))
    records = run(
        {
            "subject": {"kind": "tdm"},
            "fixed": {"tdm.jobs": 16, "seed": 3},
            "axes": [{"key": "tdm.algorithm", "values": list(names)}],
        }
    )
    for name, record in zip(names, records, strict=True):
        assert record.measures["round_s"] == theirs.outcomes[name].round_s
        assert record.measures["bound_s"] == theirs.outcomes[name].bound_s
        assert record.measures["reduction"] == theirs.reduction(name)


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
    assert late.message.startswith("took longer than")


def test_a_kept_run_of_a_task_graph_can_be_drawn_again() -> None:
    axes = [{"key": "workload.seed", "values": [4]}, {"key": "cluster.degree", "values": [2]}]
    record = {"subject": {"kind": "workload", "generator": "random-layered"}, "axes": axes}
    (kept,) = run(record)
    again = fabric_run_of(kept.settings)
    assert again.iteration_ms == kept.measures["iteration_ms"]
    assert again.execution.cluster.digest == kept.cluster
    job, cell = point_of(kept.settings)
    assert run_cell(job, cell).measures == kept.measures


def test_what_a_time_limit_decided_keeps_its_result_file() -> None:
    subject = {"kind": "sample", "name": "blackboard"}
    fixed = {"settings.effort": "search", "settings.time_limit_s": 5.0}
    (searched,), (first,) = run({"subject": subject, "fixed": fixed}), run({"subject": subject})
    assert searched.status == "optimal" and searched.result is not None
    assert first.result is None


@pytest.mark.parametrize(("name", "gpus"), [("moe", 8), ("dlrm-16", 1)])
def test_the_gpus_of_a_training_job_are_its_machine_s(name: str, gpus: int) -> None:
    assert resolve(Subject("sample", {"name": name})).gpus_per_server == gpus
