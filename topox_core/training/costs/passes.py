"""How long each pass of a microbatch through a chunk of layers takes, and what it consists of."""

from __future__ import annotations

from dataclasses import dataclass, fields

from topox_core.training.costs.collectives import (
    hidden_backward_ms,
    layer_exchanges,
    layer_gathers,
    layer_scatters,
    single_exchange,
)
from topox_core.training.costs.layer import head_forward_ms, layer_backward_ms, layer_time
from topox_core.training.job import Job


@dataclass(frozen=True)
class PassTime:
    """The parts of one pass, or of many, in ms.

    Attributes
    ----------
    compute_ms
        Products and memory of layers and head.
    tensor_ms, context_ms, experts_ms
        Exchanges of tensor, context and expert parallelism; nothing is computed meanwhile.
    weights_ms
        FSDP's gathers and scatters, as far as computing does not hide them.
    host_ms
        The host's launch.
    """

    compute_ms: float = 0.0
    tensor_ms: float = 0.0
    context_ms: float = 0.0
    experts_ms: float = 0.0
    weights_ms: float = 0.0
    host_ms: float = 0.0

    @property
    def total_ms(self) -> float:
        """All of it."""
        return float(sum(getattr(self, one.name) for one in fields(self)))

    def times(self, count: int) -> PassTime:
        """Return the parts of ``count`` such passes."""
        return PassTime(*(count * getattr(self, one.name) for one in fields(self)))

    def plus(self, other: PassTime) -> PassTime:
        """Return the parts of this pass and another."""
        return PassTime(
            *(getattr(self, one.name) + getattr(other, one.name) for one in fields(self))
        )


NOTHING = PassTime()


@dataclass(frozen=True)
class ChunkPasses:
    """One microbatch through a layer, or through a chunk of layers, forward and backward."""

    forward: PassTime
    backward: PassTime


def layer_passes(job: Job) -> ChunkPasses:
    """Return what a layer takes forward and backward, FSDP's traffic apart."""
    time, exchanges = layer_time(job), layer_exchanges(job)
    forward = dict.fromkeys(("tp", "cp", "ep"), 0.0)
    backward = dict(forward)
    for one in exchanges:
        forward[one.parallelism] += one.forward * one.ms(job)
        backward[one.parallelism] += one.backward * one.ms(job)
    backward["tp"] -= hidden_backward_ms(job, exchanges, time)
    return ChunkPasses(
        PassTime(time.forward_ms, *forward.values()),
        PassTime(layer_backward_ms(job, time), *backward.values()),
    )


def chunk_passes(job: Job, factor: float = 1.0) -> list[ChunkPasses]:
    """Return the passes of every chunk.

    Parameters
    ----------
    factor
        By which computing and tensor-parallel exchanges are stretched (``iteration_ms``).
    """
    layer, host = layer_passes(job), PassTime(host_ms=job.machine.host_ms)
    single = PassTime(tensor_ms=single_exchange(job).ms(job))
    head_ms = head_forward_ms(job)
    gather_ms = sum(one.ms(job) for one in layer_gathers(job))
    both_ms = gather_ms + sum(one.ms(job) for one in layer_scatters(job))
    # Chunks of as many layers take as long.
    middle = {
        count: (
            _layers(stretched(layer.forward, factor), count, gather_ms).plus(host),
            _layers(stretched(layer.backward, factor), count, both_ms).plus(host),
        )
        for count in set(job.chunk_layers)
    }
    found = []
    for chunk, count in enumerate(job.chunk_layers):
        forward, backward = middle[count]
        if chunk == 0:
            forward = forward.plus(stretched(single, factor))
        if chunk == job.chunks - 1:
            forward = forward.plus(stretched(PassTime(head_ms), factor))
            last = PassTime(2 * head_ms).plus(single)
            backward = backward.plus(stretched(last, factor))
        found.append(ChunkPasses(forward, backward))
    return found


def _layers(layer: PassTime, count: int, traffic_ms: float) -> PassTime:
    """Return ``count`` layers; the weights of one travel while another computes, those of one are never hidden."""
    exposed = count * max(layer.total_ms, traffic_ms) - count * layer.total_ms + traffic_ms
    return layer.times(count).plus(PassTime(weights_ms=exposed))


def stretched(one: PassTime, factor: float) -> PassTime:
    """Return a pass whose computing and tensor-parallel exchanges take ``factor`` times as long."""
    return PassTime(
        one.compute_ms * factor,
        one.tensor_ms * factor,
        one.context_ms,
        one.experts_ms,
        one.weights_ms,
        one.host_ms,
    )
