"""When the passes of an iteration run: every rank works through its order, messages bring what it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from topox_core.training.job import Job
from topox_core.training.kernel import walked
from topox_core.training.order import warm_passes


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
    # A rank's last pass is one of its first chunk.
    return Walk(free_ms.tolist(), sent_ms.tolist(), list(backward_ms[:ranks]))
