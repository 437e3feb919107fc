"""What a page keeps of a run is what a study would keep of the same point; a solve is kept whole."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace

import pytest

from topox_core.check.checker import check
from topox_core.economics.clusters import same_cost_nic_gbps
from topox_core.economics.price_sets import PRICE_SETS, SET_BY_SPEED
from topox_core.errors import InputError
from topox_core.fabrics.compare import compare
from topox_core.fabrics.run import FabricOptions
from topox_core.fabrics.scheduled import schedule
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph
from topox_core.schedule.settings import FREE, Settings
from topox_core.studies.kept_run import Kept, record_of_fabric_run, record_of_solve
from topox_core.studies.point import StudyJob, fabric_run_of, run_cell
from topox_core.studies.subject import Subject, resolve, resolved_of, sha256
from topox_core.workloads.samples import load_sample

LISTED = Settings.of(engine="list", free=FREE)


def kept(subject: Subject | None = None, **changes) -> Kept:
    graph, cluster = load_sample("race")
    resolved = resolved_of(subject, graph, cluster)
    here = cluster.changed(**changes)
    prices = PRICE_SETS[SET_BY_SPEED]
    options = FabricOptions(equivalent_gbps=same_cost_nic_gbps(here, prices))
    return Kept(resolved, here, LISTED, options, prices, SET_BY_SPEED, "sample=race")


SAMPLE = Subject("sample", {"name": "race"})


def runs(one: Kept, *fabrics: str):
    assert one.resolved.graph is not None
    return compare(one.resolved.graph, one.cluster, LISTED, fabrics, one.options)


@pytest.mark.parametrize("fabric", ["ideal", "fat_tree", "static", "reactive", "provisioned"])
@pytest.mark.parametrize("changes", [{}, {"reconfiguration_ms": 5.0, "port_gbps": 50.0}])
def test_a_fabric_s_run_is_kept_as_the_point_of_a_study(fabric: str, changes: dict) -> None:
    one = kept(SAMPLE, **changes)
    record = record_of_fabric_run(runs(one, fabric)[fabric], one)
    job = StudyJob(resolve(SAMPLE))
    values = {f"cluster.{name}": value for name, value in changes.items()} | {"fabric": fabric}
    point = run_cell(job, job.cell(values))
    assert record.key == point.key
    assert (record.graph, record.cluster, record.kind) == (point.graph, point.cluster, point.kind)
    assert record.measures == point.measures and not record.message
    assert record.settings == point.settings
    assert fabric_run_of(record.settings).iteration_ms == record.measures["iteration_ms"]


def test_a_choice_that_no_study_names_is_kept_under_a_key_of_its_own() -> None:
    one = kept(SAMPLE)
    other = replace(one, options=replace(one.options, equivalent_gbps=77.0))
    first, second = (record_of_fabric_run(runs(k, "fat_tree")["fat_tree"], k) for k in (one, other))
    assert first.key != second.key
    assert not first.message and "cannot be computed again" in second.message


def test_own_files_are_kept_by_their_digest() -> None:
    one = kept()
    record = record_of_fabric_run(runs(one, "static")["static"], one)
    contents = {one.digest: one.content for one in one.resolved.files}
    assert set(record.settings["subject"]["digests"].values()) == set(contents)
    assert all(sha256(content) == digest for digest, content in contents.items())
    again = fabric_run_of(record.settings, contents.get)
    assert again.iteration_ms == record.measures["iteration_ms"]


def solved(graph: TaskGraph, cluster: Cluster, **changes):
    return schedule(graph, cluster, replace(LISTED, **changes))


def test_a_solve_is_kept_with_its_result_which_the_checker_finds_sound() -> None:
    one = kept(SAMPLE, reconfiguration_ms=1.0)
    assert one.resolved.graph is not None
    result = solved(one.resolved.graph, one.cluster)
    record = record_of_solve(result, one, 12.0)
    assert record.kind == "schedule" and record.started == 12.0
    assert record.measures["iteration_ms"] == result.makespan_ms
    assert record.measures["gap"] == result.gap and record.measures["dollars"]
    assert record.settings["cluster.reconfiguration_ms"] == 1.0
    assert record.settings["subject"] == SAMPLE.as_record()
    assert record.result is not None
    file = json.loads(zlib.decompress(record.result))
    assert check(one.resolved.graph, one.cluster, file).ok


def test_what_a_time_limit_decided_is_part_of_what_was_computed() -> None:
    one = kept(SAMPLE)
    assert one.resolved.graph is not None
    result = solved(one.resolved.graph, one.cluster)
    searched = replace(result, engine="cpsat")
    better = replace(searched, makespan_ms=(result.makespan_ms or 0) - 1)
    keys = [record_of_solve(r, one).key for r in (result, result, searched, better)]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3


def test_a_solve_without_a_schedule_is_not_kept() -> None:
    one = kept(SAMPLE)
    assert one.resolved.graph is not None
    result = replace(solved(one.resolved.graph, one.cluster), execution=None, status="infeasible")
    with pytest.raises(InputError, match="no schedule to keep"):
        record_of_solve(result, one)
