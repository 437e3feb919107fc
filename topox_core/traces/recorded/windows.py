"""The windows of a recorded run, or of one of our traces: idle time of the network between two kinds of traffic.

A communication begins when the last of its ranks is there: its kernel's time before is waiting. Gaps
between kernels of one rank would count that waiting as traffic, and skew between ranks as windows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np

from topox_core.errors import InputError, refuse_if
from topox_core.io.foreign.perfetto import FORMAT
from topox_core.io.limits import check_count, is_number, is_whole
from topox_core.model.arrays.groups import by_key
from topox_core.rails.iteration import Window
from topox_core.rails.windows import windows_of_calls, windows_of_transfers
from topox_core.traces.recorded.event_stream import Event, EventStream
from topox_core.traces.recorded.recorded_run import RunStep
from topox_core.traces.run_graph import label_of
from topox_core.traces.source import Source

# Windows of several ranks whose begins and ends differ by less are one.
SAME_MS = 1e-6
# Of one of our traces.
MAX_SERVERS = 100_000
MAX_TRANSFERS = 2_000_000
# What a transfer's slice tells: whole numbers below so much, and amounts.
_WHOLE = {"task": 1e9, "switch": 1e5, "source": MAX_SERVERS, "destination": MAX_SERVERS}
_AMOUNTS = ("start_ms", "end_ms", "size_bytes")


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
    graph = step.graph
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
    same = by_key(
        ((w.before, w.after, round(w.begin_ms / SAME_MS), round(w.length_ms / SAME_MS)), w)
        for w in windows
    )
    found = [min(ranks, key=attrgetter("rank")) for ranks in same.values()]
    ordered = sorted(found, key=attrgetter("begin_ms", "rank"))
    return tuple(replace(one, begin_ms=max(0.0, one.begin_ms)) for one in ordered)


def windows_of_trace(source: Source) -> tuple[tuple[Window, ...], float]:
    """Return the windows of one of our traces, and how long its iteration takes (ms).

    Raises
    ------
    InputError
        If the file is none of ours, or a value in it is wrong.
    """
    stream = EventStream(source)
    rows: dict[tuple[object, ...], tuple[Any, ...]] = {}
    for events in stream:
        for event in events:
            row = _row(event, source.name)
            if row is not None:
                rows.setdefault((str(event.get("name")), *row[:4]), row)
        check_count(len(rows), MAX_TRANSFERS, "transfers a trace may have", source.name)
    other = stream.header.get("otherData")
    other = other if isinstance(other, dict) else {}
    refuse_if(
        (
            other.get("format") != FORMAT,
            "is no trace of ours (otherData has no format topox-trace)",
        ),
        (not rows, "has no transfer"),
        file=source.name,
    )
    columns = list(zip(*rows.values(), strict=True))
    ends = np.array(columns[5], np.float64)
    makespan = other.get("makespan_ms")
    lasts_ms = makespan if is_number(makespan, 0.0, 1e15) else ends.max()
    windows = windows_of_transfers(
        np.array(columns[0], np.int64),
        np.array(columns[1], np.int64),
        np.array(columns[2:4], np.int32),
        np.array(columns[4], np.float64),
        ends,
        np.array(columns[6], np.float64),
        columns[7],
        columns[8],
    )
    return windows, float(lasts_ms)


def _row(event: Event, file: str) -> tuple[Any, ...] | None:
    """Return task, rail, source, destination, start, end, bytes, label and kind of a transfer's slice."""
    args = event.get("args")
    carries = event.get("ph") == "X" and event.get("cat") != "reconfiguring"
    if not (carries and isinstance(args, dict) and "destination" in args):
        return None
    if event.get("pid") != args.get("source"):
        return None  # the same on its switch
    item = f"transfer {str(event.get('name', ''))[:60]!r}"
    given = {key: value for key, value in args.items() if value is not None}
    told = {"switch": 0, "size_bytes": 0.0, **given}
    wrong = [key for key, most in _WHOLE.items() if not is_whole(told.get(key), 0, most - 1)]
    wrong += [key for key in _AMOUNTS if not is_number(told.get(key), 0.0, 1e18)]
    if wrong:
        problem = f"must be a {'whole ' * (wrong[0] in _WHOLE)}number from 0"
        raise InputError(problem, file=file, item=item, field=wrong[0])
    kind = str(args.get("kind") or "transfer")[:80]
    label = str(args.get("parallelism") or kind)[:80]
    return (*map(told.get, _WHOLE), *(float(told[key]) for key in _AMOUNTS), label, kind)
