"""Algorithm 1: from all jobs in one group, change the group of the one job that helps most, until none helps.

Only the pod group of a changed job has to be worked out again; the other pod groups enter a round
by two maxima. Off the plateaus on which it stops leads simulated annealing.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

import numpy as np
from numpy.typing import NDArray

from topox_core.model.arrays.csr import row_pointer
from topox_core.runs.run import Stop
from topox_core.tdm.kernels.grouping import (
    OrderedJobs,
    Switching,
    anneal,
    stages,
    turns,
)
from topox_core.tdm.model.jobs import PULL, PUSH, Round
from topox_core.tdm.model.rounds import computing_of, round_of
from topox_core.tdm.model.traffic import Floats, StageTable, TooFewPortsError, load_of
from topox_core.tdm.search import Search, shortest

Bools = NDArray[np.bool_]
# Two sums of the same times in another order are no improvement.
TIE = 1e-12
# Jobs times pairs of pods times flips of one compiled call: it cannot be stopped, and takes some
# tenths of a second.
_CALL = 16_000_000
# First and last temperature, as shares of the round at the start.
HOT, COLD = 0.1, 1e-4
# Annealing is asked to stop between pieces of this many steps times jobs.
PIECE = 2_000_000


class _Flips:
    """What every single flip would lead to; after a flip only its pod group is worked out again.

    The last flip is none: of a job in the first pod group that has nothing to send or to compute.
    """

    def __init__(self, table: StageTable, start: Sequence[int]) -> None:
        jobs = table.jobs
        self.table = table
        self.in_second = np.array([*start, 0], np.int64) == 1
        self.home = np.array([*(job.pod_group for job in jobs.jobs), 0], np.int64)
        self.computing = np.pad(computing_of(jobs, table.reading), ((0, 0), (0, 1)))
        self.delay_s = jobs.network.reconfiguration_ms / 1000.0
        # Of each pod group as it is, and of the own pod group of each job after its flip.
        self.now_s = np.zeros((len(table.members), 2))
        self.now_change = np.zeros((len(table.members), 2), np.bool_)
        self.then_s = np.full((len(self.home), 2), np.inf)
        self.then_change = np.zeros((len(self.home), 2), np.bool_)

    def work_out(self, pod_group: int, stop: Stop) -> bool:
        """Evaluate a pod group and all flips of its jobs; return False if stopped on the way."""
        members = np.array(self.table.members[pod_group], np.int64)
        if not len(members):
            return True
        here = self.in_second[members]
        piece = max(1, _CALL // (len(members) * self.table.jobs.network.pods_per_group**2))
        # The grouping as it is, in which nobody (-1) flips, comes with the first piece.
        candidates = np.arange(-1, len(members))
        for first in range(0, len(candidates), piece):
            if stop():
                return False
            part = candidates[first : first + piece]
            second = np.repeat(here[None], len(part), axis=0)
            second[part >= 0, part[part >= 0]] ^= True
            sets = np.concatenate([~second, second])
            both, links = stages(self.table.load(pod_group), self.table.fabric, sets)
            seconds, change = both.reshape(2, -1).T, turns(*np.split(links, 2)).T
            if first == 0:
                self.now_s[pod_group], self.now_change[pod_group] = seconds[0], change[0]
                part, seconds, change = part[1:], seconds[1:], change[1:]
            self.then_s[members[part]], self.then_change[members[part]] = seconds, change
        return True

    def rounds_s(self) -> Floats:
        """Return the round after each flip."""
        self.then_s[-1], self.then_change[-1] = self.now_s[0], self.now_change[0]
        talk, dark = np.zeros((2, 2, len(self.home)))
        longest = np.zeros((2, 2, len(self.home)))  # [way, group, flip]
        for k, inside in enumerate((~self.in_second, self.in_second)):
            talk[k] = np.maximum(_largest_other(self.now_s[:, k])[self.home], self.then_s[:, k])
            others = self.now_change[:, k].sum() - self.now_change[self.home, k] > 0
            dark[k] = np.where(others | self.then_change[:, k], self.delay_s, 0.0)
            for way in (PUSH, PULL):
                seconds = self.computing[way]
                mine = np.where(inside, seconds, 0.0)
                most = np.maximum(mine.max(), seconds)
                longest[way, k] = np.where(inside, _largest_other(mine), most)
        return _round_s(talk, longest, dark, self.table.reading.delay_inside)

    def group(self) -> tuple[int, ...]:
        """Return the group of each job."""
        return tuple(int(second) for second in self.in_second[:-1])


def _largest_other(values: Floats) -> Floats:
    """Return the largest of some times without each of them."""
    at = int(values.argmax())
    without = np.full(len(values), values[at])
    without[at] = np.delete(values, at).max(initial=0.0)
    return without


def _round_s(talk: Floats, computing: Floats, dark: Floats, delay_inside: bool) -> Floats:
    """Return the rounds of many groupings at once, as :func:`topox_core.tdm.model.rounds.phases_of` adds them up."""
    busy = talk + dark if delay_inside else talk
    total: Floats = np.zeros(talk.shape[1]) if delay_inside else 2.0 * dark.sum(0)
    for way in (PUSH, PULL):
        first, second = computing[way, 0], computing[1 - way, 1]
        total = total + np.maximum(busy[0], second) + np.maximum(busy[1], first)
    return total


def climb(
    table: StageTable,
    start: Sequence[int],
    stop: Stop,
    on_step: Callable[[float], None] | None = None,
) -> tuple[tuple[int, ...], bool]:
    """Climb from a grouping into two groups, by the best single flip while it helps (ties: lowest index).

    Parameters
    ----------
    stop
        Stop criterion, asked between pieces of work; the grouping reached so far is kept.
    on_step
        Called with the round of the start and after every flip, in seconds.

    Returns
    -------
    The group of each job, and whether no flip helps any more; False if stopped before.
    """
    climber = _Flips(table, start)
    dirty = list(range(len(table.members)))
    while all(climber.work_out(g, stop) for g in dirty):
        *flipped, now = climber.rounds_s().tolist()
        if on_step is not None:
            on_step(now)
        least = min(flipped)
        if not least < now * (1.0 - TIE):
            return climber.group(), True
        n = next(n for n, round_s in enumerate(flipped) if round_s <= least * (1.0 + TIE))
        climber.in_second[n] = not climber.in_second[n]
        dirty = [int(climber.home[n])]
    return climber.group(), False


def hill_climb(search: Search) -> Round:
    """Return the round of Algorithm 1 with its loop corrected.

    Never longer than without time division.
    """
    note = partial(search.note, source="hill climbing", always=True)
    group, finished = climb(search.table, (0,) * len(search.jobs), search.stop, note)
    message = (
        "Stopped before the first flips were measured: this is the round without time division."
    )
    return search.answer(
        round_of(search.table, group),
        stopped_by="heuristic" if finished else None,
        message="" if search.trace else message,
    )


def start_of(search: Search) -> Round | None:
    """Return the round of Algorithm 1 for a search that goes on from there.

    None if it cannot even start, because ports are too few for all jobs in one stage.
    """
    with suppress(TooFewPortsError):
        group, _ = climb(search.table, (0,) * len(search.jobs), search.stop)
        return search.round(group, source="hill climbing")
    return None


def annealing(search: Search) -> Round:
    """Return the best round of simulated annealing from hill climbing's."""
    best = annealed(search, start_of(search) or search.all_at_once())
    stopped = f"Stopped before all {search.settings.steps:,} steps." if search.stop() else ""
    return search.answer(best, message=stopped)


