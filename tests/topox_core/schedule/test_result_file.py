"""The result file, version 2: what is written is read, and says what the result says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import long_after
from topox_core.check.checker import check
from topox_core.check.schedule_file import columns_of, read_schedule
from topox_core.fabrics.scheduled import schedule
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph
from topox_core.schedule.result import Result
from topox_core.schedule.result_file import to_record
from topox_core.schedule.settings import FREE, Settings
from topox_core.workloads.samples import load_sample


def written(name: str, delay_ms: float = 0.0, **choices: Any) -> tuple[TaskGraph, Cluster, Result]:
    graph, cluster = load_sample(name)
    cluster = cluster.changed(reconfiguration_ms=delay_ms)
    model = choices.pop("model", "physical")
    settings = Settings.of(model, **{"engine": "list", **choices})
    return graph, cluster, schedule(graph, cluster, settings)


CASES: dict[str, dict[str, Any]] = {
    "continuous time": {"name": "race"},
    "a delay": {"name": "race", "delay_ms": 1.0},
    "slots": {"name": "race", "clock": "slots"},
    "as printed": {"name": "patience", "model": "paper"},
    "fixed where they are faster": {"name": "fsdp"},
    "fixed as asked": {"name": "race", "switching": "fixed"},
    "free choices": {"name": "fsdp", "free": FREE},
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_written_is_read_and_holds(case: str) -> None:
    graph, cluster, result = written(**CASES[case])
    record = to_record(result, cluster)
    back = read_schedule(json.dumps(record, allow_nan=False).encode(), "r.schedule.json")
    assert back == record
    report = check(graph, cluster, back)
    assert report.ok, report.lines()
    columns = columns_of(back)
    assert columns.makespan_ms == result.makespan_ms
    assert columns.clock == ("slots" if result.settings.on_slots else "continuous")
    assert back["version"] == 2
    assert back["chosen"]["switching"] == result.switching


def test_each_clock_has_its_own_time_and_bound() -> None:
    on_time = to_record(written("race")[2])
    on_slots = to_record(written("race", clock="slots")[2])
    assert (on_time["clock"], on_slots["clock"]) == ("continuous", "slots")
    assert on_time["bound_ms"] <= on_time["makespan_ms"] <= on_time["slotted_ms"]
    assert on_time["slotted_ms"] == on_slots["makespan_ms"] == on_slots["slotted_ms"]
    assert on_slots["bound_slotted_ms"] == on_slots["bound_ms"]
    assert on_time["bound_ms"] == min(on_time["bound_switching_ms"], on_time["bound_fixed_ms"])
    assert on_slots["bound_fixed_ms"] is None
    assert on_time["chosen"]["slot_ms"] < on_time["slot_ms"]  # the best plan is on finer slots


def test_fixed_circuits_stand_for_the_whole_iteration_and_say_who_crosses_them() -> None:
    graph, _, result = written("race", switching="fixed")
    record = to_record(result)
    assert record["slotted_ms"] is None  # nothing was planned on slots
    assert record["bound_switching_ms"] is None
    assert {(row["setup_ms"], row["start_ms"], row["end_ms"]) for row in record["circuits"]} == {
        (0.0, 0.0, result.makespan_ms)
    }
    moved = {row["id"]: row for row in record["transfers"]}
    size = {task.id: task.size_bytes for task in graph.tasks if task.kind == "communication"}
    assert moved.keys() == size.keys()
    for name, row in moved.items():
        sent = sum((end - begin) * gbps * 1e6 / 8 for begin, end, gbps in row["rates"])
        assert sent == pytest.approx(size[name], rel=1e-9)
        assert sum(path["share"] for path in row["paths"]) == pytest.approx(1)


def test_the_parts_of_a_split_transfer_have_rates_that_add_up() -> None:
    _, _, result = written("moe", switching="fixed")
    split = [row for row in to_record(result)["transfers"] if len(row["paths"]) > 1]
    assert split
    for row in split:
        whole = sum((end - begin) * gbps for begin, end, gbps in row["rates"])
        for path in row["paths"]:
            part = sum((end - begin) * gbps for begin, end, gbps in path["rates"])
            assert part == pytest.approx(path["share"] * whole, rel=1e-9)


@pytest.mark.parametrize(
    ("engine", "effort"),
    long_after(2, [("list", "first"), ("auto", "search"), ("cpsat", "prove")]),
)
@pytest.mark.long
def test_the_engine_says_the_effort(engine: str, effort: str) -> None:
    _, _, result = written("patience", engine=engine, time_limit_s=5.0)
    assert to_record(result)["effort"] == effort
