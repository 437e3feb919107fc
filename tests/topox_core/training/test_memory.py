"""Memory of one GPU: what ZeRO, recomputing and the order of the passes leave on it."""

from __future__ import annotations

import pytest

from tests.topox_core.training.reference_jobs import R1, R3, R4, R6
from topox_core.training.memory import fits, layer_activation_bytes, memory, stage_memory
from topox_core.training.weights import stage_weights


def test_a_gelu_layer_keeps_32_bytes_a_token_and_width_where_all_is_split() -> None:
    job = R4.changed(plan__sequence_parallel=True)
    width = job.tokens * job.shape.hidden / job.plan.tensor
    assert layer_activation_bytes(job) == pytest.approx(32 * width)
    kept = layer_activation_bytes(job.changed(schedule__recompute="none"))
    scores = 5 * job.shape.heads * job.shape.sequence / job.shape.hidden
    assert kept == pytest.approx((32 + scores) * width)  # Korthikanti et al., eq. 4


def test_replicas_share_out_optimizer_gradients_and_weights_in_turn() -> None:
    held = stage_weights(R1, 0).held
    each = [stage_memory(R1.changed(plan__zero=zero), 0) for zero in range(4)]
    assert [one.optimizer_bytes for one in each] == [12 * held, *[6 * held] * 3]
    assert [one.gradients_bytes for one in each] == [*[4 * held] * 2, *[2 * held] * 2]
    assert [one.weights_bytes for one in each] == [*[2 * held] * 3, held]


def test_the_order_of_the_passes_decides_how_many_microbatches_are_kept() -> None:
    layer = layer_activation_bytes(R1)
    kept = [stage_memory(R1, stage).activations_bytes / layer for stage in range(3)]
    assert kept == [4 * 8, 3 * 8, 2 * 8]
    all_first = R1.changed(schedule__order="afab")
    assert stage_memory(all_first, 2).activations_bytes / layer == 8 * 8
    turns = R1.changed(schedule__order="interleaved", schedule__virtual=2)
    assert stage_memory(turns, 0).activations_bytes / layer == (2 * 3 + 4 + 1) * 4


def test_what_does_not_fit_is_told() -> None:
    assert fits(R1)
    assert fits(R3)
    assert not fits(R6.changed(plan__pipeline=1, plan__microbatches=1))
    assert memory(R6).total_bytes == max(
        stage_memory(R6, stage).total_bytes for stage in range(R6.plan.pipeline)
    )
