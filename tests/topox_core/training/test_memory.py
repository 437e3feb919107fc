"""Memory of one GPU: what ZeRO, recomputing and the order of the passes leave on it."""

from itertools import pairwise

import pytest

from tests.topox_core.training.reference_jobs import R1, R4, R5, R6
from topox_core.training.job import Job
from topox_core.training.machines import MACHINES
from topox_core.training.memory import fits, layer_activation_bytes, memory, stage_memory
from topox_core.training.plan import Plan
from topox_core.training.shape import Shape
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
