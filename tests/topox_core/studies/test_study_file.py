"""A study file says what varies; what is wrong with one is said in one line before anything is computed."""

import json
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.refusal import refusal
from topox_core.fabrics.registry import FABRICS
from topox_core.io.cluster_file import dump_cluster
from topox_core.io.task_graph_file import dump_graph_json
from topox_core.studies.axes import latin_hypercube
from topox_core.studies.keys import KEYS
from topox_core.studies.study import dump_study, load_study, study_of
from topox_core.studies.subject import Subject, resolve, sha256
from topox_core.training.job import JOBS, dump_job
from topox_core.workloads.catalogue import WORKLOADS
from topox_core.workloads.samples import load_sample

RACE: dict[str, Any] = {
    "format": "topox-study",
    "version": 1,
    "name": "Race over delay and speed",
    "subject": {"kind": "sample", "name": "race"},
    "fixed": {"cluster.switches": 1, "settings.effort": "first", "prices": "opus-v1"},
    "axes": [
        {"key": "cluster.reconfiguration_ms", "log": {"from": 0.01, "to": 100, "points": 40}},
        {"key": "cluster.port_gbps", "values": [100, 200, 400, 800]},
        {"key": "fabric", "values": ["static", "reactive", "scheduled"]},
        {"key": "seed", "range": {"from": 0, "to": 9, "step": 1}},
    ],
    "design": {"kind": "grid"},
    "measures": ["iteration_ms", "bound_ms", "gap", "dollars"],
    "budget": {"points": 100000, "seconds": 3600, "seconds_per_point": 10},
}


def changed(**changes: Any) -> bytes:
    return json.dumps({**RACE, **changes}).encode()


def with_axis(number: int, entry: object) -> bytes:
    axes = list(RACE["axes"])
    axes[number - 1] = entry
    return changed(axes=axes)


def test_a_grid_has_every_combination_and_its_last_axis_is_the_fastest() -> None:
    study = load_study(changed(), "race.study.json")
    assert len(study.points) == 40 * 4 * 3 * 10
    assert study.points[:2] == ((0.01, 100.0, "static", 0), (0.01, 100.0, "static", 1))
    assert study.points[-1] == (100.0, 800.0, "scheduled", 9)


def test_a_file_keeps_a_study_and_neither_name_nor_budget_make_another() -> None:
    study = load_study(changed(), "a")
    assert load_study(dump_study(study), "copy.study.json") == study
    assert load_study(changed(name="Another", budget={}), "b").digest == study.digest
    assert load_study(changed(fixed={}), "c").digest != study.digest


@pytest.mark.parametrize("high", [0.3, 0.7, 1.1])
def test_a_range_holds_both_its_ends_whatever_rounding_does(high: float) -> None:
    axis = {"key": "cluster.reconfiguration_ms", "range": {"from": 0, "to": high, "step": 0.1}}
    values = load_study(changed(axes=[axis]), "a").axes[0].values
    assert values == tuple(k / 10 for k in range(round(10 * high) + 1))