def annealed(search: Search, best: Round) -> Round:
    """Return the best round of its form by simulated annealing from a round, climbed once more at the end.

    ``settings.steps`` bounds it, so that a seed gives the same round on every machine.
    """
    jobs, settings, form = search.jobs, search.settings, best.form
    if not len(jobs):
        return best
    order = np.array([n for members in search.table.members for n in members], np.int64)
    ordered = OrderedJobs(
        load_of(jobs, order.tolist(), settings.reading),
        row_pointer([len(part) for part in search.table.members], np.int64),
        computing_of(jobs, settings.reading)[:, order],
    )
    switching = Switching((True, True), search.dark_s, settings.reading.delay_inside)
    random = np.random.default_rng(settings.seed)
    second = np.array(best.group, np.int64)[order] == 1
    pieces = max(1, -(-settings.steps * len(jobs) // (len(search.table.members) * PIECE)))
    temperature = HOT * (COLD / HOT) ** np.linspace(0.0, 1.0, pieces + 1)
    for number in range(pieces):
        if search.stop():
            return best
        steps = settings.steps * (number + 1) // pieces - settings.steps * number // pieces
        cooling = float(temperature[number]), float(temperature[number + 1])
        length, second = anneal(
            *(ordered, search.table.fabric, switching, second),
            *(steps, cooling, form.all_train, random),
        )
        if length < best.round_s:
            group = np.zeros(len(jobs), np.int64)
            group[order] = second
            found = search.round(group.tolist(), form, source="annealing")
            best = shortest(best, found) or best
    if not form.all_train:
        climbed, _ = climb(search.table, best.group, search.stop)
        best = shortest(best, search.round(climbed, source="hill climbing at the end")) or best
    return best
