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


def run_of(one: Kept, fabric: str):
    return compare(one.resolved.graph, one.cluster, LISTED, (fabric,), one.options)[fabric]


@pytest.mark.parametrize("fabric", ["ideal", "fat_tree", "static", "reactive", "provisioned"])
def test_a_fabric_s_run_is_kept_as_the_point_of_a_study(fabric: str) -> None:
    one = kept(SAMPLE, reconfiguration_ms=5.0, port_gbps=50.0)
    record = record_of_fabric_run(run_of(one, fabric), one)
    job = StudyJob(resolve(SAMPLE))
    values = {"cluster.reconfiguration_ms": 5.0, "cluster.port_gbps": 50.0, "fabric": fabric}
    point = run_cell(job, job.cell(values))
    for field in ("key", "graph", "cluster", "kind", "measures", "settings"):
        assert getattr(record, field) == getattr(point, field), field
    assert not record.message
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
    assert unnamed.key != record.key and not record.message
    assert "cannot be computed again" in unnamed.message


def test_a_solve_is_kept_with_its_result_which_the_checker_finds_sound() -> None:
    one = kept(SAMPLE, reconfiguration_ms=1.0)
    result = schedule(one.resolved.graph, one.cluster, LISTED)
    record = record_of_solve(result, one, 12.0)
    assert (record.kind, record.started) == ("schedule", 12.0)
    assert record.measures["iteration_ms"] == result.makespan_ms
    assert record.measures["gap"] == result.gap and record.measures["dollars"]
    assert record.settings["cluster.reconfiguration_ms"] == 1.0
    assert record.settings["subject"] == SAMPLE.as_record()
    file = json.loads(zlib.decompress(record.result))
    assert check(one.resolved.graph, one.cluster, file).ok
    with pytest.raises(InputError, match="no schedule to keep"):
        record_of_solve(replace(result, execution=None, status="infeasible"), one)
    # What a time limit decided is part of what was computed.
    searched = replace(result, engine="cpsat")
    better = replace(searched, makespan_ms=result.makespan_ms - 1)
    keys = [record_of_solve(r, one).key for r in (result, result, searched, better)]
    assert keys[0] == keys[1] and len(set(keys)) == 3
