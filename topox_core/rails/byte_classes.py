"""What a rank moves over its rail: by formula from the job, and counted in a built iteration."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from topox_core.rails.chunks import Unit, chunk_units, program
from topox_core.training.collectives import HALF, message, tied_tables
from topox_core.training.job import Job
from topox_core.training.plan import dealt
from topox_core.training.units import GatheredChunks


@dataclass(frozen=True)
class ByteClass:
    """Traffic of one kind that a rank takes part in.

    Attributes
    ----------
    parallelism, operation
        E.g. ``fsdp`` and ``all_gather``; operations are of :data:`topox_core.rails.iteration.KINDS`.
    when
        Which passes it belongs to.
    calls, size_bytes
        Calls of one pass and the sum of their tensors: gathered output, reduced input, send buffer,
        message.
    counted_bytes
        As the paper's Fig. 4b counts them: a gather by the shard that a rank gives, all else by
        ``size_bytes``.
    wire_bytes
        What the rank sends for them on rings: (n - 1)/n of the tensors, twice that for an
        all-reduce; of a message its bytes, whether sent or received.
    times
        How many such passes an iteration has.
    """

    parallelism: str
    operation: str
    when: str
    calls: int
    size_bytes: float
    counted_bytes: float
    wire_bytes: float
    times: int


def byte_classes(job: Job, stage: int = 0) -> tuple[ByteClass, ...]:
    """Return the classes of a rank of one stage by formula, chunk by chunk with virtual stages.

    The paper's preset has 3,829 MiB of reduce-scatter, 957 MiB of all-gather and messages of 64 MiB
    (Fig. 4b).
    """
    layers, gathered = dealt(job.shape.layers, job.chunks), GatheredChunks(job)
    gathering = Counter(
        one.chunk for one in program(job, stage) if gathered.needed(one.chunk, one.way)
    )
    classes: list[ByteClass] = []
    for chunk in range(stage, job.chunks, job.plan.pipeline):
        units = chunk_units(job, chunk, layers[chunk], by_layer=True)
        classes += _weights(job, units, gathering[chunk])
        classes += _exchanges(job, len(layers[chunk]))
        classes += _messages(job, chunk)
    if stage in (0, job.plan.pipeline - 1):
        classes += [
            _class("pp", "all_reduce", "after the gradients", 1, table.size_bytes, 2, 1)
            for table in tied_tables(job)
        ]
    if job.plan.fsdp and job.plan.replicas > 1:
        classes.append(_class("dp", "all_reduce", "optimizer", 3, 3 * 4.0, job.plan.replicas, 1))
    return tuple(classes)


def _class(
    parallelism: str, operation: str, when: str, calls: int, size: float, n: int, times: int
) -> ByteClass:
    twice = 2 if operation == "all_reduce" else 1
    part = 1.0 if operation == "send" else (n - 1) / n * twice
    return ByteClass(
        parallelism,
        operation,
        when,
        calls,
        size,
        size / n if operation == "all_gather" else size,
        size * part,
        times,
    )


def _weights(job: Job, units: list[Unit], gathering: int) -> list[ByteClass]:
    """Return what replicas add up and gather of a chunk, ``gathering`` passes of which gather its weights."""
    once = job.schedule.reduce == "last" or not job.plan.fsdp
    when = "after the last backward pass" if once else "backward passes"
    times = 1 if once else job.plan.microbatches
    both = job.schedule.reshard and job.schedule.regather
    passes = "forward and backward passes" if both else "forward passes"
    parallelism = "fsdp" if job.plan.fsdp else "dp"
    classes = []
    for experts in (False, True):
        summed = [one for unit in units for one in unit.gradients if one.experts == experts]
        gathered = [one for unit in units for one in unit.gathers if one.experts == experts]
        if not summed:
            continue
        calls, n, size = len(summed), summed[0].group.size, sum(one.size_bytes for one in summed)
        whole = sum(one.size_bytes for one in gathered)
        if job.plan.fsdp:
            classes.append(_class("fsdp", "all_gather", passes, calls, whole, n, gathering))
        classes.append(_class(parallelism, summed[0].kind, when, calls, size, n, times))
        if job.plan.zero and not job.plan.fsdp:  # each replica updates a part
            classes.append(_class("dp", "all_gather", "after the update", calls, whole, n, 1))
    return classes


def _exchanges(job: Job, layers: int) -> list[ByteClass]:
    """Return the exchanges of context (gathered forward, reduced backward) and of experts."""
    classes = []
    microbatches = job.plan.microbatches
    forwards = microbatches * (2 if job.schedule.recompute == "full" else 1)
    if job.plan.context > 1:
        size = layers * 2.0 * HALF * job.tokens * job.plan.context * job.key_width
        classes += [
            _class("cp", kind, when, layers, size, job.plan.context, times)
            for kind, when, times in (
                ("all_gather", "forward passes", forwards),
                ("reduce_scatter", "backward passes", microbatches),
            )
        ]
    if job.plan.expert > 1:
        size = 2 * layers * HALF * job.expert_rows * job.shape.hidden / job.plan.tensor
        when, times = "forward and backward passes", forwards + microbatches
        classes.append(_class("ep", "all_to_all", when, 2 * layers, size, job.plan.expert, times))
    return classes


def _messages(job: Job, chunk: int) -> list[ByteClass]:
    """Return activations and gradients: one each way, microbatch and neighbouring chunk."""
    neighbours = (chunk > 0) + (chunk < job.chunks - 1)
    if job.plan.pipeline == 1 or not neighbours:
        return []
    times = 2 * neighbours * job.plan.microbatches
    return [_class("pp", "send", "between passes", 1, message(job).size_bytes, 2, times)]
