"""Rounds that nobody can undercut, whatever the grouping and the rings.

The communication time of a set of jobs is bounded without knowing its rings
(:mod:`topox_core.tdm.kernels.relaxed`). This time only grows with the set, so a search over
divisions can cut off a branch as soon as its part of the jobs is beaten; pod groups are then joined
through the four times that they share (T_A, T_A', T_B, T_B').
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from topox_core.tdm.kernels.relaxed import EITHER, Box, Demand, front, least_round_s, within_reach
from topox_core.tdm.model.jobs import (
    DRAFT,
    SAME,
    Jobs,
    Reading,
    Round,
    RoundBound,
    RoundForm,
    StoppedBy,
    with_bound,
)
from topox_core.tdm.model.rounds import after_push_s
from topox_core.tdm.model.traffic import Floats, Ints, job_seconds

MAX_NODES = 6_000  # of one search over the divisions of a pod group's jobs
REACH_NODES = 2_000  # of one search for a division that keeps to given times
# What a search may overlook, as a share of all jobs' communication, before it leaves jobs out.
SLACKS = (0.0, 2.5e-4, 1e-3)
MAX_OPEN = 20_000  # of one best-first search
MAX_TIMES = 12  # different computing times told apart; others count as the next shorter one
MAX_REFINED = 60  # combinations of computing times that are worked out in full


@dataclass(frozen=True)
class _PodGroup:
    """A pod group's jobs, heaviest first, with what each computes after its push and after its pull."""

    pod_group: int
    members: tuple[int, ...]
    demand: Demand
    after_push: Floats
    after_pull: Floats

    def heaviest(self, count: int) -> Demand:
        whole = self.demand
        return Demand(whole.pair[:count], whole.arc[:count], whole.on[:count], whole.local[:count])


def lower_bound(
    jobs: Jobs, reading: Reading, form: RoundForm = DRAFT, known_s: float = np.inf
) -> RoundBound:
    """Return a time that no round of a form undercuts, over every grouping, every ring and every allocation of links.

    Reconfiguration counts nothing. Infinite where some pod has too few ports for every grouping.

    Parameters
    ----------
    known_s
        A round of the form that is known: the bound is at most that, and found sooner.
    """
    round_s, by = 0.0, "no jobs"
    if len(jobs):
        pod_groups = [
            _pod_group(jobs, reading, g) for g in sorted({job.pod_group for job in jobs.jobs})
        ]
        if form.per_pod_group or form.groups != 2:
            round_s, by = _apart(jobs, pod_groups, form)
        else:
            fronts = _Fronts(pod_groups, jobs.network.ports_per_pod, known_s)
            round_s, by = _together(jobs, fronts, form.windows)
    return RoundBound(round_s, by, f"{form.words}, any rings", any_rings=True)


def bounded(answer: Round) -> Round:
    """Return a round with the bound over every grouping and every ring, unless it has a higher one of that sort.

    A bound for given rings only says less and gives way. Where the bound meets the round, that is a
    proof, and what the message had to say about how the search ended no longer matters.
    """
    # With one pod group, its own barrier is the one barrier.
    form = replace(answer.form, per_pod_group=len(answer.cycles) > 1)
    bound = lower_bound(answer.jobs, answer.reading, form, answer.round_s)
    if answer.bound.any_rings and answer.bound_s >= bound.round_s:
        return answer
    stopped_by: StoppedBy = "heuristic" if answer.stopped_by == "proof" else answer.stopped_by
    answer = with_bound(answer, bound, stopped_by)
    return replace(answer, message="") if answer.status == "optimal" else answer


def _pod_group(jobs: Jobs, reading: Reading, pod_group: int) -> _PodGroup:
    network, members = jobs.network, jobs.of_group(pod_group)
    pods = network.pods_per_group
    pair, arc = np.zeros((len(members), pods, pods)), np.zeros(len(members))
    on, local = np.zeros((len(members), pods), np.bool_), np.zeros((len(members), pods))
    for row, n in enumerate(members):
        job = jobs.jobs[n]
        pair[row], arc[row], local[row] = job_seconds(job, network, reading)
        on[row, list(job.pods)] = arc[row] > 0
    order = np.argsort(-(pair.sum(1) + pair.sum(2) + 2 * arc[:, None] * on).max(1), kind="stable")
    push = np.array([after_push_s(jobs.jobs[n], reading) for n in members])
    pull = np.array([jobs.jobs[n].train_s for n in members])
    return _PodGroup(
        pod_group,
        tuple(members[n] for n in order),
        Demand(pair[order], arc[order], on[order], local[order]),
        push[order],
        pull[order],
    )


# -- one barrier for each pod group ----------------------------------------------------------------------


