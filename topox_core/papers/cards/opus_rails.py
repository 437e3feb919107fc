"""Opus's sections 4 and 5: several rails that must not diverge, several jobs on a switch, and changes by group."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import repeat

import numpy as np

from topox_core.errors import refuse_if
from topox_core.papers.card import CardRun, Rows
from topox_core.papers.rows import LEVEL
from topox_core.rails.builder import build
from topox_core.rails.control.simulate import simulate
from topox_core.rails.iteration import COMPUTE, Rail, RailIteration, RailRun
from topox_core.rails.measured import pass_factors
from topox_core.rails.presets import PRESETS
from topox_core.rails.window_lengths import share_above


def together(jobs: Sequence[RailIteration]) -> RailIteration:
    """Return jobs side by side as one iteration: ranks, groups and nodes of each after those of the ones before.

    All begin at time 0. Nothing of one waits for another.

    Raises
    ------
    InputError
        If there is no job.
    """
    refuse_if(
        (not jobs, "at least one job is needed (the list is empty)"), file="settings", field="jobs"
    )
    sizes = [
        (job.ranks, len(job.groups), len(job), len(job.pred_idx), len(job.issue_idx))
        for job in jobs
    ]
    # Where each job's begin.
    ranks, groups, nodes, predecessors, issues = np.cumsum([(0,) * 5, *sizes], axis=0).T

    def joined(field: str, by: Iterable[int] = repeat(0)) -> np.ndarray:
        """Return a column, numbers of each job behind those before; -1 stays."""
        parts = [getattr(job, field) for job in jobs]
        return np.concatenate(
            [np.where(part < 0, part, part + at) for part, at in zip(parts, by, strict=False)]
        ).astype(parts[0].dtype)

    def pointer(field: str, by: np.ndarray) -> np.ndarray:
        parts = [getattr(job, field) for job in jobs]
        rows = [part[:-1] + at for part, at in zip(parts, by, strict=False)]
        return np.concatenate([*rows, [by[-1]]]).astype(parts[0].dtype)

    return RailIteration(
        name=" and ".join(job.name for job in jobs),
        ranks=int(ranks[-1]),
        stands_for=joined("stands_for"),
        stage=joined("stage"),
        kind=joined("kind"),
        rank=joined("rank", ranks),
        duration_ms=joined("duration_ms"),
        work=joined("work"),
        group=joined("group", groups),
        size_bytes=joined("size_bytes"),
        microbatch=joined("microbatch"),
        layer=joined("layer"),
        label=tuple(label for job in jobs for label in job.label),
        pred_ptr=pointer("pred_ptr", predecessors),
        pred_idx=joined("pred_idx", nodes),
        issue_ptr=pointer("issue_ptr", issues),
        issue_idx=joined("issue_idx", nodes),
        groups=tuple(
            replace(
                group,
                name=f"job {number}, {group.name}",
                ranks=tuple(rank + int(ranks[number]) for rank in group.ranks),
            )
            for number, job in enumerate(jobs)
            for group in job.groups
        ),
    )


RAILS = 4  # GPUs of a server in section 3.1
TENANTS = (2, 4)


def rows(run: CardRun) -> Rows:
    preset = PRESETS["llama3-8b-perlmutter"]
    iteration = build(preset)
    rail = Rail(
        nic_gbps=preset.machine.nic_gbps, reconfiguration_ms=float(run.settings["delay_ms"])
    )
    alone = simulate(iteration, rail)
    yield from _tenants(run, iteration, rail, alone.iteration_ms)
    yield from _rails(run, iteration, rail)
    for microbatches in (2, 4):
        job = preset.changed(plan__pipeline=3, plan__microbatches=microbatches)
        share, changes = _beside(simulate(build(job), rail))
        item = f"three stages, {microbatches} micro-batches"
        yield run.row("groups", item, share, follows=share > LEVEL, changes=changes)
    sent, changes = int((iteration.kind != COMPUTE).sum()), alone.reconfigurations
    each, few = changes / sent, changes < sent / 2
    item = "changes a communication"
    yield run.row("small", item, each, follows=few, changes=changes, sent=sent)


def _tenants(run: CardRun, iteration: RailIteration, rail: Rail, alone_ms: float) -> Rows:
    """Yield the longest iteration of jobs that share a rail's switch, passes drawn for each."""
    spread = float(run.settings["spread"])
    for count in TENANTS:
        factors = [pass_factors(iteration, spread, 100 + number) for number in range(count)]
        jobs = [_with(iteration, one) for one in factors]
        single = [simulate(job, rail).iteration_ms for job in jobs]
        ends = simulate(together(jobs), rail).end_ms.reshape(count, len(iteration)).max(axis=1)
        worst = max(end / own for end, own in zip(ends.tolist(), single, strict=True))
        yield run.row("tenants", f"{count} jobs", worst, alone_ms=alone_ms)


def _with(iteration: RailIteration, factors: np.ndarray) -> RailIteration:
    return replace(iteration, duration_ms=iteration.duration_ms * factors)


def _rails(run: CardRun, iteration: RailIteration, rail: Rail) -> Rows:
    """Yield how far the rails of a server drift apart when each asks for itself, and when asked for together."""
    spread, first = float(run.settings["spread"]), RAILS * int(run.settings["seed"])
    factors = [pass_factors(iteration, spread, seed) for seed in range(first, first + RAILS)]
    apart = [simulate(_with(iteration, one), rail) for one in factors]
    # Tensor-parallel ranks wait for each other in every layer, so a pass takes what its slowest rail does.
    coupled = simulate(_with(iteration, np.max(factors, axis=0)), rail)
    drift = _drift_ms(apart)
    yield run.row("drift", "each rail for itself", drift, follows=drift > 0 or not spread)
    over = coupled.iteration_ms / max(one.iteration_ms for one in apart)
    yield run.row("coupled", "iteration over slowest rail alone", over)
    shares = [100 * share_above(one.windows, 1.0) for one in apart]
    apart_by = max(shares) - min(shares)
    yield run.row("windows", "largest less smallest share", apart_by, follows=apart_by <= 10)


def _drift_ms(runs: Sequence[RailRun]) -> float:
    """Return how far apart the same change comes on several rails, at most: the k-th of each group."""
    times: dict[tuple[int, int], list[float]] = {}
    for run in runs:
        seen: Counter[int] = Counter()
        for one in run.circuits:
            if one.changed:
                times.setdefault((one.group, seen[one.group]), []).append(one.start_ms)
                seen[one.group] += 1
    return max((max(at) - min(at) for at in times.values()), default=0.0)


def _beside(run: RailRun) -> tuple[float, int]:
    """Return which share of the changes of a group come while other groups' traffic is on the way, and the changes."""
    iteration = run.iteration
    sends = np.flatnonzero(iteration.kind != COMPUTE)
    changes = [one for one in run.circuits if one.changed]
    cut = sum(
        bool(
            (
                (iteration.group[sends] != one.group)
                & (run.start_ms[sends] < one.start_ms)
                & (run.end_ms[sends] > one.setup_ms)
            ).any()
        )
        for one in changes
    )
    return cut / len(changes), len(changes)
