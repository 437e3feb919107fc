"""The windows of a recorded run: idle time of the network between one kind of traffic and the next.

A communication begins when the last of its ranks is there: its kernel's time before is waiting. Gaps
between kernels of one rank would count that waiting as traffic, and skew between ranks as windows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from topox_core.rails.iteration import Window
from topox_core.rails.windows import windows_of_calls
from topox_core.traces.recorded_run import RunStep
from topox_core.traces.run_graph import label_of

# Windows of several ranks whose begins and ends differ by less are one.
SAME_MS = 1e-6


@dataclass(frozen=True)
class RecordedWindows:
    """The windows of one step.

    Attributes
    ----------
    windows
        Each once, for the lowest rank that has it.
    by_rank
        How many there are rank by rank.
    naive
        The windows that gaps between each rank's own kernels would give.
    """

    step: int
    iteration_ms: float
    windows: tuple[Window, ...]
    by_rank: int
    naive: tuple[Window, ...]


def windows_of_step(step: RunStep, labels: Mapping[str, str]) -> RecordedWindows:
    """Return the windows of a step of a recorded run.

    Parameters
    ----------
    labels
        Parallelism by name or description of a group.
    """
    graph = step.assembled.graph
    present = set(graph.present)
    calls, naive = [], []
    for node in graph.calls:
        if node.kind == "barrier":
            continue
        label = label_of(node, labels) or ("all_to_all" if node.kind == "unknown" else node.kind)
        size = node.size_bytes or 0.0
        calls += [
            (rank, label, node.kind, node.at_ms, node.end_ms, size)
            for rank in node.ranks
            if rank in present
        ]
        naive += [(rank, label, node.kind, begin, end, size) for rank, begin, end in node.kernels]
    everyone = windows_of_calls(calls)
    return RecordedWindows(
        step.number,
        graph.recorded_ms,
        _once(everyone),
        len(everyone),
        windows_of_calls(naive),
    )


def _once(windows: tuple[Window, ...]) -> tuple[Window, ...]:
    """Return each window once, though several ranks have it, in order of begin."""
    found: dict[tuple[object, ...], Window] = {}
    for one in windows:
        key = (
            one.before,
            one.after,
            round(one.begin_ms / SAME_MS),
            round(one.length_ms / SAME_MS),
        )
        if key not in found or one.rank < found[key].rank:
            found[key] = one
    ordered = sorted(found.values(), key=lambda one: (one.begin_ms, one.rank))
    return tuple(replace(one, begin_ms=max(0.0, one.begin_ms)) for one in ordered)
