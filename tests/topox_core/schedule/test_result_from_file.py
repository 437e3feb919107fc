"""A result that went through its file is the one that was written, and one that belongs elsewhere is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.conftest import long_after
from topox_core.check.checker import check
from topox_core.check.schedule_file import read_linked, read_schedule
from topox_core.errors import InputError
from topox_core.fabrics.scheduled import schedule
from topox_core.schedule.result import Result
from topox_core.schedule.result_file import to_record
from topox_core.schedule.result_from_file import from_record
from topox_core.schedule.settings import FREE, Settings
from topox_core.workloads.samples import load_sample

FREELY = Settings.of(engine="list", free=FREE)
CASES = {
    "planned": ("race", {}, FREELY),
    "slots": ("patience", {"reconfiguration_ms": 1.0}, Settings.of(engine="list", clock="slots")),
    "fixed": ("race", {"reconfiguration_ms": 10.0}, replace(FREELY, switching="fixed")),
    "provisioned": (
        "race",
        {"reconfiguration_ms": 3.0},
        replace(FREELY, switching="provisioned"),
    ),
    "half duplex": ("patience", {"duplex": "half"}, FREELY),
    "per slot": ("patience", {}, Settings.of(engine="list", circuits="per-slot")),
    "as printed": ("patience", {}, Settings.of("paper", engine="list")),
}


def through_a_file(record: dict) -> dict:
    return read_schedule(json.dumps(record).encode(), "f.schedule.json")


@pytest.mark.parametrize("name", long_after(3, CASES))
def test_a_result_that_went_through_its_file_is_the_same(name: str) -> None:
    sample, changes, settings = CASES[name]
    graph, cluster = load_sample(sample)
    cluster = cluster.changed(**changes)
    result = schedule(graph, cluster, settings)
    assert result.execution is not None
    back = from_record(through_a_file(to_record(result)), graph, cluster, settings)
    assert back.execution is not None
    assert check(graph, cluster, to_record(back)).ok
    for mine, theirs in ((back.execution, result.execution),):
        assert np.array_equal(mine.circuits.changed, theirs.circuits.changed)
        assert mine.makespan_ms == theirs.makespan_ms
    if name != "fixed":  # whose rates are joined where they are equal
        assert to_record(back) == to_record(result)
    words = "status makespan_ms bound_ms bound_by gap switching bound_fixed_ms stopped_by"
    for key in words.split():
        assert getattr(back, key) == getattr(result, key), key


def small() -> tuple[Result, dict]:
    graph, cluster = load_sample("blackboard")
    result = schedule(graph, cluster, FREELY)
    return result, through_a_file(to_record(result))


def test_a_result_of_other_choices_or_another_cluster_is_refused_with_the_field() -> None:
    graph, cluster = load_sample("blackboard")
    _, record = small()
    with pytest.raises(InputError, match=r"cluster\.port_gbps: was made with"):
        from_record(record, graph, cluster.changed(port_gbps=77.0), FREELY)
    with pytest.raises(InputError, match="switching: was made with 'auto', here it is 'fixed'"):
        from_record(record, graph, cluster, replace(FREELY, switching="fixed"))
    with pytest.raises(InputError, match="engine: must be one of"):
        from_record(record | {"engine": "abacus"}, graph, cluster, FREELY)


def test_a_link_with_its_result_is_read_and_what_is_no_link_is_named() -> None:
    _, record = small()
    linked = record | {
        "format": "topox-link",
        "version": 1,
        "link": {"sample": "blackboard"},
        "graph_digest": "d",
    }
    link, digest, back = read_linked(json.dumps(linked).encode(), "f.link.json")
    assert (link, digest, back) == ({"sample": "blackboard"}, "d", record)
    for wrong, words in (
        ({"link": ["sample"]}, "field link: must be an object"),
        ({"link": {"sample": 1}}, "field link: must be an object"),
        ({"graph_digest": 1}, "field graph_digest: must be text"),
        ({"format": "topox-schedule"}, "this is a schedule file"),
        ({"tasks": 1}, "field tasks: must be a list"),
    ):
        with pytest.raises(InputError, match=words):
            read_linked(json.dumps(linked | wrong).encode(), "f.link.json")
