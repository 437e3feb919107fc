"""The closed form of a training iteration against the reference: six jobs, every figure, and what must hold of any job."""

from itertools import product

import pytest
from hypothesis import given

from tests.refusal import refusal
from tests.topox_core.training.random_jobs import jobs
from tests.topox_core.training.reference_jobs import EXPECTED, JOBS, R1, R2
from tests.topox_core.training.reference_walk import length_ms, reference_walk
from topox_core.training.costs.collectives import (
    Call,
    layer_exchanges,
    layer_gathers,
    layer_scatters,
    message,
    stage_update_ms,
    stage_weights,
    strided,
)
from topox_core.training.costs.layer import layer_share, query_ms
from topox_core.training.costs.memory import layer_activation_bytes
from topox_core.training.costs.passes import layer_passes
from topox_core.training.iteration import iteration, walk
from topox_core.training.job import Job
from topox_core.training.machine import MACHINES
from topox_core.training.pipeline.steps import program
from topox_core.training.plan import Plan, Schedule
from topox_core.training.shape import Shape

CLOSE = 1e-6


def measured(job: Job) -> dict[str, float]:
    """Every line of the reference's table, as this model has it."""
    one, layer = iteration(job), layer_passes(job)
    first, last = one.passes[0], one.passes[-1]
    return {
        "parameters": job.shape.parameters,
        "model operations": job.operations,
        "tokens": job.tokens,
        "layer forward": layer.forward.compute_ms,
        "layer backward": layer.backward.compute_ms,
        "tensor forward": layer.forward.tensor_ms,
        "tensor backward": layer.backward.tensor_ms,
        "context forward": layer.forward.context_ms,
        "context backward": layer.backward.context_ms,
        "experts forward": layer.forward.experts_ms,
        "experts backward": layer.backward.experts_ms,
        "pass forward first": first.forward.total_ms,
        "pass backward first": first.backward.total_ms,
        "pass forward last": last.forward.total_ms,
        "pass backward last": last.backward.total_ms,
        "message bytes": message(job).size_bytes,
        "message": one.message_ms,
        "held first": stage_weights(job, 0).held,
        "held last": stage_weights(job, job.plan.pipeline - 1).held,
        "reduced bytes": job.plan.gradient_bytes * stage_weights(job, 0).shared,
        "gradients": max(one.gradients_ms),
        "exposed": max(one.exposed_ms),
        "gather after update": one.gather_ms,
        "tied": one.tied_ms,
        "update": one.update_ms,
        "pipeline": max(one.end_ms),
        "iteration": one.total_ms,
        "utilisation": one.utilisation,
    }


@pytest.mark.parametrize("name", JOBS)
def test_the_reference_jobs_take_what_the_reference_says(name: str) -> None:
    expected = {line: figure for (job, line), figure in EXPECTED.items() if job == name}
    assert measured(JOBS[name]) == pytest.approx(expected, rel=CLOSE)


@pytest.mark.parametrize(
    ("changes", "expected_ms"),
    [
        ({"plan__zero": 1}, 547.977789),
        ({"schedule__overlap_gradients": True}, 533.820855),
        ({"plan__zero": 1, "schedule__overlap_gradients": True}, 536.901686),
        ({"schedule__overlap_sends": True}, 552.689114),
    ],
)
def test_variations_of_the_first_job(changes: dict[str, object], expected_ms: float) -> None:
    assert iteration(R1.changed(**changes)).total_ms == pytest.approx(expected_ms, rel=CLOSE)


def test_what_fsdp_moves_for_a_layer() -> None:
    job = JOBS["R3"]
    assert [one.ms(job) for one in layer_gathers(job)] == pytest.approx([2.46946667], rel=CLOSE)
    assert [one.ms(job) for one in layer_scatters(job)] == pytest.approx([4.89293333], rel=CLOSE)


def test_a_group_of_one_has_nobody_to_talk_to() -> None:
    alone = strided(1, 1, 8)
    for kind in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all"):
        assert Call(kind, 1e9, alone).ms(R1) == 0.0


