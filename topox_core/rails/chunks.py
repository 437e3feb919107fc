"""What a pipeline stage holds and does: passes and transfers in one order for all ranks; computing and exchanges by layer."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

from topox_core.rails.iteration import ALL_GATHER, ALL_TO_ALL, COMPUTE, REDUCE_SCATTER
from topox_core.training.collectives import (
    Shared,
    Weights,
    gathers_of,
    gradients_of,
    head_weights,
    input_weights,
    layer_exchanges,
    layer_weights,
    single_exchange,
)
from topox_core.training.job import Job
from topox_core.training.layer import BACKWARD, head_forward_ms, layer_time, query_ms
from topox_core.training.passes import layer_passes
from topox_core.training.plan import pass_order


@dataclass(frozen=True)
class ChunkStep:
    """Computing (``ms``), or an exchange of ``size_bytes`` in a group ``of`` cp or ep."""

    kind: int
    ms: float = 0.0
    size_bytes: float = 0.0
    of: str = ""


@dataclass(frozen=True)
class Unit:
    """What is gathered, computed and reduced together: a layer, the head, or a merged chunk.

    Attributes
    ----------
    name, layer
        E.g. ``layer 7`` and 7; -1 where it is not one layer.
    weights
        Of one tensor-parallel rank; several entries are gathered one after the other.
    forward, backward
        Steps of the passes, in order.
    gathers, gradients
        What replicas do to have the weights whole, and with their gradients.
    """

    name: str
    layer: int
    weights: tuple[Weights, ...]
    forward: tuple[ChunkStep, ...]
    backward: tuple[ChunkStep, ...]
    gathers: tuple[Shared, ...] = ()
    gradients: tuple[Shared, ...] = ()

    @property
    def forward_ms(self) -> float:
        """Computing of the forward pass."""
        return sum(step.ms for step in self.forward)

    @property
    def backward_ms(self) -> float:
        """Computing of the backward pass."""
        return sum(step.ms for step in self.backward)


def chunk_units(job: Job, chunk: int, layers: range, by_layer: bool) -> list[Unit]:
    """Return a chunk's units in forward order; their computing is that of the job, not stretched.

    The input table belongs to the first layer, output table and last norm to the head, a unit of its
    own. Norms, which tensor parallelism copies, are counted as split. Exchanges inside the server are
    part of computing: one follows the lookup, one the head's backward pass.
    """
    passes, weights = _passes(job), layer_weights(job)
    if job.plan.expert == 1:
        weights = Weights(weights.held, 0.0)
    units = [Unit(f"layer {layer}", layer, (weights,), *passes) for layer in layers]
    single_ms = single_exchange(job).ms(job)
    if chunk == 0:
        units[0] = replace(units[0], weights=(Weights(input_weights(job), 0.0), weights))
    if chunk == job.chunks - 1:
        head_ms = head_forward_ms(job)
        steps = (ChunkStep(COMPUTE, head_ms),), (ChunkStep(COMPUTE, 2 * head_ms + single_ms),)
        units.append(Unit("head", -1, (Weights(head_weights(job), 0.0),), *steps))
    if not by_layer:
        units = [_merged(units)]
    if chunk == 0:
        first = _joined([ChunkStep(COMPUTE, single_ms), *units[0].forward])
        units[0] = replace(units[0], forward=first)
    return [
        replace(
            unit,
            gathers=tuple(one for part in unit.weights for one in gathers_of(job, part)),
            gradients=tuple(one for part in unit.weights for one in gradients_of(job, part)),
        )
        for unit in units
    ]


def _passes(job: Job) -> tuple[tuple[ChunkStep, ...], tuple[ChunkStep, ...]]:
    """Return a layer's steps forward and backward; what is recomputed comes before the way back."""
    time, passes, exchanges = layer_time(job), layer_passes(job), layer_exchanges(job)
    inputs_ms = query_ms(job)
    split = job.plan.expert > 1
    experts_ms = time.block_ms if split else 0.0
    computed_ms = passes.forward.compute_ms + passes.forward.tensor_ms
    rest_ms = computed_ms - inputs_ms - experts_ms
    keys = [one for one in exchanges if one.parallelism == "cp"]
    tokens = [
        ChunkStep(ALL_TO_ALL, size_bytes=one.size_bytes, of="ep")
        for one in exchanges
        if one.parallelism == "ep"
    ]
    gather = [ChunkStep(ALL_GATHER, size_bytes=one.size_bytes, of="cp") for one in keys[:1]]
    scatter = [replace(one, kind=REDUCE_SCATTER) for one in gather]
    compute = partial(ChunkStep, COMPUTE)
    forward = [compute(inputs_ms), *gather, compute(rest_ms)]
    forward += [*tokens, compute(experts_ms), *tokens]
    back_ms = passes.backward.compute_ms + passes.backward.tensor_ms
    again = list(forward) if job.schedule.recompute == "full" else []
    back_ms -= sum(one.ms for one in again)
    inputs_back_ms, experts_back_ms = BACKWARD * inputs_ms, BACKWARD * experts_ms
    backward = [*tokens, compute(experts_back_ms), *tokens]
    backward += [
        compute(back_ms - inputs_back_ms - experts_back_ms),
        *scatter,
        compute(inputs_back_ms),
    ]
    return _joined(forward), _joined([*again, *backward])


