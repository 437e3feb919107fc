"""Memory of one GPU under a parallel plan, each formula with its source."""

from __future__ import annotations

from dataclasses import dataclass

from topox_core.strategy.plans import ParallelPlan
from topox_core.strategy.transformers import Shape
from topox_core.training.memory import LOGIT_BYTES, OPTIMIZER_BYTES
from topox_core.training.weights import WEIGHT_BYTES

# Gradients are accumulated in FP32.
GRADIENT_BYTES = 4


@dataclass(frozen=True)
class Memory:
    """Bytes on one GPU of the fullest pipeline stage."""

    stage: int
    parameters: float
    weights_bytes: float
    gradients_bytes: float
    optimizer_bytes: float
    activations_bytes: float

    @property
    def total_bytes(self) -> float:
        """All of them."""
        return (
            self.weights_bytes
            + self.gradients_bytes
            + self.optimizer_bytes
            + self.activations_bytes
        )


def memory(shape: Shape, plan: ParallelPlan) -> Memory:
    """Return the memory of a GPU of the fullest stage.

    The optimizer's state is split over the GPUs that hold the same weights (ZeRO stage 1); buffers
    of the framework and fragmentation are left out.
    """
    stages = (stage_memory(shape, plan, stage) for stage in range(plan.pipeline))
    return max(stages, key=lambda one: one.total_bytes)


def stage_memory(shape: Shape, plan: ParallelPlan, stage: int) -> Memory:
    """Return the memory of a GPU of one stage."""
    shared, experts = stage_parameters(shape, plan, stage)
    replicas = plan.data * plan.context
    optimizer = OPTIMIZER_BYTES * (shared / replicas + experts * plan.expert / replicas)
    layers = shape.base.stage_layers(stage, plan.pipeline)
    # 1F1B: stage i has P - i microbatches under way (Narayanan et al., SC 2021, section 2.2).
    under_way = min(plan.pipeline - stage, plan.microbatches)
    layer = layer_activation_bytes(shape, plan)
    if plan.recompute:
        activations = (
            under_way * layers * 2.0 * tokens(shape, plan) * shape.base.hidden / plan.tensor + layer
        )
    else:
        activations = under_way * layers * layer
    if stage == plan.pipeline - 1:
        activations += LOGIT_BYTES * tokens(shape, plan) * shape.base.vocabulary / plan.tensor
    count = shared + experts
    return Memory(
        stage, count, WEIGHT_BYTES * count, GRADIENT_BYTES * count, optimizer, activations
    )


def stage_parameters(shape: Shape, plan: ParallelPlan, stage: int) -> tuple[float, float]:
    """Return the parameters of a GPU of one stage: (all but experts, experts).

    Tensor parallelism splits every matrix (Shoeybi et al., Megatron-LM, 2019); norms, which it
    copies, are counted as split. Expert parallelism splits a layer's experts.
    """
    base, layers = shape.base, shape.base.stage_layers(stage, plan.pipeline)
    shared, experts = layers * shape.shared_parameters, 0
    if shape.experts > 1:
        experts = layers * shape.experts * shape.expert_parameters
    else:
        shared += layers * shape.expert_parameters
    shared += base.embedding_parameters * (stage == 0)
    shared += (base.embedding_parameters + base.hidden) * (stage == plan.pipeline - 1)
    return shared / plan.tensor, experts / (plan.tensor * plan.expert)


def tokens(shape: Shape, plan: ParallelPlan) -> float:
    """Return the tokens of a microbatch on one context-parallel rank."""
    return plan.microbatch_size * shape.sequence / plan.context


def layer_activation_bytes(shape: Shape, plan: ParallelPlan) -> float:
    """Return what a layer keeps of one microbatch for the backward pass, on one GPU.

    Korthikanti et al., Reducing Activation Recomputation (MLSys 2023), eq. 4 without the attention
    scores (FlashAttention recomputes them) and without the two dropout masks: 2-byte inputs of both
    norms (4h), of queries, keys and values (2h), queries (2h), keys and values (4 kv), the input of
    the output projection (2h), the input of the feed-forward block (2h a visit) and its inner
    tensors: two of the block's width with GELU, three if gated. Sequence parallelism splits all of
    it over the tensor-parallel ranks. With kv = h and a GELU block of 4h it is 32 s b h.
    """
    base = shape.base
    attention = 10.0 * base.hidden + 4.0 * base.key_value
    block = 2.0 * base.hidden + 2.0 * base.feed_forward_matrices * base.feed_forward
    return tokens(shape, plan) * (attention + shape.top_k * block) / plan.tensor
