"""Opus's figure 3 and equation 1: how many windows an iteration has, and how many a second."""

from collections.abc import Iterator, Sequence

import numpy as np

from topox_core.papers.card import CardRun
from topox_core.papers.rows import Row, directed, printed, unprinted
from topox_core.rails.builder import build
from topox_core.rails.control.simulate import simulate
from topox_core.rails.iteration import SEND, Rail, RailRun
from topox_core.rails.presets import PRESETS
from topox_core.rails.windows import Phase, strip, windows_by_formula, windows_by_stage
from topox_core.training.job import Job

# Section 3.1: windows of one Llama 3.1 405B iteration, its length on 1k H100, windows a second.
MICROBATCHES, STAGES, GPUS = 32, 16, 1_024


def rows(run: CardRun) -> Iterator[Row]:
    schedule = str(run.settings["schedule"])
    windows = windows_by_stage(STAGES, MICROBATCHES, schedule)
    yield printed(
        "count",
        "4 M − 1",
        "by formula, M = 32",
        run.card.printed["count"],
        windows_by_formula(MICROBATCHES),
        "Reconstructed: the equation itself is lost, and this form gives the printed number.",
        unit="windows",
    )
    for item, stage in (("first stage", 0), ("middle stage", STAGES // 2), ("last stage", -1)):
        yield printed(
            "count",
            item,
            f"{STAGES} stages, {schedule}",
            run.card.printed["count"],
            windows[stage],
            "Counted along the communications of one rank; which stage the paper counts is not said.",
            unit="windows",
        )
    job = PRESETS["llama3.1-405b-8192"].changed(
        plan__data=GPUS // (8 * STAGES), schedule__order=schedule
    )
    simulated = simulate(build(job, fold=True), Rail(optical=False))
    seconds = simulated.iteration_ms / 1000
    about = f"{GPUS:,} H100, simulated"
    yield printed(
        "length",
        "iteration time",
        about,
        run.card.printed["length"],
        seconds,
        "The closed form of the job with 32 micro-batches; the paper takes the time from a benchmark recipe.",
        unit="s",
    )
    yield printed(
        "rate",
        "windows a second",
        about,
        run.card.printed["rate"],
        windows[0] / seconds,
        f"{windows[0]} windows of the first stage in {seconds:.3g} s.",
        unit="per second",
    )
    yield from _pattern("3a", 2)
    yield from _pattern("3b", 3)


def _pattern(series: str, stages: int) -> Iterator[Row]:
    """Yield the windows of each stage of figure 3's job, and what its text says of their order."""
    preset = PRESETS["llama3-8b-perlmutter"].changed(plan__pipeline=stages)
    iteration = build(preset)
    run = simulate(iteration, Rail(optical=False, nic_gbps=preset.machine.nic_gbps))
    phases = strip(iteration, run.start_ms, run.end_ms)
    for stage in range(stages):
        own = [one for one in phases if one.rank == stage * preset.plan.data]
        yield unprinted(
            series,
            f"stage {stage}",
            f"PP = {stages}, FSDP = 2",
            len(own) - 1,
            f"{', '.join(one.parallelism.upper() for one in own)}; the figure draws windows as arrows, "
            "their number is not in the text.",
            unit="windows",
        )
    if series == "3a":
        first, second = (
            next(one for one in phases if one.rank == rank and one.parallelism == word)
            for rank, word in ((0, "pp"), (preset.plan.data, "fsdp"))
        )
        yield directed(
            "order",
            "gather after receive",
            "Figure 3(a), stage 1",
            second.begin_ms >= first.end_ms,
            second.begin_ms - first.end_ms,
            "“The first AllGather call for stage 1 only starts when it receives the activation from stage 0.”",
            unit="ms",
        )
    else:
        together = _together_ms(run, phases, preset)
        yield directed(
            "order",
            "gathers beside messages",
            "Figure 3(b)",
            together > 0,
            together,
            "Section 5: “stage 2 ranks’ DP AllGather and other stages’ Send/Recv can be concurrent”.",
            unit="ms",
        )


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
    same = run.row("count", "first stage").ours == theirs
    return {"same": "as printed" if same else f"not the printed {theirs}"}
