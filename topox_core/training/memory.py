"""Memory of one GPU, each formula with its source."""

from __future__ import annotations

from dataclasses import dataclass

from topox_core.training.job import Job
from topox_core.training.weights import WEIGHT_BYTES, stage_weights

# The optimizer's FP32 weight and two moments (Rajbhandari et al., ZeRO, SC 2020, section 3.1).
OPTIMIZER_BYTES = 12
# Logits in BF16 and their softmax in FP32.
LOGIT_BYTES = 6


@dataclass(frozen=True)
class Memory:
    """Bytes on one GPU of a stage."""

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


def memory(job: Job) -> Memory:
    """Return the memory of a GPU of the fullest stage; buffers of the framework are left out."""
    stages = (stage_memory(job, stage) for stage in range(job.plan.pipeline))
    return max(stages, key=lambda one: one.total_bytes)


def fits(job: Job) -> bool:
    """Return whether the fullest stage fits a GPU of the machine."""
    return memory(job).total_bytes <= job.machine.memory_gb * 1e9


def stage_memory(job: Job, stage: int) -> Memory:
    """Return the memory of a GPU of one stage; ZeRO shares out optimizer (1), gradients (2), weights (3)."""
    weights, zero = stage_weights(job, stage), job.plan.zero
    held = [weights.split(job) if zero >= level else weights.held for level in (3, 2, 1)]
    return Memory(
        stage,
        weights.held,
        WEIGHT_BYTES * held[0],
        job.plan.gradient_bytes * held[1],
        OPTIMIZER_BYTES * held[2],
        _activation_bytes(job, stage),
    )


def _activation_bytes(job: Job, stage: int) -> float:
    layer, kept = layer_activation_bytes(job), _layers_kept(job, stage)
    if job.schedule.recompute == "full":
        # Only the input of each layer is kept, and all of the layer at work.
        size = kept * 2.0 * job.tokens * job.shape.hidden / job.split + layer
    else:
        size = kept * layer
    if stage == job.plan.pipeline - 1:
        size += LOGIT_BYTES * job.tokens * job.shape.vocabulary / job.plan.tensor
    return size


def _layers_kept(job: Job, stage: int) -> float:
    """Return for how many layers a stage keeps a microbatch at most.

    1F1B: stage i has P - i microbatches under way (Narayanan et al., SC 2021, section 2.2); all forward:
    all of them, as where exchanges overlap; interleaved: as many chunks as warm up, and one.
    """
    ranks, virtual, many = job.plan.pipeline, job.schedule.virtual, job.plan.microbatches
    layers = job.stage_layers(stage)
    if job.schedule.order == "afab" or job.schedule.overlap_exchanges:
        return float(many * layers)
    if job.schedule.order == "1f1b":
        return float(min(ranks - stage, many) * layers)
    warm = 2 * (ranks - 1 - stage) + (virtual - 1) * ranks + 1
    if many == ranks:
        warm = many * virtual
    return min(warm, many * virtual) * layers / virtual


def layer_activation_bytes(job: Job) -> float:
    """Return what a layer keeps of one microbatch for the backward pass, on one GPU.

    Korthikanti et al., Reducing Activation Recomputation (MLSys 2023): 2-byte inputs of both norms (4h),
    of queries, keys and values (2h), queries (2h), keys and values (4 kv), the input of the output
    projection (2h), the input of the feed-forward block (2h a visit) and its inner tensors: two of the
    block's width with GELU, three if gated. What is h wide before a product is whole on every GPU
    unless sequence parallelism splits it. With kv = h and a GELU block of 4h, all split, it is
    32 s b h. Scores that stay in memory add 2 bytes each, with dropout 5.
    """
    shape, n = job.shape, job.tokens
    visits = shape.top_k * job.plan.capacity if shape.experts > 1 else 1.0
    whole = (6.0 if shape.experts > 1 else 8.0) * shape.hidden
    tokens_sent = 2.0 * visits * shape.hidden if shape.experts > 1 else 0.0
    inner = 2.0 * shape.matrices * shape.feed_forward * visits
    split = 4.0 * shape.hidden + 4.0 * shape.key_value + tokens_sent + inner
    size = n * (whole / job.split + split / job.plan.tensor)
    if job.schedule.attention == "full" and job.schedule.recompute == "none":
        scores = shape.heads * shape.sequence * n / job.plan.tensor
        size += (5.0 if shape.dropout else 2.0) * scores
    return size
