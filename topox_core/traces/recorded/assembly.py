"""Segments and calls of all ranks put together: what waits for what, and how long each lasts."""

import itertools
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from topox_core.io.limits import MAX_RUN_DEPENDENCIES, check_count
from topox_core.model.arrays.groups import by_key
from topox_core.model.arrays.intervals import covered_ms
from topox_core.traces.recorded.matching import Clocks
from topox_core.traces.recorded.recording import launch_us
from topox_core.traces.recorded.steps import StepOfRank
from topox_core.traces.recorded.waits import SAME, STRENGTH, Waits
from topox_core.traces.run_graph import Node, RunGraph

# After which activity of the lane, and when.
Cut = tuple[int, float]
# So many calls that were waited for last are looked at before one is posted.
MAX_WAITED = 64


@dataclass(frozen=True)
class CutLane:
    """A rank's lane.

    Attributes
    ----------
    pieces
        The lane between two cuts: when it ends, how long it works (us of the file's clock), its kind.
    posted_after
        For each entry the piece at whose end it was posted; -1 if before all.
    resumed_by
        For each entry the piece that waits for it; None if none does.
    earlier
        For each entry the one before it on its stream, and those that the rank had waited for before it
        posted this one, with no work in between.
    busy_us, overlap_us
        Time in which the GPU worked, and what several streams worked at once beyond it.
    """

    pieces: tuple[tuple[float, float, str], ...]
    posted_after: tuple[int, ...]
    resumed_by: tuple[int | None, ...]
    earlier: tuple[tuple[int, ...], ...]
    busy_us: float
    overlap_us: float


def cut_lane(step: StepOfRank, waits: Waits) -> CutLane:
    """Return a rank's lane between the cuts that its communications make."""
    lane = step.lane
    n = len(lane)
    begin = step.begin_us
    end = np.maximum(np.maximum.accumulate(lane.end_us), begin) if n else np.zeros(0)
    launch = np.where(np.isnan(lane.launch_us), lane.start_us, lane.launch_us)

    def end_of(i: int) -> float:
        return float(end[i]) if i >= 0 else begin

    by_launch = np.argsort(launch, kind="stable")
    launched = launch[by_launch]
    reached = np.maximum.accumulate(by_launch) if n else by_launch
    posts: list[Cut] = []
    latest: dict[int, float] = {}
    for kernel in step.entries:
        asked = launch_us(kernel)
        i = int(np.searchsorted(lane.start_us, kernel.start_us, side="right")) - 1
        before = int(np.searchsorted(launched, asked))
        i = min(i, int(reached[before - 1]) if before else -1)
        while i >= 0 and not (launch[i] < asked and lane.end_us[i] <= kernel.start_us + SAME):
            i -= 1
        following = float(lane.start_us[i + 1]) if i + 1 < n else kernel.start_us
        t = max(end_of(i), min(asked, kernel.start_us, following))
        posts.append((i, t))
        latest[i] = max(latest.get(i, t), t)
    resumes: list[Cut | None] = [
        None if k is None or k >= n else (k - 1, latest.get(k - 1, end_of(k - 1)))
        for k in waits.resume
    ]
    first, last = (-1, begin), (n - 1, end_of(n - 1))
    inner = {*posts, *(cut for cut in resumes if cut is not None)}
    cuts = sorted({first, max(last, *inner) if inner else last, *inner})
    place = {cut: number for number, cut in enumerate(cuts)}
    posted = [place[cut] - 1 for cut in posts]
    busy = _union(lane.start_us, lane.end_us, begin)
    pieces = []
    for (i, _), (j, until) in itertools.pairwise(cuts):
        inside = slice(i + 1, j + 1)
        worked = _union(lane.start_us[inside], lane.end_us[inside], begin)
        pieces.append((until, worked, _kind(step, inside)))
    return CutLane(
        tuple(pieces),
        tuple(posted),
        # A piece that ends where a call is posted cannot wait for it.
        tuple(
            None if cut is None or place[cut] <= after else place[cut]
            for cut, after in zip(resumes, posted, strict=True)
        ),
        _earlier(step, waits, posts),
        busy,
        max(0.0, float((lane.end_us - lane.start_us).sum()) - busy),
    )