def _joined(steps: Iterable[ChunkStep]) -> tuple[ChunkStep, ...]:
    """Return the steps with computing that follows computing made one, and none that takes no time."""
    result: list[ChunkStep] = []
    for kind, same in groupby(steps, key=lambda step: step.kind):
        if kind != COMPUTE:
            result += same
        elif ms := sum(step.ms for step in same):
            result.append(ChunkStep(COMPUTE, ms))
    return tuple(result)


def _merged(units: list[Unit]) -> Unit:
    """Return all units as one: each exchange of a layer once, with the bytes of all layers."""
    layers = [unit for unit in units if unit.layer >= 0]
    ends = [unit for unit in units if unit.layer < 0]

    def all_of(steps: Iterable[ChunkStep]) -> list[ChunkStep]:
        many = len(layers)
        return [replace(one, ms=one.ms * many, size_bytes=one.size_bytes * many) for one in steps]

    forward = [*all_of(layers[0].forward), *(step for unit in ends for step in unit.forward)]
    backward = [*(step for unit in ends for step in unit.backward), *all_of(layers[0].backward)]
    held = weights_of(units)
    return Unit("all layers", -1, (held,), _joined(forward), _joined(backward))


def weights_of(units: Iterable[Unit]) -> Weights:
    """Return what one tensor-parallel rank holds of several units."""
    parts = [part for unit in units for part in unit.weights]
    return Weights(sum(part.shared for part in parts), sum(part.experts for part in parts))


@dataclass(frozen=True)
class Pass:
    """One microbatch forward (``f``) or backward (``b``) through a (virtual) stage."""

    way: str
    microbatch: int
    chunk: int


@dataclass(frozen=True)
class Event:
    """A pass on a stage, or (``sender`` is set) the transfer of its result.

    Attributes
    ----------
    result
        The pass, or the one whose result is sent.
    stage
        Where the pass runs, or which stage receives.
    sender
        The sending stage; -1 for a pass.
    """

    result: Pass
    stage: int
    sender: int = -1


def program(job: Job, stage: int) -> list[Pass]:
    """Return the passes of a stage in its order."""
    stages = job.plan.pipeline
    return [
        Pass(way, microbatch, chunk * stages + stage)
        for way, microbatch, chunk in pass_order(
            stage, stages, job.plan.microbatches, job.schedule.order, job.schedule.virtual
        )
    ]


def needed(one: Pass, job: Job) -> Pass | None:
    """Return the other stage's pass whose result a pass needs; None if it needs none."""
    return _beyond(one, job, -1 if one.way == "f" else 1)


def needing(one: Pass, job: Job) -> Pass | None:
    """Return the pass of another stage that needs a pass's result; None if nobody does."""
    return _beyond(one, job, 1 if one.way == "f" else -1)


def _beyond(one: Pass, job: Job, step: int) -> Pass | None:
    chunk = one.chunk + step
    return (
        Pass(one.way, one.microbatch, chunk)
        if 0 <= chunk < job.chunks and job.plan.pipeline > 1
        else None
    )


def events(job: Job, forward_ms: Sequence[float], backward_ms: Sequence[float]) -> list[Event]:
    """Return all passes and transfers in one order that every stage can follow.

    Passes are timed without their communications; ``forward_ms`` and ``backward_ms`` are those of
    each chunk. A transfer stands where both sides have come to it. In 1F1B and AFAB the receiver
    comes to it at the end of the pass before the one that needs it, and the sender goes on when it
    has been sent (PyTorch's and Megatron-LM's schedules do both); interleaved stages post their
    receives ahead and do not wait for their sends.
    """
    stages, meet = range(job.plan.pipeline), job.schedule.order != "interleaved"
    length = {"f": forward_ms, "b": backward_ms}
    programs = [program(job, stage) for stage in stages]
    free, at = [0.0 for _ in stages], [0 for _ in stages]
    done: dict[Pass, float] = {}
    sent: dict[Pass, float] = {}
    # At one instant transfers go before passes, and activations before gradients.
    timed: list[tuple[tuple[float, int, str, int, int], Event]] = []

    def advance(stage: int) -> bool:
        """Run a stage until it must wait; return whether anything came of it."""
        known, work = len(timed), programs[stage]
        while at[stage] < len(work):
            one = work[at[stage]]
            begin, source = free[stage], needed(one, job)
            before = work[at[stage] - 1] if at[stage] else None
            if source is not None:
                if source not in done:
                    break
                if source not in sent:
                    sender, way = source.chunk % len(stages), "a" if source.way == "f" else "b"
                    sent[source] = when = max(done[source], begin) if meet else done[source]
                    key = (when, 0, way, sender, source.microbatch)
                    timed.append((key, Event(source, stage, sender)))
                begin = max(begin, sent[source])
            if meet and before is not None and needing(before, job) is not None:
                if before not in sent:
                    break
                begin = max(begin, sent[before])
            timed.append(((begin, 1, "", stage, one.microbatch), Event(one, stage)))
            free[stage] = done[one] = begin + length[one.way][one.chunk]
            at[stage] += 1
        return len(timed) > known

    while sum(map(advance, stages)):  # each in turn, until nothing comes of it
        pass
    timed.sort(key=lambda entry: entry[0])
    return [event for _, event in timed]
