"""A training iteration in closed form: when its pipeline ends, what gradients and update add, and what it consists of."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from topox_core.errors import refuse_if
from topox_core.training.costs.collectives import (
    Call,
    Group,
    Shared,
    gathered_ms,
    layer_exchanges,
    layer_gathers,
    layer_scatters,
    message,
    single_exchange,
    stage_gathers,
    stage_gradients,
    stage_update_ms,
    tied_tables,
)
from topox_core.training.costs.passes import NOTHING, ChunkPasses, PassTime, chunk_passes
from topox_core.training.job import Job
from topox_core.training.kernel import walked
from topox_core.training.plan import warm_passes


def walk(
    job: Job, forward_ms: Sequence[float], backward_ms: Sequence[float], message_ms: float
) -> tuple[list[float], list[float]]:
    """Run the passes of one replica; the other replicas do the same at the same time.

    Returned are, of each rank, when it is free after its last pass, and how long it stood still until
    its messages were gone (ms).

    A pass starts when its rank is free and the activation of the chunk before, or the gradient of the
    chunk after, has arrived. The receiver need not be waiting; the sender is free when its message has
    gone, with ``overlap_sends`` at once. The last chunk needs no message to turn round.

    Parameters
    ----------
    forward_ms, backward_ms
        Of every chunk.
    """
    ranks, many, schedule = job.plan.pipeline, job.plan.microbatches, job.schedule
    warm = [
        warm_passes(rank, ranks, many, schedule.order, schedule.virtual) for rank in range(ranks)
    ]
    free_ms, sent_ms = np.zeros(ranks), np.zeros(ranks)
    walked(
        np.array(forward_ms, float),
        np.array(backward_ms, float),
        np.array(warm, np.int32),
        many,
        float(message_ms),
        0.0 if schedule.overlap_sends else float(message_ms),
        free_ms,
        sent_ms,
    )
    return free_ms.tolist(), sent_ms.tolist()


_CLOSE = 1e-12


@dataclass(frozen=True)
class Iteration:
    """A job's iteration, timed; ranks are those of one replica, one for each stage.

    Attributes
    ----------
    factor
        By which computing was stretched for ``iteration_ms``.
    passes
        Of every chunk.
    message_ms
        From a stage to the next, made whole where it was split.
    end_ms, sent_ms
        When each rank is free after its last pass, and how long it stood still until its messages were
        gone.
    gradients_ms, exposed_ms
        What a rank's gradients take, and how much longer the rank takes for them.
    tied_ms
        Adding up the tables of first and last stage.
    update_ms, gather_ms
        The longest update, and the longest gather of weights after it.
    """

    job: Job
    factor: float
    passes: list[ChunkPasses]
    message_ms: float
    end_ms: list[float]
    sent_ms: list[float]
    gradients_ms: list[float]
    exposed_ms: list[float]
    tied_ms: float
    update_ms: float
    gather_ms: float

    @cached_property
    def last_rank(self) -> int:
        """The rank whose gradients are there last: all updates wait for it."""
        ends = [sum(both) for both in zip(self.end_ms, self.exposed_ms, strict=True)]
        return ends.index(max(ends))

    @property
    def computed_ms(self) -> float:
        """When the last gradients are there."""
        return self.end_ms[self.last_rank] + self.exposed_ms[self.last_rank]

    @property
    def total_ms(self) -> float:
        """The iteration."""
        return self.computed_ms + self.tied_ms + self.update_ms + self.gather_ms

    @property
    def utilisation(self) -> float:
        """Operations that the model needs over those that its GPUs could have done."""
        peak = self.job.plan.gpus * self.job.machine.tflops * 1e9
        return self.job.operations / (peak * self.total_ms)

    @property
    def tokens_per_s(self) -> float:
        """Tokens of all replicas that are trained on in a second."""
        return self.job.plan.batch * self.job.shape.sequence / self.total_ms * 1e3

    def rank_passes(self, rank: int) -> PassTime:
        """Return the parts of all passes of a rank."""
        found = NOTHING
        for one in self.passes[rank :: self.job.plan.pipeline]:
            found = found.plus(one.forward).plus(one.backward)
        return found.times(self.job.plan.microbatches)

    def busy_ms(self, rank: int) -> float:
        """Return how long a rank is at work: its passes, and its messages until they have gone."""
        return self.rank_passes(rank).total_ms + self.sent_ms[rank]

    @cached_property
    def busiest_rank(self) -> int:
        """The rank that is at work longest, the first of several."""
        busy = [self.busy_ms(rank) for rank in range(self.job.plan.pipeline)]
        longest = max(busy)
        return next(rank for rank, ms in enumerate(busy) if ms >= longest * (1 - _CLOSE))

    def bubble_ms(self, rank: int) -> float:
        """Return how long a rank waits for others until the last gradients of all are there."""
        waited = self.computed_ms - self.busy_ms(rank) - self.exposed_ms[rank]
        return waited if waited > _CLOSE * self.computed_ms else 0.0


def iteration(job: Job) -> Iteration:
    """Return a job's iteration in closed form; computing is scaled if the job says how long it lasts.

    Raises
    ------
    InputError
        If ``iteration_ms`` is shorter than all that is not computing.
    """
    wanted_ms = job.schedule.iteration_ms
    if not wanted_ms:
        return timed(job, 1.0)
    return timed(job, _factor(lambda factor: timed(job, factor).total_ms, wanted_ms))


def timed(job: Job, factor: float) -> Iteration:
    """Return a job's iteration whose computing takes ``factor`` times as long, whatever the job says of its length."""
    passes, stages = chunk_passes(job, factor), range(job.plan.pipeline)
    message_ms = message(job).ms(job) + gathered_ms(job)
    forward = [one.forward.total_ms for one in passes]
    backward = [one.backward.total_ms for one in passes]
    end_ms, sent_ms = walk(job, forward, backward, message_ms)
    gradients = [sum(one.ms(job) for one in stage_gradients(job, stage)) for stage in stages]
    return Iteration(
        job,
        factor,
        passes,
        message_ms,
        end_ms,
        sent_ms,
        gradients,
        # A rank's last pass is the backward one of its first chunk.
        [_exposed_ms(job, stage, gradients[stage], backward[stage]) for stage in stages],
        sum(one.ms(job) for one in tied_tables(job)),
        max(stage_update_ms(job, stage) for stage in stages),
        max(sum(one.ms(job) for one in stage_gathers(job, stage)) for stage in stages),
    )