def test_measured_length_scales_the_computing_alone() -> None:
    one = iteration(JOBS["R3"].changed(schedule__iteration_ms=10_200.0))
    assert one.total_ms == pytest.approx(10_200.0, rel=1e-9)
    assert one.update_ms == iteration(JOBS["R3"]).update_ms
    assert "field iteration_ms: must be more than" in refusal(
        iteration, R1.changed(schedule__iteration_ms=20.0)
    )


# -- what must hold of any job ---------------------------------------------------------------------


@given(jobs())
def test_a_rank_s_time_is_its_passes_its_messages_and_its_waiting(job: Job) -> None:
    one = iteration(job)
    for rank in range(job.plan.pipeline):
        busy = one.rank_passes(rank).total_ms + one.sent_ms[rank]
        assert busy <= one.end_ms[rank] * (1 + 1e-9)
        spent = busy + one.exposed_ms[rank] + one.bubble_ms(rank)
        assert spent == pytest.approx(one.computed_ms, rel=1e-9)
        assert busy <= one.busy_ms(one.busiest_rank) * (1 + 1e-9)
    assert 0 < one.utilisation < 1


def test_gradients_hide_behind_the_backward_pass_of_a_rank_s_first_chunk():
    """The last one of an interleaved order; the last chunk of the last rank takes longer, as it holds the head."""
    job = R2.changed(plan__data=64, plan__zero=0, schedule__overlap_gradients=True)
    one, last = iteration(job), job.plan.pipeline - 1
    first_chunk, last_chunk = one.passes[last].backward, one.passes[-1].backward
    assert first_chunk.total_ms < last_chunk.total_ms
    layers = job.stage_layers(last)
    hidden_ms = first_chunk.total_ms * (layers - 1) / layers
    assert one.exposed_ms[last] == pytest.approx(one.gradients_ms[last] - hidden_ms)


@given(jobs())
def test_what_overlaps_never_makes_an_iteration_longer(job: Job) -> None:
    apart = job.changed(schedule__overlap_gradients=False, schedule__tensor_overlap="none")
    assert iteration(job).total_ms <= iteration(apart).total_ms * (1 + 1e-12)


@given(jobs())
def test_a_stage_s_layers_and_weights_are_those_of_the_model(job: Job) -> None:
    plan, shape = job.plan, job.shape
    stages = [stage_weights(job, stage) for stage in range(plan.pipeline)]
    held = plan.tensor * sum(one.shared + plan.expert * one.experts for one in stages)
    second_table = shape.tied and plan.pipeline > 1
    assert held == pytest.approx(shape.parameters + second_table * shape.table_parameters)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"plan__tensor": 3},
            "plan, field tensor: must divide the attention heads, 32 (got 3; 2 and 4 would do)",
        ),
        (
            {"shape__heads": 48, "shape__hidden": 6144, "shape__key_value": 768},
            "field tensor: must divide the heads of keys, 6, or be a multiple of them (got 8; 2 ",
        ),
        (
            {"machine__gpus_per_server": 12},
            "field tensor: must divide the GPUs of a server, 12, or be a multiple of them (got 8; 4 ",
        ),
        (
            {"plan__context": 5},
            "field context: must divide the tokens of a sequence, 8,192 (got 5; 4 and 8 would do)",
        ),
        (
            {"plan__expert": 2},
            "field expert: must divide the experts of a layer, 1 (got 2; 1 would do)",
        ),
        (
            {"plan__data": 3, "plan__expert": 2},
            "field expert: must divide data, 3 (got 2; 1 and 3 would do)",
        ),
        (
            {"plan__pipeline": 33},
            "field pipeline: must leave every stage a layer: the number of stages may be 32 at most (got",
        ),
        (
            {"schedule__order": "interleaved", "schedule__virtual": 16},
            "pipeline x virtual may be 32 at most (got 4; 2 would do)",
        ),
        (
            {"schedule__order": "interleaved", "schedule__virtual": 2, "plan__microbatches": 6},
            "must be a multiple of pipeline, 4, to interleave (got 6; 4 and 8 would do)",
        ),
        (
            {"schedule__virtual": 2},
            "field virtual: must be 2 or more when the order is interleaved, and 1 otherwise (got 2)",
        ),
        ({"schedule__order": "gpipe"}, "must be one of 1f1b, afab, interleaved"),
        ({"plan__skew": 0.5}, "plan, field skew: must be 0 unless"),
        (
            {"schedule__overlap_exchanges": True},
            "schedule, field overlap_exchanges: must be false unless",
        ),
        ({"plan__zero": 4}, "plan, field zero: must be one of 0, 1, 2, 3 (got 4)"),
        ({"plan__data": True}, "field data: must be a whole number"),
        ({"plan__capacity": float("nan")}, "field capacity: must be a finite number"),
        ({"machine__tflops": 0.0}, "machine, field tflops: must be from 1e-06 to 1e+12"),
        ({"machine__matmul_share": 1.5}, "field matmul_share: must be from 0.001 to 1"),
        (
            {"shape__heads": 24},
            "shape, field heads: must divide hidden, 4,096 (got 24; 16 and 32 would do)",
        ),
        ({"shape__key_value": 1000}, "field key_value: must be whole heads of 128"),
        ({"shape__matrices": 4}, "field matrices: must be one of 2, 3 (got 4)"),
        ({"plan__tensors": 4}, "plan, field tensors: unknown key (did you mean 'tensor'?)"),
        ({"plan__data": 100_000, "plan__pipeline": 32}, "GPUs, more than the limit of 1,000,000"),
        (
            {"plan__microbatches": 65_536, "plan__pipeline": 32},
            "passes, more than the limit of 2,000,000",
        ),
    ],
)
def test_a_job_that_cannot_be_is_refused_by_field(changes: dict[str, object], said: str) -> None:
    assert said in refusal(R1.changed, **changes)


