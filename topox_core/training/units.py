"""What a pass computes at a stretch, between what it exchanges with other servers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from topox_core.training.exchanges import single_exchange
from topox_core.training.groups import Groups
from topox_core.training.iteration import Iteration
from topox_core.training.job import Job
from topox_core.training.order import dealt
from topox_core.training.passes import PassTime, layer_passes, stretched
from topox_core.training.weights import (
    Weights,
    head_weights,
    input_weights,
    layer_weights,
    stage_gradients,
)


@dataclass(frozen=True)
class Unit:
    """What a pass computes at a stretch: all layers of a chunk, one layer, or the head.

    ``place`` ends the names of its steps; ``weights`` are what FSDP gathers for it, or what its
    gradients belong to.
    """

    place: str
    ms: float
    weights: Weights
    layer: int = -1


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


def layer_units(one: Iteration, chunk: int, way: str, place: str, ms: float) -> list[Unit]:
    """Return a chunk's layers, and the head if it has it, in the order of the pass.

    The input table belongs to the first layer. What a pass takes besides its layers (the host's launch,
    a message made whole) stands before the first unit, or in the head.

    Parameters
    ----------
    place
        Ends the name of the pass.
    ms
        Of the whole pass.
    """
    job, layers = one.job, layer_passes(one.job)
    layer = stretched(layers.forward if way == "f" else layers.backward, one.factor)
    each_ms, weights = inside_ms(job, layer), layer_weights(job)
    numbers = dealt(job.shape.layers, job.chunks)[chunk]
    units = [Unit(f"{place}.l{number}", each_ms, weights, number) for number in numbers]
    rest_ms, lookup_ms = ms - len(units) * each_ms, 0.0
    if chunk == 0:
        held = Weights(weights.shared + input_weights(job), weights.experts)
        units[0] = replace(units[0], weights=held)
        lookup_ms = one.factor * single_exchange(job).ms(job) if way == "f" else 0.0
    if chunk == job.chunks - 1:
        units[0] = replace(units[0], ms=each_ms + lookup_ms)
        units.append(Unit(f"{place}.head", rest_ms - lookup_ms, Weights(head_weights(job), 0.0)))
        rest_ms = 0.0
    ordered = units if way == "f" else units[::-1]
    return [replace(ordered[0], ms=ordered[0].ms + rest_ms), *ordered[1:]]
