"""What a layer's passes exchange: tensor-parallel sums, keys and values, tokens for the experts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from topox_core.training.collectives import Call, Groups
from topox_core.training.job import Job
from topox_core.training.layer import BACKWARD, LayerTime

HALF = 2


@dataclass(frozen=True)
class Exchange(Call):
    """A collective that every layer of a pass calls.

    Attributes
    ----------
    parallelism
        tp, cp or ep.
    forward, backward
        Calls of a layer in either pass.
    """

    parallelism: str
    forward: int
    backward: int


def residual_bytes(job: Job) -> float:
    """Return the bytes of a microbatch's residual stream."""
    return float(HALF * job.tokens * job.shape.hidden)


def layer_exchanges(job: Job) -> list[Exchange]:
    """Return the exchanges of a layer; what is recomputed in full is exchanged again."""
    shape, plan, groups = job.shape, job.plan, Groups.of(job)
    again = job.schedule.recompute == "full"
    found: list[Exchange] = []
    if plan.tensor > 1:
        size, calls = residual_bytes(job), (2, 4 if again else 2)
        kinds = ("all_gather", "reduce_scatter") if plan.sequence_parallel else ("all_reduce",)
        found += [Exchange(kind, size, groups.tensor, "tp", *calls) for kind in kinds]
    if plan.context > 1:
        size = 2.0 * HALF * job.tokens * plan.context * job.key_width
        found.append(Exchange("all_gather", size, groups.context, "cp", 1, int(again)))
        found.append(Exchange("reduce_scatter", size, groups.context, "cp", 0, 1))
    if plan.expert > 1:
        size = HALF * job.expert_rows * shape.hidden / plan.tensor
        found.append(Exchange("all_to_all", size, groups.experts, "ep", 2, 4 if again else 2))
    return found


def single_exchange(job: Job) -> Exchange:
    """Return what follows the lookup on the first stage, and the head's backward pass on the last, once a pass."""
    kind = "all_gather" if job.plan.sequence_parallel else "all_reduce"
    return Exchange(kind, residual_bytes(job), Groups.of(job).tensor, "tp", 1, 1)


def message(job: Job) -> Exchange:
    """Return what a stage sends its neighbour after a pass."""
    parts = job.plan.tensor if job.schedule.split_sends else 1
    size = residual_bytes(job) / parts
    return Exchange("send", size, Groups.of(job).neighbours, "pp", 1, 1)


def gathered_ms(job: Job) -> float:
    """Return what the receivers take to make a split message whole; nothing where the stream is split anyway."""
    if not job.schedule.split_sends or job.plan.sequence_parallel or job.plan.pipeline == 1:
        return 0.0
    return Call("all_gather", residual_bytes(job), Groups.of(job).tensor).ms(job)


def hidden_backward_ms(job: Job, exchanges: Iterable[Exchange], time: LayerTime) -> float:
    """Return how much of a layer's tensor-parallel exchanges hides behind weight gradients, backward.

    The products that make weight gradients are half of the backward pass of the linear layers; what is
    computed again has none.
    """
    if job.schedule.tensor_overlap == "none":
        return 0.0
    sums = sum(2 * one.ms(job) for one in exchanges if one.parallelism == "tp")
    return min(sums, BACKWARD / 2 * (time.linear_ms + time.block_ms))
