"""What an iteration consists of, piece by piece on the busiest rank: the pieces add up to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from topox_core.training.collectives import (
    Call,
    Group,
    Shared,
    layer_exchanges,
    layer_gathers,
    layer_scatters,
    message,
    single_exchange,
    stage_gathers,
    stage_gradients,
    tied_tables,
)
from topox_core.training.iteration import Iteration


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


def pieces(one: Iteration) -> list[Piece]:
    """Return the pieces of an iteration on the rank that is at work longest."""
    job, rank = one.job, one.busiest_rank
    passes = one.rank_passes(rank)
    found = [Piece("computing", passes.compute_ms)]
    if passes.host_ms:
        found.append(Piece("host", passes.host_ms))
    spent = {"tp": passes.tensor_ms, "cp": passes.context_ms, "ep": passes.experts_ms}
    for parallelism, exposed_ms in spent.items():
        found += _shared_out(list(_exchanged(one, rank, parallelism)), exposed_ms)
    found += _shared_out(list(_weights(one, rank)), passes.weights_ms)
    found += _messages(one, rank)
    if job.plan.pipeline > 1:
        found.append(Piece("bubble", one.bubble_ms(rank)))
    found += _shared_out(_called(one, stage_gradients(job, rank)), one.exposed_ms[rank])
    found += _shared_out(_called(one, tied_tables(job)), one.tied_ms)
    found.append(Piece("update", one.update_ms))
    gathers = [stage_gathers(job, stage) for stage in range(job.plan.pipeline)]
    longest = max(gathers, key=lambda each: sum(shared.ms(job) for shared in each))
    after = [
        replace(piece, name=f"{piece.name} after the update") for piece in _called(one, longest)
    ]
    return found + _shared_out(after, one.gather_ms)


# Shares of 1 that differ by less come of rounding.
_ALIKE = 1e-9
NAMES = {"tp": "tensor parallel", "cp": "context parallel", "ep": "tokens to experts"}


def _exchanged(one: Iteration, rank: int, parallelism: str) -> Iterator[Piece]:
    """Yield what the passes of a rank exchange in one parallelism, whole times."""
    job = one.job
    layers = job.stage_layers(rank) * job.plan.microbatches
    exchanges = [each for each in layer_exchanges(job) if each.parallelism == parallelism]
    ends = ((rank == 0) + (rank == job.plan.pipeline - 1)) * job.plan.microbatches
    for each in exchanges:
        calls = layers * (each.forward + each.backward)
        if parallelism == "tp" and each.kind == single_exchange(job).kind:
            calls += ends
        yield _piece(one, NAMES[parallelism], each, calls)


def _weights(one: Iteration, rank: int) -> Iterator[Piece]:
    """Yield what FSDP moves for the passes of a rank: gathers in both, scatters in the backward ones."""
    job = one.job
    calls = (job.stage_layers(rank) + job.schedule.virtual) * job.plan.microbatches
    for each, passes in ((layer_gathers(job), 2), (layer_scatters(job), 1)):
        for shared in each:
            yield _piece(one, f"FSDP's {shared.what}", shared, passes * calls)


def _messages(one: Iteration, rank: int) -> list[Piece]:
    """Return what a rank sends: gone before it goes on, unless sends overlap."""
    job, ranks = one.job, one.job.plan.pipeline
    if ranks == 1:
        return []
    forward = sum(chunk < job.chunks - 1 for chunk in range(rank, job.chunks, ranks))
    backward = sum(chunk > 0 for chunk in range(rank, job.chunks, ranks))
    calls = (forward + backward) * job.plan.microbatches
    sent = message(job)
    hidden_ms = 0.0 if one.sent_ms[rank] else calls * one.message_ms
    return [
        Piece(
            "stage to stage",
            one.sent_ms[rank],
            hidden_ms,
            sent.kind,
            sent.size_bytes,
            calls,
            sent.group,
        )
    ]


def _called(one: Iteration, shared: Sequence[Shared]) -> list[Piece]:
    return [_piece(one, each.what, each, 1) for each in shared]


def _piece(one: Iteration, name: str, what: Call, calls: int) -> Piece:
    """Return a communication with its whole time; what of it is hidden is told later."""
    return Piece(name, calls * what.ms(one.job), 0.0, what.kind, what.size_bytes, calls, what.group)


def _shared_out(found: Iterable[Piece], exposed_ms: float) -> list[Piece]:
    """Return pieces whose exposed times add up to ``exposed_ms``, in proportion; the rest of each is hidden.

    Where computing was stretched (``iteration_ms``), so were the exchanges inside a server.
    """
    kept = list(found)
    whole_ms = sum(piece.exposed_ms for piece in kept)
    if whole_ms == 0:
        return kept
    share = exposed_ms / whole_ms
    return [
        replace(
            piece,
            exposed_ms=share * piece.exposed_ms,
            hidden_ms=(1 - share) * piece.exposed_ms if share < 1 - _ALIKE else 0.0,
        )
        for piece in kept
    ]
