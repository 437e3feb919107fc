"""The passes of every stage and the transfers between, in one order for all ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from topox_core.training.job import Job
from topox_core.training.schedule import pass_order


@dataclass(frozen=True)
class Pass:
    """One microbatch forward (``f``) or backward (``b``) through a (virtual) stage."""

    way: str
    microbatch: int
    chunk: int


@dataclass(frozen=True)
class Event:
    """A pass on a stage, or (``sender`` is set) the transfer of its result.

    Attributes
    ----------
    result
        The pass, or the one whose result is sent.
    stage
        Where the pass runs, or which stage receives.
    sender
        The sending stage; -1 for a pass.
    """

    result: Pass
    stage: int
    sender: int = -1


def program(job: Job, stage: int) -> list[Pass]:
    """Return the passes of a stage in its order."""
    stages = job.plan.pipeline
    return [
        Pass(way, microbatch, chunk * stages + stage)
        for way, microbatch, chunk in pass_order(
            stage, stages, job.plan.microbatches, job.schedule.order, job.schedule.virtual
        )
    ]


def needed(one: Pass, job: Job) -> Pass | None:
    """Return the other stage's pass whose result a pass needs; None if it needs none."""
    return _beyond(one, job, -1 if one.way == "f" else 1)


def needing(one: Pass, job: Job) -> Pass | None:
    """Return the pass of another stage that needs a pass's result; None if nobody does."""
    return _beyond(one, job, 1 if one.way == "f" else -1)


def _beyond(one: Pass, job: Job, step: int) -> Pass | None:
    chunk = one.chunk + step
    return (
        Pass(one.way, one.microbatch, chunk)
        if 0 <= chunk < job.chunks and job.plan.pipeline > 1
        else None
    )


def events(job: Job, forward_ms: Sequence[float], backward_ms: Sequence[float]) -> list[Event]:
    """Return all passes and transfers in one order that every stage can follow.

    Passes are timed without their communications; ``forward_ms`` and ``backward_ms`` are those of
    each chunk. A transfer stands where both sides have come to it. In 1F1B and AFAB the receiver
    comes to it at the end of the pass before the one that needs it, and the sender goes on when it
    has been sent (PyTorch's and Megatron-LM's schedules do both); interleaved stages post their
    receives ahead and do not wait for their sends.
    """
    stages, meet = range(job.plan.pipeline), job.schedule.order != "interleaved"
    length = {"f": forward_ms, "b": backward_ms}
    programs = [program(job, stage) for stage in stages]
    free, at = [0.0 for _ in stages], [0 for _ in stages]
    done: dict[Pass, float] = {}
    sent: dict[Pass, float] = {}
    # At one instant transfers go before passes, and activations before gradients.
    timed: list[tuple[tuple[float, int, str, int, int], Event]] = []

    def advance(stage: int) -> bool:
        """Run a stage until it must wait; return whether anything came of it."""
        known, work = len(timed), programs[stage]
        while at[stage] < len(work):
            one = work[at[stage]]
            begin, source = free[stage], needed(one, job)
            before = work[at[stage] - 1] if at[stage] else None
            if source is not None:
                if source not in done:
                    break
                if source not in sent:
                    sender, way = source.chunk % len(stages), "a" if source.way == "f" else "b"
                    sent[source] = when = max(done[source], begin) if meet else done[source]
                    key = (when, 0, way, sender, source.microbatch)
                    timed.append((key, Event(source, stage, sender)))
                begin = max(begin, sent[source])
            if meet and before is not None and needing(before, job) is not None:
                if before not in sent:
                    break
                begin = max(begin, sent[before])
            timed.append(((begin, 1, "", stage, one.microbatch), Event(one, stage)))
            free[stage] = done[one] = begin + length[one.way][one.chunk]
            at[stage] += 1
        return len(timed) > known

    while sum(map(advance, stages)):  # each in turn, until nothing comes of it
        pass
    timed.sort(key=lambda entry: entry[0])
    return [event for _, event in timed]
