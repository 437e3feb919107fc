"""What a rank moves over its rail: by formula from the job, and counted in a built iteration."""

from __future__ import annotations

from dataclasses import dataclass

from topox_core.errors import InputError
from topox_core.rails.chunks import Unit, chunk_units
from topox_core.rails.iteration import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    KINDS,
    REDUCE_SCATTER,
    SEND,
)
from topox_core.rails.passes import program
from topox_core.training.exchanges import HALF, message
from topox_core.training.job import Job
from topox_core.training.order import dealt
from topox_core.training.weights import WEIGHT_BYTES, tied_tables


@dataclass(frozen=True)
class ByteClass:
    """Traffic of one kind that a rank takes part in.

    Attributes
    ----------
    parallelism, operation
        E.g. ``fsdp`` and ``all_gather``; operations are :data:`topox_core.rails.iteration.KINDS`.
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

    Raises
    ------
    InputError
        If there is no such stage.
    """
    if not 0 <= stage < job.plan.pipeline:
        problem = f"must be from 0 to {job.plan.pipeline - 1} (got {stage})"
        raise InputError(problem, file=f"job {job.name}", field="stage")
    layers = dealt(job.shape.layers, job.chunks)
    classes: list[ByteClass] = []
    for chunk in range(stage, job.chunks, job.plan.pipeline):
        units = chunk_units(job, chunk, layers[chunk], by_layer=True)
        classes += _weights(job, stage, chunk, units)
        classes += _exchanges(job, len(layers[chunk]))
        classes += _messages(job, chunk)
    if stage in (0, job.plan.pipeline - 1):
        for table in tied_tables(job):
            when = "after the gradients"
            classes.append(_class("pp", ALL_REDUCE, when, 1, table.size_bytes, 2, 1))
    if job.plan.fsdp and job.plan.replicas > 1:
        classes.append(_class("dp", ALL_REDUCE, "optimizer", 3, 3 * 4.0, job.plan.replicas, 1))
    return tuple(classes)


def _class(
    parallelism: str, kind: int, when: str, calls: int, size: float, n: int, times: int
) -> ByteClass:
    part = 1.0 if kind == SEND else (n - 1) / n * (2 if kind == ALL_REDUCE else 1)
    return ByteClass(
        parallelism,
        KINDS[kind],
        when,
        calls,
        size,
        size / n if kind == ALL_GATHER else size,
        size * part,
        times,
    )


def gathering_passes(job: Job, stage: int, chunk: int) -> int:
    """Return how many passes of a chunk begin with its weights not gathered.

    Dropped after every pass, all 2 M, without ``regather`` the M forward ones; never dropped, the
    first; dropped after forward passes only (``reduce`` is ``last``), those that do not follow a
    backward pass of the chunk.
    """
    if not job.schedule.reshard:
        return 1
    if not job.schedule.regather:
        return job.plan.microbatches
    if job.schedule.reduce != "last":
        return 2 * job.plan.microbatches
    ways = [one.way for one in program(job, stage) if one.chunk == chunk]
    return sum(before != "b" for before in ["", *ways[:-1]])


def _weights(job: Job, stage: int, chunk: int, units: list[Unit]) -> list[ByteClass]:
    classes = []
    for spread, n in (("shared", job.plan.replicas), ("experts", job.plan.expert_replicas)):
        counts = [
            count for unit in units for part in unit.weights if (count := getattr(part, spread))
        ]
        if n == 1 or not counts:
            continue
        held, calls = sum(counts), len(counts)
        once = job.schedule.reduce == "last" or not job.plan.fsdp
        when = "after the last backward pass" if once else "backward passes"
        size, times = job.plan.gradient_bytes * held, 1 if once else job.plan.microbatches
        if not job.plan.fsdp and not job.plan.zero:
            classes.append(_class("dp", ALL_REDUCE, when, calls, size, n, times))
            continue
        if not job.plan.fsdp:  # each replica updates a part (ZeRO 1 and 2)
            whole = WEIGHT_BYTES * held
            classes.append(_class("dp", REDUCE_SCATTER, when, calls, size, n, times))
            classes.append(_class("dp", ALL_GATHER, "after the update", calls, whole, n, 1))
            continue
        both = job.schedule.reshard and job.schedule.regather
        passes = "forward and backward passes" if both else "forward passes"
        gathers, gathered = gathering_passes(job, stage, chunk), WEIGHT_BYTES * held
        classes.append(_class("fsdp", ALL_GATHER, passes, calls, gathered, n, gathers))
        classes.append(_class("fsdp", REDUCE_SCATTER, when, calls, size, n, times))
    return classes


def _exchanges(job: Job, layers: int) -> list[ByteClass]:
    """Return the exchanges of context (gathered forward, reduced backward) and of experts."""
    classes = []
    shape, microbatches = job.shape, job.plan.microbatches
    forwards = microbatches * (2 if job.schedule.recompute == "full" else 1)
    if job.plan.context > 1:
        size = layers * 2.0 * HALF * job.tokens * job.plan.context * job.key_width
        for kind, when, times in (
            (ALL_GATHER, "forward passes", forwards),
            (REDUCE_SCATTER, "backward passes", microbatches),
        ):
            classes.append(_class("cp", kind, when, layers, size, job.plan.context, times))
    if job.plan.expert > 1:
        size = 2 * layers * HALF * job.tokens * shape.top_k * shape.hidden / job.plan.tensor
        when, times = "forward and backward passes", forwards + microbatches
        classes.append(_class("ep", ALL_TO_ALL, when, 2 * layers, size, job.plan.expert, times))
    return classes


def _messages(job: Job, chunk: int) -> list[ByteClass]:
    """Return activations and gradients: one each way, microbatch and neighbouring chunk."""
    neighbours = (chunk > 0) + (chunk < job.chunks - 1)
    if job.plan.pipeline == 1 or not neighbours:
        return []
    times = 2 * neighbours * job.plan.microbatches
    return [_class("pp", SEND, "between passes", 1, message(job).size_bytes, 2, times)]