def _earlier(step: StepOfRank, waits: Waits, posts: list[Cut]) -> tuple[tuple[int, ...], ...]:
    """Return, of each entry, the one before it on its stream, and those waited for before it without work in between."""
    waited = sorted((waits.asked_us[c], k, c) for c, k in enumerate(waits.resume) if k is not None)
    asked = [one[0] for one in waited]
    found: list[tuple[int, ...]] = []
    on_stream: dict[int, int] = {}
    total = 0
    for number, entry in enumerate(step.entries):
        stream, (after, _) = entry.stream, posts[number]
        reach = bisect_right(asked, launch_us(entry))
        latest = waited[max(0, reach - MAX_WAITED) : reach][::-1]
        found.append(
            (
                *([on_stream[stream]] if stream in on_stream else []),
                *(c for _, k, c in latest if k > after and c != number),
            )
        )
        on_stream[stream] = number
        total += len(found[-1])
        check_count(total, MAX_RUN_DEPENDENCIES, "dependencies a run may have", step.recording.file)
    return tuple(found)


def _union(start: np.ndarray, end: np.ndarray, begin: float) -> float:
    """Return how long at least one of some stretches lasts, from ``begin`` on."""
    one = np.zeros(len(start), np.int64)
    return covered_ms(one, np.maximum(start, begin), np.maximum(end, begin))


def _kind(step: StepOfRank, inside: slice) -> str:
    """Return ``update`` or ``backward`` if most of the work was launched there, else ``forward``."""
    lane, recording = step.lane, step.recording
    length = (lane.end_us - lane.start_us)[inside]
    total = float(length.sum())
    launch, thread = lane.launch_us[inside], lane.thread[inside]
    # A first one that holds nothing stands before all others.
    begins, ends = np.array([(-np.inf, -np.inf), *recording.updates]).T
    update = launch <= ends[np.searchsorted(begins, launch, side="right") - 1]
    if float(length[update].sum()) > total / 2:
        return "update"
    backward = np.isin(thread, list(recording.backward))
    return "backward" if float(length[backward].sum()) > total / 2 else "forward"


def assemble(
    steps: Mapping[int, StepOfRank],
    waits: Mapping[int, Waits],
    calls: Sequence[Node],
    clocks: Clocks,
    world: int,
    *,
    drop_host_gaps: bool = False,
) -> tuple[RunGraph, dict[int, CutLane], float]:
    """Return the graph of one step, the ranks' lanes, and in ms what segments were made longer than recorded: none is below zero.

    With every call given its recorded time, the earliest-start replay of the graph has every segment
    and call end where it was recorded.

    Parameters
    ----------
    drop_host_gaps
        A segment lasts only as long as its kernels; else as long as on the clock.
    """
    lanes = {rank: cut_lane(steps[rank], waits[rank]) for rank in sorted(steps)}
    begin = min(step.begin_us - clocks.offset_us[rank] for rank, step in steps.items())
    ended = sorted(
        ((_end_us(call, steps, clocks) - begin, call) for call in calls),
        key=lambda one: (one[0], one[1].places),
    )
    nodes: list[Node] = []
    first_of: dict[int, int] = {}
    for rank, lane in lanes.items():
        first_of[rank] = len(nodes)
        for number, (end_us, kernels_us, kind) in enumerate(lane.pieces):
            nodes.append(
                Node(
                    f"r{rank}.s{number}",
                    kind,
                    [len(nodes) - 1] if number else [],
                    0.0,
                    (rank,),
                    kernels_ms=kernels_us / 1000,
                    end_ms=(end_us - clocks.offset_us[rank] - begin) / 1000,
                )
            )
    # Of each rank's entry, the calls that are its parts.
    of_entry = by_key(
        ((rank, entry), at)
        for at, (_, call) in enumerate(ended, len(nodes))
        for rank, entry, _ in call.places
    )
    names = _group_names(call for _, call in ended)
    for number, (end_us, call) in enumerate(ended):
        node = _call_node(number, call, end_us / 1000, steps, clocks, names, begin)
        before: dict[int, None] = {}
        for rank, entry, _ in call.places:
            lane = lanes[rank]
            if lane.posted_after[entry] >= 0:
                before[first_of[rank] + lane.posted_after[entry]] = None
            for other in lane.earlier[entry]:
                before.update(dict.fromkeys(of_entry.get((rank, other), [])))
        node.waits = [at for at in before if at != len(nodes)]
        told = [waits[rank].evidence[entry] for rank, entry, _ in call.places]
        node.evidence = max(told, key=STRENGTH.index, default="")
        nodes.append(node)
    for (rank, entry), found in of_entry.items():
        piece_number = lanes[rank].resumed_by[entry]
        if piece_number is not None and piece_number < len(lanes[rank].pieces):
            nodes[first_of[rank] + piece_number].waits += found
    clipped = _durations(nodes, drop_host_gaps)
    recorded = max((node.end_ms for node in nodes), default=0.0)
    return RunGraph(nodes, world, tuple(sorted(steps)), recorded), lanes, clipped


