"""Seeded local search: the compiled loop of :mod:`topox_core.schedule.kernels.improve`, taken forward in short calls.

Which schedule a search ends at depends more on where it begins, and on chance, than on how long it
lasts: a rule's schedule may be the worst of all and lead to the best. So searches begin from the
schedules of all rules, and those that get nowhere drop out. Successive halving (Jamieson and
Talwalkar, AISTATS 2016) shares the candidates out; here a third stays in after each round, and the
next is twice as long. Once the last one has found nothing better for a good while, the whole contest
begins anew with other random numbers and longer rounds.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from topox_core.model.arrays.csr import grouped
from topox_core.schedule.kernels.continuous import Before, Ports, nothing_before
from topox_core.schedule.kernels.improve import NUMBERS, SearchSpace, State, improve, lateness
from topox_core.schedule.kernels.moves import Neighbours
from topox_core.schedule.kernels.tasks import by_time
from topox_core.schedule.planning.list_scheduler import candidates
from topox_core.schedule.planning.planner import Planner, SchedulePlan
from topox_core.schedule.problem import Int, Int32, Problem
from topox_core.schedule.rcpsp.reduction import pairs_that_repeat
from topox_core.schedule.source import LOCAL_SEARCH

CALL_S = 0.04  # about how long one call of the compiled loop lasts
# Candidates of each search in the first round: few where schedules take long to come to rest, many
# where that is a blink.
FIRST_ROUND, FEWEST, MAX = 20_000, 10, 150
STAY = 3  # one in so many stays in
# Candidates without gain after which another contest begins; in the largest problems, where each
# takes long and a contest is over after a few thousand, (PATIENCE_LARGE / tasks) squared.
PATIENCE, PATIENCE_A_TASK, PATIENCE_LARGE = 6_000, 2, 1_000_000


def neighbours(problem: Problem) -> Neighbours:
    """Return who shares a resource, a device or a pair of servers."""
    task, row, _ = problem.uses
    resource_ptr, resource_task = grouped(row, task.astype(np.int32), len(problem.rooms))
    if problem.network is None:
        return Neighbours(resource_ptr, resource_task, np.zeros(1, np.int32), np.zeros(0, np.int32))
    carried = np.flatnonzero(problem.on_grid & (problem.duration > 0)).astype(np.int32)
    code = (
        problem.network.source[carried].astype(np.int64) * problem.network.servers
        + problem.network.destination[carried]
    )
    pair = pairs_that_repeat(code)
    repeated = pair >= 0
    pair_ptr, pair_task = grouped(pair[repeated], carried[repeated], int(pair.max(initial=-1)) + 1)
    return Neighbours(resource_ptr, resource_task, pair_ptr, pair_task)


# For problems whose transfers hold no ports.
_NOBODY = np.zeros(0, np.int32)
NO_PORTS = Ports(_NOBODY, _NOBODY, 0, 0, False, np.zeros(1, np.int64), 0, 0, 0)


class LocalSearch:
    """A search that is taken forward in calls of a few candidates each.

    Parameters
    ----------
    planner
        The problem, and what turns its schedules into plans.
    plan
        Where to begin.
    seed
        The same seed and number of candidates give the same plan.
    """

    def __init__(self, planner: Planner, plan: SchedulePlan, seed: int = 0) -> None:
        self.planner, self._rows = planner, neighbours(planner.problem)
        self._random = np.random.default_rng(seed)
        start, makespan, changes = self._as_searched(plan)
        sequence = self._sequence(start)
        before, best_before = self._before(sequence), self._before(sequence)
        at = np.zeros(1, NUMBERS).view(np.recarray)
        self._state = State(start.copy(), sequence, before, best_before, at)
        self.at = at[0]  # numbers of the search as it stands
        self._aim(makespan, changes)
        dark = 0 if self.planner.ports is None else self.planner.ports.ports.dark
        slots = int(1.3 * makespan) // self.planner.problem.ticks_per_slot
        self.at.horizon = slots + 20 + 4 * dark

    @property
    def steps(self) -> int:
        """Candidates tried so far."""
        return int(self.at.steps)

    @property
    def cost(self) -> tuple[int, int]:
        """Makespan and circuit changes of the best schedule."""
        return int(self.at.makespan), int(self.at.changes)

    @property
    def rank(self) -> tuple[int, int, int]:
        """The lower the better: what it has come to, and how far it is from less."""
        return *self.cost, int(self.at.late)

    @property
    def finished(self) -> bool:
        """Whether nothing is left to gain: the bound is met and no circuit changes (or none are held)."""
        return self.cost <= (self.planner.bound, 0)

    def take_up(self, plan: SchedulePlan) -> None:
        """Go on from a better plan that somebody else found."""
        start, makespan, changes = self._as_searched(plan)
        if (makespan, changes) < self.cost:
            self._state.now[:] = start
            self._state.best[:] = self._sequence(start)
            self.at.idle = 0
            self._aim(makespan, changes)

    def go_on(self, candidates: int) -> bool:
        """Try so many candidates; return whether the best schedule became better."""
        before = self.cost
        generator, ports = self.planner.generator, self.planner.ports
        space = SearchSpace(
            generator.tasks,
            generator.back,
            NO_PORTS if ports is None else ports.ports,
            ports is not None,
            generator.order,
            generator.place,
            generator.tail,
            self._rows,
            self.planner.bound,
        )
        until = self.steps + candidates
        while self.steps < until and not self.finished:
            if not improve(self._state, space, until - self.steps, self._random):
                self.at.horizon *= 2
        return self.cost < before

    def best_plan(self) -> SchedulePlan:
        """Return the best schedule as a plan."""
        ports = self.planner.ports
        if ports is not None:
            return ports.in_sequence(self._state.best, LOCAL_SEARCH, before=self._state.best_before)
        start, _ = self.planner.generator.in_sequence(self._state.best)
        return self.planner.with_circuits(start, LOCAL_SEARCH)

    def _before(self, sequence: Int32) -> Before:
        """Return what ports hold before the best schedule of a sequence; nothing where there are none."""
        ports = self.planner.ports
        booked = None if ports is None else ports.in_sequence(sequence, LOCAL_SEARCH)
        if booked is None or booked.before is None:
            return nothing_before(0, False)
        held = booked.before
        return Before(held.held.copy(), held.free.copy(), held.repeats)

    def _aim(self, makespan: int, changes: int) -> None:
        """Note the schedule that the search stands at as the best."""
        enough = max(self.planner.bound, makespan - 1)
        late = lateness(
            self._state.now, self.planner.problem.duration, self.planner.generator.tail, enough
        )
        self.at.makespan, self.at.changes = makespan, changes
        self.at.late, self.at.now_changes = late, changes

    def _sequence(self, start: Int) -> Int32:
        generator = self.planner.generator
        return by_time(start, generator.order, generator.place)

    def _as_searched(self, plan: SchedulePlan) -> tuple[Int, int, int]:
        """Return start, makespan and circuit changes of a plan: of the reduced problem where no ports are held."""
        if self.planner.ports is None:
            return plan.start, plan.makespan, 0
        return plan.start, plan.makespan, plan.changes


@dataclass
class Pace:
    """How many candidates a call tries, so that it lasts about as long as wanted."""

    wanted_s: float = CALL_S
    candidates: int = 1

    def timed(self, go_on: Callable[[int], bool]) -> bool:
        """Call with so many candidates and adapt their number; return what the call does."""
        began = time.perf_counter()
        better = go_on(self.candidates)
        took = time.perf_counter() - began
        if took < self.wanted_s / 2:
            self.candidates *= 2
        elif took > self.wanted_s:
            self.candidates = max(1, self.candidates // 2)
        return better


class SuccessiveHalving:
    """A search taken forward in calls of a few candidates each, as :class:`LocalSearch`.

    Parameters
    ----------
    planner
        The problem; its heads and tails steer the rules and the search.
    plan
        The best plan known; it takes part.
    seed
        The same seed and number of candidates give the same plan.

    Attributes
    ----------
    steps, contests, runners
        Candidates tried and contests begun so far, and who is in this round.
    """

    def __init__(self, planner: Planner, plan: SchedulePlan, seed: int = 0) -> None:
        self.planner, self.seed, self.runners = planner, seed, list[LocalSearch]()
        self.steps = self.contests = self._searches = 0
        # Candidates that may still be tried in this call; whether the rounds of this contest are over.
        self._left, self._alone = 0, False
        self.best = self._search_from(plan)
        self._running = self._run()

    @property
    def cost(self) -> tuple[int, int]:
        """Makespan and circuit changes of the best schedule."""
        return self.best.cost

    @property
    def finished(self) -> bool:
        """Whether nothing is left to gain."""
        return self.best.finished

    def take_up(self, plan: SchedulePlan) -> None:
        """Go on from a better plan that somebody else found, too."""
        if self._alone:
            self.runners[0].take_up(plan)
        else:
            self.runners.append(self._search_from(plan))
        self._note_best(self.runners[-1])

    def go_on(self, candidates: int) -> bool:
        """Try so many candidates; return whether the best schedule became better."""
        before, self._left = self.cost, candidates
        if candidates > 0 and not self.finished:
            next(self._running)
        return self.cost < before

    def best_plan(self) -> SchedulePlan:
        """Return the best schedule as a plan."""
        return self.best.best_plan()

    def _run(self) -> Iterator[None]:
        """Hold one contest after another; yield whenever a call's candidates are used up."""
        n = self.planner.problem.n
        patience = min(PATIENCE + PATIENCE_A_TASK * n, (PATIENCE_LARGE // max(1, n)) ** 2)
        first = min(MAX, max(FEWEST, (FIRST_ROUND // max(1, n)) ** 2))
        self.runners.append(self.best)
        while True:
            many = first << self.contests
            self.contests += 1
            self._alone = False
            yield from self._round(many)
            for listed in self._rules():
                self.runners.append(self._search_from(listed))
                yield from self._round(many, len(self.runners) - 1)
            self._halve()
            while len(self.runners) > 1:
                many *= 2
                yield from self._round(many)
                self._halve()
            self._alone, last = True, self.runners[0]
            while last.at.idle < patience:
                yield from self._try(last, patience - int(last.at.idle))
            self.runners = []

    def _rules(self) -> Iterator[SchedulePlan]:
        """Yield the schedule of each rule, unless another rule has made the same."""
        met: set[bytes] = set()
        for listed in candidates(self.planner.generator, self.planner.bound):
            if listed.start.tobytes() not in met:
                met.add(listed.start.tobytes())
                booked = self.planner.ports is not None  # circuits decide the start times
                yield self.planner.with_circuits(listed.start, listed.source) if booked else listed

    def _round(self, many: int, first: int = 0) -> Iterator[None]:
        """Try so many candidates of each who takes part, those that enter meanwhile included."""
        while first < len(self.runners):
            yield from self._try(self.runners[first], many)
            first += 1

    def _try(self, search: LocalSearch, many: int) -> Iterator[None]:
        """Try so many candidates; yield where those of a call are used up, or nothing is left to gain."""
        while many > 0:
            before = search.steps
            search.go_on(min(many, self._left))
            tried = search.steps - before
            many, self._left, self.steps = many - tried, self._left - tried, self.steps + tried
            self._note_best(search)
            if self._left <= 0 or self.finished:
                yield

    def _search_from(self, plan: SchedulePlan) -> LocalSearch:
        """Return a search with random numbers of its own."""
        self._searches += 1
        return LocalSearch(self.planner, plan, self.seed * 1_000_000 + self._searches - 1)

    def _note_best(self, search: LocalSearch) -> None:
        if search.cost < self.best.cost:
            self.best = search

    def _halve(self) -> None:
        """Keep the best ranked."""
        stay = -(-len(self.runners) // STAY)
        self.runners = sorted(self.runners, key=lambda runner: runner.rank)[:stay]
