"""Opus's sections 4 and 5: several rails that must not diverge, several jobs on a switch, and changes by group."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from topox_core.errors import wrong_setting
from topox_core.papers.card import CardRun, Settings
from topox_core.papers.rows import LEVEL, Row, directed, printed, unprinted
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
    if not jobs:
        raise wrong_setting("jobs", "at least one job is needed (the list is empty)")
    sizes = [
        (job.ranks, len(job.groups), len(job), len(job.pred_idx), len(job.issue_idx))
        for job in jobs
    ]
    # Where each job's begin.
    ranks, groups, nodes, predecessors, issues = np.cumsum([(0,) * 5, *sizes], axis=0).T

    def joined(field: str) -> np.ndarray:
        return np.concatenate([getattr(job, field) for job in jobs])

    def shifted(field: str, by: np.ndarray) -> np.ndarray:
        """Return a column of numbers, each job's behind those before; -1 stays."""
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
        rank=shifted("rank", ranks),
        duration_ms=joined("duration_ms"),
        work=joined("work"),
        group=shifted("group", groups),
        size_bytes=joined("size_bytes"),
        microbatch=joined("microbatch"),
        layer=joined("layer"),
        label=tuple(label for job in jobs for label in job.label),
        pred_ptr=pointer("pred_ptr", predecessors),
        pred_idx=shifted("pred_idx", nodes),
        issue_ptr=pointer("issue_ptr", issues),
        issue_idx=shifted("issue_idx", nodes),
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


def rows(run: CardRun) -> Iterator[Row]:
    preset = PRESETS["llama3-8b-perlmutter"]
    iteration = build(preset)
    rail = Rail(
        nic_gbps=preset.machine.nic_gbps, reconfiguration_ms=float(run.settings["delay_ms"])
    )
    alone = simulate(iteration, rail)
    yield from _tenants(iteration, rail, alone.iteration_ms, run.settings)
    yield from _rails(iteration, rail, run.settings)
    for microbatches in (2, 4):
        job = preset.changed(plan__pipeline=3, plan__microbatches=microbatches)
        yield _beside(simulate(build(job), rail), f"three stages, {microbatches} micro-batches")
    sent = int((iteration.kind != COMPUTE).sum())
    yield directed(
        "small",
        "changes a communication",
        f"{alone.reconfigurations} changes, {sent} communications",
        alone.reconfigurations < sent / 2,
        alone.reconfigurations / sent,
        "“Since Opus only reconfigures if the traffic pattern changes across parallelisms, the number of reconfiguration is "
        "kept small.”",
    )


def _tenants(
    iteration: RailIteration, rail: Rail, alone_ms: float, settings: Settings
) -> Iterator[Row]:
    """Yield the longest iteration of jobs that share a rail's switch, passes drawn for each."""
    for count in TENANTS:
        jobs = [
            _with(iteration, pass_factors(iteration, float(settings["spread"]), 100 + number))
            for number in range(count)
        ]
        single = [simulate(job, rail).iteration_ms for job in jobs]
        run = simulate(together(jobs), rail)
        ends = [
            float(run.end_ms[number * len(iteration) : (number + 1) * len(iteration)].max())
            for number in range(count)
        ]
        worst = max(end / own for end, own in zip(ends, single, strict=True))
        yield printed(
            "tenants",
            f"{count} jobs",
            f"Llama 3 8B each, {rail.reconfiguration_ms:g} ms",
            1.0,
            worst,
            "“The bandwidth resource is not shared across jobs”: each has ports of its own and changes circuits by group. "
            f"Alone {alone_ms:,.0f} ms without spread.",
            unit="×",
        )


def _with(iteration: RailIteration, factors: np.ndarray) -> RailIteration:
    return replace(iteration, duration_ms=iteration.duration_ms * factors)


def _rails(iteration: RailIteration, rail: Rail, settings: Settings) -> Iterator[Row]:
    """Yield how far the rails of a server drift apart when each asks for itself, and when asked for together."""
    first = RAILS * int(settings["seed"])
    factors = [
        pass_factors(iteration, float(settings["spread"]), seed)
        for seed in range(first, first + RAILS)
    ]
    apart = [simulate(_with(iteration, one), rail) for one in factors]
    # Tensor-parallel ranks wait for each other in every layer, so a pass takes what its slowest rail does.
    coupled = simulate(_with(iteration, np.max(factors, axis=0)), rail)
    drift = _drift_ms(apart)
    about = f"{RAILS} rails, {rail.reconfiguration_ms:g} ms"
    yield directed(
        "drift",
        "each rail for itself",
        f"{about}, largest",
        drift > 0 or not settings["spread"],
        drift,
        "“Prevent undesired control divergence across rails when collectives span multiple rails”: the same change comes at "
        "different times on the rails of one server.",
        unit="ms",
    )
    yield unprinted(
        "coupled",
        "iteration over slowest rail alone",
        about,
        coupled.iteration_ms / max(run.iteration_ms for run in apart),
        "The shim's manager asks once for all rails of a server, and a pass is over when its slowest rail's is: what that "
        "costs.",
        unit="×",
    )
    shares = [100 * share_above(run.windows, 1.0) for run in apart]
    yield directed(
        "windows",
        "largest less smallest share",
        about,
        max(shares) - min(shares) <= 10,
        max(shares) - min(shares),
        "“Similar in size across rails” (section 3.1), within ten points of a hundred.",
        unit="points",
    )


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


def _beside(run: RailRun, words: str) -> Row:
    """Return how many changes of a group come while other groups' traffic is on the way."""
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
    share = cut / len(changes)
    return directed(
        "groups",
        words,
        f"{len(changes)} changes",
        share > LEVEL,
        share,
        "Section 5: “course-grained reconfiguration would introduce conflicts”: turning all links at once would cut traffic "
        "that another group has on the way.",
    )
