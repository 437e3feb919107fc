"""Which weights a GPU holds, whose gradients it shares with whom, and what that takes."""

from __future__ import annotations

from dataclasses import dataclass

from topox_core.training.collectives import Call, Groups, strided
from topox_core.training.job import Job
from topox_core.training.layer import expert_share, layer_share, update_ms

WEIGHT_BYTES = 2


@dataclass(frozen=True)
class Weights:
    """Parameters of one GPU of a stage.

    Attributes
    ----------
    shared, experts
        Held by all replicas alike, and by those alone that hold the same experts.
    """

    shared: float
    experts: float

    @property
    def held(self) -> float:
        """Both."""
        return self.shared + self.experts

    def split(self, job: Job) -> float:
        """Return what is left where replicas share them out."""
        return self.shared / job.plan.replicas + self.experts / job.plan.expert_replicas


def layer_weights(job: Job) -> Weights:
    """Return what one GPU holds of a layer, before ZeRO shares anything out."""
    experts = expert_share(job) if job.shape.experts > 1 else 0.0
    return Weights(layer_share(job) - experts, experts)


def input_weights(job: Job) -> float:
    """Return what one GPU of the first stage holds besides its layers: the table, learned positions."""
    positions = job.shape.sequence * job.shape.hidden if job.shape.positions else 0
    return (job.shape.table_parameters + positions) / job.plan.tensor


def head_weights(job: Job) -> float:
    """Return what one GPU of the last stage holds besides its layers: the last norm, and its own table."""
    own_table = not (job.shape.tied and job.plan.pipeline == 1)
    return (job.shape.hidden + own_table * job.shape.table_parameters) / job.plan.tensor


def stage_weights(job: Job, stage: int) -> Weights:
    """Return what one GPU of a stage holds, before ZeRO shares anything out."""
    layers, layer = job.stage_layers(stage), layer_weights(job)
    shared = layers * layer.shared
    if stage == 0:
        shared += input_weights(job)
    if stage == job.plan.pipeline - 1:
        shared += head_weights(job)
    return Weights(shared, layers * layer.experts)


def stage_update_ms(job: Job, stage: int) -> float:
    """Return the optimizer's step on a GPU of a stage: on all it holds, or on its part of that.

    Before it GPUs that hold the same head of keys add up their gradients of it, or of their part.
    """
    weights, shape, t = stage_weights(job, stage), job.shape, job.plan.tensor
    keys = 2 * shape.hidden * job.key_width * job.stage_layers(stage)
    keys /= job.plan.replicas if job.plan.zero else 1
    alike = strided(max(1, t // shape.key_heads), 1, job.machine.gpus_per_server)
    sum_ms = Call("all_reduce", job.plan.gradient_bytes * keys, alike).ms(job)
    return sum_ms + update_ms(job, weights.split(job) if job.plan.zero else weights.held)


@dataclass(frozen=True)
class Shared(Call):
    """A tensor that replicas add up or gather: its bytes on one GPU, and who takes part.

    ``experts``: it is of experts, and those alone take part that hold the same ones.
    """

    what: str
    experts: bool = False


def shared_out(job: Job, weights: Weights, kind: str, what: str, each: int) -> list[Shared]:
    """Return the collectives that move ``each`` bytes of every parameter of ``weights`` between replicas."""
    groups = Groups.of(job)
    found = [
        Shared(kind, each * weights.shared, groups.weights, what),
        Shared(kind, each * weights.experts, groups.same_experts, f"experts' {what}", True),
    ]
    return [one for one in found if one.size_bytes and one.group.size > 1]


def gradients_of(job: Job, weights: Weights) -> list[Shared]:
    """Return what replicas do with gradients: all get the sum, or each a part of it."""
    kind = "reduce_scatter" if job.plan.zero else "all_reduce"
    return shared_out(job, weights, kind, "gradients", job.plan.gradient_bytes)


def gathers_of(job: Job, weights: Weights) -> list[Shared]:
    """Return what replicas do to have whole weights, of which each holds or updated a part."""
    return shared_out(job, weights, "all_gather", "weights", WEIGHT_BYTES)


def stage_gradients(job: Job, stage: int) -> list[Shared]:
    """Return what a stage's GPUs add up after the last backward pass; FSDP adds up layer by layer instead."""
    return [] if job.plan.fsdp else gradients_of(job, stage_weights(job, stage))


def stage_gathers(job: Job, stage: int) -> list[Shared]:
    """Return what a stage's GPUs gather after the update, where each updated a part (ZeRO 1 and 2)."""
    return gathers_of(job, stage_weights(job, stage)) if job.plan.zero in (1, 2) else []


def layer_gathers(job: Job) -> list[Shared]:
    """Return what FSDP gathers before a layer runs."""
    return gathers_of(job, layer_weights(job)) if job.plan.fsdp else []


def layer_scatters(job: Job) -> list[Shared]:
    """Return what FSDP adds up and shares out after a layer's backward pass."""
    return gradients_of(job, layer_weights(job)) if job.plan.fsdp else []


def tied_tables(job: Job) -> list[Shared]:
    """Return what first and last stage add up if both hold the one table."""
    if not job.shape.tied or job.plan.pipeline == 1:
        return []
    size = job.plan.gradient_bytes * job.shape.table_parameters / job.plan.tensor
    return [Shared("all_reduce", size, Groups.of(job).ends, "tied tables")]
