"""What an import says of itself: each check passed, warned or failed, with its figure and what it means for the answer."""

import math
from dataclasses import dataclass

from topox_core.text.numbers import first_that_holds
from topox_core.traces.recorded.recorded_run import RunStep
from topox_core.traces.recorded.waits import EXACT, FOUND, NONE, SEEN
from topox_core.traces.run_graph import RunGraph, free, recorded_time, replay_ms

# How it is known what waits for a communication.
HOW = {
    EXACT: "recorded for",
    FOUND: "inferred from order and time for",
    SEEN: "inferred only from an idle stream for",
    NONE: "unknown for",
}
# Below this clocks agree as well as they are written.
AGREE_US = 0.001
PASSED, WARNED, FAILED = "passed", "warned", "failed"


@dataclass(frozen=True)
class Check:
    """One check: ``name``, a word of passed, warned, failed, and a sentence with the figure and what follows from it."""

    name: str
    status: str
    words: str


def checks_of(run: RunStep) -> tuple[Check, ...]:
    """Return all checks of a step, before anything is bundled or made symmetric, the worst first."""
    graph = run.graph
    found = [
        _replay(graph),
        _host(run),
        _waits(run, graph),
        _matched(run),
        _clock(run),
        _bytes(graph),
        _clipped(run),
        _busy(run),
    ]
    order = (FAILED, WARNED, PASSED)
    return tuple(sorted(found, key=lambda one: order.index(one.status)))


def host_ms(run: RunStep) -> float | None:
    """Return the longest host step over ranks; None if the files name none."""
    known = [s.host_us / 1000 for s in run.steps.values() if not math.isnan(s.host_us)]
    return max(known) if known else None


def busy_share(run: RunStep) -> float:
    """Return the share of the step in which a GPU worked on something else than communication, mean over ranks."""
    lanes = run.lanes.values()
    return sum(lane.busy_us for lane in lanes) / (1000 * run.recorded_ms * len(lanes) or 1.0)


def _check(name: str, warn: bool, fail: bool, words: str) -> Check:
    return Check(name, FAILED if fail else WARNED if warn else PASSED, words)


def _replay(graph: RunGraph) -> Check:
    replayed = replay_ms(graph, recorded_time)
    off_ms = abs(replayed - graph.recorded_ms)
    off = off_ms / (graph.recorded_ms or 1.0)
    means = first_that_holds(
        (off > 1e-6, f"so every time here may be off by {off_ms:.3g} ms"),
        (True, "so other speeds are counted from the recorded time"),
    )
    words = f"replayed with its recorded durations, the step takes {replayed:.6g} ms; the recording took {graph.recorded_ms:.6g} ms"
    return _check("replay", off > 1e-6, off > 1e-3, f"{words}, {means}")


def _host(run: RunStep) -> Check:
    host = host_ms(run)
    if not host:
        words = "the files hold no step of the host to compare with, so nothing else says that the step is whole"
        return Check("host step", WARNED, words)
    share, missing = run.recorded_ms / host, host - run.recorded_ms
    means = first_that_holds(
        (
            share > 1.25,
            "so the host runs ahead, and the length of the step rests on the GPUs' times alone",
        ),
        (
            share < 0.8,
            f"so up to {missing:.3g} ms of the iteration may be missing from every time here",
        ),
        (True, "so the step is one whole iteration"),
    )
    words = f"the GPUs' step takes {run.recorded_ms:.6g} ms, the host's step {host:.6g} ms"
    return _check("host step", not 0.8 <= share <= 1.25, False, f"{words}, {means}")


def _waits(run: RunStep, graph: RunGraph) -> Check:
    counts = run.evidence()
    total = counts.total()
    sure = total - counts[SEEN] - counts[NONE]
    listed = ", ".join(f"{how} {counts[word]:,}" for word, how in HOW.items() if counts[word])
    words = f"what waits for each of {total:,} communications: {listed or 'nothing to infer'}"
    # What the network could account for more if work waited for the calls of which that is unknown.
    missed_ms = sum(n.duration_ms - free(n) for n in graph.calls if n.evidence == NONE)
    means = [
        f"{ms:.3g} ms too {way}"
        for ms, way in ((_wrongly_counted_ms(graph), "high"), (missed_ms, "low"))
        if ms > 0
    ]
    share = f"may be up to {' or '.join(means)}" if means else "rests on no idle stream"
    return _check("waits", sure < 0.8 * total, False, f"{words}, so the network's share {share}")


