"""Jobs from and to files: what is written is read back, what is wrong is named."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.topox_core.training.reference_jobs import JOBS, R1, R3
from topox_core.errors import InputError
from topox_core.training import jobs
from topox_core.training.job_file import dump_job, load_job
from topox_core.training.machines import MACHINES, figures


@pytest.mark.parametrize("job", [*JOBS.values(), *jobs.JOBS.values()], ids=lambda job: job.name)
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
        ({"name": 3}, "field name: must be printable text"),
        ({"format": "topox-jobs"}, "field format: must be 'topox-job'"),
        ({"extra": 1}, "field extra: unknown key"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as wrong:
        load_job(record(**changes), "a.job.json")
    assert said in str(wrong.value)


def test_every_figure_of_a_machine_tells_its_source_and_how_sure_it_is() -> None:
    for machine in MACHINES.values():
        assert all(one.source and one.status != "your own" for one in figures(machine))
    edited = {one.field: one for one in figures(R3.changed(machine__tflops=300.0).machine)}
    assert (edited["tflops"].status, edited["nic_gbps"].status) == ("your own", "published")
