"""What an import says of itself: each check passed, warned or failed, with the figure it rests on."""

import math
from dataclasses import dataclass

from topox_core.traces.recorded_run import RunStep
from topox_core.traces.run_graph import RunGraph, free, recorded_time, replay_ms
from topox_core.traces.waits import BLOCKING, EXACT, FOUND, NONE, SEEN

# How it is known what waits for a communication.
HOW = {
    EXACT: "recorded for",
    FOUND: "inferred from order and time for",
    BLOCKING: "inferred from a wait of the host for",
    SEEN: "inferred only from an idle stream for",
    NONE: "unknown for",
}
# Below this clocks agree as well as they are written.
AGREE_US = 0.001
PASSED, WARNED, FAILED = "passed", "warned", "failed"


@dataclass(frozen=True)
class Check:
    """One check: ``name``, a word of passed, warned, failed, and a sentence with the figure."""

    name: str
    status: str
    words: str


def checks_of(run: RunStep, graph: RunGraph) -> tuple[Check, ...]:
    """Return all checks of an import, the worst first.

    Parameters
    ----------
    graph
        Of the step before anything was bundled or made symmetric.
    """
    found = [
        _replay(graph),
        _host(run),
        _waits(run),
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
    off = abs(replayed - graph.recorded_ms) / (graph.recorded_ms or 1.0)
    words = f"replayed with its recorded durations, the step takes {replayed:.6g} ms; the recording took {graph.recorded_ms:.6g} ms"
    return _check("replay", off > 1e-6, off > 1e-3, words)


def _host(run: RunStep) -> Check:
    host = host_ms(run)
    if not host:
        return Check("host step", WARNED, "the files hold no step of the host to compare with")
    share = run.recorded_ms / host
    words = f"the GPUs' step takes {run.recorded_ms:.6g} ms, the host's step {host:.6g} ms"
    return _check("host step", not 0.8 <= share <= 1.25, False, words)


def _waits(run: RunStep) -> Check:
    counts = run.evidence()
    total = counts.total()
    sure = total - counts[SEEN] - counts[NONE]
    listed = ", ".join(f"{how} {counts[word]:,}" for word, how in HOW.items() if counts[word])
    words = f"what waits for each of {total:,} communications: {listed or 'nothing to infer'}"
    return _check("waits", sure < 0.8 * total, False, words)


def _matched(run: RunStep) -> Check:
    lost, parts = len(run.matched.unmatched), run.matched.parts
    words = f"{parts - lost:,} of {parts:,} communication kernels are matched with those of the other ranks"
    return _check("matching", lost > 0, lost > 0.01 * parts, words)


def _clock(run: RunStep) -> Check:
    if len(run.steps) == 1:
        return Check("clocks", PASSED, "one rank, one clock")
    largest = run.clocks.largest_us
    median = run.clocks.residual_us
    words = f"the ranks end a call at most {largest:.3g} us apart"
    if median >= AGREE_US:
        words += f", {median:.3g} us at the median"
    if largest > 1_000:
        words += ": times of a single call are not reliable"
    fail = largest > 100 * run.recorded_ms
    return _check("clocks", largest > 100, fail, words)


def _bytes(graph: RunGraph) -> Check:
    calls = [node for node in graph.calls if node.kind != "barrier"]
    unknown = sum(node.size_bytes is None for node in calls)
    assumed = sum(node.size_from == "speed" for node in calls)
    if unknown:
        return Check("bytes", FAILED, f"sizes of {unknown:,} of {len(calls):,} calls are unknown")
    words = f"sizes of all {len(calls):,} calls are known"
    if assumed:
        words = f"sizes of {assumed:,} of {len(calls):,} calls are computed from an assumed speed"
    return _check("bytes", assumed > 0, False, words)


def _clipped(run: RunStep) -> Check:
    clipped = run.clipped_ms
    words = f"negative segments were set to zero: {clipped:.3g} ms in all"
    if not clipped:
        words = "no segment had to be shortened below zero"
    return _check("clipped", clipped > 0.01 * run.recorded_ms, False, words)


def _busy(run: RunStep) -> Check:
    share = busy_share(run)
    words = f"the GPU is busy for {100 * share:.3g} % of the step"
    if share < 0.5:
        without_ms = replay_ms(run.graph, free)
        if share * run.recorded_ms <= 0.5 * without_ms:
            words += ": it waits for the host, and a faster network can save little"
        else:
            words += f", and for {100 * share * run.recorded_ms / without_ms:.3g} % of the replay without a network"
    return _check("busy", share < 0.5, False, words)
