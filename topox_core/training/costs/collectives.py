"""What GPUs of a job send one another: its groups, what layers exchange, what replicas share; and how long each call takes.

Rings (Patarasuk and Yuan, 2009): of a tensor of S bytes every one of n members sends (n-1)/n S, in an
all-reduce twice that, in as many steps. Across servers the members of one server use their network cards
together; the other cards belong to other groups of the kind, which run at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from topox_core.training.costs.layer import (
    BACKWARD,
    LayerTime,
    expert_share,
    layer_share,
    update_ms,
)
from topox_core.training.job import Job
from topox_core.training.machine import Machine


@dataclass(frozen=True)
class Group:
    """GPUs that take part in one collective.

    Attributes
    ----------
    size
        Members.
    together
        Members in one server, whose network cards carry its part of the group at once.
    """

    size: int
    together: int

    @property
    def crosses(self) -> bool:
        """Whether members are in several servers."""
        return self.together < self.size


def strided(size: int, stride: int, gpus_per_server: int) -> Group:
    """Return a group whose members are every ``stride`` GPUs."""
    return Group(size, max(1, min(size, gpus_per_server // stride)))


@dataclass(frozen=True)
class Groups:
    """The groups of a job, GPUs numbered tensor first, then context, data, pipeline."""

    tensor: Group
    context: Group
    experts: Group
    neighbours: Group
    weights: Group
    same_experts: Group
    ends: Group

    @staticmethod
    @lru_cache(maxsize=8)
    def of(job: Job) -> Groups:
        """Return a job's groups.

        ``neighbours`` are two stages in a row, ``ends`` the first and the last, ``weights`` all that
        hold the same weights, ``same_experts`` all that hold the same experts.
        """
        plan, g = job.plan, job.machine.gpus_per_server
        t, c, stage = plan.tensor, plan.context, plan.tensor * plan.context * plan.data
        contexts, spread = (
            strided(c, t, g),
            strided(plan.data // plan.expert, t * c * plan.expert, g),
        )
        return Groups(
            tensor=strided(t, 1, g),
            context=contexts,
            experts=strided(plan.expert, t * c, g),
            neighbours=strided(min(2, plan.pipeline), stage, g),
            weights=strided(plan.replicas, t, g),
            same_experts=Group(plan.expert_replicas, contexts.together * spread.together),
            ends=strided(min(2, plan.pipeline), stage * max(1, plan.pipeline - 1), g),
        )


def _latency_ms(machine: Machine, crosses: bool, steps: int) -> float:
    if crosses:
        return (machine.network_call_us + machine.network_step_us * steps) / 1e3
    return (machine.inside_call_us + machine.inside_step_us * steps) / 1e3


# How often a ring carries the tensor round: an all-reduce adds up, then gives all of them the sum.
ROUNDS = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1}


@dataclass(frozen=True)
class Call:
    """What is done with how many bytes of a member, and who takes part."""

    kind: str
    size_bytes: float
    group: Group

    def ms(self, job: Job) -> float:
        """Return how long one call takes: on a ring, from each straight to each, or from one to another."""
        machine, n, m = job.machine, self.group.size, self.group.together
        if n == 1:
            return 0.0
        crosses, inside = self.group.crosses, machine.inside_per_ms
        if self.kind in ROUNDS:
            rounds = ROUNDS[self.kind]
            speed = min(m * machine.nic_per_ms, inside) if crosses else inside
            carried = rounds * (n - 1) / n * self.size_bytes
            return _latency_ms(machine, crosses, rounds * (n - 1)) + carried / speed
        if self.kind == "send":
            speed = machine.nic_per_ms if crosses else inside
            return _latency_ms(machine, crosses, 1) + self.size_bytes / speed
        inside_ms = (m - 1) / n * self.size_bytes / inside
        network_ms = (n - m) / n * self.size_bytes / machine.nic_per_ms
        return _latency_ms(machine, crosses, 1) + max(network_ms, inside_ms)


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
