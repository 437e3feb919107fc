"""The result file, version 2: what is written is read, says what the result says, and belongs to its choices."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.conftest import long_after
from topox_core.check.checker import check
from topox_core.check.schedule_file import columns_of, read_linked, read_schedule
from topox_core.errors import InputError
from topox_core.fabrics.scheduled import schedule
from topox_core.schedule.result import Result
from topox_core.schedule.result_file import from_record, to_record
from topox_core.schedule.settings import FREE, Settings
from topox_core.workloads.samples import load_sample

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
    graph, cluster = load_sample(name)
    cluster = cluster.changed(**changes)
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
    for wrong, of, settings, words in (
        ({}, cluster.changed(port_gbps=77.0), FREELY, r"cluster\.port_gbps: was made with"),
        ({}, cluster, FIXED, "switching: was made with 'auto', here it is 'fixed'"),
        ({"engine": "abacus"}, cluster, FREELY, "engine: must be one of"),
    ):
        with pytest.raises(InputError, match=words):
            from_record(record | wrong, graph, of, replace(settings, free=FREE))


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
        with pytest.raises(InputError, match=words):
            read_linked(json.dumps(linked | wrong).encode(), "f.link.json")