def _exposed_ms(job: Job, stage: int, gradients_ms: float, last_pass_ms: float) -> float:
    """Return how much of the gradients the last backward pass does not hide: layers leave it one by one."""
    if not job.schedule.overlap_gradients:
        return gradients_ms
    layers = job.stage_layers(stage)
    return max(gradients_ms / layers, gradients_ms - last_pass_ms * (layers - 1) / layers)


def _factor(length_ms: Callable[[float], float], wanted_ms: float) -> float:
    """Return the factor at which an iteration lasts as long as is wanted; its length grows with the factor."""
    low, high, least = 0.0, 1.0, length_ms(0.0)
    refuse_if(
        (
            least >= wanted_ms,
            f"must be more than the {least:,.6g} ms that all but computing lasts (got {wanted_ms:g})",
        ),
        item="schedule",
        field="iteration_ms",
    )
    while length_ms(high) < wanted_ms:
        high *= 2
    return scale_to(length_ms, wanted_ms, (low, high), _CLOSE)


def scale_to(
    length_ms: Callable[[float], float],
    wanted_ms: float,
    between: tuple[float, float],
    close: float,
) -> float:
    """Return the factor at which a length is the wanted one, to a share of ``close``.

    The length grows with the factor and is made of straight pieces: a secant between a factor that is too
    small and one that is not ends on one of them.
    """
    low, high = between
    factor, at_low, at_high = high, length_ms(low), length_ms(high)
    for _ in range(200):
        factor = low + (wanted_ms - at_low) * (high - low) / (at_high - at_low)
        reached = length_ms(factor)
        if abs(reached - wanted_ms) <= close * wanted_ms or high - low <= close * high:
            break
        if reached < wanted_ms:
            low, at_low = factor, reached
        else:
            high, at_high = factor, reached
    return factor


@dataclass(frozen=True)
class Piece:
    """A part of an iteration.

    Attributes
    ----------
    name
        ``computing``, ``bubble``, ``update``, or what is communicated.
    exposed_ms
        What it adds to the iteration.
    hidden_ms
        What else of it runs while something is computed.
    kind, size_bytes, calls, group
        Of a communication: what is done with how many bytes of a member, how often, and among whom.
    """

    name: str
    exposed_ms: float
    hidden_ms: float = 0.0
    kind: str = ""
    size_bytes: float = 0.0
    calls: int = 0
    group: Group | None = None


# What :func:`parts` tells apart; ``gradients`` are their sums, gathers of weights and FSDP's traffic.
PARTS = (
    "compute",
    "host",
    "tensor",
    "context",
    "expert",
    "sends",
    "bubble",
    "gradients",
    "update",
)


