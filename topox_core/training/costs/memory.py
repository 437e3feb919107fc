"""Memory of one GPU, each formula with its source."""

from dataclasses import dataclass

from topox_core.training.costs.collectives import WEIGHT_BYTES, layer_weights, stage_weights
from topox_core.training.job import Job
from topox_core.training.plan import warm_passes

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
    """Return the memory of a GPU of one stage; ZeRO shares out optimizer (1), gradients (2), weights (3).

    Of shared out weights those of the layer at work and of the next are whole, of all where they stay gathered.
    """
    weights, zero = stage_weights(job, stage), job.plan.zero
    held = [weights.split(job) if zero >= level else weights.held for level in (3, 2, 1)]
    if zero == 3:
        gathered = 2 * layer_weights(job).held if job.schedule.reshard else weights.held
        held[0] = min(weights.held, held[0] + gathered)
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


def _layers_kept(job: Job, stage: int) -> int:
    """Return for how many layers a stage keeps a microbatch when it has warmed up and gone one pass forward.

    Where exchanges overlap all passes may go forward first. Passes take P microbatches through each of the
    stage's chunks in turn, and chunks need not have as many layers (Narayanan et al., SC 2021, section 2.2).
    """
    ranks, order, many = job.plan.pipeline, job.schedule, job.plan.microbatches
    passes = many * order.virtual
    if not order.overlap_exchanges:
        warm = warm_passes(stage, ranks, many, order.order, order.virtual)
        passes = min(warm + 1, passes)
    rounds, rest = divmod(passes, ranks * order.virtual)
    begun = (
        layers * min(max(rest - chunk * ranks, 0), ranks)
        for chunk, layers in enumerate(job.chunk_layers[stage::ranks])
    )
    return rounds * ranks * job.stage_layers(stage) + sum(begun)


def layer_activation_bytes(job: Job) -> float:
    """Return what a layer keeps of one microbatch for the backward pass, on one GPU.

    Korthikanti et al., Reducing Activation Recomputation (MLSys 2023), section 4.1: 2-byte inputs of both
    norms (4h), of queries, keys and values (2h), queries (2h), keys and values (4 kv), the input of the
    output projection (2h), of the feed-forward block (2h a visit), two inner tensors of the block's width,
    with dropout two masks of a byte (2h). A gated block keeps gate and value; their product is made again
    of them by the kernel of the backward pass (xFormers' SwiGLU). What is h wide before a product is whole
    on every GPU unless sequence parallelism splits it. With kv = h, a block of 4h and dropout, all split,
    it is 34 s b h / t. Scores that stay in memory add 2 bytes each, with dropout 5 (eq. 2 and 4).
    """
    shape, n = job.shape, job.tokens
    visits = shape.top_k * job.plan.capacity if shape.experts > 1 else 1.0
    whole = (6.0 if shape.experts > 1 else 8.0) * shape.hidden
    whole += 2.0 * shape.hidden if shape.dropout else 0.0
    tokens_sent = 2.0 * visits * shape.hidden if shape.experts > 1 else 0.0
    inner = 4.0 * shape.feed_forward * visits
    split = 4.0 * shape.hidden + tokens_sent + inner
    size = n * (whole / job.split + split / job.plan.tensor + 4.0 * job.key_width)
    if job.schedule.attention == "full" and job.schedule.recompute != "selective":
        scores = shape.heads * shape.sequence * n / job.plan.tensor
        size += (5.0 if shape.dropout else 2.0) * scores
    return size
