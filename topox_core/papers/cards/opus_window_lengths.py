"""Opus's figure 4: how long the windows are, and what traffic follows them."""

from collections.abc import Iterator

import numpy as np

from topox_core.papers.card import CardRun, Settings
from topox_core.papers.rows import Row, at_least, directed, printed, unprinted
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


def rows(run: CardRun) -> Iterator[Row]:
    windows = windows_of_ten(run.settings)
    about = f"Llama 3 8B, {ITERATIONS} iterations simulated"
    yield at_least(
        "share",
        "simulated",
        about,
        run.card.printed["share"],
        100 * share_above(windows, 1.0),
        "Printed as more than 75 %. It rests on the host's launch time: without it the shortest windows are below 1 ms.",
        unit="%",
    )
    recorded = [one.length_ms for one in WINDOWS]
    yield at_least(
        "share",
        "recorded",
        "the authors' published recording, one iteration",
        run.card.printed["share"],
        100 * share_above(recorded, 1.0),
        "Fourteen windows of a later version of their system, with a batch of 24.",
        unit="%",
    )
    means: dict[str, float] = {}
    for operation, name in NAMES.items():
        lengths = [max(0.0, one.length_ms) for one in windows if one.operation == operation]
        if not lengths:
            continue
        means[operation] = float(np.mean(lengths))
        if operation == "reduce_scatter":
            yield printed(
                "before",
                name,
                about,
                run.card.printed["before"],
                means[operation],
                "A pass of two seconds lies before it here, as in the published recording (1,962 and 2,222 ms); "
                "1,000 ms in the mean would need short windows of the same class.",
                unit="ms",
            )
        else:
            yield unprinted("before", name, about, means[operation], unit="ms")
    scatter = means.get("reduce_scatter")
    rest = max(value for key, value in means.items() if key != "reduce_scatter")
    if scatter is not None:
        yield directed(
            "before",
            "largest before the largest",
            "reduce-scatter over the next class",
            scatter > rest,
            scatter - rest,
            "“The biggest traffic volume (ReduceScatter) is preceded by the largest window.”",
            unit="ms",
        )
    yield from _bytes(run)
    ascending, shares = cdf(windows)
    for share in (0.25, 0.5, 0.75, 1.0):
        at = int(np.searchsorted(shares, share - 1e-9))
        yield unprinted(
            "curve",
            f"{share:.0%} of windows up to",
            about,
            max(0.0, float(ascending[at])),
            unit="ms",
        )


def _bytes(run: CardRun) -> Iterator[Row]:
    known = {
        (one.parallelism, one.operation): one for one in byte_classes(_preset(run.settings), 0)
    }
    for parallelism, operation in (
        ("fsdp", "reduce_scatter"),
        ("fsdp", "all_gather"),
        ("pp", "send"),
    ):
        one, name = known[parallelism, operation], NAMES[operation]
        yield printed(
            "bytes",
            name,
            "stage 0, MB of 2^20 bytes",
            run.card.printed[f"bytes/{name}"],
            one.counted_bytes / MIB,
            f"{one.calls} {'calls' if one.calls > 1 else 'call'} of a pass; a gather counted by the shard that a rank "
            "gives, a scatter by its input.",
            unit="MiB",
        )
    scalar = known["dp", "all_reduce"].counted_bytes / MIB
    yield directed(
        "bytes",
        NAMES["all_reduce"],
        "printed as below 1 MB",
        scalar < 1,
        scalar,
        "Three numbers: the norm of the gradients, mean and largest loss.",
        unit="MiB",
    )


def said(run: CardRun) -> dict[str, str]:
    means = [row.ours for row in run.of("before") if row.item == NAMES["reduce_scatter"]]
    return {"mean": f"{means[0]:,.0f} ms" if means else "not available (no such window)"}
