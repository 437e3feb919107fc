"""The order of passes on a pipeline stage: 1F1B, all forward first, or interleaved."""

from __future__ import annotations

from topox_core.workloads.pipeline import order

SCHEDULES = ("1f1b", "afab", "interleaved")


def pass_order(
    stage: int, stages: int, microbatches: int, schedule: str, virtual_stages: int = 1
) -> list[tuple[str, int, int]]:
    """Return a stage's passes in order: ("f" or "b", microbatch, the stage's model chunk).

    1F1B and all-forward-all-backward: see :func:`topox_core.workloads.pipeline.order`. Interleaved:
    Narayanan et al. (SC 2021), section 2.2: P microbatches go through a rank's first chunk, then
    through its second, and so on; 2 (P - 1 - stage) + (v - 1) P forward passes warm up; with only P
    microbatches all of them do (Megatron-LM).
    """
    if schedule != "interleaved":
        return [(way, m, 0) for way, m in order(stage, stages, microbatches, schedule)]
    turns = [
        (group * stages + m, chunk)
        for group in range(microbatches // stages)
        for chunk in range(virtual_stages)
        for m in range(stages)
    ]
    forward = [("f", m, chunk) for m, chunk in turns]
    backward = [("b", m, virtual_stages - 1 - chunk) for m, chunk in turns]
    warm = min(2 * (stages - 1 - stage) + (virtual_stages - 1) * stages, len(turns))
    if microbatches == stages:
        warm = len(turns)
    steady = [one for pair in zip(forward[warm:], backward, strict=False) for one in pair]
    return forward[:warm] + steady + backward[len(turns) - warm :]
