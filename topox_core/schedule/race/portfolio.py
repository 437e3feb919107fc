"""A race for the best schedule and the best bound: an exact engine in a process, the local search in a thread."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from topox_core.runs.cores import give_way, lower_priority
from topox_core.runs.run import AfterSeconds, any_of
from topox_core.schedule.bounds.best_bound import best_bound
from topox_core.schedule.circuits.disjunctions import (
    LEARNING_TASKS,
    WHOLE_TASKS,
    cpsat_counts_set_ups,
)
from topox_core.schedule.circuits.held_ports import Solution, ports_of, with_set_ups
from topox_core.schedule.engines.engine import Answer, Limits, Progress
from topox_core.schedule.engines.solver_process import SolverProcess
from topox_core.schedule.planning.local_search import Pace, SuccessiveHalving
from topox_core.schedule.planning.planner import Planner, SchedulePlan
from topox_core.schedule.problem import Problem
from topox_core.schedule.results.result import TracePoint
from topox_core.schedule.settings import TIME
from topox_core.schedule.source import HEADS_AND_TAILS, LOADS, StoppedBy, TraceSource

JOIN_S = 0.3
LOWEST = 19  # the niceness of a search that gives way

Start = Callable[[str, Problem, Limits], SolverProcess]


@dataclass(frozen=True)
class Team:
    """Who takes part: an exact engine in a process of its own ("": none), and whether the local search runs beside it."""

    engine: str
    search: bool

    @staticmethod
    def of(engine: str, problem: Problem, threads: int) -> Team:
        """Return the team that an engine's name stands for.

        ``auto`` is CP-SAT beside the local search; HiGHS instead of CP-SAT where pairs share
        circuits, which CP-SAT has no model of. ``highs`` and ``cpsat``
        alone have the search beside them if there is a core for it; ``printed`` runs alone.
        """
        if engine == "auto":
            return Team("highs" if problem.shares else "cpsat", True)
        return Team(engine, threads > 1 and engine != "printed")

    def threads_of(self, problem: Problem, threads: int, set_ups: bool) -> int:
        """Return on how many cores the engine works: on all where CP-SAT decides what the search no longer betters.

        The local search is through with so small a problem sooner, and then gives way.
        ``set_ups``: the engine's model counts them.
        """
        alone = WHOLE_TASKS if set_ups else LEARNING_TASKS - 1
        if self.engine == "cpsat" and problem.n <= alone:
            return threads
        return max(1, threads - self.search)


@dataclass(frozen=True)
class RaisedBound:
    """A lower bound in ticks that somebody gave."""

    ticks: int
    words: str
    source: TraceSource


@dataclass
class Portfolio:
    """One race; poll it until it no longer runs. Nothing here blocks but :meth:`close`, and that briefly.

    Every schedule is checked before it is believed, and better ones are passed on to everybody.

    Parameters
    ----------
    planner, plan
        The problem and the plan to start from.
    search_planner
        The planner of the local search, with ancestors' tails; None: it is made first.
    team
        Who takes part; None: what the engine's name stands for.
    engine
        See :meth:`Team.of`.
    gives_way
        The search gives way where exact engines run: those of the team, or one beside the race.
    limits
        Time, gap, seed and cores; its ``bound`` must be valid.
    given
        The bound to start from, with where it is from; None: that of ``limits``.
    """

    planner: Planner
    plan: SchedulePlan
    engine: str
    limits: Limits
    given: RaisedBound | None = None
    search_planner: Planner | None = None
    team: Team | None = None
    gives_way: bool = False
    start_process: Start = SolverProcess
    began: float = field(default_factory=time.monotonic)
    trace: list[TracePoint] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Each better than those before: a schedule found later may refute the last ones.
        self._raised = [self.given or RaisedBound(self.limits.bound, "", LOADS)]
        self._cancelled, self._enough = threading.Event(), threading.Event()
        self._plans: queue.SimpleQueue[SchedulePlan] = queue.SimpleQueue()
        self._bounds: queue.SimpleQueue[RaisedBound] = queue.SimpleQueue()
        self._better: queue.SimpleQueue[SchedulePlan] = queue.SimpleQueue()
        self._process: SolverProcess | None = None
        self._answer: Answer | None = None
        self._counts_set_ups = False  # whether the engine does
        self._thread: threading.Thread | None = None
        self._ended: float | None = None
        self._moved_s = 0.0  # when plan or bound became better
        self._reduced = self.plan.makespan  # of the best schedule that the engine knows
        self._team = self.team or Team.of(self.engine, self.planner.problem, self.limits.threads)
        self._note(self.plan.source)
        if self.limits.time_limit_s <= 0:
            self._ended = self.began
            return
        if self._team.engine and not self._closed():
            self._process = self._begun()
        if (self._team.search and not self._closed()) or self._changes_to_save():
            self._search()

    @property
    def raised(self) -> RaisedBound:
        """The best lower bound that no schedule contradicts, or the one to start from."""
        kept = (one for one in reversed(self._raised) if not self._refuted(one))
        return next(kept, self._raised[0])

    @property
    def bound(self) -> int:
        """The best lower bound, in ticks."""
        return self.raised.ticks

    @property
    def running(self) -> bool:
        """Whether the race goes on (call :meth:`poll` to take it forward)."""
        return self._ended is None and (self._process is not None or self._thread is not None)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start, standing still once the race has ended."""
        return (self._ended or time.monotonic()) - self.began

    @property
    def trouble(self) -> str:
        """What went wrong with an exact engine while the rest goes on; empty if nothing."""
        answer = self._answer
        return answer.message if answer is not None and answer.stopped_by == "failed" else ""

    def poll(self) -> list[TracePoint]:
        """Take in what the engines found; return the new points of the trace."""
        before = len(self.trace)
        if self._process is not None:
            for progress in self._process.poll():
                self._take(progress)
            if not self._process.running and self._answer is None:
                self._take_end(self._process)
        self._drain()
        if self._ended is None and self._over():
            self._end()
        return self.trace[before:]

    def cancel(self) -> None:
        """Ask everybody to stop; the best plan so far is kept."""
        self._cancelled.set()
        if self._process is not None:
            self._process.cancel()

    def close(self) -> None:
        """End everything at once; a race that had ended keeps its reason."""
        if self.running:
            self._cancelled.set()
        self._end()

    @property
    def stopped_by(self) -> StoppedBy:
        """Why the race ended, as far as it has."""
        if self.plan.makespan <= self.bound:
            return "proof"
        if self._cancelled.is_set():
            return "cancelled"
        if self._closed():
            return "gap"
        ended = self._engine_ended
        if ended == "proof" and self._reduced <= self.bound:
            return "heuristic"  # the reduced optimum is proved, but no plan on real switches reaches it
        if self._thread is not None and self.engine == "auto":
            return "time_limit"
        if ended == "heuristic":  # the engine has no model of the problem
            return ended
        return (
            "failed" if ended in ("failed", "proof") else "time_limit"
        )  # no bound supports that proof

    @property
    def message(self) -> str:
        """What a user must know besides."""
        messages = ["" if self._answer is None else self._answer.message]
        takes_part = self._process is not None and self._engine_ended != "heuristic"
        without_set_ups = self._dark and takes_part and not self._counts_set_ups
        if without_set_ups and self.plan.makespan > self.bound:
            messages.append("No exact engine that takes part knows set-ups here.")
        if self.stopped_by == "heuristic" and self._engine_ended == "proof":
            messages.append(self._what_was_proved())
        return " ".join(message for message in messages if message)

    def _what_was_proved(self) -> str:
        """Return what the optimum of the reduced problem says about the plans, which it does not settle."""
        problem = self.planner.problem
        optimum = problem.ms(self._reduced)
        if self._dark:
            return f"Without set-up times {optimum:g} ms would be the optimum."
        if problem.network is None or problem.network.switches == 1:
            return ""
        return (
            f"If transfers could move between switches, {optimum:g} ms would be the optimum; no schedule was found "
            "that keeps every transfer on its switch in that time."
        )

    @property
    def _engine_ended(self) -> StoppedBy | None:
        """Why the engine ended, if it has."""
        return None if self._answer is None else self._answer.stopped_by

    @property
    def _dark(self) -> bool:
        """Whether ports are dark for a time before a circuit that they did not hold."""
        return self.planner.ports is not None and self.planner.ports.ports.dark > 0

    def _begun(self) -> SolverProcess:
        """Start the engine on the problem that it has a model of, from what is known of just that one.

        Without set-ups schedules may be shorter than any plan, and bounds that count them do not
        hold.
        """
        problem, team, bound = self.planner.problem, self._team, self.bound
        counts = self._dark and team.engine == "cpsat" and cpsat_counts_set_ups(problem)
        # On the fine clock the problem counts them itself.
        self._counts_set_ups = counts or problem.dark_ticks is not None
        threads = team.threads_of(problem, self.limits.threads, self._counts_set_ups)
        if self._counts_set_ups:
            assert self.planner.ports is not None
            problem = with_set_ups(problem, self.planner.ports.ports.dark)
        elif self._dark:
            bound = best_bound(problem, 0).ticks
        solution = self._as_asked(self.plan)
        limits = replace(self.limits, threads=threads, bound=bound, solution=solution)
        return self.start_process(team.engine, problem, limits)

    def _as_asked(self, plan: SchedulePlan) -> Solution:
        """Return a plan as a schedule of the problem that the engine has a model of."""
        if self._counts_set_ups:
            assert plan.booking is not None
            return Solution(plan.start, ports_of(self.planner.problem, plan.booking))
        start, makespan = self.planner.reduced(plan)
        self._reduced = min(self._reduced, makespan)
        return Solution(start)

    def _closed(self) -> bool:
        return self.plan.makespan - self.bound <= self.limits.gap * self.plan.makespan

    def _changes_to_save(self) -> bool:
        return (
            self.planner.ports is not None
            and self.plan.makespan <= self.bound
            and self.plan.changes > 0
            and self.elapsed_s < min(TIME.saving_s, self.limits.time_limit_s)
            and self.elapsed_s - self._moved_s
            < TIME.saving_idle_s + TIME.saving_idle_s_per_task * self.planner.problem.n
        )

    def _over(self) -> bool:
        """Nothing more can come: the gap is closed, the time is up, or every engine has ended."""
        ended = self._process is None or self._answer is not None
        over = self.elapsed_s - self.limits.time_limit_s
        if self._cancelled.is_set():
            return ended
        if self._closed():
            return not (
                self._thread is not None and self._thread.is_alive() and self._changes_to_save()
            )
        # An engine that was asked for by name decides; beside ``auto`` the search goes on alone.
        alone = self._thread is None or not self._thread.is_alive() or self.engine != "auto"
        return over >= TIME.overtime_s or (ended and (alone or over >= 0))

    def _end(self) -> None:
        self._enough.set()
        self._ended = self._ended or time.monotonic()
        if self._process is not None:
            self._process.close()
        if self._thread is not None:
            self._thread.join(JOIN_S)
            self._drain()

    def _drain(self) -> None:
        while not self._plans.empty():
            self.offer(self._plans.get())
        while not self._bounds.empty():
            self._raise(self._bounds.get())

    def _search(self) -> None:
        self._thread = threading.Thread(target=self._searching, daemon=True, name="local search")
        self._thread.start()

    def _searching(self) -> None:
        """Search until told to stop, publishing now and then; runs in a thread."""
        give_way()
        left = self.limits.time_limit_s - (time.monotonic() - self.began)
        stop = any_of(self._cancelled.is_set, self._enough.is_set, AfterSeconds(left))
        planner = self.search_planner
        if planner is None:
            planner, better = self.planner.with_ancestor_tails()
            if better is not None:
                self._bounds.put(RaisedBound(better.ticks, better.text, HEADS_AND_TAILS))
        search, pace = SuccessiveHalving(planner, self.plan, self.limits.seed), Pace()
        published, published_s = search.cost, 0.0
        gave_way, gained_s = self._process is None and not self.gives_way, time.monotonic()
        patience_s = (
            TIME.search_idle_s
            if planner.problem.n < LEARNING_TASKS
            else TIME.search_idle_s_per_pair * planner.problem.n**2
        )
        while not stop() and not search.finished:
            while not self._better.empty():
                search.take_up(self._better.get())
                published = min(published, search.cost)
            if pace.timed(search.go_on):
                gained_s = time.monotonic()
            if not gave_way and time.monotonic() - gained_s > patience_s:
                gave_way = True
                lower_priority(LOWEST)
            if search.cost < published and time.monotonic() - published_s > TIME.publish_s:
                published, published_s = search.cost, time.monotonic()
                self._plans.put(search.best_plan())
        if search.cost < published:
            self._plans.put(search.best_plan())

    def _take(self, progress: Progress) -> None:
        if progress.solution is not None:
            ends = progress.solution.start + self.planner.problem.duration
            self._reduced = min(self._reduced, int(ends.max(initial=0)))
            self.offer(self.planner.of_solution(progress.solution, progress.source))
        words = progress.words or progress.source.name
        self._raise(RaisedBound(progress.bound, words, progress.source))

    def _take_end(self, process: SolverProcess) -> None:
        """Take in how the exact engine ended; a refusal (the model is too large) keeps what there is."""
        self._answer = answer = process.answer
        assert answer is not None
        self._take(answer)
        booked = answer.solution is not None and self.planner.ports is not None
        moved = booked and self.plan.makespan > self._reduced
        if moved and self._thread is None and not self._cancelled.is_set():
            self._search()

    def _raise(self, raised: RaisedBound) -> None:
        if raised.ticks > self.bound and not self._refuted(raised):
            self._raised.append(raised)
            self._moved_s = self.elapsed_s
            self._note(raised.source)

    def _refuted(self, raised: RaisedBound) -> bool:
        """Whether a schedule is known that contradicts a bound."""
        return raised.ticks > self.plan.makespan

    def offer(self, plan: SchedulePlan) -> None:
        """Take a plan if it is better, and pass it on."""
        if plan.cost < self.plan.cost:
            self._moved_s = self.elapsed_s
            shorter = plan.makespan < self.plan.makespan
            self.plan = plan
            self._better.put(plan)
            if shorter:
                self._note(plan.source)
                if self._process is not None:
                    self._process.offer(self._as_asked(plan))

    def _note(self, source: TraceSource) -> None:
        problem = self.planner.problem
        makespan_ms, bound_ms = problem.ms(self.plan.makespan), problem.ms(self.bound)
        self.trace.append(
            TracePoint(self.elapsed_s, makespan_ms, bound_ms, source, self.raised.source)
        )
