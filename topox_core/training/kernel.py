"""The passes of a pipeline in compiled code: millions of them a second, so that every plan of a model can be timed."""

import numpy as np

from topox_core.compiled import compiled
from topox_core.model.transfer_graph import FloatArray, IntArray


@compiled
def walked(
    forward_ms: FloatArray,
    backward_ms: FloatArray,
    warm: IntArray,
    many: int,
    message_ms: float,
    wait_ms: float,
    free_ms: FloatArray,
    sent_ms: FloatArray,
) -> None:
    """Write when each rank is free after its last pass, and how long it stood still for its messages.

    A rank's turn i is microbatch ``i // (stages virtual) stages + i % stages`` of its chunk
    ``i // stages % virtual``: ``warm`` forward turns come first, then a forward and a backward one
    alternate, then the backward ones that are left (:func:`topox_core.training.plan.pass_order`).

    Parameters
    ----------
    forward_ms, backward_ms
        Of every chunk; chunk k is on rank k modulo the ranks.
    warm
        Of every rank, its forward passes before the first backward one.
    many
        Microbatches.
    message_ms, wait_ms
        After how long a message is there, and for how long its sender waits for it.
    free_ms, sent_ms
        What is written, of every rank; 0 before.
    """
    ranks, chunks = len(warm), len(forward_ms)
    virtual = chunks // ranks
    turns = many * virtual
    # Of each chunk and microbatch, when what its pass needs is there.
    ready = np.full((2, chunks, many), np.inf)
    ready[0, 0] = 0.0
    ready[1, chunks - 1] = 0.0
    at = np.zeros(ranks, np.int64)
    waiting, listed = np.arange(ranks), np.ones(ranks, np.bool_)
    count = ranks
    while count:
        count -= 1
        rank = waiting[count]
        listed[rank] = False
        now, k, first = free_ms[rank], at[rank], warm[rank]
        while k < 2 * turns:
            way, turn = 0, k
            if k >= 2 * turns - first:
                way, turn = 1, k - turns
            elif k >= first:
                way = (k - first) % 2
                turn = (k - first) // 2 + (0 if way else first)
            local = turn // ranks % virtual
            m = turn // (ranks * virtual) * ranks + turn % ranks
            chunk = (virtual - 1 - local if way else local) * ranks + rank
            begin = ready[way, chunk, m]
            if begin == np.inf:
                break
            now = max(now, begin) + (backward_ms[chunk] if way else forward_ms[chunk])
            after = chunk - 1 if way else chunk + 1
            if 0 <= after < chunks:
                ready[way, after, m] = now + message_ms
                now += wait_ms
                sent_ms[rank] += wait_ms
                other = after % ranks
                if not listed[other]:
                    waiting[count] = other
                    listed[other] = True
                    count += 1
            k += 1
        free_ms[rank], at[rank] = now, k
