"""The TDM drafts read as they are printed, where the product reads them otherwise.

Stages are worked out one by one in both directions, so that push and pull may differ, and kept by
the jobs in them. With every choice in its first position it is Algorithm 1 as built.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topox_core.tdm.kernels.stage import ring_of
from topox_core.tdm.model.jobs import PULL, PUSH, Job, Jobs, Reading
from topox_core.tdm.model.rounds import after_push_s
from topox_core.tdm.model.traffic import (
    StageTable,
    allocated,
    between_pods_gbit,
    inside_pods_gbit,
)

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
READING = Reading()
TIE = 1e-12
RINGS = ("directed", "undirected", "undirected, as printed", "ascending")
ALL_REDUCES = ("ring", "hierarchical", "flat ring", "double tree")


@dataclass(frozen=True)
class Draft:
    """Choices where the drafts, or one of them, say something else than what is built.

    Attributes
    ----------
    eq5
        Inside pods an all-to-all carries U_n - 1 times its volume (GPUs of a unit) in place of E_n - 1.
    eq2
        The older draft's equation 2, D_ij / B_tor: with ports no faster than the servers of a pod
        it never decides.
    rings
        One of ``RINGS``: Algorithm 3 of the newer draft; of the older one, undirected, with more than
        two neighbours cut, or as printed with two cut as well; or pods in ascending order.
    pull_apart
        Algorithms 2 and 3 run on the pull's own traffic, instead of the push transposed.
    bare_neighbours
        Neighbours are measured without the time of reconfiguration, as line 11 is printed.
    all_reduce
        One of ``ALL_REDUCES``: what a job with a ring sends. ``hierarchical``: units add up inside their
        pod, 2 (N - 1) / N of the volume on each arc between N pods; ``flat ring``: one ring through all E
        units, 2 (E - 1) / E; ``double tree``: half the volume up and down each edge of two binary trees.
    split_share
        Of each unit's volume, what a unit that lies in two pods sends to the next pod of its job and
        back (FI).
    """

    eq5: bool = False
    eq2: bool = False
    rings: str = "directed"
    pull_apart: bool = False
    bare_neighbours: bool = False
    all_reduce: str = "ring"
    split_share: float = 0.0


@dataclass(frozen=True)
class Stages:
    """Of one pod group and grouping: seconds of its four stages, and whether circuits change before each."""

    seconds: Floats
    change: Bools


@dataclass(frozen=True)
class Climbed:
    """Where Algorithm 1 ended: the group of each job, the round with its reconfiguration, and its steps."""

    group: tuple[int, ...]
    round_s: float
    steps: int


def undirected_ring(demand: Floats, members: Ints, cut_from: int) -> Ints:
    """Return a ring by the older draft's Algorithm 3: neighbours are cut while a pod has ``cut_from`` or more.

    Ties and the order of what is left are read as in the newer draft: lowest index first, a cycle that
    misses pods is cut at its lowest, paths follow by their lowest end.
    """
    talks = demand[np.ix_(members, members)] > 0
    near = talks | talks.T
    np.fill_diagonal(near, False)
    for n in range(len(members)):
        while near[n].sum() >= cut_from:
            others = np.flatnonzero(near[n])
            worst = others[np.argmax(near[others].sum(1))]
            near[n, worst] = near[worst, n] = False
    left = set(range(len(members)))
    lap: list[int] = []
    while left:
        ends = [n for n in left if near[n, list(left)].sum() < 2]
        lowest = min(left)
        at = min(ends, default=lowest)
        # A cycle is cut where it comes back to its lowest pod; paths before it go first.
        if _component(near, lowest, left).isdisjoint(ends):
            at = lowest
        while True:
            lap.append(at)
            left.discard(at)
            after = [n for n in np.flatnonzero(near[at]).tolist() if n in left]
            if not after:
                break
            at = after[0]
    ring: Ints = members[np.array(lap, np.int64)]
    return ring


def _component(near: Bools, start: int, left: set[int]) -> set[int]:
    seen, open_ = {start}, [start]
    while open_:
        for n in np.flatnonzero(near[open_.pop()]).tolist():
            if n in left and n not in seen:
                seen.add(n)
                open_.append(n)
    return seen


def tree_demand(pods: Sequence[int], volume_gbit: float, size: int) -> Floats:
    """Return what two binary trees over some pods send: half the volume up and down each edge of either.

    Inner pods of one are leaves of the other, as in Sanders, Speck and Traeff (2009): the second takes the
    pods in reverse.
    """
    demand = np.zeros((size, size))
    for order in (tuple(pods), tuple(reversed(pods))):
        for child in range(1, len(order)):
            a, b = order[child], order[(child - 1) // 2]
            demand[a, b] += volume_gbit / 2
            demand[b, a] += volume_gbit / 2
    return demand


class DraftRound:
    """Jobs under one reading: their stages, their rounds and Algorithm 1."""

    def __init__(self, jobs: Jobs, gpus_per_unit: Sequence[int], draft: Draft) -> None:
        self.jobs, self.draft = jobs, draft
        self.fabric = StageTable(jobs).fabric
        self.delay_s = jobs.network.reconfiguration_ms / 1000.0
        self.computing = np.array(
            [[after_push_s(job, READING) for job in jobs.jobs], [job.train_s for job in jobs.jobs]]
        )
        pairs = list(zip(jobs.jobs, gpus_per_unit, strict=True))
        self._fixed = [self._fixed_gbit(job) for job in jobs.jobs]
        self._local = [self._inside_gbit(job, gpus) for job, gpus in pairs]
        self._stages: dict[tuple[int, tuple[int, ...], int], tuple[float, Ints]] = {}
        self._known: dict[tuple[int, tuple[int, ...]], Stages] = {}
        self.arcs = self.reused = (
            0  # of the rings that were made, and how many lay on a pair with traffic
        )

    # --- traffic

    def _rings(self, job: Job) -> bool:
        return job.collective == "ring_all_reduce" and self.draft.all_reduce != "double tree"

    def _fixed_gbit(self, job: Job) -> Floats:
        """Return what a job pushes whatever its ring."""
        pods = self.jobs.network.pods_per_group
        if job.collective != "ring_all_reduce":
            demand = between_pods_gbit(job, READING)
        elif self._rings(job):
            demand = np.zeros((pods, pods))
        else:
            demand = tree_demand(job.pods, job.volume_gbit, pods)
        if self.draft.split_share and len(job.pods) > 1:
            for at, pod in enumerate(job.pods):
                after = job.pods[(at + 1) % len(job.pods)]
                split = self.draft.split_share * job.units_per_pod[pod] * job.volume_gbit
                demand[pod, after] += split
                demand[after, pod] += split
        return demand

    def _arc_gbit(self, job: Job) -> float:
        many = {"ring": 0, "hierarchical": len(job.pods), "flat ring": job.units}
        n = many[self.draft.all_reduce]
        return job.volume_gbit * (2 * (n - 1) / n if n else 1.0)

    def _inside_gbit(self, job: Job, gpus: int) -> Floats:
        inside = inside_pods_gbit(job)
        if self.draft.eq2:
            return np.zeros_like(inside)
        if self.draft.eq5 and job.collective == "all_to_all" and job.units > 1:
            return inside * (gpus - 1) / (job.units - 1)
        return inside

    # --- stages

    def stage(self, pod_group: int, members: tuple[int, ...], way: int) -> tuple[float, Ints]:
        """Return the seconds and links of some jobs of a pod group, pushing or pulling."""
        if way == PULL and not self.draft.pull_apart:
            seconds, links = self.stage(pod_group, members, PUSH)
            return seconds, links.T
        key = pod_group, members, way
        if key not in self._stages:
            self._stages[key] = self._stage(members, way)
        return self._stages[key]

    def _stage(self, members: tuple[int, ...], way: int) -> tuple[float, Ints]:
        pods = self.jobs.network.pods_per_group
        demand, local = np.zeros((pods, pods)), np.zeros(pods)
        for n in members:
            fixed = self._fixed[n]
            demand += fixed if way == PUSH else fixed.T
            local += self._local[n]
        for n in members:
            job = self.jobs.jobs[n]
            if not self._rings(job) or len(job.pods) < 2:
                continue
            lap = self._ring(demand, np.array(job.pods, np.int64))
            after = np.roll(lap, -1)
            self.arcs += len(lap)
            self.reused += int((demand[lap, after] > 0).sum())
            demand[lap, after] += self._arc_gbit(job)
        return allocated(demand, float(local.max()) / self.fabric.tor_gbps, self.fabric)

    def _ring(self, demand: Floats, members: Ints) -> Ints:
        match self.draft.rings:
            case "directed":
                return ring_of(demand, members)
            case "ascending":
                return members
            case words:
                return undirected_ring(demand, members, 2 if words == RINGS[2] else 3)

    # --- rounds

    def stages(self, pod_group: int, second: Sequence[bool]) -> Stages:
        """Return a pod group's stages A push, B push, A pull, B pull under a grouping of all jobs."""
        members = self.jobs.of_group(pod_group)
        groups = [tuple(n for n in members if second[n] == one) for one in (False, True)]
        key = pod_group, groups[1]
        if key not in self._known:
            four = [self.stage(pod_group, groups[k], way) for way in (PUSH, PULL) for k in (0, 1)]
            using = [at for at in range(4) if four[at][1].any()]
            change = np.zeros(4, np.bool_)
            for at, one in enumerate(using):
                change[one] = not np.array_equal(four[one][1], four[using[at - 1]][1])
            self._known[key] = Stages(np.array([seconds for seconds, _ in four]), change)
        return self._known[key]

    def round_s(self, seconds: Floats, change: Bools, second: Bools, bare: bool = False) -> float:
        """Return a round from its four longest stages and the grouping."""
        longest = [
            [self.computing[way][second == one].max(initial=0.0) for one in (False, True)]
            for way in (PUSH, PULL)
        ]
        beside = (longest[PULL][1], longest[PUSH][0], longest[PUSH][1], longest[PULL][0])
        dark = 0.0 if bare else self.delay_s * float(change.sum())
        return dark + float(np.maximum(seconds, beside).sum())

    def climb(self) -> Climbed:
        """Return where Algorithm 1 ends: from all jobs in A, the one flip that shortens the round most."""
        groups = range(self.jobs.network.pod_groups)
        second = np.zeros(len(self.jobs), np.bool_)
        now = [self.stages(g, second.tolist()) for g in groups]
        bare, steps = self.draft.bare_neighbours, 0
        best = self._total(now, second)
        while True:
            seconds = np.array([one.seconds for one in now])
            change = np.array([one.change for one in now])
            rounds = np.empty(len(self.jobs))
            for n, job in enumerate(self.jobs.jobs):
                second[n] = not second[n]
                own = self.stages(job.pod_group, second.tolist())
                keep = np.arange(len(now)) != job.pod_group
                rounds[n] = self.round_s(
                    np.maximum(seconds[keep].max(0, initial=0.0), own.seconds),
                    change[keep].any(0) | own.change,
                    second,
                    bare,
                )
                second[n] = not second[n]
            least = float(rounds.min())
            if not least < best * (1 - TIE):
                break
            n = int(np.argmax(rounds <= least * (1 + TIE)))
            second[n] = not second[n]
            home = self.jobs.jobs[n].pod_group
            now[home] = self.stages(home, second.tolist())
            best, steps = least, steps + 1
        return Climbed(tuple(int(one) for one in second), self._total(now, second), steps)

    def _total(self, now: Sequence[Stages], second: Bools) -> float:
        return self.round_s(
            np.max([one.seconds for one in now], axis=0),
            np.any([one.change for one in now], axis=0),
            second,
        )
