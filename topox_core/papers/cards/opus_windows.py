"""Opus's figures 3 to 5 and 8, and sections 4 and 5: the windows of an iteration, and switching in them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import repeat

import numpy as np

from topox_core.errors import refuse_if
from topox_core.model.arrays.groups import by_key
from topox_core.papers.card import CardRun, Rows, Settings
from topox_core.papers.rows import LEVEL
from topox_core.rails.advice import byte_classes
from topox_core.rails.builder import build
from topox_core.rails.control.simulate import Simulation, simulate
from topox_core.rails.iteration import (
    ALL_GATHER,
    COMPUTE,
    SEND,
    Rail,
    RailIteration,
    RailRun,
    Window,
)
from topox_core.rails.measured import SWEEPS, WINDOWS, jittered, pass_factors
from topox_core.rails.presets import PRESETS
from topox_core.rails.window_lengths import MIB, cdf, share_above
from topox_core.rails.windows import Phase, strip, windows_by_formula, windows_by_stage
from topox_core.training.job import Job

# Section 3.1: windows of one Llama 3.1 405B iteration, its length on 1k H100, windows per second.
MICROBATCHES, STAGES, GPUS = 32, 16, 1_024


def opus_windows(run: CardRun) -> Rows:
    """Opus's figure 3 and equation 1: how many windows an iteration has, and how many a second."""
    schedule = str(run.settings["schedule"])
    windows = windows_by_stage(STAGES, MICROBATCHES, schedule)
    yield run.row("count", "4 M − 1", windows_by_formula(MICROBATCHES))
    for item, stage in (("first stage", 0), ("middle stage", STAGES // 2), ("last stage", -1)):
        yield run.row("count", item, windows[stage])
    job = PRESETS["llama3.1-405b-8192"].changed(data=GPUS // (8 * STAGES), order=schedule)
    seconds = simulate(build(job, fold=True), Rail(optical=False)).iteration_ms / 1000
    yield run.row("length", "iteration time", seconds)
    each = windows[0] / seconds
    yield run.row("rate", "windows a second", each, windows=windows[0], seconds=seconds)
    yield from _pattern(run, "3a", 2)
    yield from _pattern(run, "3b", 3)


def _pattern(card: CardRun, series: str, stages: int) -> Rows:
    """Yield the windows of each stage of figure 3's job, and what its text says of their order."""
    preset = PRESETS["llama3-8b-perlmutter"].changed(pipeline=stages)
    iteration = build(preset)
    run = simulate(iteration, Rail(optical=False, nic_gbps=preset.machine.network_gbps))
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


ITERATIONS = 10
NAMES = {
    "reduce_scatter": "DP ReduceScatter",
    "all_gather": "DP AllGather",
    "send": "PP Send/Recv",
    "all_reduce": "AllReduce, synchronisation",
}
COUNTED = (("fsdp", "reduce_scatter"), ("fsdp", "all_gather"), ("pp", "send"), ("dp", "all_reduce"))


def _preset(settings: Settings) -> Job:
    return PRESETS["llama3-8b-perlmutter"].changed(
        reduce=str(settings["reduce"]),
        regather=bool(settings["regather"]),
        host_ms=float(settings["host_ms"]),
    )


def windows_of_ten(settings: Settings) -> list[Window]:
    """Return the windows of ten iterations of the paper's job, all ranks of one rail."""
    preset = _preset(settings)
    iteration, rail = build(preset), Rail(optical=False, nic_gbps=preset.machine.network_gbps)
    first = int(settings["seed"]) * ITERATIONS
    return [
        window
        for number in range(first, first + ITERATIONS)
        for window in simulate(jittered(iteration, float(settings["jitter"]), number), rail).windows
    ]


def opus_window_lengths(run: CardRun) -> Rows:
    """Opus's figure 4: how long the windows are, and what traffic follows them."""
    windows = windows_of_ten(run.settings)
    yield run.row("share", "simulated", 100 * share_above(windows, 1.0))
    yield run.row("share", "recorded", 100 * share_above([one.length_ms for one in WINDOWS], 1.0))
    means: dict[str, float] = {}
    for operation, name in NAMES.items():
        lengths = [max(0.0, one.length_ms) for one in windows if one.operation == operation]
        if lengths:
            means[operation] = float(np.mean(lengths))
            yield run.row("before", name, means[operation])
    scatter = means.get("reduce_scatter")
    rest = max(value for key, value in means.items() if key != "reduce_scatter")
    if scatter is not None:
        longer = scatter - rest
        yield run.row("before", "largest before the largest", longer, follows=longer > 0)
    known = {
        (one.parallelism, one.operation): one for one in byte_classes(_preset(run.settings), 0)
    }
    for parallelism, operation in COUNTED:
        one = known[parallelism, operation]
        sent = one.counted_bytes / MIB
        small = sent < 1 if parallelism == "dp" else None
        calls = f"{one.calls} call{'s' if one.calls > 1 else ''}"
        yield run.row("bytes", NAMES[operation], sent, follows=small, calls=calls)
    ascending, shares = cdf(windows)
    for share in (0.25, 0.5, 0.75, 1.0):
        at = int(np.searchsorted(shares, share - 1e-9))
        yield run.row("curve", f"{share:.0%} of windows up to", max(0.0, float(ascending[at])))


DELAYS_MS = (1.0, 10.0, 50.0, 100.0, 250.0, 500.0, 1_000.0)
AT_MS = 100.0


def opus_provisioning(run: CardRun) -> Rows:
    """Opus's figures 5 and 8: what switching costs on demand, and provisioned ahead of the calls."""
    preset = PRESETS["llama3-8b-perlmutter"].changed(
        reduce=str(run.settings["reduce"]),
        regather=bool(run.settings["regather"]),
    )
    iteration, rail = build(preset), Rail(nic_gbps=preset.machine.network_gbps)
    simulation = Simulation(iteration, rail)
    base = simulation.undisturbed_ms
    for delay in DELAYS_MS:
        both = simulation.both_ms(delay + float(run.settings["link_up_ms"]))
        for series, ms in zip(("demand", "ahead"), both, strict=True):
            data = {"iteration_ms": ms, "undisturbed_ms": base}
            longer = 100 * (ms / base - 1)
            yield run.row(series, f"{delay:,g} ms", longer, data=data, base_s=base / 1000)
    runs = [
        Simulation(
            iteration,
            Rail(nic_gbps=preset.machine.network_gbps, reconfiguration_ms=AT_MS, provisioned=ahead),
        ).run()
        for ahead in (False, True)
    ]
    for rank, item, kind, what in (
        (0, "rank 0", SEND, "first activation sent"),
        (preset.plan.data, "rank 4", ALL_GATHER, "weights gathered once it is there"),
    ):
        late, early = (_first_ms(run, rank, kind) for run in runs)
        earlier = late - early
        yield run.row(
            "warm_up", item, earlier, follows=earlier > 0, late=late, early=early, what=what
        )
    for sweep in SWEEPS[:2]:
        longer = 100 * (dict(sweep.rows)[AT_MS] / sweep.baseline_s - 1)
        item = "provisioned" if sweep.provisioned else "on demand"
        yield run.row("measured", item, longer, gpus=sweep.gpus, caveat=sweep.caveat)


def _first_ms(run: RailRun, rank: int, kind: int) -> float:
    """Return when the first communication of a kind begins that a rank takes part in."""
    iteration = run.iteration
    own = [
        node
        for node in np.flatnonzero(iteration.kind == kind).tolist()
        if rank in iteration.groups[iteration.group[node]].ranks
    ]
    return float(min(run.start_ms[own]))


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


def opus_rails(run: CardRun) -> Rows:
    """Opus's sections 4 and 5: several rails that must not diverge, several jobs on a switch, and changes by group."""
    preset = PRESETS["llama3-8b-perlmutter"]
    iteration = build(preset)
    rail = Rail(
        nic_gbps=preset.machine.network_gbps, reconfiguration_ms=float(run.settings["delay_ms"])
    )
    alone = simulate(iteration, rail)
    yield from _tenants(run, iteration, rail, alone.iteration_ms)
    yield from _rails(run, iteration, rail)
    for microbatches in (2, 4):
        job = preset.changed(pipeline=3, microbatches=microbatches)
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
    every = (
        by_key((one.group, one.start_ms) for one in run.circuits if one.changed) for run in runs
    )
    times = by_key(
        ((group, k), start_ms)
        for changes in every
        for group, starts in changes.items()
        for k, start_ms in enumerate(starts)
    )
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
