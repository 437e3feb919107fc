"""How many windows one training iteration has: the reconstructed formula, and the exact count for every stage."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from topox_core.errors import InputError
from topox_core.io.errors import unknown

SCHEDULES = ("1f1b", "afab", "interleaved")
MAX_PASSES = 1_000_000  # forward and backward passes walked for one answer
FORMULA_NOTE = (
    "reconstructed: 4M - 1 gives the published 127 at M = 32 micro-batches; the printed equation did not survive. "
    "It is the first stage's count when all forwards come first (or M <= P)"
)


def windows_by_formula(microbatches: int) -> int:
    """Return 4M - 1, the reconstructed Eq. 1 of the photonic rails paper (``FORMULA_NOTE`` says how sure that is).

    Raises
    ------
    InputError
        If there is no micro-batch.
    """
    _at_least_one("microbatches", microbatches)
    return 4 * microbatches - 1


def windows_by_stage(
    stages: int, microbatches: int, schedule: str = "1f1b", chunks: int = 2
) -> list[int]:
    """Return the windows of one rank of every stage, counted by walking its communications.

    Each forward and backward pass of a stage gathers (and scatters) parameters between what it
    receives from and sends to its neighbours; the optimizer's all-reduces end the iteration.
    Windows lie between neighbouring phases of different parallelism (section 3.1 of the paper).

    Parameters
    ----------
    schedule
        ``1f1b``, ``afab`` (all forwards, then all backwards) or ``interleaved`` (1F1B over
        ``chunks`` model chunks a stage, as Megatron-LM orders them).

    Raises
    ------
    InputError
        On an unknown schedule, a number below one, or an interleaved schedule whose micro-batches
        are no multiple of the stages.
    """
    _check(stages, microbatches, schedule, chunks)
    return [
        len(phases_of_stage(stages, microbatches, schedule, stage, chunks)) - 1
        for stage in range(stages)
    ]


def phases_of_stage(
    stages: int, microbatches: int, schedule: str, stage: int, chunks: int = 2
) -> list[str]:
    """Return the phases of one stage in order: ``fsdp``, ``pp``, and at the end ``sync`` (the optimizer's all-reduces).

    Raises
    ------
    InputError
        As :func:`windows_by_stage`, and if there is no such stage.
    """
    _check(stages, microbatches, schedule, chunks)
    if not 0 <= stage < stages:
        raise InputError(f"must be 0 to {stages - 1} (got {stage})", file="settings", field="stage")
    return [
        word for word, _ in groupby(_communications(stages, microbatches, schedule, stage, chunks))
    ]


def _communications(
    stages: int, microbatches: int, schedule: str, stage: int, chunks: int
) -> Iterator[str]:
    """Yield the parallelism of each communication of a stage, in order."""
    last = stages - 1
    if schedule != "interleaved":
        chunks = 1
    for forward, chunk in _passes(stages, microbatches, schedule, stage, chunks):
        first_of_model, last_of_model = (
            stage == 0 and chunk == 0,
            stage == last and chunk == chunks - 1,
        )
        before, after = (
            (first_of_model, last_of_model) if forward else (last_of_model, first_of_model)
        )
        # With one stage the chunks follow each other on the same rank: nothing is sent.
        if stages > 1 and not before:
            yield "pp"
        yield "fsdp"
        if stages > 1 and not after:
            yield "pp"
    yield "sync"


def _passes(
    stages: int, microbatches: int, schedule: str, stage: int, chunks: int
) -> Iterator[tuple[bool, int]]:
    """Yield (forward?, chunk) of each pass of a stage, in order."""
    total = microbatches * chunks
    if schedule == "afab":
        warm_up = total
    elif schedule == "1f1b":
        warm_up = min(total, stages - 1 - stage)
    else:
        # Narayanan et al., SC 2021: with one group of micro-batches all forwards come first.
        warm_up = (
            total
            if microbatches == stages
            else min(total, 2 * (stages - 1 - stage) + (chunks - 1) * stages)
        )
    for forward in range(warm_up):
        yield True, _chunk(forward, stages, chunks)
    for steady in range(total - warm_up):
        yield True, _chunk(warm_up + steady, stages, chunks)
        yield False, chunks - 1 - _chunk(steady, stages, chunks)
    for backward in range(total - warm_up, total):
        yield False, chunks - 1 - _chunk(backward, stages, chunks)


def _chunk(number: int, stages: int, chunks: int) -> int:
    """Return the model chunk of a stage's pass: as many micro-batches as there are stages go through one chunk in a row."""
    return number % (stages * chunks) // stages


def _check(stages: int, microbatches: int, schedule: str, chunks: int) -> None:
    _at_least_one("stages", stages)
    _at_least_one("microbatches", microbatches)
    _at_least_one("chunks", chunks)
    if schedule not in SCHEDULES:
        raise InputError(
            f"{schedule!r}: {unknown(schedule, SCHEDULES, 'schedule')}",
            file="settings",
            field="schedule",
        )
    if schedule == "interleaved" and microbatches % stages:
        raise InputError(
            f"must be a multiple of the {stages} stages when they are interleaved (got {microbatches})",
            file="settings",
            field="microbatches",
        )
    passes = 2 * stages * microbatches * (chunks if schedule == "interleaved" else 1)
    if passes > MAX_PASSES:
        raise InputError(
            f"{stages:,} stages and {microbatches:,} microbatches make {passes:,} passes, "
            f"more than the {MAX_PASSES:,} that are walked",
            file="settings",
        )


def _at_least_one(field: str, value: int) -> None:
    if value < 1:
        raise InputError(f"must be at least 1 (got {value})", file="settings", field=field)
