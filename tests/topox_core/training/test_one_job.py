"""One job has one iteration, whatever page it is picked on, and comes back from its file as it was."""

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest

from tests.refusal import refusal
from tests.topox_core.training.reference_jobs import JOBS, R1, R2, R5
from topox_core.rails.advice import byte_classes
from topox_core.rails.builder import build
from topox_core.rails.iteration import KINDS
from topox_core.rails.presets import changed, check_on_rail
from topox_core.strategy.plans import timed
from topox_core.training import job as training_job
from topox_core.training.iteration import iteration
from topox_core.training.job import Job, dump_job, load_job


@pytest.mark.parametrize("job", [R1, R2, R5], ids=lambda job: job.name)
def test_strategy_has_the_iteration_of_the_job(job: Job) -> None:
    roomy = job.changed(machine__memory_gb=1000.0)
    assert timed(roomy).iteration.total_ms == pytest.approx(iteration(job).total_ms, rel=1e-9)


def test_degrees_that_are_changed_on_rails_change_the_job_and_nothing_else() -> None:
    job = R2.changed(plan__gradient_bytes=2, machine__tflops=500.0)
    assert changed(job, {"data": 4, "gpus": 128}) == job.changed(plan__data=4)


@pytest.mark.parametrize("zero", [0, 1, 2])
def test_a_rail_moves_what_the_formula_says_where_replicas_share_out_the_update(zero: int) -> None:
    job = R1.changed(plan__zero=zero)
    built = build(job, fold=True)
    for stage in range(job.plan.pipeline):
        by_formula = {
            one.operation: one.size_bytes * one.times
            for one in byte_classes(job, stage)
            if one.parallelism == "dp"
        }
        moved: Counter[str] = Counter()
        for node in np.flatnonzero(built.group >= 0):
            group = built.groups[built.group[node]]
            if group.parallelism == "dp" and stage in group.ranks:
                moved[KINDS[built.kind[node]]] += float(built.size_bytes[node])
        assert dict(moved) == pytest.approx(by_formula)
        assert set(moved) == ({"reduce_scatter", "all_gather"} if zero else {"all_reduce"})


def test_a_job_that_rails_cannot_hold_is_refused_by_name() -> None:
    assert "field tensor: must be gpus_per_server, 8" in refusal(
        check_on_rail, R1.changed(plan__tensor=4)
    )


@pytest.mark.parametrize(
    "job", [*JOBS.values(), *training_job.JOBS.values()], ids=lambda job: job.name
)
def test_a_job_that_is_written_is_read_back(job: Any) -> None:
    assert load_job(dump_job(job), "a.job.json") == job


def record(**changes: Any) -> bytes:
    return json.dumps({**json.loads(dump_job(R1)), **changes}).encode()


def test_shapes_and_machines_may_be_named_and_numbers_written_whole() -> None:
    job = load_job(record(shape="llama3-8b", machine="h100", plan={"tensor": 8}), "a.job.json")
    assert (job.shape, job.machine) == (R1.shape, R1.machine)
    whole = {**json.loads(dump_job(R1))["machine"], "nic_gbps": 400}
    assert load_job(record(machine=whole), "a.job.json") == R1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"shape": "llama3-9b"},
            "a.job.json, field shape: unknown name (did you mean 'llama3-8b'?)",
        ),
        ({"shape": None}, "field shape: must be a name or an object (got None)"),
        ({"plan": []}, "field plan: must be an object in braces"),
        (
            {"plan": {"tensr": 4}},
            "a.job.json, plan, field tensr: unknown key (did you mean 'tensor'?)",
        ),
        (
            {"plan": {"tensor": 5}},
            "a.job.json, plan, field tensor: must divide the attention heads",
        ),
        ({"plan": {"tensor": 8.0}}, "plan, field tensor: must be a whole number"),
        ({"machine": {"name": "m"}}, "a.job.json, machine, field title: is missing"),
        ({"machine": "tpu"}, "a.job.json, field machine: unknown name"),
        ({"schedule": {"order": "gpipe"}}, "schedule, field order: must be one of"),
        ({"name": 3}, "field name: must be text in quotes (got 3)"),
        ({"format": "topox-jobs"}, "field format: must be 'topox-job'"),
        ({"extra": 1}, "field extra: unknown key"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(changes: dict[str, Any], said: str) -> None:
    assert said in refusal(load_job, record(**changes), "a.job.json")
