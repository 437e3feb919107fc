"""Which communication a wait belongs to, on one rank: the rule on which every prediction rests.

A wait names a stream at best, and often nothing. What it is evidence of is found in this order: a
recorded wait of streams, a wait with the number of its call, a stream that is told to wait, and a
stream that is idle until a call ends.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from topox_core.model.arrays.groups import by_key
from topox_core.traces.communication import RECEIVE, SEND
from topox_core.traces.recorded.recording import (
    ExactWait,
    Floats,
    Scope,
    launch_us,
    launching,
    waits_told,
)
from topox_core.traces.recorded.steps import StepOfRank

# In us: what counts as the same moment, how late a stalled activity begins, what is an idle gap.
SAME, STALLED, GAP = 1.0, 50.0, 2.0
NEXT_ACTIVITIES = 3
MAX_OPEN = 2_000
EXACT, FOUND, SEEN, NONE = "exact", "found", "seen", "none"
STRENGTH = (EXACT, FOUND, SEEN, NONE)  # the surest first


class Waits:
    """Of each communication of a rank's step (by position): what waits for it.

    Attributes
    ----------
    resume
        Position on the lane of the first activity after the wait; the lane's length if only the end
        of the step waits; None if nothing waits.
    asked_us
        When the host asked for the wait.
    evidence
        ``exact``, ``found``, ``seen`` or ``none`` for each.
    """

    def __init__(self, step: StepOfRank) -> None:
        self._step, self._entries, work = step, step.entries, step.lane
        count = len(self._entries)
        self.resume: list[int | None] = [None] * count
        self.asked_us, self.evidence = [np.nan] * count, [NONE] * count
        self._start, self._reached = work.start_us, np.maximum.accumulate(work.end_us)
        self._asked = launch = np.where(np.isnan(work.launch_us), work.start_us, work.launch_us)
        # Of each stream, the busiest first, its launches in order and the activities that they started.
        self._streams: dict[int, tuple[Floats, list[int]]] = {}
        streams, counts = np.unique(work.stream, return_counts=True)
        for at in np.argsort(-counts, kind="stable").tolist():
            on = np.flatnonzero(work.stream == streams[at])
            order = on[np.lexsort((work.start_us[on], launch[on]))]
            self._streams[int(streams[at])] = (launch[order], order.tolist())
        self._launch = [launch_us(one) for one in self._entries]
        self._end = [one.end_us for one in self._entries]
        self._sends = [all(p.kind in (SEND, RECEIVE) for p in one.parts) for one in self._entries]
        self._unwaited = list(range(count))  # in order of launch
        self._on_stream = by_key((one.stream, c) for c, one in enumerate(self._entries))
        if len(work):
            self._find(min(*launch.tolist(), *self._launch, np.inf))

    def _find(self, since_us: float) -> None:
        """Go through the evidence in the order in which the host gave it, then look at what stands still."""
        recording = self._step.recording
        exact = {one.correlation for one in recording.exact_waits}
        inside = launching(recording)
        told = [one for one in waits_told(recording) if "Seq" in one.args]
        named = {(one.thread, one.begin_us): one.end_us for one in told}
        named |= {(one.thread, one.begin_us): one.end_us for one, _ in self._step.told}
        begins = sorted(named)
        pieces: list[tuple[float, int, Callable[[], None]]] = [
            (one.at_us, 0, partial(self._exact, one)) for one in recording.exact_waits
        ]
        pieces += [(one.begin_us, 1, partial(self._numbered, one)) for one in told]
        pieces += [(s.begin_us, 1, partial(self._told, s.begin_us, c)) for s, c in self._step.told]
        for at_us, thread, correlation in recording.stream_waits:
            at = bisect_right(begins, (thread, at_us)) - 1
            in_named = at >= 0 and begins[at][0] == thread and at_us <= named[begins[at]]
            if not (correlation in exact or in_named or inside.around(thread, at_us)):
                pieces.append((at_us, 2, partial(self._stream_wait, at_us)))
        for at_us, _, use in sorted(pieces, key=lambda piece: piece[:2]):
            if at_us >= since_us:
                use()
        for c in list(self._unwaited):
            self._seen(c)

    def _give(self, c: int, k: int | None, at: float, evidence: str) -> None:
        self.resume[c] = len(self._start) if k is None else k
        self.asked_us[c], self.evidence[c] = at, evidence
        del self._unwaited[bisect_left(self._unwaited, c)]

    def _open(self, before: float) -> list[int]:
        """Return the calls launched before a moment that nothing waits for yet."""
        launched = bisect_left(self._launch, before)
        # What thousands of calls were launched after is waited for by nobody.
        until = bisect_left(self._unwaited, launched)
        return self._unwaited[max(0, until - MAX_OPEN) : until]

    def _exact(self, wait: ExactWait) -> None:
        """Rule 1: the last call on the stream before the event was recorded."""
        if wait.stream not in self._streams:
            return
        before = wait.recorded_us if wait.recorded_us == wait.recorded_us else wait.at_us
        calls = self._on_stream.get(wait.waits_for, [])
        at = bisect_left(calls, before, key=lambda c: self._launch[c]) - 1
        if at >= 0 and self.resume[calls[at]] is None:
            k = _first_after(wait.at_us, *self._streams[wait.stream])
            self._give(calls[at], k, wait.at_us, EXACT)

    def _numbered(self, scope: Scope) -> None:
        """Rule 2: the call with the wait's number, of its group if that is told."""
        group, number = scope.args.get("Process Group Name"), scope.args.get("Seq")
        at = scope.begin_us
        found = [
            c
            for c in self._open(at)
            if any(
                part.sequence == number and (not group or part.group == str(group))
                for part in self._entries[c].parts
            )
        ]
        if len(found) == 1:
            self._give(found[0], self._first(at), at, EXACT)
        else:  # a number that several groups have counted to
            self._stream_wait(at, found)

    def _told(self, at: float, c: int) -> None:
        """Rule 2, from a host trace: the call is named."""
        if self.resume[c] is None and self._launch[c] < at:
            self._give(c, self._first(at), at, EXACT)

    def _first(self, at: float) -> int | None:
        """Return the first activity that the busiest stream was asked for after a moment."""
        return _first_after(at, *next(iter(self._streams.values())))

    def _idle_since(self, k: int) -> float:
        """Return when the lane was last busy before one of its activities."""
        return float(self._reached[k - 1]) if k else -np.inf

    def _stream_wait(self, at: float, among: Sequence[int] = ()) -> None:
        """Rule 3: of the calls that had ended when the stream went on, the one that held it up, else the oldest."""
        k = self._first(at)
        if k is None:
            return
        found = [c for c in among or self._open(at) if self._end[c] <= self._start[k] + SAME]
        found = [c for c in found if not self._sends[c]] or found
        stalled = [
            c
            for c in found
            if self._end[c] > self._idle_since(k) + SAME
            and self._start[k] - self._end[c] <= STALLED
        ]
        if found:
            chosen = max(stalled, key=lambda c: self._end[c], default=found[0])
            self._give(chosen, k, at, FOUND)

    def _seen(self, c: int) -> None:
        """Rule 4: an activity that begins after an idle gap, as soon as the call has ended."""
        end = self._end[c]
        first = int(np.searchsorted(self._start, end - SAME))
        for k in range(first, min(first + NEXT_ACTIVITIES, len(self._start))):
            idle, start = max(self._idle_since(k), self._step.begin_us), self._start[k]
            # It stood still when the call ended: the gap is no launch that came late.
            if start - idle > GAP and idle <= end and start - end <= STALLED:
                self._give(c, k, float(self._asked[k]), SEEN)
                return


def _first_after(at_us: float, launches: Floats, order: list[int]) -> int | None:
    """Return the first activity of a stream that was asked for after a moment."""
    k = int(np.searchsorted(launches, at_us, side="right"))
    return order[k] if k < len(order) else None
