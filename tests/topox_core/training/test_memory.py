"""Memory of one GPU: what ZeRO, recomputing and the order of the passes leave on it."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from tests.topox_core.training.reference_jobs import R1, R4, R5, R6
from topox_core.training.costs.collectives import stage_weights
from topox_core.training.costs.layer import layer_share
from topox_core.training.costs.memory import fits, layer_activation_bytes, memory, stage_memory
from topox_core.training.job import JOBS, Job
from topox_core.training.machine import MACHINES
from topox_core.training.measured.measurements import (
    Measured,
    calibration_rows,
    megatron_rows,
    production_rows,
    uncalibrated_rows,
)
from topox_core.training.plan import Plan
from topox_core.training.shape import Shape


def test_a_layer_keeps_what_korthikanti_et_al_count() -> None:
    """Bytes a token and hidden width on TP 8: equations 2 (tensor parallel) and 4 (with sequence parallelism)."""
    t, scores = R4.plan.tensor, 5 * R4.shape.heads * R4.shape.sequence / R4.shape.hidden
    for split, recompute, expected in (
        (False, "none", 10 + (24 + scores) / t),
        (True, "none", (34 + scores) / t),
        (True, "full", (34 + scores) / t),  # the layer at work has its scores again
        (True, "selective", 34 / t),
    ):
        job = R4.changed(plan__sequence_parallel=split, schedule__recompute=recompute)
        each = layer_activation_bytes(job) / (job.tokens * job.shape.hidden)
        assert each == pytest.approx(expected)


def test_each_part_of_llama_3_405b_by_hand() -> None:
    """TP 8, PP 16, DP 64, sequences of 8,192, ZeRO 2; its second stage has eight of the 126 layers."""
    found = stage_memory(JOBS["llama3.1-405b-8192"], 1)
    h, kv, width = 16_384, 1_024, 53_248
    held = 8 * (2 * h * (h + kv) + 3 * h * width + 2 * h) / 8
    assert found.weights_bytes == 2 * held == 6_375_407_616
    assert found.gradients_bytes == 4 * held / 64 and found.optimizer_bytes == 12 * held / 64
    layer = 8_192 * (12 * h + 4 * kv + 4 * width) / 8
    assert found.activations_bytes == 15 * 8 * layer
    # Seven chunks a stage, one of two layers: 2 (16 - 2) + 6 x 16 + 1 passes are 16 x 8 layers and 13 of chunk 0.
    turns = JOBS["llama3.1-405b-8192"].changed(schedule__order="interleaved", schedule__virtual=7)
    assert stage_memory(turns, 1).activations_bytes == (16 * 8 + 13) * layer


@pytest.mark.parametrize(
    "rows", [uncalibrated_rows, production_rows, megatron_rows, calibration_rows]
)
def test_jobs_that_ran_fit_the_gpus_that_they_ran_on(rows: Callable[[], list[Measured]]) -> None:
    needed = [memory(row.job).total_bytes / 1e9 for row in rows()]
    assert max(needed) <= 80


def test_replicas_share_out_optimizer_gradients_and_weights_in_turn() -> None:
    held = stage_weights(R1, 0).held
    each = [stage_memory(R1.changed(plan__zero=zero), 0) for zero in range(4)]
    assert [one.optimizer_bytes for one in each] == [12 * held, *[6 * held] * 3]
    assert [one.gradients_bytes for one in each] == [*[4 * held] * 2, *[2 * held] * 2]
    # Half of the weights, and two of eight layers whole; all of them where they stay gathered.
    assert [one.weights_bytes for one in each] == [*[2 * held] * 3, held + 2 * 2 * layer_share(R1)]
    gathered = R1.changed(plan__zero=3, schedule__reshard=False)
    assert stage_memory(gathered, 0).weights_bytes == 2 * held


def test_the_order_of_the_passes_decides_how_many_microbatches_are_kept() -> None:
    layer = layer_activation_bytes(R1)
    kept = [stage_memory(R1, stage).activations_bytes / layer for stage in range(3)]
    assert kept == [4 * 8, 3 * 8, 2 * 8]
    turns = {"schedule__order": "interleaved", "schedule__virtual": 2}
    for order, stage, many in (({"schedule__order": "afab"}, 2, 64), (turns, 0, (6 + 4 + 1) * 4)):
        assert stage_memory(R1.changed(**order), stage).activations_bytes / layer == many


# Four layers, h = 64, GELU of 4h, as many heads of keys as of queries.
SMALL = Shape("small", "small", "", 4, 64, 4, 64, 256, 2, 100, 32)
ONE = Job(SMALL, Plan(microbatches=8, zero=1), MACHINES["h100"])


def test_memory_of_a_small_model_on_one_gpu_by_hand() -> None:
    layer = 4 * 64 * 64 + 2 * 64 * 256 + 2 * 64
    count = 4 * layer + 2 * 100 * 64 + 64
    found = memory(ONE)
    assert found.activations_bytes == 4 * 32 * 32 * 64 + 6 * 32 * 100
    assert found.total_bytes == 18 * count + found.activations_bytes
    # Recomputing keeps the inputs of layers and one layer at work.
    again = memory(ONE.changed(schedule__recompute="full"))
    assert again.activations_bytes == 4 * 2 * 32 * 64 + 32 * 32 * 64 + 6 * 32 * 100


SPLIT = R1.changed(plan=Plan(microbatches=8, zero=1, sequence_parallel=True))


@pytest.mark.parametrize(
    ("job", "field"),
    [(SPLIT, "tensor"), (SPLIT, "context"), (SPLIT, "data"), (R5, "expert")],
    ids=lambda value: getattr(value, "name", value),
)
def test_splitting_more_always_needs_less_memory(job: Job, field: str) -> None:
    found = [memory(job.changed(**{f"plan__{field}": k})) for k in (1, 2, 4, 8)]
    assert all(a.total_bytes > b.total_bytes for a, b in pairwise(found))


def test_what_fits_is_told_by_the_fullest_stage() -> None:
    assert fits(R1)
    assert not fits(R6.changed(plan__pipeline=1, plan__microbatches=1))
    assert memory(R6).total_bytes == max(stage_memory(R6, k).total_bytes for k in range(16))
