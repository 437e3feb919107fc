"""Opus's figure 4: how long the windows are, and what traffic follows them."""

import numpy as np

from topox_core.papers.card import CardRun, Rows, Settings
from topox_core.rails.advice import byte_classes
from topox_core.rails.builder import build
from topox_core.rails.control.simulate import simulate
from topox_core.rails.iteration import Rail, Window
from topox_core.rails.measured import WINDOWS, jittered
from topox_core.rails.presets import PRESETS
from topox_core.rails.window_lengths import MIB, cdf, share_above
from topox_core.training.job import Job

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
        schedule__reduce=str(settings["reduce"]),
        schedule__regather=bool(settings["regather"]),
        machine__host_ms=float(settings["host_ms"]),
    )


def windows_of_ten(settings: Settings) -> list[Window]:
    """Return the windows of ten iterations of the paper's job, all ranks of one rail."""
    preset = _preset(settings)
    iteration, rail = build(preset), Rail(optical=False, nic_gbps=preset.machine.nic_gbps)
    first = int(settings["seed"]) * ITERATIONS
    return [
        window
        for number in range(first, first + ITERATIONS)
        for window in simulate(jittered(iteration, float(settings["jitter"]), number), rail).windows
    ]


def rows(run: CardRun) -> Rows:
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


def said(run: CardRun) -> dict[str, str]:
    means = [row.ours for row in run.of("before") if row.item == NAMES["reduce_scatter"]]
    return {"mean": f"{means[0]:,.0f} ms" if means else "not available (no such window)"}