def _apart(jobs: Jobs, pod_groups: Sequence[_PodGroup], form: RoundForm) -> tuple[float, str]:
    """Return the longest of the pod groups' own bounds with what sets it.

    With one barrier for all it still is a bound.
    """
    least = [
        least_round_s(
            one.demand,
            one.after_push,
            one.after_pull,
            jobs.network.ports_per_pod,
            form.groups,
            form.windows,
            MAX_OPEN,
        )
        for one in pod_groups
    ]
    worst = int(np.argmax(least))
    if least[worst] == np.inf:
        return np.inf, _no_ports(jobs, pod_groups[worst])
    return float(
        least[worst]
    ), f"the jobs of pod group {pod_groups[worst].pod_group}, in any grouping"


# -- one barrier for all ---------------------------------------------------------------------------------


@dataclass(frozen=True, order=True)
class _Times:
    """The longest computing in each group that a combination stands for: jobs above them are bound to the other group."""

    a_pull: float
    a_push: float
    b_pull: float
    b_push: float

    def side(self, push: Floats, pull: Floats) -> Ints | None:
        """Return the group to which each job is bound, or None if some job fits neither."""
        not_b = (pull > self.b_pull) | (push > self.b_push)
        not_a = (pull > self.a_pull) | (push > self.a_push)
        if (not_a & not_b).any():
            return None
        return np.where(not_b, 0, np.where(not_a, 1, EITHER))

    def round_s(self, points: Floats, windows: bool) -> Floats:
        """Return the rounds of some pairs of communication times."""
        a, b = points[:, 0], points[:, 1]
        if windows:
            halves = [
                np.maximum(a + b, np.maximum(a + ta, b + tb))
                for ta, tb in ((self.a_pull, self.b_pull), (self.a_push, self.b_push))
            ]
            return np.asarray(halves[0] + halves[1])
        return np.asarray(
            np.maximum(a, self.b_pull)
            + np.maximum(a, self.b_push)
            + np.maximum(b, self.a_pull)
            + np.maximum(b, self.a_push)
        )


