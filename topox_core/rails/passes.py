"""The passes of every stage and the transfers between, in one order for all ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from topox_core.training.job import Job
from topox_core.training.order import pass_order


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
    walk = _Walk(job, forward_ms, backward_ms)
    waiting = list(range(job.plan.pipeline))
    while waiting:
        waiting += [other for other in walk.advance(waiting.pop()) if other not in waiting]
    walk.timed.sort(key=lambda entry: entry[0])
    return [event for _, event in walk.timed]


class _Walk:
    """Times passes and transfers, stage by stage as far as each can go."""

    def __init__(self, job: Job, forward_ms: Sequence[float], backward_ms: Sequence[float]) -> None:
        self.job, self.length = job, {"f": forward_ms, "b": backward_ms}
        self.programs = [program(job, stage) for stage in range(job.plan.pipeline)]
        self.meet = job.schedule.order != "interleaved"
        self.free, self.at = [0.0] * job.plan.pipeline, [0] * job.plan.pipeline
        self.done: dict[Pass, float] = {}
        self.sent: dict[Pass, float] = {}
        # At one instant transfers go before passes, and activations before gradients.
        self.timed: list[tuple[tuple[float, int, str, int, int], Event]] = []

    def advance(self, stage: int) -> set[int]:
        """Run a stage until it must wait; return the stages that may now go on."""
        woken: set[int] = set()
        work = self.programs[stage]
        while self.at[stage] < len(work):
            one = work[self.at[stage]]
            begin = self.free[stage]
            source = needed(one, self.job)
            if source is not None:
                if source not in self.done:
                    break
                if source not in self.sent:
                    woken.add(self._transfer(source, stage))
                begin = max(begin, self.sent[source])
            before = work[self.at[stage] - 1] if self.at[stage] else None
            if self.meet and before is not None and needing(before, self.job) is not None:
                if before not in self.sent:
                    break
                begin = max(begin, self.sent[before])
            self.timed.append(((begin, 1, "", stage, one.microbatch), Event(one, stage)))
            self.free[stage] = self.done[one] = begin + self.length[one.way][one.chunk]
            self.at[stage] += 1
            after = needing(one, self.job)
            if after is not None:
                woken.add(after.chunk % self.job.plan.pipeline)
        return woken - {stage}

    def _transfer(self, source: Pass, stage: int) -> int:
        sender = source.chunk % self.job.plan.pipeline
        at = max(self.done[source], self.free[stage]) if self.meet else self.done[source]
        self.sent[source] = at
        self.timed.append(
            (
                (at, 0, "a" if source.way == "f" else "b", sender, source.microbatch),
                Event(source, stage, sender),
            )
        )
        return sender
