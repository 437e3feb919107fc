"""A point of a study gives the number that the command and the page of its subject give."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from topox_core.economics.comparison import Question, tornado
from topox_core.economics.networks import Counting
from topox_core.economics.price_sets import DEFAULT_SET, price_set
from topox_core.fabrics.compare import compare
from topox_core.fabrics.registry import ENTRIES, FABRICS
from topox_core.fabrics.run import FabricOptions
from topox_core.fabrics.scheduled import schedule
from topox_core.library.record import RunRecord
from topox_core.rails.builder import build
from topox_core.rails.delay import iteration_source, study
from topox_core.rails.iteration import Rail
from topox_core.rails.presets import preset
from topox_core.schedule.settings import FREE, Settings
from topox_core.studies.point import StudyJob, fabric_run_of, point_of, run_cell
from topox_core.studies.study_file import study_of
from topox_core.studies.subject import Subject, resolve
from topox_core.studies.values import OPTION_NAMES
from topox_core.tdm.mixes.deployment import SetUp
from topox_core.tdm.model.round import TdmSettings
from topox_core.tdm.study import BASELINE, StudyCell
from topox_core.tdm.study import run_cell as run_tdm_cell
from topox_core.workloads.samples import load_sample

LIST = Settings.of(engine="list", free=FREE)


def run(record: dict[str, Any]) -> list[RunRecord]:
    chosen = study_of(record, "study")
    job = StudyJob(resolve(chosen.subject))
    return [run_cell(job, job.cell(chosen.values(point))) for point in chosen.points]


@pytest.mark.parametrize("delay_ms", [0.0, 5.0])
def test_a_point_of_a_sample_is_the_row_of_the_comparison(delay_ms: float) -> None:
    graph, cluster = load_sample("race")
    rows = compare(graph, cluster.changed(reconfiguration_ms=delay_ms), LIST, FABRICS)
    records = run(
        {
            "subject": {"kind": "sample", "name": "race"},
            "fixed": {"cluster.reconfiguration_ms": delay_ms},
            "axes": [{"key": "fabric", "values": list(FABRICS)}],
        }
    )
    for name, record in zip(FABRICS, records, strict=True):
        assert record.measures["iteration_ms"] == rows[name].iteration_ms, name
        assert record.measures["bound_ms"] == rows[name].bound_ms, name
        assert record.measures["changes"] == rows[name].circuits_changed, name


def test_options_of_a_fabric_that_a_study_sets_reach_it() -> None:
    graph, cluster = load_sample("race")
    cluster = cluster.changed(reconfiguration_ms=2.0)
    chosen = {"reevaluate_ms": 5.0, "pause": "changed", "forwarding": False}
    options = FabricOptions(**chosen)  # type: ignore[arg-type]
    row = compare(graph, cluster, LIST, ("reevaluated",), options)["reevaluated"]
    usual = compare(graph, cluster, LIST, ("reevaluated",))["reevaluated"]
    set_here = {f"fabric.{name}": value for name, value in chosen.items()}
    study = {
        "subject": {"kind": "sample", "name": "race"},
        "fixed": {"cluster.reconfiguration_ms": 2.0, "fabric": "reevaluated", **set_here},
    }
    (record,) = run(study)
    assert record.measures["iteration_ms"] == row.iteration_ms != usual.iteration_ms
    assert {name: record.settings[name] for name in set_here} == set_here


def test_every_option_that_a_fabric_reads_has_a_key() -> None:
    read = {name for entry in ENTRIES.values() for name in entry.options}
    assert read == {one.name for one in fields(FabricOptions)}
    keys = resolve(Subject("sample", {"name": "race"})).subject.keys
    assert all(f"fabric.{name}" in keys for name in OPTION_NAMES)


def test_planned_circuits_are_the_schedule_of_page_and_command() -> None:
    graph, cluster = load_sample("race")
    (record,) = run({"subject": {"kind": "sample", "name": "race"}})
    result = schedule(graph, cluster, LIST)
    assert record.measures["iteration_ms"] == result.makespan_ms
    assert record.status == result.status


def test_a_point_does_not_hang_on_those_before_it() -> None:
    delays = [20.0, 0.0, 1.0, 20.0, 5.0]
    axes = [
        {"key": "cluster.reconfiguration_ms", "values": [0.0, 1.0, 5.0, 20.0]},
        {"key": "fabric", "values": ["static", "scheduled", "provisioned"]},
    ]
    record = {"subject": {"kind": "sample", "name": "race"}, "axes": axes}
    points = [[delay, fabric] for delay in delays for fabric in ("scheduled", "static")]
    listed = {**record, "design": {"kind": "listed", "points": points}}
    grid = {one.key: one.measures for one in run(record)}
    for one in run(listed):
        assert one.measures == grid[one.key]


def test_a_rail_is_the_delay_study_of_its_page() -> None:
    job = preset("llama3-8b-perlmutter")
    delays = (0.0, 10.0, 200.0)
    rows = study(iteration_source(build(job, fold=True), Rail(nic_gbps=job.nic_gbps)), delays).rows
    records = run(
        {
            "subject": {"kind": "rails", "preset": job.name},
            "axes": [
                {"key": "rails.reconfiguration_ms", "values": list(delays)},
                {"key": "rails.control", "values": ["on_demand", "provisioned"]},
            ],
        }
    )
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


def test_a_tornado_is_that_of_the_cost_page() -> None:
    prices = price_set(DEFAULT_SET)
    question = Question(1024, prices, Counting())
    swings = {row.name: row for row in tornado(question)}
    price = prices.part("ocs_port").price_usd
    records = run(
        {
            "subject": {"kind": "network"},
            "axes": [
                {"key": "prices.ocs_port.price_usd", "values": [price / 2, price * 2]},
                {"key": "network.ocs_ports_per_gpu", "values": [1, 4]},
            ],
            "design": {"kind": "one_at_a_time"},
        }
    )
    savings = [record.measures["cost_saving"] for record in records]
    row, ports = swings["Optical-switch port price"], swings["Optical ports a GPU"]
    assert row.low and row.high and ports.low and ports.high
    assert savings[0] == question.saving("photonic_rails", "rail_optimized", "cost")
    assert savings[1:] == [row.low[1], row.high[1], ports.low[1], ports.high[1]]


def test_values_that_hold_anyway_are_the_same_run() -> None:
    said = {"fabric": "scheduled", "seed": 0, "settings.effort": "first", "prices": "mixnet"}
    subject = {"kind": "sample", "name": "race"}
    (one,), (other,) = run({"subject": subject}), run({"subject": subject, "fixed": said})
    assert one.key == other.key


def test_a_label_names_a_point_and_changes_nothing() -> None:
    subject = {"kind": "sample", "name": "race"}
    (one,) = run({"subject": subject})
    (other,) = run({"subject": subject, "fixed": {"label": "MEMS"}})
    assert one.key == other.key


def test_what_cannot_be_run_is_a_failed_record_with_its_line() -> None:
    records = run(
        {
            "subject": {"kind": "sample", "name": "race"},
            "axes": [{"key": "cluster.ports_per_server", "values": [1, 2, 3]}],
            "fixed": {"cluster.switches": 2},
        }
    )
    assert [record.status == "failed" for record in records] == [True, False, True]
    assert "ports_per_server" in records[0].message
    assert records[0].measures == {}


def test_a_kept_run_of_a_task_graph_can_be_drawn_again() -> None:
    axes = [{"key": "workload.seed", "values": [4]}, {"key": "cluster.degree", "values": [2]}]
    record = {"subject": {"kind": "workload", "generator": "random-layered"}, "axes": axes}
    (kept,) = run(record)
    assert kept.status != "failed", kept.message
    again = fabric_run_of(kept.settings)
    assert again.iteration_ms == kept.measures["iteration_ms"]
    assert again.execution.cluster.digest == kept.cluster
    job, cell = point_of(kept.settings)
    assert run_cell(job, cell).measures == kept.measures


def test_a_point_that_takes_too_long_fails_alone() -> None:
    chosen = study_of({"subject": {"kind": "sample", "name": "moe"}}, "study")
    job = StudyJob(resolve(chosen.subject), seconds_per_point=1e-9)
    record = run_cell(job, job.cell(chosen.values(chosen.points[0])))
    assert (record.status, record.stopped_by) == ("failed", "time_limit")
    assert record.message.startswith("took longer than")


def test_what_a_time_limit_decided_keeps_its_result_file() -> None:
    subject = {"kind": "sample", "name": "blackboard"}
    fixed = {"settings.effort": "search", "settings.time_limit_s": 5.0}
    (kept,) = run({"subject": subject, "fixed": fixed})
    assert kept.status == "optimal"
    assert kept.result is not None
    (first,) = run({"subject": subject})
    assert first.result is None


def test_the_gpus_of_a_training_job_are_its_machine_s() -> None:
    moe = resolve(study_of({"subject": {"kind": "sample", "name": "moe"}}, "study").subject)
    assert moe.cluster is not None
    assert (moe.cluster.servers, moe.gpus_per_server) == (8, 8)
    dlrm = resolve(study_of({"subject": {"kind": "sample", "name": "dlrm-16"}}, "study").subject)
    assert dlrm.gpus_per_server == 1
