"""Opus's figure 3 and equation 1: how many windows an iteration has, and how many a second."""

from collections.abc import Sequence

import numpy as np

from topox_core.papers.card import CardRun, Rows
from topox_core.rails.builder import build
from topox_core.rails.control.simulate import simulate
from topox_core.rails.iteration import SEND, Rail, RailRun
from topox_core.rails.presets import PRESETS
from topox_core.rails.windows import Phase, strip, windows_by_formula, windows_by_stage
from topox_core.training.job import Job

# Section 3.1: windows of one Llama 3.1 405B iteration, its length on 1k H100, windows a second.
MICROBATCHES, STAGES, GPUS = 32, 16, 1_024


def rows(run: CardRun) -> Rows:
    schedule = str(run.settings["schedule"])
    windows = windows_by_stage(STAGES, MICROBATCHES, schedule)
    yield run.row("count", "4 M − 1", windows_by_formula(MICROBATCHES))
    for item, stage in (("first stage", 0), ("middle stage", STAGES // 2), ("last stage", -1)):
        yield run.row("count", item, windows[stage])
    job = PRESETS["llama3.1-405b-8192"].changed(
        plan__data=GPUS // (8 * STAGES), schedule__order=schedule
    )
    seconds = simulate(build(job, fold=True), Rail(optical=False)).iteration_ms / 1000
    yield run.row("length", "iteration time", seconds)
    each = windows[0] / seconds
    yield run.row("rate", "windows a second", each, windows=windows[0], seconds=seconds)
    yield from _pattern(run, "3a", 2)
    yield from _pattern(run, "3b", 3)


def _pattern(card: CardRun, series: str, stages: int) -> Rows:
    """Yield the windows of each stage of figure 3's job, and what its text says of their order."""
    preset = PRESETS["llama3-8b-perlmutter"].changed(plan__pipeline=stages)
    iteration = build(preset)
    run = simulate(iteration, Rail(optical=False, nic_gbps=preset.machine.nic_gbps))
    phases = strip(iteration, run.start_ms, run.end_ms)
    for stage in range(stages):
        own = [one for one in phases if one.rank == stage * preset.plan.data]
        traffic = ", ".join(one.parallelism.upper() for one in own)
        yield card.row(series, f"stage {stage}", len(own) - 1, traffic=traffic)
    if series == "3a":
        first, second = (
            next(one for one in phases if one.rank == rank and one.parallelism == word)
            for rank, word in ((0, "pp"), (preset.plan.data, "fsdp"))
        )
        after = second.begin_ms - first.end_ms
        yield card.row("order", "gather after receive", after, follows=after >= 0)
    else:
        together = _together_ms(run, phases, preset)
        yield card.row("order", "gathers beside messages", together, follows=together > 0)


def _together_ms(run: RailRun, phases: Sequence[Phase], preset: Job) -> float:
    """Return for how long a rank of the last stage is at gathering while the other stages send to each other."""
    iteration = run.iteration
    last = (preset.plan.pipeline - 1) * preset.plan.data
    highest = np.array([max(group.ranks) for group in iteration.groups])[iteration.group]
    messages = np.flatnonzero((iteration.kind == SEND) & (highest < last))
    return sum(
        float(
            np.maximum(
                0.0,
                np.minimum(one.end_ms, run.end_ms[messages])
                - np.maximum(one.begin_ms, run.start_ms[messages]),
            ).sum()
        )
        for one in phases
        if one.rank == last and one.parallelism == "fsdp"
    )


def said(run: CardRun) -> dict[str, str]:
    theirs = run.card.printed["count"]
    same = run.ours("count", "first stage") == theirs
    return {"same": "as printed" if same else f"not the printed {theirs}"}
