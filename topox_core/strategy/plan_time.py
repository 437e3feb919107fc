"""Iteration time of a parallel plan in closed form: pipeline slots, collectives at link speed, gradients, update."""

from __future__ import annotations

from dataclasses import dataclass, replace

from topox_core.strategy.plan_memory import GRADIENT_BYTES, stage_parameters, tokens
from topox_core.strategy.plans import GpuCluster, ParallelPlan
from topox_core.strategy.transformers import HALF, Shape
from topox_core.training.layer import UPDATE_BYTES
from topox_core.training.weights import WEIGHT_BYTES


@dataclass(frozen=True)
class PlanTime:
    """Where an iteration's time goes, in ms; the parts add up to ``total_ms``.

    ``compute``, ``tensor``, ``context``, ``expert`` and ``sends`` are those of the slowest stage's
    microbatches; ``bubble`` is what the pipeline waits to fill and drain; ``gradients`` is what the
    last backward pass does not hide.
    """

    compute_ms: float
    tensor_ms: float
    context_ms: float
    expert_ms: float
    sends_ms: float
    bubble_ms: float
    gradients_ms: float
    update_ms: float
    utilisation: float

    @property
    def total_ms(self) -> float:
        """The iteration."""
        return (
            self.compute_ms
            + self.tensor_ms
            + self.context_ms
            + self.expert_ms
            + self.sends_ms
            + self.bubble_ms
            + self.gradients_ms
            + self.update_ms
        )


@dataclass(frozen=True)
class _Slot:
    """One microbatch on one stage, forward and backward together, in ms."""

    compute: float
    tensor: float
    context: float
    expert: float
    sends: float
    backward: float

    @property
    def total(self) -> float:
        return self.compute + self.tensor + self.context + self.expert + self.sends


def plan_time(shape: Shape, plan: ParallelPlan, cluster: GpuCluster) -> PlanTime:
    """Return the analytic iteration time.

    With P stages and m microbatches an iteration is m + P - 1 slots of the slowest stage (Narayanan
    et al., SC 2021, section 2.2), then what is left of the gradients' reduce-scatter and the
    weights' all-gather after hiding behind one microbatch's backward pass, then the update.
    """
    stages = {0, plan.pipeline - 1, plan.pipeline // 2}
    slots = [_slot(shape, plan, cluster, stage) for stage in sorted(stages)]
    slot = max(slots, key=lambda one: one.total)
    m = plan.microbatches
    gradients = max(_gradients_ms(shape, plan, cluster, stage) for stage in stages)
    update = max(update_ms(shape, plan, cluster, stage) for stage in stages)
    time = PlanTime(
        m * slot.compute,
        m * slot.tensor,
        m * slot.context,
        m * slot.expert,
        m * slot.sends,
        (plan.pipeline - 1) * slot.total,
        max(0.0, gradients - slot.backward),
        update,
        0.0,
    )
    useful = (
        3
        * plan.batch
        * (
            shape.base.layers
            * (
                shape.attention_flop(shape.sequence, shape.sequence)
                + shape.feed_forward_flop(shape.sequence)
            )
            + shape.base.head_forward_flop(shape.sequence)
        )
    )
    share = useful / (cluster.gpus * cluster.tflops * 1e9 * time.total_ms)
    return replace(time, utilisation=share)


def _slot(shape: Shape, plan: ParallelPlan, cluster: GpuCluster, stage: int) -> _Slot:
    base, n = shape.base, tokens(shape, plan)
    layers = base.stage_layers(stage, plan.pipeline)
    passes = 3 + plan.recompute  # forward, backward twice, and perhaps forward again
    per_ms = cluster.tflops * cluster.efficiency * 1e9 * plan.tensor
    forward = (
        layers * (shape.attention_flop(n, shape.sequence) + shape.feed_forward_flop(n)) / per_ms
    )
    if stage == plan.pipeline - 1:
        forward += base.head_forward_flop(round(n)) / per_ms
    # A layer has two all-reduces forward and two backward (Megatron-LM); two more if it is run
    # again.
    row = HALF * n * base.hidden
    tensor = (
        layers
        * (4 + 2 * plan.recompute)
        * 2
        * (plan.tensor - 1)
        / plan.tensor
        * row
        / cluster.bytes_per_ms(plan.tensor)
    )
    # Two all-to-alls a pass of every token's copies (GShard).
    copies = shape.top_k * row / plan.tensor * (plan.expert - 1) / plan.expert
    spread = cluster.bytes_per_ms(plan.tensor * plan.context * plan.expert)
    expert = layers * (4 + 2 * plan.recompute) * copies / spread if shape.experts > 1 else 0.0
    sends = 2 * row / plan.tensor / cluster.bytes_per_ms(plan.gpus) if plan.pipeline > 1 else 0.0
    context = layers * _context_ms(shape, plan, cluster, n, per_ms)
    return _Slot(passes * forward, tensor, context, expert, sends, (passes - 1) * forward)


def pass_ms(
    shape: Shape, plan: ParallelPlan, cluster: GpuCluster, stage: int
) -> tuple[float, float]:
    """Return one microbatch's forward and backward time on a stage, in ms: compute, and tensor parallelism in the server."""
    slot = _slot(shape, plan, cluster, stage)
    forward = (slot.compute + slot.tensor - slot.backward) - slot.tensor * (
        1 - 2 / (4 + 2 * plan.recompute)
    )
    return forward, slot.compute + slot.tensor - forward


def _context_ms(
    shape: Shape, plan: ParallelPlan, cluster: GpuCluster, n: float, per_ms: float
) -> float:
    """Return what ring attention (Liu et al., 2023) does not hide of a layer: keys and values go once round.

    Forward once, backward once more with their gradients; each pass hides behind its own attention
    scores.
    """
    if plan.context == 1:
        return 0.0
    speed = cluster.bytes_per_ms(plan.tensor * plan.context)
    once = (plan.context - 1) * 2 * HALF * n * shape.base.key_value / plan.tensor / speed
    scores = 4.0 * n * shape.sequence * shape.base.hidden / per_ms
    return (1 + plan.recompute) * max(0.0, once - scores) + max(0.0, 2 * once - 2 * scores)


def _gradients_ms(shape: Shape, plan: ParallelPlan, cluster: GpuCluster, stage: int) -> float:
    """Return the reduce-scatter of FP32 gradients and the all-gather of BF16 weights, over all that share them (ZeRO-1)."""
    shared, experts = stage_parameters(shape, plan, stage)
    speed = cluster.bytes_per_ms(plan.tensor * plan.context * plan.data)
    total = 0.0
    for count, group in (
        (shared, plan.data * plan.context),
        (experts, plan.data * plan.context // plan.expert),
    ):
        total += (group - 1) / group * count * (GRADIENT_BYTES + WEIGHT_BYTES) / speed
    return total


def update_ms(shape: Shape, plan: ParallelPlan, cluster: GpuCluster, stage: int) -> float:
    """Return the optimizer's step on one GPU's share of a stage's state, bound by its memory, in ms."""
    shared, experts = stage_parameters(shape, plan, stage)
    replicas = plan.data * plan.context
    return (
        (shared + experts * plan.expert) / replicas * UPDATE_BYTES / (cluster.memory_gb_per_s * 1e6)
    )
