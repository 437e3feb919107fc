"""Algorithm 1: from all jobs in one group, change the group of the one job that helps most, until none helps.

Only the pod group of a changed job has to be worked out again; the other pod groups enter a round
by two maxima.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topox_core.runs.stopping import Stop
from topox_core.tdm.bounds.floor import ANY_ROUND, floor_of
from topox_core.tdm.kernels.subsets import NOBODY_FLIPS
from topox_core.tdm.model.jobs import Jobs
from topox_core.tdm.model.round import (
    PULL,
    PUSH,
    OnMoment,
    Round,
    RoundTracePoint,
    StoppedBy,
    TdmSettings,
)
from topox_core.tdm.model.rounds import after_push_s, round_of
from topox_core.tdm.model.stage_table import StageTable

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
# Two sums of the same times in another order are no improvement.
TIE = 1e-12
# Jobs times pairs of pods times flips of one compiled call: it cannot be stopped, and takes some
# tenths of a second.
_CALL = 16_000_000


@dataclass(frozen=True)
class Climb:
    """Where a climb ended: each job's group, its round (infinite if stopped before it was measured), and why it stopped."""

    group: tuple[int, ...]
    round_s: float
    steps: int
    stopped_by: StoppedBy


class _Flips:
    """What every single flip would lead to; after a flip only its pod group is worked out again."""

    def __init__(self, table: StageTable, start: Sequence[int], all_train: bool) -> None:
        jobs = table.jobs
        self.table = table
        self.all_train = all_train
        self.in_second = np.array(start, np.int64) == 1
        self.home = np.array([job.pod_group for job in jobs.jobs], np.int64)
        self.computing = np.array(
            [
                [after_push_s(job, table.reading) for job in jobs.jobs],
                [job.train_s for job in jobs.jobs],
            ]
        )
        self.delay_s = jobs.network.reconfiguration_ms / 1000.0
        # Of each pod group as it is, and of the own pod group of each job after its flip.
        self.now_s = np.zeros((len(table.members), 2))
        self.now_change = np.zeros((len(table.members), 2), np.bool_)
        self.then_s = np.full((len(jobs), 2), np.inf)
        self.then_change = np.zeros((len(jobs), 2), np.bool_)

    def work_out(self, pod_group: int, stop: Stop) -> bool:
        """Evaluate a pod group and all flips of its jobs; return False if stopped on the way."""
        members = np.array(self.table.members[pod_group], np.int64)
        if not len(members):
            return True
        here = self.in_second[members]
        piece = max(1, _CALL // (len(members) * self.table.jobs.network.pods_per_group**2))
        # The grouping as it is comes with the first piece.
        candidates = np.concatenate([[NOBODY_FLIPS], np.arange(len(members))])
        for first in range(0, len(candidates), piece):
            if stop():
                return False
            part = candidates[first : first + piece]
            seconds, change = self.table.flips(pod_group, here, part)
            if first == 0:
                self.now_s[pod_group], self.now_change[pod_group] = seconds[0], change[0]
                part, seconds, change = part[1:], seconds[1:], change[1:]
            self.then_s[members[part]], self.then_change[members[part]] = seconds, change
        return True

    def _computing(self) -> Floats:
        """Return the longest computing ``[way, group, row]``: first as it is, then after each flip."""
        n = len(self.in_second)
        longest = np.zeros((2, 2, n + 1))
        for way in (PUSH, PULL):
            seconds = self.computing[way]
            for k, inside in ((0, ~self.in_second), (1, self.in_second)):
                first, second, at = _two_largest(np.where(inside, seconds, 0.0))
                longest[way, k, 0] = first
                stays = np.full(n, first)
                if at >= 0:
                    stays[at] = second
                longest[way, k, 1:] = np.where(inside, stays, np.maximum(first, seconds))
        return longest

    def rounds_s(self) -> Floats:
        """Return the round as it is, and after each flip."""
        communication = np.empty((2, len(self.in_second) + 1))
        change = np.empty((2, len(self.in_second) + 1), np.bool_)
        for k in (0, 1):
            first, second, at = _two_largest(self.now_s[:, k])
            elsewhere = np.where(self.home == at, second, first)
            communication[k] = np.concatenate([[first], np.maximum(elsewhere, self.then_s[:, k])])
            count = int(self.now_change[:, k].sum())
            others = count - self.now_change[self.home, k] > 0
            change[k] = np.concatenate([[count > 0], others | self.then_change[:, k]])
        dark = np.where(change, self.delay_s, 0.0)
        return _round_s(
            communication, self._computing(), dark, self.all_train, self.table.reading.delay_inside
        )


def _two_largest(values: Floats) -> tuple[float, float, int]:
    at = int(values.argmax())
    rest = np.delete(values, at)
    return float(values[at]), float(rest.max(initial=0.0)), at


def _round_s(
    talk: Floats, computing: Floats, dark: Floats, all_train: bool, delay_inside: bool
) -> Floats:
    """Return the rounds of many groupings at once, as :func:`topox_core.tdm.model.rounds.phases_of` adds them up."""
    inside, outside = (dark, np.zeros_like(dark)) if delay_inside else (np.zeros_like(dark), dark)
    busy = talk + inside
    if all_train:
        halves = [np.maximum(busy.sum(0), (busy + computing[way]).max(0)) for way in (PUSH, PULL)]
        both: Floats = halves[0] + halves[1] + 2.0 * outside.sum(0)
        return both
    total: Floats = 2.0 * outside.sum(0)
    for way in (PUSH, PULL):
        total = (
            total
            + np.maximum(busy[0], computing[1 - way, 1])
            + np.maximum(busy[1], computing[way, 0])
        )
    return total


def climb(
    table: StageTable,
    start: Sequence[int],
    stop: Stop,
    on_step: OnMoment | None = None,
    *,
    all_train: bool = False,
    floor_s: float = 0.0,
    source: str = "hill climbing",
) -> Climb:
    """Climb from a grouping into two groups, by the best single flip (the lowest index among equals) while it helps.

    Parameters
    ----------
    stop
        Asked between pieces of work; the grouping reached so far is kept.
    on_step
        Told of the start and of every flip.
    all_train
        Measure rounds with all-train phases instead of the drafts' four.
    floor_s
        The bound that moments carry.
    """
    began = time.perf_counter()
    flips = _Flips(table, start, all_train)
    steps, best = 0, float("inf")
    dirty = list(range(len(table.members)))
    while all(flips.work_out(g, stop) for g in dirty):
        rounds = flips.rounds_s()
        best = float(rounds[0])
        if on_step is not None:
            on_step(RoundTracePoint(time.perf_counter() - began, steps, best, floor_s, source))
        least = float(rounds[1:].min())
        if not least < best * (1.0 - TIE):
            return Climb(_group(flips), best, steps, "heuristic")
        n = int(np.argmax(rounds[1:] <= least * (1.0 + TIE)))
        flips.in_second[n] = not flips.in_second[n]
        best, steps = least, steps + 1
        dirty = [int(flips.home[n])]
    return Climb(_group(flips), best, steps, "cancelled")


def _group(flips: _Flips) -> tuple[int, ...]:
    return tuple(int(second) for second in flips.in_second)


def hill_climb(jobs: Jobs, settings: TdmSettings, stop: Stop, on_moment: OnMoment) -> Round:
    """Return the round of Algorithm 1 with its loop corrected; never longer than without time division.

    Raises
    ------
    InputError
        If ports are too few for the pairs that must talk.
    """
    began = time.perf_counter()
    table = StageTable(jobs, settings.reading)
    floor = floor_of(table)
    story: list[RoundTracePoint] = []

    def note(moment: RoundTracePoint) -> None:
        story.append(moment)
        on_moment(moment)

    out_of_time = until(began, settings.time_limit_s)
    found = climb(
        table, (0,) * len(jobs), lambda: stop() or out_of_time(), note, floor_s=floor.seconds
    )
    stopped_by: StoppedBy = (
        found.stopped_by if found.stopped_by == "heuristic" or stop() else "time_limit"
    )
    message = (
        ""
        if story
        else "Stopped before the first flips were measured: this is the round without time division."
    )
    return round_of(
        table,
        found.group,
        algorithm="hill-climbing",
        stopped_by=stopped_by,
        message=message,
        bound_s=floor.seconds,
        bound_by=floor.by,
        bound_for=ANY_ROUND,
        wall_s=time.perf_counter() - began,
        seed=settings.seed,
        story=story,
    )


def until(began: float, limit_s: float) -> Stop:
    """Return a stop that is true once ``limit_s`` have passed since ``began`` (``time.perf_counter``)."""
    return lambda: time.perf_counter() - began >= limit_s
