"""How many windows an iteration has: the reconstructed formula, and the count by stage."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from topox_core.errors import InputError, unknown, wrong_setting
from topox_core.training.order import pass_order
from topox_core.training.schedule import ORDERS

MAX_PASSES = 1_000_000  # forward and backward passes walked for one answer
FORMULA_NOTE = (
    "reconstructed: 4M - 1 gives the published 127 at M = 32 micro-batches; the printed equation did not survive. "
    "It is the first stage's count when all forwards come first (or M <= P)"
)


def windows_by_formula(microbatches: int) -> int:
    """Return 4M - 1, the reconstructed Eq. 1 of the photonic rails paper (see ``FORMULA_NOTE``).

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
    """Return a stage's phases in order: ``fsdp``, ``pp``, last ``sync`` (the optimizer's).

    Raises
    ------
    InputError
        As :func:`windows_by_stage`, and if there is no such stage.
    """
    _check(stages, microbatches, schedule, chunks)
    if not 0 <= stage < stages:
        raise wrong_setting("stage", f"must be 0 to {stages - 1} (got {stage})")
    return [
        word for word, _ in groupby(_communications(stages, microbatches, schedule, stage, chunks))
    ]


def _communications(
    stages: int, microbatches: int, schedule: str, stage: int, chunks: int
) -> Iterator[str]:
    """Yield the parallelism of each communication of a stage, in order."""
    chunks = chunks if schedule == "interleaved" else 1
    for way, _, chunk in pass_order(stage, stages, microbatches, schedule, chunks):
        begins_model = stage == 0 and chunk == 0
        ends_model = stage == stages - 1 and chunk == chunks - 1
        before, after = (begins_model, ends_model) if way == "f" else (ends_model, begins_model)
        # With one stage the chunks follow each other on the same rank: nothing is sent.
        if stages > 1 and not before:
            yield "pp"
        yield "fsdp"
        if stages > 1 and not after:
            yield "pp"
    yield "sync"


def _check(stages: int, microbatches: int, schedule: str, chunks: int) -> None:
    _at_least_one("stages", stages)
    _at_least_one("microbatches", microbatches)
    _at_least_one("chunks", chunks)
    if schedule not in ORDERS:
        raise wrong_setting("schedule", f"{schedule!r}: {unknown(schedule, ORDERS, 'schedule')}")
    if schedule == "interleaved" and microbatches % stages:
        raise wrong_setting(
            "microbatches",
            f"must be a multiple of the {stages} stages when they are interleaved (got {microbatches})",
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
        raise wrong_setting(field, f"must be at least 1 (got {value})")
