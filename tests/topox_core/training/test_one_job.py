"""One job has one iteration, whatever page it is picked on: Home's workloads, Strategy's plans, the rails."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from tests.topox_core.training.reference_jobs import R1, R2, R5
from topox_core.errors import InputError
from topox_core.rails.builder import build
from topox_core.rails.byte_classes import byte_classes
from topox_core.rails.iteration import BACKWARD, COMPUTE, FORWARD, KINDS, UPDATE
from topox_core.rails.presets import Preset
from topox_core.strategy.plans import timed
from topox_core.training.exchanges import gathered_ms
from topox_core.training.iteration import Iteration, iteration
from topox_core.training.job import Job
from topox_core.training.job_file import dump_job, load_job
from topox_core.training.weights import stage_update_ms
from topox_core.workloads.catalogue import generate
from topox_core.workloads.training_jobs import as_workload, job_of

CLOSE = 1e-9
ROOMY = {"machine__memory_gb": 1000.0}


def as_on_home(job: Job) -> Job:
    """The job as Home's generator has it, by name and parameters."""
    name, parameters = as_workload(job)
    found = job_of(name, dict(parameters))
    assert found is not None
    return found


def agree(one: Iteration, other: Iteration) -> None:
    """Both have the same passes, updates and length."""
    assert one.total_ms == pytest.approx(other.total_ms, rel=CLOSE)
    assert one.update_ms == pytest.approx(other.update_ms, rel=CLOSE)
    for mine, theirs in zip(one.passes, other.passes, strict=True):
        assert mine.forward.total_ms == pytest.approx(theirs.forward.total_ms, rel=CLOSE)
        assert mine.backward.total_ms == pytest.approx(theirs.backward.total_ms, rel=CLOSE)


@pytest.mark.parametrize("job", [R1, R2, R5], ids=lambda job: job.name)
def test_workloads_strategy_and_rails_have_one_iteration(job: Job) -> None:
    expected = iteration(job)
    agree(iteration(as_on_home(job)), expected)
    agree(iteration(load_job(dump_job(job), "mine.job.json")), expected)
    agree(timed(job.changed(**ROOMY)).iteration, expected)
    agree(iteration(Preset.of_job(job).job), expected)
    assert Preset.of_job(job).job == job


def test_tasks_and_passes_on_a_rail_last_as_long() -> None:
    """Forward, backward and update of Llama 3 8B: task graph and rail against the closed form."""
    one, whole_ms = iteration(R1), gathered_ms(R1)
    name, parameters = as_workload(R1)
    graph, _ = generate(name, dict(parameters))
    rail = build(Preset.of_job(R1), fold=True)
    on_rail: dict[tuple[int, int], float] = defaultdict(float)
    for node in np.flatnonzero(rail.kind == COMPUTE):
        key = int(rail.rank[node]), int(rail.work[node])
        on_rail[key] += float(rail.duration_ms[node])
    for stage, passes in enumerate(one.passes):
        tasks: dict[str, set[float]] = defaultdict(set)
        for task in graph.tasks:
            if task.stage == stage and task.duration_ms is not None:
                tasks[task.kind].add(task.duration_ms)
        # What comes from another stage is made whole by its receiver.
        forward_ms = passes.forward.total_ms + whole_ms * (stage > 0)
        backward_ms = passes.backward.total_ms + whole_ms * (stage < 3)
        update_ms = stage_update_ms(R1, stage)
        for kind, work, ms, count in (
            ("forward", FORWARD, forward_ms, 8),
            ("backward", BACKWARD, backward_ms, 8),
            ("update", UPDATE, update_ms, 1),
        ):
            assert [*tasks[kind]] == [pytest.approx(ms, rel=CLOSE)]
            assert on_rail[stage, work] == pytest.approx(count * ms, rel=CLOSE)


def test_degrees_that_are_changed_on_rails_change_the_job_and_nothing_else() -> None:
    job = R2.changed(plan__gradient_bytes=2, machine__tflops=500.0)
    railed = Preset.of_job(job).changed(data=4, gpus=128)
    assert railed.job == job.changed(plan__data=4)


@pytest.mark.parametrize("zero", [0, 1, 2])
def test_a_rail_moves_what_the_formula_says_where_replicas_share_out_the_update(zero: int) -> None:
    preset = Preset.of_job(R1.changed(plan__zero=zero))
    built = build(preset, fold=True)
    for stage in range(preset.pipeline):
        by_formula = {
            (one.parallelism, one.operation): one.size_bytes * one.times
            for one in byte_classes(preset, stage)
            if one.parallelism == "dp"
        }
        in_the_graph: dict[tuple[str, str], float] = defaultdict(float)
        for node in np.flatnonzero(built.group >= 0):
            group = built.groups[built.group[node]]
            if group.parallelism == "dp" and stage in group.ranks:
                in_the_graph["dp", KINDS[built.kind[node]]] += float(built.size_bytes[node])
        assert dict(in_the_graph) == pytest.approx(by_formula)
        kinds = {operation for _, operation in by_formula}
        assert kinds == ({"reduce_scatter", "all_gather"} if zero else {"all_reduce"})


def test_a_job_that_rails_cannot_hold_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="field tensor: must be gpus_per_server, 8"):
        Preset.of_job(R1.changed(plan__tensor=4))