def _group_names(calls: Iterable[Node]) -> dict[frozenset[int], str]:
    """Return short names of groups: one name a set of ranks, whatever each process calls it."""
    names: dict[frozenset[int], str] = {}
    used: set[str] = set()
    for call in calls:
        same = frozenset(call.ranks)
        if same in names:
            continue
        words, listed = call.description or "", short_list(sorted(same))
        name = f"{words}.{listed}"[:150] if words else listed
        name = name if name.isprintable() else listed
        while name in used:
            name += "'"
        used.add(name)
        names[same] = name
    return names


def short_list(ranks: Sequence[int]) -> str:
    """Return ranks as part of a name: the first four."""
    return "-".join(map(str, ranks[:4])) + ("-..." if len(ranks) > 4 else "")


def _call_node(
    number: int,
    call: Node,
    end_ms: float,
    steps: Mapping[int, StepOfRank],
    clocks: Clocks,
    names: Mapping[frozenset[int], str],
    begin: float,
) -> Node:
    kernels = [(rank, steps[rank].entries[entry]) for rank, entry, _ in call.places]
    streams = ",".join(
        f"{rank}:{kernel.stream}" for rank, kernel in sorted(kernels, key=lambda p: p[0])
    )
    group = names[frozenset(call.ranks)]
    latest = max(kernel.start_us - clocks.offset_us[rank] for rank, kernel in kernels) - begin
    return replace(
        call,
        id=f"c{number}.{call.kind}",
        group=group,
        description=call.description or call.group,
        stream=f"{group}|{streams}",
        end_ms=end_ms,
        at_ms=min(end_ms, latest / 1000),
        shortest_ms=min(kernel.end_us - kernel.start_us for _, kernel in kernels) / 1000,
        source_name=kernels[0][1].name,
        kernels=tuple(
            (
                rank,
                (kernel.start_us - clocks.offset_us[rank] - begin) / 1000,
                (kernel.end_us - clocks.offset_us[rank] - begin) / 1000,
            )
            for rank, kernel in kernels
        ),
    )


def _end_us(call: Node, steps: Mapping[int, StepOfRank], clocks: Clocks) -> float:
    """Return when a call ended on the common clock: the median over ranks, of parts of batches the first."""
    entries = [(rank, steps[rank].entries[entry]) for rank, entry, _ in call.places]
    ends = [one.end_us - clocks.offset_us[rank] for rank, one in entries]
    single = all(len(one.parts) == 1 for _, one in entries)
    return float(np.median(ends)) if single else min(ends)


def _durations(nodes: list[Node], drop_host_gaps: bool) -> float:
    """Set how long each node lasts; return what segments were clipped, in ms."""
    clipped = 0.0
    for node in nodes:
        lasts = node.end_ms - max((nodes[at].end_ms for at in node.waits), default=0.0)
        if not node.is_call:
            clipped += max(0.0, -lasts)
            if drop_host_gaps:
                lasts = min(lasts, node.kernels_ms)
        node.duration_ms = max(0.0, lasts)
    return clipped
