"""What one replica's ranks do in an iteration, step by step; a rank stands for all that do the same at the same time.

:mod:`topox_core.training.pipeline.graph` makes the task graph of all replicas of it.
"""

from dataclasses import dataclass, replace
from enum import IntEnum

from topox_core.training.costs.collectives import (
    Exchange,
    Group,
    Groups,
    Weights,
    head_weights,
    input_weights,
    layer_exchanges,
    layer_weights,
    single_exchange,
    stage_gradients,
)
from topox_core.training.costs.layer import (
    BACKWARD,
    expert_share,
    head_forward_ms,
    layer_time,
    query_ms,
)
from topox_core.training.costs.passes import PassTime, layer_passes, stretched
from topox_core.training.iteration import Iteration
from topox_core.training.job import Job
from topox_core.training.plan import dealt

COMPUTING = ("forward", "backward", "update")


class Spread(IntEnum):
    """Which replicas of a stage do a step together."""

    REPLICA = 0  # each alone
    WEIGHTS = 1  # all of them
    CONTEXT = 2  # those that share their sequences
    EXCHANGE = 3  # those among which tokens go to experts
    EXPERTS = 4  # those that hold the same experts


@dataclass(frozen=True)
class Step:
    """One thing that a rank does, or that several do together.

    Attributes
    ----------
    word, place
        Its name is ``word`` followed by ``place``, such as ``f`` and ``.s0.m3``.
    kind
        Of a task: forward, backward, update, send, or a collective.
    stage
        Of its rank, or of its sender.
    waits
        Names of the steps before it.
    ms, loaded_ms
        How long it computes, and how much of that grows with the rows that experts are sent.
    size_bytes, group, spread
        Of a communication: bytes of one GPU, who takes part, and which replicas do it together.
    calls
        How many calls it stands for, each with its latency.
    other
        The stage that receives a message, or that shares the tied tables; -1 if none.
    homeward
        Of tokens: whether they come home from the experts.
    """

    word: str
    place: str
    kind: str
    stage: int
    waits: tuple[str, ...]
    ms: float = 0.0
    size_bytes: float = 0.0
    group: Group | None = None
    spread: Spread = Spread.REPLICA
    other: int = -1
    calls: int = 1
    parallelism: str = ""
    microbatch: int = -1
    layer: int = -1
    loaded_ms: float = 0.0
    homeward: bool = False

    @property
    def name(self) -> str:
        """What others wait for."""
        return self.word + self.place

    @property
    def computes(self) -> bool:
        """Whether it holds a device."""
        return self.kind in COMPUTING


@dataclass(frozen=True)
class Program:
    """The steps of a job's iteration, folded: in any order, each after nothing but what it names."""

    job: Job
    steps: tuple[Step, ...]