def _wrongly_counted_ms(graph: RunGraph) -> float:
    """Return what the network would account for less if nothing waited for calls that only an idle stream tells of."""
    seen_ms = replay_ms(
        graph, lambda node: node.duration_ms if node.evidence == SEEN else free(node)
    )
    return seen_ms - replay_ms(graph, free)


def _matched(run: RunStep) -> Check:
    lost, parts = len(run.matched.unmatched), run.matched.parts
    words = f"{parts - lost:,} of {parts:,} communication kernels are matched with those of the other ranks"
    means = first_that_holds(
        (lost, "so the others are left out, and the network's share may be too low"),
        (True, "so no communication is missing"),
    )
    return _check("matching", lost > 0, lost > 0.01 * parts, f"{words}, {means}")


def _clock(run: RunStep) -> Check:
    if len(run.steps) == 1:
        means = first_that_holds(
            (run.graph.world == 1, ""),
            (
                True,
                ": its waiting for the other ranks counts as transfer, so the network's share may be too high",
            ),
        )
        return Check("clocks", PASSED, f"one rank, one clock{means}")
    largest, median = run.clocks.largest_us, run.clocks.residual_us
    words = f"the ranks end a call at most {largest:.3g} us apart"
    words += f", {median:.3g} us at the median" * (median >= AGREE_US)
    means = first_that_holds(
        (
            largest > 1_000,
            "so times of a single call are not reliable, and the step may be off by as much",
        ),
        (largest > 100, "so a call's transfer, and the step, may be off by as much"),
        (True, "so waiting is told from transfer"),
    )
    return _check("clocks", largest > 100, largest > 100 * run.recorded_ms, f"{words}, {means}")


def _bytes(graph: RunGraph) -> Check:
    calls = [node for node in graph.calls if node.kind != "barrier"]
    unknown = sum(node.size_bytes is None for node in calls)
    assumed = sum(node.size_from == "speed" for node in calls)
    words = first_that_holds(
        (
            unknown,
            f"sizes of {unknown:,} of {len(calls):,} calls are unknown, so no other speed can be computed; "
            "the network's share holds",
        ),
        (
            assumed,
            f"sizes of {assumed:,} of {len(calls):,} calls are computed from an assumed speed, so times at other "
            "speeds are as uncertain as it is; the network's share holds",
        ),
        (
            True,
            f"sizes of all {len(calls):,} calls are known, so other speeds are computed from bytes",
        ),
    )
    return _check("bytes", assumed > 0, unknown > 0, words)


def _clipped(run: RunStep) -> Check:
    clipped = run.clipped_ms
    words = first_that_holds(
        (
            clipped,
            f"negative segments were set to zero: {clipped:.3g} ms in all, so the network's share may be as much too low",
        ),
        (
            True,
            "no segment had to be shortened below zero, so waits and recorded times agree",
        ),
    )
    return _check("clipped", clipped > 0.01 * run.recorded_ms, False, words)


def _busy(run: RunStep) -> Check:
    share, without_ms = busy_share(run), replay_ms(run.graph, free) or 1.0
    of_replay = share * run.recorded_ms / without_ms
    means = first_that_holds(
        (share >= 0.5, ", so computing sets most of its length"),
        (of_replay <= 0.5, ": it waits for the host, and a faster network can save little"),
        (
            True,
            f", and for {100 * of_replay:.3g} % of the replay without a network, so most of its idle time is the network's",
        ),
    )
    words = f"the GPU is busy for {100 * share:.3g} % of the step{means}"
    return _check("busy", share < 0.5, False, words)
