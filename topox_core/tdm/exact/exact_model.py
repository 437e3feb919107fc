"""The exact model of the drafts' integer program, linear without approximation.

The products of the printed program vanish: a ring that is switched off has degree zero (jobs times
rings), the number of links of a pair is one of its possible values (links times time), and pull is
push transposed (two communication problems, not four). Times are in units of the longest stage that
can occur.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from topox_core.schedule.engines.mip import MipBuilder
from topox_core.tdm.model.jobs import Jobs, Reading
from topox_core.tdm.model.rounds import after_push_s
from topox_core.tdm.model.traffic import job_seconds

Pair = tuple[int, int]
Tie = Literal["free", "same", "transposed", "symmetric"]


@dataclass(frozen=True)
class LinkRule:
    """How the links of the two groups are tied to each other, and what the round then pays for switching.

    Attributes
    ----------
    tie
        ``free``: not at all; ``same``: equal while both push; ``transposed``: group 1 pushes on the
        links on which group 0 pulls; ``symmetric``: both of them, nothing ever switches.
    dark
        Of the two stages of each group, how many seconds their start is dark.
    """

    tie: Tie
    dark: tuple[float, float]

    def key(self, group: int, pair: Pair) -> tuple[int, int, int]:
        """Return what stands for the links of a pair while a group pushes."""
        i, j = pair
        if self.tie == "free":
            return group, i, j
        if self.tie == "symmetric":
            return 0, min(i, j), max(i, j)
        return (0, j, i) if self.tie == "transposed" and group else (0, i, j)


def link_rules(reconfiguration_s: float) -> tuple[LinkRule, ...]:
    """Return the rules whose best rounds are together the best round, cheapest model first.

    Of the four changes between stages, A push to B push happens if and only if A pull to B pull
    does, and the other two alike, because pull runs on push's links transposed.
    """
    r = reconfiguration_s
    rules = (
        LinkRule("free", (r, r)),
        LinkRule("same", (r, 0.0)),
        LinkRule("transposed", (0.0, r)),
        LinkRule("symmetric", (0.0, 0.0)),
    )
    return rules if r else rules[:1]


Float = NDArray[np.float64]
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Traffic:
    """What jobs send, in seconds of one link (between pods) or of the top-of-rack switch (inside them).

    Attributes
    ----------
    each
        Of every job :func:`~topox_core.tdm.model.traffic.job_seconds`.
    pairs, inside
        Of all jobs of a pod group, ``[pod group, from, to]`` and ``[pod group, pod]``, when every
        ring takes every arc.
    """

    each: tuple[tuple[Float, float, Float], ...]
    pairs: Float
    inside: Float

    @staticmethod
    def of(jobs: Jobs, reading: Reading) -> Traffic:
        """Return the traffic of all jobs."""
        network = jobs.network
        each = tuple(job_seconds(job, network, reading) for job in jobs.jobs)
        inside = np.zeros((network.pod_groups, network.pods_per_group))
        pairs = np.zeros((*inside.shape, network.pods_per_group))
        for job, (fixed, arc, local) in zip(jobs.jobs, each, strict=True):
            pairs[job.pod_group] += fixed
            pairs[job.pod_group][np.ix_(job.pods, job.pods)] += arc
            inside[job.pod_group] += local
        pairs[:, range(network.pods_per_group), range(network.pods_per_group)] = 0.0
        return Traffic(each, pairs, inside)

    @property
    def longest_stage_s(self) -> float:
        """How long a stage can last when every pair has one link."""
        return float(max(self.pairs.max(), self.inside.max()))

    def arcs(self, jobs: Jobs, n: int) -> tuple[Pair, ...]:
        """Return the arcs among which a job's ring is chosen; none if it has no choice, as on two pods."""
        return tuple(permutations(jobs.jobs[n].pods, 2)) if self.each[n][1] > 0 else ()

    def columns(self, jobs: Jobs) -> int:
        """Return how many columns the model has at most, counted without building it."""
        chosen = sum(len(self.arcs(jobs, n)) for n in range(len(jobs)))
        counts = np.count_nonzero(self.pairs) * (jobs.network.ports_per_pod + 1)
        return len(jobs) + 6 + 2 * chosen + 4 * int(counts)