def instances(job: Job) -> dict[Spread, list[int]]:
    """Return for each spread which group a replica is in; replicas are numbered context first, then data."""
    context, expert = job.plan.context, job.plan.expert
    replicas = [divmod(replica, context) for replica in range(job.plan.replicas)]
    return {
        Spread.REPLICA: list(range(job.plan.replicas)),
        Spread.WEIGHTS: [0 for _ in replicas],
        Spread.CONTEXT: [data for data, _ in replicas],
        Spread.EXCHANGE: [data // expert * context + c for data, c in replicas],
        Spread.EXPERTS: [data % expert for data, _ in replicas],
    }


# By two spreads: for each group of the second, the groups of the first that it meets in some replica.
Meetings = list[list[list[list[int]]]]


def meetings(instance: dict[Spread, list[int]]) -> Meetings:
    """Return which groups meet, given for each spread the group of every replica."""

    def met(one: Spread, other: Spread) -> list[list[int]]:
        found: list[dict[int, None]] = [{} for _ in range(max(instance[other]) + 1)]
        for first, second in zip(instance[one], instance[other], strict=True):
            found[second][first] = None
        return [list(each) for each in found]

    return [[met(one, other) for other in Spread] for one in Spread]


# -- what a pass computes at a stretch, between what it exchanges with other servers ---------------


@dataclass(frozen=True)
class PassSegment:
    """What a pass does without a break: it computes, or it exchanges.

    Attributes
    ----------
    word
        Follows the word of the pass in the name of the step.
    ms, loaded_ms
        Of computing, and how much of that grows with the rows that experts are sent.
    exchange
        What is exchanged; None of computing.
    homeward
        Whether tokens come home from the experts.
    """

    word: str
    ms: float = 0.0
    loaded_ms: float = 0.0
    exchange: Exchange | None = None
    homeward: bool = False


TABLE = ".table"


@dataclass(frozen=True)
class Unit:
    """What a pass computes at a stretch: all layers of a chunk, one layer, the table, or the head.

    ``place`` ends the names of its steps; ``weights`` are what FSDP gathers for it, or what its
    gradients belong to; ``layers`` counts the layers in it, and ``layer`` is its number if it is one.
    ``parts`` are those of a layer that exchanges on its own.
    """

    place: str
    ms: float
    weights: Weights
    layer: int = -1
    layers: int = 0
    parts: tuple[PassSegment, ...] = ()


def sharded(job: Job) -> bool:
    """Return whether FSDP's gathers and scatters cross servers, so that they are steps of their own."""
    return job.plan.fsdp and Groups.of(job).weights.crosses


def inside_ms(job: Job, one: PassTime) -> float:
    """Return what of a pass is no step of its own: computing, and what it exchanges inside servers."""
    groups = Groups.of(job)
    ms = one.compute_ms + one.tensor_ms + one.host_ms
    ms += 0.0 if groups.context.crosses else one.context_ms
    ms += 0.0 if groups.experts.crosses else one.experts_ms
    return ms + (0.0 if sharded(job) else one.weights_ms)


def inside_sums_ms(one: Iteration, stage: int) -> float:
    """Return how much longer a stage is at work for those of its gradients that stay in servers."""
    found = stage_gradients(one.job, stage)
    inside = [each for each in found if not each.group.crosses]
    if len(inside) == len(found):
        return one.exposed_ms[stage]
    return sum(each.ms(one.job) for each in inside)


def layer_units(one: Iteration, chunk: int, way: str, table_apart: bool = False) -> list[Unit]:
    """Return a chunk's layers, and the head if it has it, in the order of the pass.

    The input table belongs to the first layer, or with ``table_apart`` is a unit before it, whose lookup
    the layer computes.
    """
    job, layers = one.job, layer_passes(one.job)
    layer = stretched(layers.forward if way == "f" else layers.backward, one.factor)
    each_ms, weights = inside_ms(job, layer), layer_weights(job)
    numbers = dealt(job.shape.layers, job.chunks)[chunk]
    units = [Unit(f".l{number}", each_ms, weights, number, 1) for number in numbers]
    single_ms = one.factor * single_exchange(job).ms(job)
    if chunk == 0:
        lookup_ms, table = single_ms if way == "f" else 0.0, Weights(input_weights(job), 0.0)
        held = weights if table_apart else Weights(weights.shared + table.shared, weights.experts)
        units[0] = replace(units[0], ms=each_ms + lookup_ms, weights=held)
        units = [Unit(TABLE, 0.0, table), *units] if table_apart else units
    if chunk == job.chunks - 1:
        head_ms = one.factor * head_forward_ms(job)
        ms = head_ms if way == "f" else BACKWARD * head_ms + single_ms
        units.append(Unit(".head", ms, Weights(head_weights(job), 0.0)))
    if layered(job):
        units = [replace(u, parts=stretches(one, way, u.ms) if u.layers else ()) for u in units]
    return units if way == "f" else units[::-1]


def layered(job: Job) -> bool:
    """Return whether layers exchange one by one, and something of it crosses servers or is uneven."""
    groups = Groups.of(job)
    crosses = groups.context.crosses or groups.experts.crosses
    return job.schedule.exchanges == "layer" and (crosses or job.plan.skew > 0)


def stretches(one: Iteration, way: str, ms: float) -> tuple[PassSegment, ...]:
    """Return the pass of one layer, ``ms`` of computing, in stretches.

    Forward a layer makes its queries, gathers keys and values and attends, its tokens travel to their
    experts (GShard, ICLR 2021), the experts work, the tokens travel home. Backward the gradients go the
    same way, those of keys and values are scattered; what is recomputed in full is exchanged again
    before. What is not the experts' own counts as attention. Exchanges inside a server are left out.
    """
    job = one.job
    crossing = [each for each in layer_exchanges(job) if each.group.crosses]
    keys = [each for each in crossing if each.parallelism == "cp"]
    tokens = [each for each in crossing if each.parallelism == "ep"]
    queries_ms = one.factor * query_ms(job) if keys else 0.0

    def attended(ms: float, ending: str = "") -> list[PassSegment]:
        gathers = [PassSegment("cp" + ending, exchange=each) for each in keys[:1]]
        rest = [PassSegment(".attend" + ending, ms - queries_ms) for _ in gathers]
        return [PassSegment(ending, queries_ms if keys else ms), *gathers, *rest]

    def visited(experts: PassSegment, ending: str = "") -> list[PassSegment]:
        """Return tokens' way to the experts, what those do, and the way home."""
        if job.shape.experts == 1:
            return []
        out = [PassSegment(f"ep{ending}.out", exchange=each) for each in tokens]
        home = [replace(each, word=f"ep{ending}.home", homeward=True) for each in out]
        return [*out, replace(experts, word=f".experts{ending}"), *home]

    forward, backward = _experts_ms(one) if job.shape.experts > 1 else (NO_EXPERTS, NO_EXPERTS)
    if way == "f":
        return (*attended(ms - forward.ms), *visited(forward))
    rest_ms = ms - backward.ms
    again: list[PassSegment] = []
    if job.schedule.recompute == "full":
        layer = layer_passes(job).forward
        attend_ms = one.factor * (layer.compute_ms + layer.tensor_ms) - forward.ms
        again = [*attended(attend_ms, ".again"), *visited(forward, ".again")]
        rest_ms -= attend_ms + forward.ms
    back_ms = BACKWARD * queries_ms
    scattered = [PassSegment("cp", exchange=each) for each in keys[1:]]
    scattered += [PassSegment(".queries", back_ms) for _ in scattered]
    return (*again, *visited(backward), PassSegment("", rest_ms - back_ms), *scattered)


NO_EXPERTS = PassSegment("")


def _experts_ms(one: Iteration) -> tuple[PassSegment, PassSegment]:
    """Return what the experts of a layer compute forward and backward, the latter without what is computed again.

    Half of the layer's tensor-parallel exchanges is theirs.
    """
    job = one.job
    time, passes = layer_time(job), layer_passes(job)
    loaded_ms = one.factor * (time.block_ms + time.activation_ms)
    added_up = (2 * job.plan.gradient_bytes + 2) * expert_share(job)
    sums_ms = one.factor * job.machine.moved_ms(added_up)
    tensor = passes.forward.tensor_ms, passes.backward.tensor_ms
    if job.schedule.recompute == "full":
        tensor = tensor[0], tensor[1] - tensor[0]
    halves = [one.factor * ms / 2 for ms in tensor]
    back_ms = BACKWARD * loaded_ms
    return (
        PassSegment("", loaded_ms + halves[0], loaded_ms),
        PassSegment("", back_ms + sums_ms + halves[1], back_ms),
    )