LOG = {"key": "cluster.reconfiguration_ms"}
MISTAKES = {
    "unknown axis": (
        with_axis(2, {"key": "cluster.port_gbs", "values": [1]}),
        "axis 2, field key: unknown axis 'cluster.port_gbs' (did you mean cluster.port_gbps?)",
    ),
    "empty range": (
        with_axis(1, {**LOG, "log": {"from": 100, "to": 0.01, "points": 4}}),
        "axis 1, field log: is empty: from 100 to 0.01",
    ),
    "logarithm of nothing": (
        with_axis(1, {**LOG, "log": {"from": 0, "to": 100, "points": 4}}),
        "axis 1, field log.from: must be greater than 0 on a logarithmic axis (got 0)",
    ),
    "a value twice": (
        with_axis(3, {"key": "fabric", "values": ["static", "static"]}),
        "axis 3, field values: holds 'static' twice",
    ),
    "no value": (with_axis(3, {"key": "fabric", "values": []}), "axis 3, field values: is empty"),
    "a value of another kind": (
        with_axis(3, {"key": "fabric", "values": ["copper"]}),
        f"axis 3, field values: must be one of {', '.join(FABRICS)}",
    ),
    "fixed and varied": (
        changed(fixed={"cluster.port_gbps": 100}),
        "field axes: cluster.port_gbps is also in fixed",
    ),
    "a million points": (
        changed(
            axes=[
                {**LOG, "log": {"from": 1, "to": 2, "points": 1000}},
                {"key": "cluster.port_gbps", "range": {"from": 1, "to": 1000}},
            ]
        ),
        "field design: has 1,000,000 points (limit 100,000): 1,000 x 1,000",
    ),
    "more than its own budget": (
        changed(budget={"points": 100}),
        "field design: has 4,800 points (limit 100): 40 x 4 x 3 x 10",
    ),
    "no time": (changed(budget={"seconds": 0}), "field budget.seconds: must be greater than 0"),
    "no points": (changed(budget={"points": 0}), "field budget.points: must be from 1 to 100,000"),
    "an unknown budget": (changed(budget={"hours": 1}), "field budget.hours: unknown key"),
    "a bare budget": (changed(budget=100), "field budget: must be an object in braces"),
    "unknown measure": (
        changed(measures=["speed"]),
        "field measures: must be some of iteration_ms",
    ),
    "a measure of other runs": (changed(measures=["round_s"]), "(got 'round_s')"),
    "unknown sample": (
        changed(subject={"kind": "sample", "name": "rice"}),
        "field subject.name: must be one of blackboard, patience, race",
    ),
    "unknown kind": (changed(subject={"kind": "dream"}), "field subject.kind: unknown kind"),
    "a file that is gone": (
        changed(subject={"kind": "job", "file": "away.job.json"}),
        "field subject.file: file away.job.json is gone",
    ),
    "a parameter that it has not": (
        changed(
            subject={"kind": "workload", "generator": "dlrm", "parameters": {"batchs": 1}}, axes=[]
        ),
        "field subject.parameters.batchs: unknown parameter",
    ),
    "a newer version": (changed(version=2), "field version: 2 is newer than this program"),
    "another format": (changed(format="topox-cluster"), "this is a cluster file"),
    "a step and points": (
        with_axis(4, {"key": "seed", "range": {"from": 0, "to": 9, "step": 1, "points": 3}}),
        "axis 4, field range: must have either a step or points",
    ),
    "a range of words": (
        with_axis(3, {"key": "fabric", "range": {"from": 0, "to": 1}}),
        "axis 3, field range: must be a list of values: fabric is no number",
    ),
    "a point of another length": (
        changed(design={"kind": "listed", "points": [[1, 2]]}),
        "field design.points 1: must be a list of 4 values, one an axis",
    ),
    "a fixed key of others": (
        changed(fixed={"rails.control": "provisioned"}),
        "field fixed: unknown key 'rails.control'",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_line_with_its_place(name: str) -> None:
    data, words = MISTAKES[name]
    line = refusal(load_study, data, "race.study.json")
    assert line.startswith("race.study.json, ") and words in line


@given(st.integers(1, 60), st.integers(1, 5), st.integers(0, 2**32))
def test_a_latin_hypercube_uses_every_stratum_of_every_axis_once(
    points: int, axes: int, seed: int
) -> None:
    strata = (latin_hypercube(points, axes, seed) * points).astype(int)
    assert (np.tile(np.arange(points), (axes, 1)) == np.sort(strata, axis=0).T).all()


def test_drawn_designs_keep_to_their_axes_and_to_their_seed() -> None:
    drawn = changed(
        axes=[
            {**LOG, "log": {"from": 0.01, "to": 100, "points": 2}},
            {"key": "fabric", "values": ["static", "scheduled"]},
            {"key": "cluster.ports_per_switch", "range": {"from": 4, "to": 9, "points": 2}},
        ],
        design={"kind": "latin", "points": 50, "seed": 3},
    )
    study, again = load_study(drawn, "a"), load_study(drawn, "b")
    assert study.points == again.points
    delays, fabrics, ports = map(set, zip(*study.points, strict=True))
    assert len(delays) == 50 and 0.01 <= min(delays) <= max(delays) <= 100  # not only the two ends
    assert fabrics == {"static", "scheduled"} and ports <= {4, 5, 6, 7, 8, 9}


def test_one_axis_at_a_time_begins_with_the_base() -> None:
    study = study_of(
        {
            "subject": {"kind": "network"},
            "axes": [
                {"key": "prices.ocs_port.price_usd", "values": [260, 1040]},
                {"key": "network.nics", "values": [True]},
            ],
            "design": {"kind": "one_at_a_time"},
        },
        "tornado",
    )
    assert study.points == ((None, None), (260.0, None), (1040.0, None), (None, True))
    assert study.values(study.points[0]) == {}


def test_replicates_are_the_same_seeds_for_every_study_of_a_subject() -> None:
    one = load_study(changed(axes=[{"key": "seed", "replicates": 3}]), "a")
    other = load_study(changed(axes=[{"key": "seed", "replicates": 5}], name="b"), "b")
    assert one.axes[0].values == other.axes[0].values[:3] and len(set(other.axes[0].values)) == 5


def test_files_are_found_by_their_path_or_in_what_is_kept_and_a_change_is_seen(
    tmp_path: Path,
) -> None:
    graph, cluster = load_sample("race")
    contents = {"r.taskgraph.json": dump_graph_json(graph), "r.cluster.json": dump_cluster(cluster)}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    subject = {"kind": "files", "graph": "r.taskgraph.json", "cluster": "r.cluster.json"}
    read = resolve(load_study(changed(subject=subject), "a").subject, tmp_path)
    assert read.graph == graph
    kept = {sha256(content): content for content in contents.values()}
    assert set(read.subject.values["digests"].values()) == set(kept)
    assert resolve(read.subject, tmp_path / "nowhere", kept.get).digest == read.digest
    (tmp_path / "r.taskgraph.json").write_bytes(contents["r.taskgraph.json"] + b" ")
    assert "the file was changed since" in refusal(resolve, read.subject, tmp_path)
    gone = load_study(changed(subject={"kind": "recorded", "file": "run7.json"}), "a")
    assert "recorded run run7.json is gone" in refusal(resolve, gone.subject)


def test_a_job_file_is_read_as_the_known_job_and_what_differs(tmp_path: Path) -> None:
    job = JOBS["llama3-8b"].changed(plan__pipeline=2, plan__data=4)
    (tmp_path / "mine.job.json").write_bytes(dump_job(job))
    study = load_study(
        changed(subject={"kind": "job", "file": "mine.job.json"}, axes=[]), "a", tmp_path
    )
    found = study.subject.values["name"], study.subject.parameters
    assert found == ("llama3-8b", {"pipeline": "2", "data": "4"})


def test_whole_numbers_have_whole_bounds() -> None:
    """Python takes annotated types for one where 1 and 1.0 are all that tells them apart."""
    subjects = [Subject("workload", {"generator": name}) for name in WORKLOADS]
    for key in chain(KEYS.values(), *(one.keys.values() for one in subjects)):
        for kind, limits in key.field.alternatives:
            if kind is int:
                assert {type(limits.ge), type(limits.le)} <= {int, type(None)}, key.name


def test_a_parameter_that_is_true_or_false_may_be_said_as_yes_or_no() -> None:
    key = Subject("job", {"name": "llama3-8b"}).keys["job.tied"]
    assert [key.value(one) for one in ("no", "yes", False, True)] == [False, True] * 2
    assert "must be true or false (got 'maybe')" in refusal(key.value, "maybe")
    assert Subject("job", {"name": "moe"}).keys["job.iteration_ms"].value(0) == 0