class _Fronts:
    """The pairs of communication times that divisions reach in all pod groups together.

    The most loaded pod group comes first and the others are held against what is known by then:
    mostly their divisions reach every corner of it, and nothing more has to be known of them.
    """

    def __init__(self, pod_groups: Sequence[_PodGroup], ports: int, known_s: float) -> None:
        self.ports = ports
        # Any round lasts at least twice as long as both groups communicate.
        self.box = Box(np.full(2, np.inf), known_s / 2)
        self.known_s = known_s
        idle = [np.zeros(len(one.members)) for one in pod_groups]
        loads = [
            least_round_s(one.demand, none, none, ports, 2, False, MAX_OPEN)
            for one, none in zip(pod_groups, idle, strict=True)
        ]
        self.pod_groups = [pod_groups[n] for n in np.argsort(-np.array(loads), kind="stable")]
        self.scale_s = max((seconds for seconds in loads if seconds < np.inf), default=0.0)

    def joined(
        self, sides: Mapping[int, Ints] | None = None, start: Floats | None = None
    ) -> Floats:
        """Return the front of all pod groups, ``sides`` binding some of their jobs, no lower than the front ``start``."""
        for one in self.pod_groups:
            side = (
                np.full(len(one.members), EITHER, np.int64)
                if sides is None
                else sides[one.pod_group]
            )
            if sides is None or (side != EITHER).any():
                start = self._met(one, side, start)
        return np.zeros((0, 2)) if start is None else start

    def alone(self, one: _PodGroup) -> Floats:
        """Return the front of one pod group."""
        return self._met(one, np.full(len(one.members), EITHER, np.int64), None)

    def _met(self, one: _PodGroup, side: Ints, known: Floats | None) -> Floats:
        """Return the front that a pod group has together with a known one."""
        if known is None:
            return self._worked_out(one, side, np.zeros((0, 2)))
        reached = within_reach(one.demand, self.ports, side, known, REACH_NODES)
        return known if reached.all() else _both(known, self._worked_out(one, side, known[reached]))

    def _worked_out(self, one: _PodGroup, side: Ints, start: Floats) -> Floats:
        """Return a pod group's front above ``start``.

        Where a search becomes too long it may overlook a little, and then the lightest jobs: both
        only shorten times.
        """
        kept, attempt = len(side), 0
        while True:
            slack_s = self.scale_s * SLACKS[min(attempt, len(SLACKS) - 1)]
            points, done = front(
                one.heaviest(kept),
                self.ports,
                side[:kept],
                start,
                self.box,
                slack_s,
                MAX_NODES,
                False,
            )
            if done:
                return np.maximum(points - slack_s, 0.0)
            attempt += 1
            kept -= max(1, kept // 10) if attempt >= len(SLACKS) else 0


def _together(jobs: Jobs, fronts: _Fronts, windows: bool) -> tuple[float, str]:
    """Return the least round over all combinations of computing times, with what sets it.

    Each combination has all divisions that it allows. Combinations wait with a value that ignores
    which jobs they bind; the smallest is worked out in full, until the smallest waiting is one that
    was.
    """
    pod_groups = fronts.pod_groups
    push = _rounded([one.after_push for one in pod_groups])
    pull = _rounded([one.after_pull for one in pod_groups])
    free = fronts.joined()
    waiting = [
        (float(times.round_s(free, windows).min()), False, times)
        for times in _combinations(push, pull)
        if len(free)
    ]
    heapq.heapify(waiting)
    for _ in range(MAX_REFINED):
        if not waiting or waiting[0][1] or waiting[0][0] >= fronts.known_s:
            break
        _, _, times = heapq.heappop(waiting)
        sides = {
            one.pod_group: times.side(*after)
            for one, *after in zip(pod_groups, push, pull, strict=True)
        }
        possible = {g: side for g, side in sides.items() if side is not None}
        joined = fronts.joined(possible, free) if len(possible) == len(sides) else free[:0]
        if len(joined):
            heapq.heappush(waiting, (float(times.round_s(joined, windows).min()), True, times))
    if waiting and waiting[0][0] < fronts.known_s:
        value, _, times = waiting[0]
        return value, _words(jobs, fronts, times, value, windows)
    if fronts.known_s < np.inf:
        return fronts.known_s, "every other grouping and ring is as long"
    starved = next((one for one in pod_groups if not len(fronts.alone(one))), pod_groups[0])
    return np.inf, _no_ports(jobs, starved)


def _rounded(per_group: Sequence[Floats]) -> list[Floats]:
    """Return computing times with at most ``MAX_TIMES`` values, rounded down, the longest as it is."""
    values = np.unique(np.concatenate(per_group))
    if len(values) > MAX_TIMES:
        kept = np.unique(np.quantile(values, np.linspace(0.0, 1.0, MAX_TIMES), method="lower"))
        per_group = [kept[np.searchsorted(kept, times, side="right") - 1] for times in per_group]
    return list(per_group)


def _combinations(push: Sequence[Floats], pull: Sequence[Floats]) -> list[_Times]:
    """Return what the longest computing of the groups can be.

    A job that trains longest is in group A, by symmetry.
    """
    pulls = np.unique(np.concatenate(pull)).tolist()
    pushes = np.unique(np.concatenate(push)).tolist()
    return [
        _Times(pulls[-1], a_push, b_pull, b_push)
        for b_pull, a_push, b_push in product({0.0, *pulls}, {0.0, *pushes}, {0.0, *pushes})
        if max(a_push, b_push) == pushes[-1]
    ]


def _both(one: Floats, other: Floats) -> Floats:
    if not len(one) or not len(other):
        return np.zeros((0, 2))
    first = np.unique(np.concatenate([one[:, 0], other[:, 0]]))
    first = first[first >= max(one[0, 0], other[0, 0])]
    second = np.maximum(
        *(part[np.searchsorted(part[:, 0], first, side="right") - 1, 1] for part in (one, other))
    )
    corners = np.ones(len(first), np.bool_)
    corners[1:] = second[1:] < second[:-1]
    return np.column_stack([first[corners], second[corners]])


# -- words -----------------------------------------------------------------------------------------------


def _words(jobs: Jobs, fronts: _Fronts, times: _Times, value: float, windows: bool) -> str:
    """Say what sets the bound: computing alone, one pod group alone, or several together."""
    if float(times.round_s(np.zeros((1, 2)), windows)[0]) >= value * (1 - SAME):
        longest = max(jobs.jobs, key=lambda job: job.train_s)
        return f"computing alone, including that of job {longest.id}"
    most_loaded = fronts.pod_groups[0]
    if float(times.round_s(fronts.alone(most_loaded), windows).min()) >= value * (1 - SAME):
        return f"ports and servers of pod group {most_loaded.pod_group}, over every grouping and every ring"
    return (
        f"several pod groups behind one barrier, above all pod group {most_loaded.pod_group}, over every grouping and "
        "every ring"
    )


def _no_ports(jobs: Jobs, one: _PodGroup) -> str:
    """Name a pod that has too few ports, and for which job."""
    ports = jobs.network.ports_per_pod
    for row, n in enumerate(one.members):
        pair = one.demand.pair[row] > 0
        need = np.maximum(pair.sum(0) + pair.sum(1), 2 * one.demand.on[row])
        if need.max() > ports:
            pod = int(need.argmax())
            return f"pod {pod} of pod group {one.pod_group} needs {int(need[pod])} ports for job {jobs.jobs[n].id} alone"
    return f"pod group {one.pod_group} has too few ports for every grouping"