class ExactModel:
    """The model of one rule for links, with what reads groups and rings from its solutions.

    Parameters
    ----------
    unit_s
        No stage of interest communicates longer; times inside the model are multiples of it.
    cutoff_s
        Only rounds up to this long are of interest.
    all_train
        Model rounds with phases in which all train, instead of the drafts' four.
    """

    def __init__(
        self,
        jobs: Jobs,
        reading: Reading,
        rule: LinkRule,
        *,
        unit_s: float,
        cutoff_s: float,
        all_train: bool = False,
    ) -> None:
        self.jobs, self.reading, self.rule, self.unit_s = jobs, reading, rule, unit_s
        self.traffic = Traffic.of(jobs, reading)
        self._b = MipBuilder()
        self.offset_s = 0.0 if reading.delay_inside else 2 * sum(rule.dark)
        # Where swapping the names of the groups changes nothing, for switching costs them the same,
        # the first job is in group 0.
        alike = rule.dark[0] == rule.dark[1] or not reading.delay_inside
        most = [0.0 if alike and n == 0 else 1.0 for n in range(len(jobs))]
        self.group = [self._b.new(upper, integer=True) for upper in most]
        self.communicating = [self._b.new(1.0) for _ in range(2)]
        self.arc: dict[tuple[int, int], dict[Pair, int]] = {}
        self.links: dict[tuple[int, int, int, int], list[int]] = {}
        self._phases(all_train, cutoff_s)
        self._rings()
        for g in range(jobs.network.pod_groups):
            self._pod_group(g)
        self.mip = self._b.built(self.offset_s / unit_s)

    def _row(
        self,
        terms: dict[int, float],
        *shares: tuple[int, int, float],
        lower: float = -math.inf,
        upper: float = math.inf,
    ) -> None:
        """Add a row with ``(n, k, weight)``, weight times "job n communicates in stage k", beside its terms."""
        constant = 0.0
        for n, k, weight in shares:
            constant += weight if k == 0 else 0.0
            terms = terms | {self.group[n]: -weight if k == 0 else weight}
        self._b.row(terms, lower - constant, upper - constant)

    def _dark(self, k: int) -> float:
        """Return the dark time that lengthens the communication of a group's stages."""
        return self.rule.dark[k] / self.unit_s if self.reading.delay_inside else 0.0

    def _phases(self, all_train: bool, cutoff_s: float) -> None:
        """Eq. 3: a stage lasts as long as a group's communication and the other's computing.

        With phases in which all train each half lasts as long as both communications, and as each
        group's own with the computing after it.
        """
        talking = [(0, 1)] if all_train else [(0,), (1,)]
        columns = [
            (groups, way, self._b.new(math.inf, cost=1.0)) for groups in talking for way in range(2)
        ]
        for groups, _, column in columns:
            talk = {self.communicating[k]: -1.0 for k in groups}
            self._b.row({column: 1.0, **talk}, sum(map(self._dark, groups)), math.inf)
        for n, job in enumerate(self.jobs.jobs):
            # Between pull and push, and between push and pull.
            computing = job.train_s / self.unit_s, after_push_s(job, self.reading) / self.unit_s
            for (groups, way, column), k in product(columns, range(2)):
                if all_train:
                    # Only while the job is in the group: otherwise the row must not ask for more
                    # than its communication.
                    communicated = {column: 1.0, self.communicating[k]: -1.0}
                    self._row(communicated, (n, k, -computing[way] - self._dark(k)), lower=0.0)
                elif k not in groups and computing[way] > 0:
                    self._row({column: 1.0}, (n, k, -computing[way]), lower=0.0)
        if cutoff_s < math.inf:
            terms = dict.fromkeys([column for *_, column in columns], 1.0)
            self._b.row(terms, 0.0, (cutoff_s - self.offset_s) / self.unit_s)

    def _rings(self) -> None:
        """Eq. 7 with what it lacks: one ring through all pods of a job, in the stage of its group."""
        b = self._b
        for n in range(len(self.jobs)):
            choices = self.traffic.arcs(self.jobs, n)
            for k in range(2 if choices else 0):
                arc = self.arc[n, k] = {pair: b.new(1.0, integer=True) for pair in choices}
                pods = self.jobs.jobs[n].pods
                for pod in pods:
                    for end in range(2):
                        degree = {column: 1.0 for pair, column in arc.items() if pair[end] == pod}
                        self._row(degree, (n, k, -1.0), lower=0.0, upper=0.0)
                # Numbered along the ring from the first one (Miller, Tucker & Zemlin 1960).
                many = len(pods) - 1.0
                place = {pod: b.new(many) for pod in pods[1:]}
                for (i, j), column in arc.items():
                    if i in place and j in place:
                        follows = {place[j]: 1.0, place[i]: -1.0, column: -many}
                        b.row(follows, 1.0 - many, math.inf)

    def _pod_group(self, g: int) -> None:
        """Eqs. 2 and 6: links of a pod group carry each stage's traffic in the stage's time."""
        members = self.jobs.of_group(g)
        pairs = [(i, j) for i, j in np.argwhere(self.traffic.pairs[g]).tolist()]
        b, ports = self._b, self.jobs.network.ports_per_pod
        for k in range(2):
            for pair in pairs:
                place = (g, *self.rule.key(k, pair))
                if place not in self.links:
                    self.links[place] = [b.new(1.0, integer=True) for _ in range(ports + 1)]
                    b.row(dict.fromkeys(self.links[place], 1.0), 1.0, 1.0)
        self._ports(g)
        for k in range(2):
            for pair in pairs:
                self._pair(g, k, pair, members)
            for pod in range(self.jobs.network.pods_per_group):
                self._switch(k, pod, members)

    def _switch(self, k: int, pod: int, members: Sequence[int]) -> None:
        """Keep the traffic between a pod's servers and its top-of-rack switch within the stage."""
        inside = [(n, float(self.traffic.each[n][2][pod])) for n in members]
        shares = [(n, k, -seconds / self.unit_s) for n, seconds in inside if seconds > 0]
        if shares:
            self._row({self.communicating[k]: 1.0}, *shares, lower=0.0)

    def _ports(self, g: int) -> None:
        """Eq. 6: links that begin or end in a pod share its ports."""
        ports = self.jobs.network.ports_per_pod
        for matrix in {place[1] for place in self.links if place[0] == g}:
            for pod in range(self.jobs.network.pods_per_group):
                terms: dict[int, float] = {}
                for (group, which, i, j), columns in self.links.items():
                    if group == g and which == matrix and pod in (i, j):
                        weight = 2.0 if self.rule.tie == "symmetric" else 1.0
                        terms |= {
                            column: weight * count for count, column in enumerate(columns) if count
                        }
                if terms:
                    self._b.row(terms, 0.0, ports)

    def _pair(self, g: int, k: int, pair: Pair, members: Sequence[int]) -> None:
        """Links times stage is at least the traffic: the stage's time is spread over the possible link counts."""
        b, z = self._b, self.links[g, *self.rule.key(k, pair)]
        w = [b.new(1.0) for _ in z]
        for time, count in zip(w, z, strict=True):
            b.row({time: 1.0, count: -1.0}, -math.inf, 0.0)
        b.row({**dict.fromkeys(w, 1.0), self.communicating[k]: -1.0}, 0.0, 0.0)
        terms = {column: float(count) for count, column in enumerate(w) if count}
        shares: list[tuple[int, int, float]] = []
        links = {column: float(count) for count, column in enumerate(z) if count}
        for n in members:
            fixed, each_arc, _ = self.traffic.each[n]
            seconds = float(fixed[pair]) / self.unit_s
            if seconds > 0:
                shares.append((n, k, -seconds))
                self._row(links, (n, k, -_links_for(seconds)), lower=0.0)
            elif pair in self.arc.get((n, k), {}):
                seconds, column = each_arc / self.unit_s, self.arc[n, k][pair]
                terms[column] = -seconds
                b.row({**links, column: -_links_for(seconds)}, 0.0, math.inf)
        self._row(terms, *shares, lower=0.0)

    # -- solutions -------------------------------------------------------------------------------------

    def groups(self, values: Float) -> tuple[int, ...]:
        """Return the group of each job."""
        return tuple(int(values[column] > 0.5) for column in self.group)

    def rings(self, values: Float) -> tuple[tuple[int, ...], ...]:
        """Return the push ring of each job, from its first pod; empty for what is no ring."""
        return tuple(self._ring(n, group, values) for n, group in enumerate(self.groups(values)))

    def _ring(self, n: int, group: int, values: Float) -> tuple[int, ...]:
        job = self.jobs.jobs[n]
        if job.collective != "ring_all_reduce" or len(job.pods) < 2:
            return ()
        if (n, group) not in self.arc:
            return job.pods
        following = {i: j for (i, j), column in self.arc[n, group].items() if values[column] > 0.5}
        ring = [job.pods[0]]
        while following[ring[-1]] != ring[0]:
            ring.append(following[ring[-1]])
        return tuple(ring)

    def chosen_links(self, values: Float) -> NDArray[np.int32]:
        """Return the links of each pod group and group, ``[pod group, group, i, j]``."""
        network = self.jobs.network
        links = np.zeros(
            (network.pod_groups, 2, network.pods_per_group, network.pods_per_group), np.int32
        )
        for g, k, i, j in np.ndindex(links.shape):
            columns = self.links.get((g, *self.rule.key(k, (i, j))))
            if columns:
                links[g, k, i, j] = int(values[columns].argmax())
        return links

    def start(
        self,
        group: Sequence[int],
        rings: Sequence[Sequence[int]],
        links: Callable[[int, int, Pair], int],
    ) -> tuple[NDArray[np.int32], Float]:
        """Return columns and values of a known round."""
        known: dict[int, float] = dict(zip(self.group, map(float, group), strict=True))
        for (n, k), arc in self.arc.items():
            ring = rings[n]
            taken = set(zip(ring, (*ring[1:], *ring[:1]), strict=True)) if group[n] == k else set()
            known |= {column: float(pair in taken) for pair, column in arc.items()}
        for (g, k, i, j), columns in self.links.items():
            known |= {
                column: float(count == links(g, k, (i, j))) for count, column in enumerate(columns)
            }
        return np.array(list(known), np.int32), np.array(list(known.values()))


def _links_for(share: float) -> float:
    """Return the fewest links that carry a share of the longest stage's volume within it."""
    return max(1.0, math.ceil(share - TOLERANCE))