@given(jobs())
def test_the_compiled_walk_agrees_with_the_one_in_words(job: Job) -> None:
    passes = iteration(job).passes
    times = [
        [each.forward.total_ms for each in passes],
        [each.backward.total_ms for each in passes],
    ]
    # Chunks that all differ, as chunks of one job hardly do.
    uneven = [[ms * (1 + 0.1 * k) for k, ms in enumerate(each)] for each in times]
    for given_ms in product((times, uneven), (0.0, 0.3 * times[0][0])):
        asked = job, *given_ms[0], given_ms[1]
        assert walk(*asked) == reference_walk(*asked)


def test_gpus_that_share_a_head_of_keys_hold_and_make_it_alike_by_hand() -> None:
    """Two heads of keys, 8 wide, on four tensor-parallel GPUs: each head is on two of them."""
    shape = Shape("grouped", "grouped", "", 2, 64, 8, 16, 256, 2, 100, 32)
    job = Job(
        shape,
        Plan(tensor=4, context=2, zero=1),
        MACHINES["h100"],
        Schedule(overlap_gradients=False),
    )
    n, machine = 16, job.machine
    assert job.key_width == 8
    assert query_ms(job) == machine.matmul_ms(n, 64, 16 + 2 * 8)
    held = 2 * 64 * (16 + 8) + 2 * 64 * 256 / 4 + 2 * 64 / 4
    assert layer_share(job) == held == 11_296
    assert layer_activation_bytes(job) == n * (8 * 64 + (4 * 64 + 4 * 256) / 4 + 4 * 8)
    keys = next(one for one in layer_exchanges(job) if one.parallelism == "cp")
    assert keys.size_bytes == 2 * 2 * (n * 2) * 8
    # Both layers' weights of keys and values, 2 x 64 x 8 each, of which a replica has half, in 4 bytes.
    sum_ms = (41 + 2 * 2.7) / 1e3 + (4 * 2 * 2 * 64 * 8 / 2) / (450e6 * 0.76)
    stage = stage_weights(job, 0).held
    assert stage_update_ms(job, 0) == pytest.approx(sum_ms + 28 * stage / 2 / (3350e6 * 0.7))
    assert iteration(job).total_ms == pytest.approx(length_ms(program(job)), rel=1e-9)
    # A head a GPU is what grouped queries have where there are as many; one for all is PaLM and Falcon.
    even = job.changed(shape__key_value=32)
    assert even.key_width == 8 and layer_share(even) == held
    assert layer_share(job.changed(shape__key_value=8)) == held
    assert stage_update_ms(even, 0) < stage_update_ms(job, 0)
