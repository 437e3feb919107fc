"""What one GPU computes for a layer, for the head and for the update, and how long it takes.

A 2-byte number that is read and written counts 4 bytes moved.
"""

from dataclasses import dataclass

from topox_core.training.job import Job

# Adam in mixed precision, bytes a parameter that an update moves: FP32 weight and two moments read
# and written (24), a 2-byte gradient read, the 2-byte weight written (layout: ZeRO, SC 2020, 3.1).
UPDATE_BYTES = 28
# Flash attention runs 2.5 times its forward work backward (Dao, 2023), a product twice.
FLASH_BACKWARD, BACKWARD = 2.5, 2.0


@dataclass(frozen=True)
class LayerTime:
    """A layer's forward pass on one GPU, in ms.

    Attributes
    ----------
    linear_ms
        Queries, keys, values and the output projection.
    core_ms
        Attention scores, and their product with the values.
    block_ms
        The feed-forward block, or the experts of this GPU.
    router_ms, order_ms
        Choosing experts; bringing tokens into their order and back. 0 if dense.
    small_ms
        Norms, additions to the residual stream, layouts, activation function.
    small_block_ms, activation_ms
        What of that belongs to the feed-forward block: one norm, one addition, the activation function;
        and the last of them alone.
    """

    linear_ms: float
    core_ms: float
    block_ms: float
    router_ms: float
    order_ms: float
    small_ms: float
    small_block_ms: float
    activation_ms: float

    @property
    def forward_ms(self) -> float:
        """The whole forward pass."""
        rest_ms = self.linear_ms + self.block_ms + self.router_ms + self.order_ms + self.small_ms
        return rest_ms + self.core_ms

    @property
    def attention_ms(self) -> float:
        """The forward pass without the feed-forward block or the experts; with choosing experts."""
        small_ms = self.small_ms - self.small_block_ms
        return self.linear_ms + self.core_ms + self.router_ms + small_ms


def layer_time(job: Job) -> LayerTime:
    """Return the forward pass of one layer, one microbatch, on one GPU."""
    shape, plan, machine = job.shape, job.plan, job.machine
    n, t, h = job.tokens, plan.tensor, shape.hidden
    rows, width = job.expert_rows, shape.feed_forward / plan.tensor
    local = shape.experts / plan.expert
    linear = query_ms(job) + machine.matmul_ms(n, h / t, h)
    block = machine.matmul_ms(rows / local, h, (shape.matrices - 1) * width, local)
    block += machine.matmul_ms(rows / local, width, h, local)
    router = order = 0.0
    if shape.experts > 1:
        router = machine.matmul_ms(n / job.split, h, shape.experts)
        router += machine.moved_ms(8.0 * shape.experts * n / job.split)
        order = machine.moved_ms(8.0 * rows * h / t)
    # Two norms (4), two additions to the residual stream (6 each, with dropout's mask 7).
    residual = 8 + 2 * (7 if shape.dropout else 6)
    activation = 4 if shape.matrices == 2 else 6
    activated = activation * rows * width
    after_block = residual / 2 * n * h / job.split + activated
    moved = residual / 2 * n * h / job.split + 8 * (h / t + job.key_width) * n + after_block
    return LayerTime(
        linear,
        _core_ms(job),
        block,
        router,
        order,
        machine.moved_ms(moved),
        machine.moved_ms(after_block),
        machine.moved_ms(activated),
    )


def query_ms(job: Job) -> float:
    """Return the product that makes queries, keys and values."""
    columns = job.shape.hidden / job.plan.tensor + 2 * job.key_width
    return job.machine.matmul_ms(job.tokens, job.shape.hidden, columns)


def _core_ms(job: Job) -> float:
    """Return the time of attention's scores and values: fused, or with the scores in memory."""
    shape, plan, machine = job.shape, job.plan, job.machine
    n, t, s, h, b = job.tokens, plan.tensor, shape.sequence, shape.hidden, plan.microbatch_size
    if job.schedule.attention == "flash":
        causal_half = 0.5 * 4.0 * n * s * h / t
        moved = 2.0 * n * (2 * h / t + 2 * job.key_width)
        return causal_half / machine.operations_per_ms + machine.moved_ms(moved)
    heads, width = b * shape.heads / t, h / shape.heads
    products = machine.matmul_ms(n / b, width, s, heads) + machine.matmul_ms(n / b, s, width, heads)
    passes = 9 if shape.dropout else 4
    return products + machine.moved_ms(passes * shape.heads * s * n / t)


def layer_backward_ms(job: Job, time: LayerTime, *, attention_only: bool = False) -> float:
    """Return the backward pass of one layer, with what is computed again.

    Parameters
    ----------
    attention_only
        Leave out what is its feed-forward block's or its experts'.
    """
    whole_ms = time.attention_ms if attention_only else time.forward_ms
    held = layer_share(job) - (expert_share(job) if attention_only else 0.0)
    factor = FLASH_BACKWARD if job.schedule.attention == "flash" else BACKWARD
    again = {"none": 0.0, "selective": time.core_ms, "full": whole_ms}
    return (
        BACKWARD * (whole_ms - time.core_ms)
        + factor * time.core_ms
        + job.machine.moved_ms((2 * job.plan.gradient_bytes + 2) * held)
        + again[job.schedule.recompute]
    )


def head_forward_ms(job: Job) -> float:
    """Return the output layer's forward pass with its cross entropy; backward it takes twice that."""
    n, t = job.tokens, job.plan.tensor
    columns = job.shape.vocabulary / t
    return job.machine.matmul_ms(n, job.shape.hidden, columns) + job.machine.moved_ms(
        12 * n * columns
    )


def update_ms(job: Job, parameters: float) -> float:
    """Return the optimizer's step on so many parameters of a GPU."""
    return job.machine.moved_ms(UPDATE_BYTES * parameters)


def expert_share(job: Job) -> float:
    """Return a layer's parameters of experts (of the block if dense) on one GPU."""
    shape, plan = job.shape, job.plan
    return shape.experts * shape.expert_parameters / (plan.tensor * plan.expert)


def layer_share(job: Job) -> float:
    """Return a layer's parameters on one GPU; norms, which tensor parallelism copies, count as split."""
    shape, t = job.shape, job.plan.tensor
    copied = 2 * shape.hidden * (job.key_width - shape.key_value / t)
    return shape.shared_parameters / t + copied + expert_share(job)
