"""One job has one iteration, whatever page it is picked on: Strategy's plans, the rails."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.topox_core.training.reference_jobs import R1, R2, R5
from topox_core.errors import InputError
from topox_core.rails.builder import build
from topox_core.rails.byte_classes import byte_classes
from topox_core.rails.iteration import KINDS
from topox_core.rails.presets import Preset
from topox_core.strategy.plans import timed
from topox_core.training.iteration import iteration
from topox_core.training.job import Job


@pytest.mark.parametrize("job", [R1, R2, R5], ids=lambda job: job.name)
def test_strategy_and_rails_have_the_iteration_of_the_job(job: Job) -> None:
    roomy = job.changed(machine__memory_gb=1000.0)
    assert timed(roomy).iteration.total_ms == pytest.approx(iteration(job).total_ms, rel=1e-9)
    assert Preset.of_job(job).job == job


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
            one.operation: one.size_bytes * one.times
            for one in byte_classes(preset, stage)
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
    with pytest.raises(InputError, match="field tensor: must be gpus_per_server, 8"):
        Preset.of_job(R1.changed(plan__tensor=4))
