"""When the passes of an iteration run: every rank works through its order, messages bring what it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from topox_core.training.job import Job
from topox_core.training.order import pass_order

_NEVER = float("inf")


@dataclass(frozen=True)
class Walk:
    """The pipeline in time.

    Attributes
    ----------
    end_ms
        When each rank is free after its last pass.
    sent_ms
        How long each rank stood still until its messages were gone.
    last_ms
        How long its last pass took, a backward one.
    """

    end_ms: list[float]
    sent_ms: list[float]
    last_ms: list[float]


def walk(
    job: Job, forward_ms: Sequence[float], backward_ms: Sequence[float], message_ms: float
) -> Walk:
    """Run the passes of one replica; the other replicas do the same at the same time.

    A pass starts when its rank is free and the activation of the chunk before, or the gradient of the
    chunk after, has arrived. The receiver need not be waiting; the sender is free when its message has
    gone, with ``overlap_sends`` at once. The last chunk needs no message to turn round.

    Parameters
    ----------
    forward_ms, backward_ms
        Of every chunk.
    """
    ranks, chunks, many = job.plan.pipeline, job.chunks, job.plan.microbatches
    programs = [
        pass_order(rank, ranks, many, job.schedule.order, job.schedule.virtual)
        for rank in range(ranks)
    ]
    length = {"f": forward_ms, "b": backward_ms}
    # Of each chunk and microbatch, when what its pass needs is there.
    ready = {way: [[_NEVER] * many for _ in range(chunks)] for way in "fb"}
    ready["f"][0] = [0.0] * many
    ready["b"][chunks - 1] = [0.0] * many
    step = {"f": 1, "b": -1}
    free, sent, at = [0.0] * ranks, [0.0] * ranks, [0] * ranks
    wait_ms = 0.0 if job.schedule.overlap_sends else message_ms
    waiting = list(range(ranks))
    while waiting:
        rank = waiting.pop()
        program, now, k = programs[rank], free[rank], at[rank]
        for way, m, local in program[k:]:
            chunk = local * ranks + rank
            begin = ready[way][chunk][m]
            if begin == _NEVER:
                break
            now = (now if now > begin else begin) + length[way][chunk]
            after = chunk + step[way]
            if 0 <= after < chunks:
                ready[way][after][m] = now + message_ms
                now += wait_ms
                sent[rank] += wait_ms
                if (other := after % ranks) not in waiting:
                    waiting.append(other)
            k += 1
        free[rank], at[rank] = now, k
    last = [program[-1] for program in programs]
    return Walk(
        free, sent, [backward_ms[local * ranks + rank] for rank, (_, _, local) in enumerate(last)]
    )
