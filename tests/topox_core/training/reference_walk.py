"""The walk through an iteration's passes as it reads in words, pass by pass: what the compiled one must agree with."""

from collections.abc import Sequence

from topox_core.training.iteration import Walk
from topox_core.training.job import Job
from topox_core.training.order import pass_order

NEVER = float("inf")


def reference_walk(
    job: Job, forward_ms: Sequence[float], backward_ms: Sequence[float], message_ms: float
) -> Walk:
    """Run the passes of one replica."""
    ranks, chunks, many = job.plan.pipeline, job.chunks, job.plan.microbatches
    programs = [
        pass_order(rank, ranks, many, job.schedule.order, job.schedule.virtual)
        for rank in range(ranks)
    ]
    length = {"f": forward_ms, "b": backward_ms}
    # Of each chunk and microbatch, when what its pass needs is there.
    ready = {way: [[NEVER] * many for _ in range(chunks)] for way in "fb"}
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
            if begin == NEVER:
                break
            now = max(now, begin) + length[way][chunk]
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
