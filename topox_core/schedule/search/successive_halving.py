"""Local searches from the schedules of all rules, in rounds: those that get nowhere drop out, the best goes on alone.

Which schedule a search ends at depends more on where it begins, and on chance, than on how long it
lasts: a rule's schedule may be the worst of all and lead to the best. Successive halving (Jamieson
and Talwalkar, AISTATS 2016) shares the candidates out; here a third stays in after each round, and
the next is twice as long. Once the last one has found nothing better for a good while, the whole
contest begins anew with other random numbers and longer rounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from topox_core.schedule.generation.list_scheduler import candidates
from topox_core.schedule.planner import Planner, SchedulePlan
from topox_core.schedule.search.local_search import LocalSearch

# Candidates of each search in the first round: few where schedules take long to come to rest, many
# where that is a blink.
FIRST_ROUND, FEWEST, MAX = 20_000, 10, 150
STAY = 3  # one in so many stays in
# Candidates without gain after which another contest begins; in the largest problems, where each
# takes long and a contest is over after a few thousand, (PATIENCE_LARGE / tasks) squared.
PATIENCE, PATIENCE_A_TASK, PATIENCE_LARGE = 6_000, 2, 1_000_000


@dataclass(eq=False)
class Candidate:
    """One search of a round, how many candidates it has left, and the makespan it began the round at."""

    search: LocalSearch
    left: int
    began_at: int

    @property
    def standing(self) -> tuple[int, int, int]:
        """The lower the better: what it has come to, and how far it is from less."""
        return *self.search.cost, self.search.lateness

    @property
    def promise(self) -> tuple[int, tuple[int, int, int]]:
        """The lower the better: the makespan it would come to if it gained as much again, then its standing."""
        return 2 * self.search.makespan - self.began_at, self.standing


@dataclass(eq=False)
class SuccessiveHalving:
    """A search taken forward in calls of a few candidates each, as :class:`~topox_core.schedule.search.local_search.LocalSearch`.

    Parameters
    ----------
    planner
        The problem; its heads and tails steer the rules and the search.
    plan
        The best plan known; it takes part.
    seed
        The same seed and number of candidates give the same plan.
    steps, contests, runners
        Candidates tried and contests begun so far, and who is in this round.
    """

    planner: Planner
    plan: SchedulePlan
    seed: int = 0
    steps: int = 0
    contests: int = 0
    runners: list[Candidate] = field(default_factory=list)
    _searches: int = 0

    def __post_init__(self) -> None:
        self.best = self._search_from(self.plan)
        self._begin()
        self._enter(self.best)

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
            self.runners[0].search.take_up(plan)
            self._rank(self.runners[0].search)
        else:
            search = self._search_from(plan)
            self._enter(search)
            self._rank(search)

    def go_on(self, candidates: int) -> bool:
        """Try so many candidates; return whether the best schedule became better."""
        before, until = self.cost, self.steps + candidates
        while self.steps < until and not self.finished:
            if self._alone:
                hope = self._patience - self.runners[0].search.idle
                if hope > 0:
                    self._try(self.runners[0], min(hope, until - self.steps))
                else:
                    self._begin()
            elif self._at < len(self.runners):
                self._run(self.runners[self._at], until - self.steps)
            elif self._coming is not None:
                self._meet()
            else:
                self._next_round()
        return self.cost < before

    def best_plan(self) -> SchedulePlan:
        """Return the best schedule as a plan."""
        return self.best.best_plan()

    @property
    def _patience(self) -> int:
        """Candidates that may bring nothing before another contest begins."""
        n = self.planner.problem.n
        return min(PATIENCE + PATIENCE_A_TASK * n, (PATIENCE_LARGE // max(1, n)) ** 2)

    @property
    def _alone(self) -> bool:
        """Whether the rounds of this contest are over."""
        return self._coming is None and len(self.runners) == 1

    def _begin(self) -> None:
        """Begin a contest."""
        first = (FIRST_ROUND // max(1, self.planner.problem.n)) ** 2
        self._round = min(MAX, max(FEWEST, first)) << self.contests
        self.contests += 1
        self._at = 0
        self.runners = []
        self._met: set[bytes] = set()
        self._coming: Iterator[SchedulePlan] | None = candidates(
            self.planner.generator, self.planner.bound
        )

    def _search_from(self, plan: SchedulePlan) -> LocalSearch:
        """Return a search with random numbers of its own."""
        self._searches += 1
        return LocalSearch(self.planner, plan, self.seed * 1_000_000 + self._searches - 1)

    def _enter(self, search: LocalSearch) -> None:
        self.runners.append(Candidate(search, self._round, search.makespan))

    def _meet(self) -> None:
        """Let the next rule's schedule take part, unless another rule has made the same."""
        assert self._coming is not None
        listed = next(self._coming, None)
        if listed is None:
            self._coming = None
        elif listed.start.tobytes() not in self._met:
            self._met.add(listed.start.tobytes())
            if self.planner.ports is not None:  # circuits decide the start times
                listed = self.planner.with_circuits(listed.start, listed.makespan, listed.source)
            self._enter(self._search_from(listed))

    def _run(self, runner: Candidate, at_most: int) -> None:
        runner.left -= self._try(runner, min(at_most, runner.left))
        if runner.left <= 0:
            self._at += 1

    def _try(self, runner: Candidate, many: int) -> int:
        """Try so many candidates, fewer if nothing is left to gain; return how many."""
        before = runner.search.steps
        runner.search.go_on(many)
        self.steps += runner.search.steps - before
        self._rank(runner.search)
        return runner.search.steps - before

    def _rank(self, search: LocalSearch) -> None:
        if search.cost < self.best.cost:
            self.best = search

    def _next_round(self) -> None:
        """Keep some of the best standing and some that promise most."""
        stay = -(-len(self.runners) // STAY)
        kept = sorted(self.runners, key=lambda runner: runner.standing)[: -(-stay // 2)]
        others = [runner for runner in self.runners if runner not in kept]
        kept += sorted(others, key=lambda runner: runner.promise)[: stay // 2]
        self._round *= 2
        self._at = 0
        self.runners = [
            Candidate(runner.search, self._round, runner.search.makespan) for runner in kept
        ]
