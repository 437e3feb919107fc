"""One rank's lane cut into segments: where calls were posted, and where the lane went on after them."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from topox_core.traces.entries import launch_us
from topox_core.traces.steps import StepOfRank
from topox_core.traces.waits import SAME, Waits

# After which activity of the lane, and when.
Cut = tuple[int, float]


@dataclass(frozen=True)
class Piece:
    """The lane between two cuts; times in us of the file's clock."""

    begin_us: float
    end_us: float
    kernels_us: float
    kind: str


@dataclass(frozen=True)
class CutLane:
    """A rank's lane.

    Attributes
    ----------
    posted_after
        For each entry the piece at whose end it was posted; -1 if before all.
    resumed_by
        For each entry the piece that waits for it; None if none does.
    earlier
        For each entry the entries that the rank had waited for before it posted this one, with no
        work in between.
    busy_us, overlap_us
        Time in which the GPU worked, and what several streams worked at once beyond it.
    """

    pieces: tuple[Piece, ...]
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
    for entry in step.entries:
        kernel = entry.kernel
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
    resumes: list[Cut | None] = []
    for k in waits.resume:
        if k is None or k >= n:
            resumes.append(None)
        else:
            resumes.append((k - 1, latest.get(k - 1, end_of(k - 1))))
    first, last = (-1, begin), (n - 1, end_of(n - 1))
    inner = {*posts, *(cut for cut in resumes if cut is not None)}
    cuts = sorted({first, max(last, *inner) if inner else last, *inner})
    place = {cut: number for number, cut in enumerate(cuts)}
    posted = [place[cut] - 1 for cut in posts]
    busy = _union(lane.start_us, lane.end_us, begin)
    pieces = []
    for (i, at), (j, until) in itertools.pairwise(cuts):
        inside = slice(i + 1, j + 1)
        worked = _union(lane.start_us[inside], lane.end_us[inside], begin)
        pieces.append(Piece(at, until, worked, _kind(step, inside)))
    total = float((lane.end_us - lane.start_us).sum())
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
        max(0.0, total - busy),
    )


def _earlier(step: StepOfRank, waits: Waits, posts: list[Cut]) -> tuple[tuple[int, ...], ...]:
    """Return, of each entry, those waited for before its launch that the lane went on after only later."""
    waited = sorted((waits.asked_us[c], k, c) for c, k in enumerate(waits.resume) if k is not None)
    asked = [one[0] for one in waited]
    found: list[tuple[int, ...]] = []
    for number, entry in enumerate(step.entries):
        after, misses = posts[number][0], 0
        before: list[int] = []
        for at in range(bisect_right(asked, launch_us(entry.kernel)) - 1, -1, -1):
            _, k, c = waited[at]
            if c != number and k > after:
                before.append(c)
            else:
                misses += 1
                if misses > 8:
                    break
        found.append(tuple(before))
    return tuple(found)


def _union(start: np.ndarray, end: np.ndarray, begin: float) -> float:
    """Return how long at least one of some stretches, in order of start, lasts."""
    if not len(start):
        return 0.0
    start = np.maximum(start, begin)
    reach = np.maximum.accumulate(np.maximum(end, begin))
    before = np.concatenate(([begin], reach[:-1]))
    return float(np.maximum(0.0, reach - np.maximum(start, before)).sum())


def _kind(step: StepOfRank, inside: slice) -> str:
    """Return ``update`` or ``backward`` if most of the work was launched there, else ``forward``."""
    lane, recording = step.lane, step.recording
    length = (lane.end_us - lane.start_us)[inside]
    total = float(length.sum())
    if total <= 0:
        return "forward"
    launch, thread = lane.launch_us[inside], lane.thread[inside]
    update = np.zeros(len(length), np.bool_)
    if recording.updates:
        begins = np.array([a for a, _ in recording.updates])
        ends = np.array([b for _, b in recording.updates])
        at = np.searchsorted(begins, launch, side="right") - 1
        update = (at >= 0) & (launch <= ends[np.maximum(at, 0)])
    if float(length[update].sum()) > total / 2:
        return "update"
    backward = np.isin(thread, list(recording.backward))
    return "backward" if float(length[backward].sum()) > total / 2 else "forward"
