"""The order of passes on a pipeline stage: 1F1B, all forward first, or interleaved."""

from __future__ import annotations

from topox_core.model.waiting_order import earliest


def warm_passes(
    stage: int, stages: int, microbatches: int, schedule: str, virtual_stages: int = 1
) -> int:
    """Return how many forward passes a stage makes before its first backward one."""
    turns = microbatches * virtual_stages
    if schedule == "1f1b":
        return min(stages - 1 - stage, turns)
    if schedule == "afab" or microbatches == stages:
        return turns
    return min(2 * (stages - 1 - stage) + (virtual_stages - 1) * stages, turns)


def pass_order(
    stage: int, stages: int, microbatches: int, schedule: str, virtual_stages: int = 1
) -> list[tuple[str, int, int]]:
    """Return a stage's passes in order: ("f" or "b", microbatch, the stage's model chunk).

    1F1B: ``stages - 1 - stage`` forwards to warm up, then one forward and one backward in turn,
    then the backwards that are left (Narayanan et al., SC 2021, section 2.2). ``afab``: all
    forwards, then all backwards (GPipe). Interleaved, from the same section: P microbatches go
    through a rank's first chunk, then through its second, and so on; 2 (P - 1 - stage) + (v - 1) P
    forward passes warm up; with only P microbatches all of them do (Megatron-LM).
    """
    together = stages if schedule == "interleaved" else max(1, microbatches)
    turns = [
        (group * together + m, chunk)
        for group in range(microbatches // together)
        for chunk in range(virtual_stages)
        for m in range(together)
    ]
    forward = [("f", m, chunk) for m, chunk in turns]
    backward = [("b", m, virtual_stages - 1 - chunk) for m, chunk in turns]
    warm = warm_passes(stage, stages, microbatches, schedule, virtual_stages)
    steady = [one for pair in zip(forward[warm:], backward, strict=False) for one in pair]
    return forward[:warm] + steady + backward[len(turns) - warm :]


def dealt(layers: int, chunks: int) -> list[range]:
    """Return the layers of every chunk, as even as can be; shorter chunks at the ends, last first.

    Llama 3 405B leaves a layer out of the first and the last stage likewise (arXiv 2407.21783,
    section 3.3.2).
    """
    count, longer = divmod(layers, chunks)
    shorter_first = (chunks - longer) // 2
    result, first = [], 0
    for chunk in range(chunks):
        size = count + (shorter_first <= chunk < shorter_first + longer)
        result.append(range(first, first + size))
        first += size
    return result


# Of a stage: (F or B, microbatch, begin), in order, every pass as long as the other.
Passes = list[list[tuple[str, int, int]]]


def order_1f1b(stages: int, microbatches: int) -> Passes:
    """Return the passes of each stage in the order 1F1B, begun as soon as what they wait for has ended."""
    every = [
        (way, k, stage)
        for stage in range(stages)
        for way, k, _ in pass_order(stage, stages, microbatches, "1f1b")
    ]
    position = {one: at for at, one in enumerate(every)}
    waits: list[list[int]] = []
    for at, (way, k, stage) in enumerate(every):
        # Forward passes wait for the stage before, backward ones for the stage after: at the ends for nobody.
        beyond = way, k, stage - 1 if way == "f" else stage + 1
        befores = [position[beyond]] if beyond in position else []
        if at and every[at - 1][2] == stage:
            befores.append(at - 1)
        waits.append(befores)
    _, begins = earliest(waits, [1.0] * len(every))
    passes: Passes = [[] for _ in range(stages)]
    for (way, k, stage), begin in zip(every, begins, strict=True):
        passes[stage].append((way.upper(), k, int(begin)))
    return passes