def parts(one: Iteration) -> dict[str, float]:
    """Return what an iteration is spent on, by :data:`PARTS` in ms, on the busiest rank; they add up to it."""
    rank, passes = one.busiest_rank, one.rank_passes(one.busiest_rank)
    return {
        "compute": passes.compute_ms,
        "host": passes.host_ms,
        "tensor": passes.tensor_ms,
        "context": passes.context_ms,
        "expert": passes.experts_ms,
        "sends": one.sent_ms[rank],
        "bubble": one.bubble_ms(rank),
        "gradients": passes.weights_ms + one.exposed_ms[rank] + one.tied_ms + one.gather_ms,
        "update": one.update_ms,
    }


# Shares of 1 that differ by less come of rounding.
_ALIKE = 1e-9
NAMES = {"tp": "tensor parallel", "cp": "context parallel", "ep": "tokens to experts"}


def pieces(one: Iteration) -> list[Piece]:
    """Return the pieces of an iteration on the rank that is at work longest."""
    job, rank, passes = one.job, one.busiest_rank, one.rank_passes(one.busiest_rank)
    many, last = job.plan.microbatches, job.plan.pipeline - 1
    found = [Piece("computing", passes.compute_ms)]
    if passes.host_ms:
        found.append(Piece("host", passes.host_ms))
    spent = {"tp": passes.tensor_ms, "cp": passes.context_ms, "ep": passes.experts_ms}
    layers, single = job.stage_layers(rank), single_exchange(job)
    for parallelism, exposed_ms in spent.items():
        ends = (rank == 0) + (rank == last) if parallelism == single.parallelism else 0
        exchanges = [
            (
                NAMES[parallelism],
                each,
                many
                * (layers * (each.forward + each.backward) + ends * (each.kind == single.kind)),
            )
            for each in layer_exchanges(job)
            if each.parallelism == parallelism
        ]
        found += _exposed(job, exchanges, exposed_ms)
    # FSDP gathers in both passes, and scatters in the backward ones.
    moved = [(each, 2) for each in layer_gathers(job)] + [(each, 1) for each in layer_scatters(job)]
    calls = many * (layers + job.schedule.virtual)
    fsdp = [(f"FSDP's {each.what}", each, often * calls) for each, often in moved]
    found += _exposed(job, fsdp, passes.weights_ms)
    if last:
        found += [_messages(one, rank), Piece("bubble", one.bubble_ms(rank))]
    found += _exposed(job, _once(stage_gradients(job, rank)), one.exposed_ms[rank])
    found += _exposed(job, _once(tied_tables(job)), one.tied_ms)
    found.append(Piece("update", one.update_ms))
    gathers = [stage_gathers(job, stage) for stage in range(job.plan.pipeline)]
    longest = max(gathers, key=lambda each: sum(shared.ms(job) for shared in each))
    after = [(f"{each.what} after the update", each, 1) for each in longest]
    return found + _exposed(job, after, one.gather_ms)


def _messages(one: Iteration, rank: int) -> Piece:
    """Return what a rank sends: gone before it goes on, unless sends overlap."""
    job = one.job
    own = range(rank, job.chunks, job.plan.pipeline)
    ways = sum((chunk < job.chunks - 1) + (chunk > 0) for chunk in own)
    calls, sent, sent_ms = ways * job.plan.microbatches, message(job), one.sent_ms[rank]
    hidden_ms = 0.0 if sent_ms else calls * one.message_ms
    return Piece(
        "stage to stage", sent_ms, hidden_ms, sent.kind, sent.size_bytes, calls, sent.group
    )


def _once(shared: Iterable[Shared]) -> list[tuple[str, Call, int]]:
    return [(each.what, each, 1) for each in shared]


def _exposed(job: Job, calls: Sequence[tuple[str, Call, int]], exposed_ms: float) -> list[Piece]:
    """Return communications, each called so often, whose exposed times add up to ``exposed_ms``; the rest of each is hidden.

    It is shared out in proportion. Where computing was stretched (``iteration_ms``), so were the exchanges
    inside a server.
    """
    whole_ms = sum(many * what.ms(job) for _, what, many in calls)
    share = exposed_ms / whole_ms if whole_ms else 1.0
    hidden = 1 - share if share < 1 - _ALIKE else 0.0
    return [
        Piece(
            name,
            share * (many * what.ms(job)),
            hidden * (many * what.ms(job)),
            what.kind,
            what.size_bytes,
            many,
            what.group,
        )
        for name, what, many in calls
    ]
