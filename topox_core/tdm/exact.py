"""The exact optimum: groups, rings and links decided together by CP-SAT, below the best round of the other methods.

The model is the drafts' integer program without approximation. The products of the printed program
vanish: a ring that is switched off passes no pod (jobs times rings), the number of links of a pair is
one of its possible values (links times time), and pull is push transposed (two communication
problems, not four). Times are whole ticks, so short that what rounding leaves is within the tolerance
of a proof. A worker process solves it: OR-Tools stays out of this one.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import permutations, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topox_core.runs.executor import WorkerDied, call_in_worker
from topox_core.runs.run import Stop
from topox_core.tdm.model.jobs import (
    DRAFT,
    TOLERANCE,
    Jobs,
    Reading,
    Round,
    RoundBound,
    RoundForm,
    TdmSettings,
)
from topox_core.tdm.model.rounds import after_push_s, cycles_of
from topox_core.tdm.model.traffic import Floats, Ring, job_seconds
from topox_core.tdm.search import Search, shortest

Pair = tuple[int, int]
Literal = Any  # of OR-Tools, or the negation of one
MAX_JOBS = 500
MAX_COLUMNS = 20_000
# Times further apart than this are lost in ticks.
MAX_RATIO = 1e9
SOURCE = "CP-SAT"
BOUND_BY = "constraint search (CP-SAT)"
UNPROVED = "{}: the optimum is between bound and round."
TICKS = 1 << 30  # of the longest round of interest
# Stages begin and end on ticks: by so many at most a round may be longer in the model than it is.
ROUNDING = 8
# Asked to stop, the worker gets this long.
GRACE_S = 2.0


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

    each: tuple[tuple[Floats, float, Floats], ...]
    pairs: Floats
    inside: Floats

    @staticmethod
    def of(jobs: Jobs, reading: Reading) -> "Traffic":
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
        """Return how many columns the program has at most, counted without building it."""
        chosen = sum(len(self.arcs(jobs, n)) for n in range(len(jobs)))
        counts = np.count_nonzero(self.pairs) * (jobs.network.ports_per_pod + 1)
        return len(jobs) + 6 + 2 * chosen + 4 * int(counts)


def too_large(jobs: Jobs, reading: Reading, most: int = MAX_COLUMNS) -> str:
    """Return why the exact model should not be built, with its size or its times; empty if it may be."""
    if len(jobs) > MAX_JOBS:
        return f"the exact model takes at most {MAX_JOBS:,} jobs (got {len(jobs):,})"
    traffic = Traffic.of(jobs, reading)
    columns = traffic.columns(jobs)
    if columns > most:
        return f"the exact model would have {columns:,} columns (limit {most:,})"
    stage_s = traffic.longest_stage_s
    computing_s = max((job.train_s + job.aggregate_s for job in jobs.jobs), default=0.0)
    if 0 < stage_s * MAX_RATIO < computing_s:
        return (
            f"computing takes {computing_s / stage_s:.0e} times as long as the longest stage, "
            f"more than the {MAX_RATIO:.0e} the exact model tells apart"
        )
    return ""


class Found(NamedTuple):
    """A round of the model: groups and rings of jobs, and links as :class:`Round` has them."""

    group: tuple[int, ...]
    rings: dict[int, Ring]
    links: NDArray[np.int32]


class ExactModel:
    """All rounds up to a length.

    Parameters
    ----------
    model
        An empty one of CP-SAT, which is filled.
    most_s
        Only rounds up to this long are of interest.
    all_train
        Model rounds with phases in which all train, instead of the drafts' four.
    """

    def __init__(
        self, model: Any, jobs: Jobs, reading: Reading, most_s: float, all_train: bool
    ) -> None:
        self.model, self.jobs, self.reading = model, jobs, reading
        self.traffic = Traffic.of(jobs, reading)
        self.tick_s = most_s / TICKS
        self.delay = self._ticks(jobs.network.reconfiguration_ms / 1000)
        self.group = [model.new_bool_var("") for _ in jobs.jobs]
        # How long each group communicates, and whether circuits change when its stages begin.
        self.talk = [model.new_int_var(0, TICKS, "") for _ in range(2)]
        self.change = [model.new_bool_var("") for _ in range(2)]
        self.arc: dict[tuple[int, int], dict[Pair, Literal]] = {}
        self.links: dict[tuple[int, int, int, int], list[Literal]] = {}
        # Where swapping the names of the groups changes nothing, the first job is in group 0.
        if self.group and not (reading.delay_inside and self.delay):
            model.add(self.group[0] == 0)
        self._phases(all_train)
        self._rings()
        for g, pairs in enumerate(self.traffic.pairs):
            self._links(g, pairs)
            self._stages(g, pairs)

    def _ticks(self, seconds: float) -> int:
        return int(seconds / self.tick_s)

    def _in(self, n: int, k: int) -> Literal:
        """Return the literal that says that a job communicates with group ``k``."""
        return self.group[n] if k else ~self.group[n]

    def _phases(self, all_train: bool) -> None:
        """Eq. 3: a stage lasts as long as a group's communication and the other's computing.

        With phases in which all train each half lasts as long as both communications, and as each
        group's own with the computing after it.
        """
        model, inside = self.model, self.reading.delay_inside
        busy = [
            talk + (self.delay * change if inside else 0)
            for talk, change in zip(self.talk, self.change, strict=True)
        ]
        lasting: list[Any] = [0 if inside else 2 * self.delay * sum(self.change)]
        for groups, way in product([(0, 1)] if all_train else [(0,), (1,)], range(2)):
            phase = model.new_int_var(0, TICKS, "")
            lasting.append(phase)
            model.add(phase >= sum(busy[k] for k in groups))
            for n, job in enumerate(self.jobs.jobs):
                # Between pull and push, and between push and pull.
                computing = self._ticks((job.train_s, after_push_s(job, self.reading))[way])
                for k in range(2):
                    if all_train or k not in groups:
                        own = busy[k] if all_train else 0
                        model.add(phase >= own + computing).only_enforce_if(self._in(n, k))
        model.add(sum(lasting) <= TICKS + ROUNDING)
        model.minimize(sum(lasting))

    def _rings(self) -> None:
        """Eq. 7 with what it lacks: one ring through all pods of a job, in the stage of its group."""
        for n, k in product(range(len(self.jobs)), range(2)):
            if choices := self.traffic.arcs(self.jobs, n):
                arc = self.arc[n, k] = {pair: self.model.new_bool_var("") for pair in choices}
                off = [(pod, pod, ~self._in(n, k)) for pod in self.jobs.jobs[n].pods]
                self.model.add_circuit([*((i, j, on) for (i, j), on in arc.items()), *off])

    def _links(self, g: int, pairs: Floats) -> None:
        """Eq. 6: links that begin or end in a pod share its ports; where circuits do not change, links are the same."""
        model, network = self.model, self.jobs.network
        # Links that stay while a pull follows a push lead both ways.
        used = np.argwhere((pairs > 0) | ((pairs.T > 0) & (self.delay > 0))).tolist()
        many: dict[tuple[int, int, int], Any] = {}
        for k, (i, j) in product(range(2), used):
            one = [model.new_bool_var("") for _ in range(network.ports_per_pod + 1)]
            model.add_exactly_one(one)
            self.links[g, k, i, j] = one
            many[k, i, j] = sum(count * on for count, on in enumerate(one))
        for k, pod in product(range(2), range(network.pods_per_group)):
            at = [links for (group, *ends), links in many.items() if group == k and pod in ends]
            model.add(sum(at) <= network.ports_per_pod)
        for i, j in used if self.delay else ():
            model.add(many[0, i, j] == many[1, j, i]).only_enforce_if(~self.change[0])
            model.add(many[0, i, j] == many[1, i, j]).only_enforce_if(~self.change[1])

    def _stages(self, g: int, pairs: Floats) -> None:
        """Eqs. 2 and 5: links carry each stage's traffic in the stage's time, and so do top-of-rack switches."""
        members = self.jobs.of_group(g)
        each = [self.traffic.each[n] for n in members]
        for k in range(2):
            inside = [self._in(n, k) for n in members]
            for i, j in np.argwhere(pairs > 0).tolist():
                arcs = [self.arc.get((n, k), {}).get((i, j), 0) for n in members]
                sent = sum(
                    self._ticks(float(fixed[i, j])) * on + self._ticks(arc_s) * arc
                    for (fixed, arc_s, _), on, arc in zip(each, inside, arcs, strict=True)
                )
                for count, on in enumerate(self.links[g, k, i, j]):
                    self.model.add(count * self.talk[k] >= sent).only_enforce_if(on)
            for pod in range(len(pairs)):
                local = (self._ticks(float(local[pod])) for _, _, local in each)
                passed = sum(ticks * on for ticks, on in zip(local, inside, strict=True))
                self.model.add(self.talk[k] >= passed)

    def bound_s(self, ticks: int) -> float:
        """Return what no round is below, given a bound of the solver."""
        return max(0, ticks - ROUNDING) * self.tick_s

    def found(self, value: Callable[[Literal], int]) -> Found:
        """Return what a solution says."""
        groups, pods = self.traffic.inside.shape
        links = np.zeros((groups, 2, pods, pods), np.int32)
        for place, counts in self.links.items():
            links[place] = sum(count * value(on) for count, on in enumerate(counts))
        group = tuple(value(one) for one in self.group)
        rings = {
            n: self._ring(n, group[n], value)
            for n, job in enumerate(self.jobs.jobs)
            if job.collective == "ring_all_reduce" and len(job.pods) > 1
        }
        return Found(group, rings, links)

    def _ring(self, n: int, k: int, value: Callable[[Literal], int]) -> Ring:
        """Return the push ring of a job in group ``k``, from its first pod."""
        pods = self.jobs.jobs[n].pods
        if (n, k) not in self.arc:
            return pods
        following = {i: j for (i, j), on in self.arc[n, k].items() if value(on)}
        ring = [pods[0]]
        while following[ring[-1]] != pods[0]:
            ring.append(following[ring[-1]])
        return tuple(ring)


def search_rounds(
    jobs: Jobs,
    settings: TdmSettings,
    most_s: float,
    all_train: bool,
    stop: Stop,
    on_step: Callable[[Found | float], None],
) -> float:
    """Search the rounds up to a length; return what none of them is below, infinite where there are none.

    Parameters
    ----------
    on_step
        Told each better round, and each better bound in seconds.
    """
    from ortools.sat.python.cp_model import CpModel

    from topox_core.schedule.engines.cpsat_model import run_model
    from topox_core.schedule.engines.engine import Limits

    exact = ExactModel(CpModel(), jobs, settings.reading, most_s, all_train)
    ended, ticks = run_model(
        exact.model,
        Limits(settings.time_limit_s, seed=settings.seed),
        True,
        stop,
        lambda value: on_step(exact.found(value)),
        lambda bound: on_step(exact.bound_s(bound)),
    )
    return math.inf if ended == "infeasible" else exact.bound_s(ticks)


def prove(
    search: Search, start: Round | None, form: RoundForm = DRAFT
) -> tuple[Round, RoundBound, str]:
    """Return the shortest round found from ``start``, the bound of its form, and why they do not meet; empty if they do.

    Raises
    ------
    TooFewPortsError
        If no links suffice, whatever the grouping and the rings.
    """
    jobs, best, ended = search.jobs, start, "Stopped before the proof"
    proved_s = known_s = 0.0  # what no round is below: once the worker is done, and by now

    def take(step: Found | float) -> None:
        """Take what the worker found: a bound, or a round, which is measured here."""
        nonlocal best, known_s
        shortest_s = math.inf if best is None else best.round_s
        if isinstance(step, Found):
            # The links of Algorithm 2 are the fastest; its own may stay where others change.
            served = search.round(step.group, form, rings=step.rings, source=SOURCE)
            kept = with_links(search, served, step)
            search.note(kept.round_s, SOURCE)
            best = shortest(best, served, kept)
        elif (bound_s := min(step, shortest_s)) > known_s * (1 + 1e-4):
            known_s = bound_s
            search.note(shortest_s, BOUND_BY, max(bound_s, search.floor.round_s), always=True)

    if not search.stop():
        # No round that is worth a thought takes longer, even if none is known.
        computing_s = max((job.train_s + job.aggregate_s for job in jobs.jobs), default=0.0)
        stage_s = Traffic.of(jobs, search.settings.reading).longest_stage_s
        most_s = 4 * (stage_s + computing_s + search.dark_s)
        if best is not None:
            most_s = best.round_s * (1 - TOLERANCE / 10)
        try:
            proved_s = call_in_worker(
                search_rounds,
                jobs,
                replace(search.settings, time_limit_s=search.left_s),
                most_s or 1.0,
                form.all_train,
                stop=search.stop,
                on_step=take,
                grace_s=GRACE_S,
            )
        except WorkerDied as death:
            ended = str(death).capitalize()
    answer = best or search.all_at_once()
    proved = proved_s >= answer.round_s * (1 - TOLERANCE)
    bound_s = answer.round_s if proved else max(proved_s, known_s)
    bound = RoundBound(bound_s, BOUND_BY, f"{form.words}, any rings", any_rings=True)
    return answer, bound, "" if proved else UNPROVED.format(ended)


def with_links(search: Search, served: Round, found: Found) -> Round:
    """Return a two-group round over the links that were found, if they serve its demand.

    Else the round as it is.
    """
    table, network = search.table, search.jobs.network
    seconds = np.zeros((network.pod_groups, 2))
    for g, members in enumerate(table.members):
        for k in range(2):
            stage = table.stage(g, [n for n in members if found.group[n] == k], found.rings)
            needed, links = stage.demand_gbit > 0, found.links[g, k]
            if (links[needed] == 0).any():
                return served
            pair_s = stage.demand_gbit[needed] / (links[needed] * network.port_gbps)
            tor_s = stage.local_gbit.max(initial=0.0) / network.tor_gbps
            seconds[g, k] = pair_s.max(initial=tor_s)
    cycles = cycles_of(table, served.group, served.form, seconds, found.links)
    return replace(served, links=found.links, communication_s=seconds, cycles=cycles)
