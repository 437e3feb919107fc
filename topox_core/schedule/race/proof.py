"""A solve that runs beside the page: what is found before any exact engine runs, then a race of engines, in milliseconds."""

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from topox_core.runs.run import AfterSeconds, RunProgress, Stop, never
from topox_core.schedule.bounds.unrounded import Bound
from topox_core.schedule.circuits.disjunctions import LEARNING_TASKS
from topox_core.schedule.circuits.held_ports import Solution
from topox_core.schedule.engines.best_known import initially_known, raise_bounds
from topox_core.schedule.engines.engine import Limits
from topox_core.schedule.engines.waiting_workers import expect_request, wait_until_loaded
from topox_core.schedule.planning.continuous import ContinuousPlans
from topox_core.schedule.planning.fine_clock import EXACT, FineClock, continuous_bound
from topox_core.schedule.planning.local_search import LocalSearch, Pace
from topox_core.schedule.planning.planner import Planner, Prepared, SchedulePlan
from topox_core.schedule.race.portfolio import Portfolio, RaisedBound, Team
from topox_core.schedule.results.report import to_continuous_result, to_result
from topox_core.schedule.results.result import MET, FixedCircuits, Result, TracePoint, gap
from topox_core.schedule.settings import TIME
from topox_core.schedule.source import ENGINES, HEADS_AND_TAILS, LOADS, StoppedBy, TraceSource
from topox_core.text.numbers import percent, seconds

POLL_S = 0.02
LOADING_S = 10.0  # what an engine may take to load; on two idle cores 0.7 s
ROOT_TASKS = 600  # up to so many tasks bounds are raised by propagation


class Proof:
    """One solve in the background; poll it until it no longer runs, then take the result. Nothing here blocks.

    Where ``continuous`` is given every better plan is replayed on continuous time, and times and
    bounds are those of the replays. CP-SAT then solves on a clock without slots, if the problem is
    small enough, and the race on slots is left to the search. ``combine_with_fixed`` makes the
    final result of it, with the fixed circuits ``static_circuits`` that compete with schedules that
    switch. Who waits for the result anyway ``blocks`` until the exact engine has loaded, before the
    clock of the race begins.
    """

    def __init__(
        self,
        prepared: Prepared,
        plan: SchedulePlan,
        spent_before_s: float,
        trace: list[TracePoint],
        continuous: ContinuousPlans | None,
        blocks: bool = False,
    ) -> None:
        self.prepared, self.plan, self.continuous = prepared, plan, continuous
        self.spent_before_s, self.trace, self.blocks = spent_before_s, trace, blocks
        self.combine_with_fixed: Callable[[Result], Result] | None = None
        self.static_circuits: FixedCircuits | None = None
        self._stopped = False
        self._fine: FineClock | None = None
        self._exact: Portfolio | None = None  # on the fine clock
        self._bounds: queue.SimpleQueue[Bound] = queue.SimpleQueue()
        if self.continuous is not None:
            threading.Thread(
                target=self._count_ancestors, args=(self.continuous.prepared,), daemon=True
            ).start()
        self.race = self._race()
        self._record(self.race.trace)

    def _race(self) -> Portfolio:
        """Begin the race from the best plan, after what is found without any process."""
        planner, bound = self.prepared.planner, self.prepared.reduction.bound
        engine = self.prepared.settings.engine
        plan, raised, search_planner = (
            self.plan,
            RaisedBound(bound.ticks, bound.text, LOADS),
            None,
        )
        changing = planner.ports is not None and self.plan.changes > 0
        team = Team.of(engine, planner.problem, self.prepared.settings.threads)
        if engine != "printed" and (plan.makespan > bound.ticks or changing):
            began = time.monotonic()
            if self._left_s > 0:
                expect_request(team.engine)
            plan, raised, search_planner = root_phase(planner, plan, bound.text, self._limits())
            self.spent_before_s += time.monotonic() - began
            if plan.makespan > raised.ticks and self.blocks:
                wait_until_loaded(team.engine, LOADING_S)
        limits = replace(self._limits(), bound=raised.ticks)
        self._exact = self._exact_on_time(team)
        return Portfolio(
            planner,
            plan,
            "auto" if self._exact is not None else engine,
            limits,
            raised,
            search_planner,
            replace(team, engine="") if self._exact is not None else team,
            self._exact is not None,
        )

    def _exact_on_time(self, team: Team) -> Portfolio | None:
        """Begin an exact solve on continuous time, where there is such a thing and something to find."""
        plans = self.continuous
        if plans is None or plans.best is None or self._left_s <= 0 or self._closed:
            return None
        named = self.prepared.settings.engine in ("auto", "cpsat")
        if not named or not FineClock.fits(plans.prepared):
            return None
        limits, problem = self._limits(), plans.prepared.reduction.problem
        threads = replace(team, engine="cpsat").threads_of(problem, limits.threads, set_ups=True)
        self._fine, self._told = FineClock.of(plans.prepared, plans.best.makespan_ms), plans.best
        planner, plan = self._fine.prepared.planner, self._fine.plan_of(plans.best)
        limits = replace(limits, threads=threads, bound=0)
        return Portfolio(planner, plan, "cpsat", limits, team=Team("cpsat", search=False))

    @property
    def _running(self) -> list[Portfolio]:
        """The races: that on slots, and the one on the fine clock."""
        return [self.race] if self._exact is None else [self.race, self._exact]

    @property
    def _closed(self) -> bool:
        """Whether the iteration on continuous time is as close to its bound as was asked for."""
        gap = max(self.prepared.settings.gap, MET)
        return self.incumbent_ms - self.bound_ms <= gap * self.incumbent_ms

    @property
    def _left_s(self) -> float:
        return max(0.0, self.prepared.settings.time_limit_s - self.spent_before_s)

    def _limits(self) -> Limits:
        """Return the limits of a race that takes the time left."""
        settings, bound = self.prepared.settings, self.prepared.reduction.bound.ticks
        return Limits(self._left_s, settings.gap, settings.seed, settings.threads, bound)

    @property
    def running(self) -> bool:
        """Whether the solve goes on (call :meth:`poll` to take it forward)."""
        return any(race.running for race in self._running)

    @property
    def trouble(self) -> str:
        """What went wrong with an exact engine while the rest goes on; empty if nothing."""
        return self.race.trouble

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start, on the clock of the story, standing still once the solve has ended."""
        return self._solving_s + (
            0.0 if self.static_circuits is None else self.static_circuits.wall_s
        )

    @property
    def _solving_s(self) -> float:
        """The same without what fixed circuits took before, on the clock of the trace."""
        racing_s = max(race.elapsed_s for race in self._running)
        last_s = self.trace[-1].elapsed_s if self.trace else 0.0  # may come as the clock stops
        return max(racing_s + self.spent_before_s, last_s)

    @property
    def incumbent_ms(self) -> float:
        """Makespan of the best plan so far."""
        if self.continuous is not None and self.continuous.best is not None:
            return self.continuous.best.makespan_ms
        return self.prepared.reduction.problem.ms(self.race.plan.makespan)

    @property
    def bound_ms(self) -> float:
        """Best lower bound so far."""
        if self.continuous is not None:
            return self.continuous.bound.ms
        return self.prepared.reduction.problem.ms(self.race.bound)

    @property
    def story(self) -> tuple[TracePoint, ...]:
        """The trace so far as it counts: with the fixed circuits that compete with the plans."""
        return (
            tuple(self.trace)
            if self.static_circuits is None
            else self.static_circuits.joined(self.trace)
        )

    @property
    def progress(self) -> RunProgress:
        """Share of the time limit that is spent, and the gap."""
        limit_s, now = self.prepared.settings.time_limit_s, self.story[-1]
        return RunProgress(
            self.elapsed_s,
            min(1.0, self.elapsed_s / limit_s) if limit_s else 1.0,
            words=f"gap {percent(gap(now.incumbent_ms or 0.0, now.bound_ms))}, at most {seconds(limit_s)}",
        )

    def poll(self) -> list[TracePoint]:
        """Take in what the engines found; return the new points."""
        points = self._record(self.race.poll())
        if self.continuous is not None:
            points += self._poll_bound(self.continuous)
            if self._exact is not None and self._fine is not None:
                points += self._poll_exact(self._exact, self._fine, self.continuous)
        return points

    def _count_ancestors(self, prepared: Prepared) -> None:
        """Find a bound on continuous time without any search; runs in a thread."""
        self._bounds.put(continuous_bound(*prepared.graph_and_cluster, prepared.settings))

    def _poll_bound(self, plans: ContinuousPlans) -> list[TracePoint]:
        """Take in the bound that the work of ancestors gives, once it has been counted."""
        if self._bounds.empty():
            return []
        before, open_ = plans.bound.ms, not self._closed
        plans.raise_bound(self._bounds.get())
        if open_ and self._closed:
            self._end_all()
        return [] if plans.bound.ms <= before else [self._point(HEADS_AND_TAILS, HEADS_AND_TAILS)]

    def _end_all(self) -> None:
        """End what still runs: nothing is left to find, or no time."""
        for race in self._running:
            race.close()

    def _point(self, source: TraceSource, bound_source: TraceSource) -> TracePoint:
        """Add a point to the trace as things stand on continuous time, and return it."""
        point = TracePoint(self._solving_s, self.incumbent_ms, self.bound_ms, source, bound_source)
        self.trace.append(point)
        return point

    def _poll_exact(
        self, exact: Portfolio, fine: FineClock, plans: ContinuousPlans
    ) -> list[TracePoint]:
        """Take in what the race on the fine clock found; end what has nothing left to find."""
        if plans.best is not None and plans.best is not self._told:
            self._told = plans.best
            exact.offer(fine.plan_of(plans.best))
        before = self.incumbent_ms, self.bound_ms
        points = exact.poll()
        if points:
            plans.take_replay(fine.carried_out(exact.plan))
            bound = fine.bound(exact.bound, exact.raised.words)
            if bound.ms <= self.incumbent_ms * (1 + EXACT):
                plans.raise_bound(bound)
        late = self._solving_s - self.prepared.settings.time_limit_s
        if self._closed or late > TIME.overtime_s:
            self._end_all()
        elif not exact.running and self.prepared.settings.engine == "cpsat":
            self.race.close()
        if (self.incumbent_ms, self.bound_ms) == before:
            return []
        return [self._point(points[-1].source, points[-1].bound_source)]

    def finish(
        self, stop: Stop = never, on_point: Callable[[TracePoint], None] | None = None
    ) -> Result:
        """Wait for the end and return the result; ``stop`` cancels, ``on_point`` receives every new point."""
        if on_point is not None and self.static_circuits is not None:
            on_point = self.static_circuits.heard_by(on_point)
        try:
            while self.running:
                for point in self.poll():
                    if on_point is not None:
                        on_point(point)
                if stop():
                    self.cancel()
                time.sleep(POLL_S)
            return self.result()
        finally:
            self.close()

    def cancel(self) -> None:
        """Ask the engines to stop; the best plan so far is kept."""
        self._stopped = True
        for race in self._running:
            race.cancel()

    def close(self) -> None:
        """End everything at once (the tab was closed); what had ended keeps its reason."""
        self._stopped = self._stopped or self.running
        for race in self._running:
            race.close()

    def result(self) -> Result:
        """Return the result as it stands."""
        race, self.plan = self.race, self.race.plan
        if self.continuous is not None:
            self.continuous.take(self.prepared, self.plan)
            result = to_continuous_result(
                self.continuous,
                self._stopped_by_on_time(race.stopped_by),
                tuple(self.trace),
                self._solving_s,
                self._message_on_time,
            )
        else:
            result = to_result(
                self.prepared,
                self.plan,
                race.bound,
                race.raised.words,
                race.stopped_by,
                tuple(self.trace),
                self._solving_s,
                race.message,
            )
        return result if self.combine_with_fixed is None else self.combine_with_fixed(result)

    @property
    def _message_on_time(self) -> str:
        """What a user must know besides; that an engine asked for by name proves nothing where it plans on slots."""
        if self._exact is not None:
            return self._exact.message
        settings, problem = self.prepared.settings, self.prepared.reduction.problem
        named = settings.engine in ("highs", "cpsat") and settings.switching != "provisioned"
        if not named or self._closed:
            return self.race.message
        slot_ms = problem.ms(problem.ticks_per_slot)
        words = (
            f"{self.race.message} {ENGINES[settings.engine].name} plans on slots of {slot_ms:g} ms here; "
            "its plans are carried out without them, where its bounds do not hold."
        )
        return words.lstrip()

    def _stopped_by_on_time(self, on_slots: StoppedBy) -> StoppedBy:
        """Return why the search on continuous time ended, short of a proof; a proof on slots is none there."""
        if self._stopped:
            return "cancelled"
        if self._closed:
            return "gap"
        if self._exact is None:
            return "heuristic" if on_slots == "proof" else on_slots
        named = self.prepared.settings.engine == "cpsat" and not self._exact.running
        ended = self._exact.stopped_by if named else "time_limit"
        return "time_limit" if ended == "cancelled" else ended  # by the clock, which asked nobody

    def _record(self, points: list[TracePoint]) -> list[TracePoint]:
        """Add the points of a race to the trace, on the solve's own clock."""
        added = [replace(p, elapsed_s=p.elapsed_s + self.spent_before_s) for p in points]
        if self.continuous is not None:
            added = self._replayed(added, self.continuous)
        self.trace += added
        return added

    def _replayed(self, points: list[TracePoint], plans: ContinuousPlans) -> list[TracePoint]:
        """Return the points at which an iteration on continuous time became shorter."""
        before = self.incumbent_ms
        plans.take(self.prepared, self.race.plan)
        if not points or self.incumbent_ms >= before:
            return []
        last = points[-1]
        return [replace(last, incumbent_ms=self.incumbent_ms, bound_ms=self.bound_ms)]


# -- before any exact engine runs, while it loads -----------------------------------------------------------


def root_phase(
    planner: Planner, plan: SchedulePlan, bound_by: str, limits: Limits
) -> tuple[SchedulePlan, RaisedBound, Planner | None]:
    """Return what a short local search and, for small problems, bounds without a search tree give: most solves end here.

    The best plan, the best bound, and the planner with the heads and tails of ancestors (None: not made yet).
    """
    search_planner, raised = None, RaisedBound(planner.bound, bound_by, LOADS)
    counts_dark = planner.ports is not None and planner.ports.ports.dark > 0
    if plan.makespan > planner.bound and (planner.problem.n <= ROOT_TASKS or counts_dark):
        search_planner, better = planner.with_ancestor_tails()
        if better is not None:
            raised = RaisedBound(better.ticks, better.text, HEADS_AND_TAILS)
    search = LocalSearch(search_planner or planner, plan, limits.seed)
    over, pace = (
        AfterSeconds(min(TIME.root_search_s, limits.time_limit_s)),
        Pace(TIME.root_search_s / 5),
    )
    while not over() and not search.finished:
        pace.timed(search.go_on)
    if search.cost < plan.cost:
        plan = min(plan, search.best_plan(), key=lambda one: one.cost)
    if planner.problem.n > ROOT_TASKS:
        return plan, raised, search_planner
    start, makespan = planner.reduced(plan)
    if makespan <= raised.ticks:
        return plan, raised, search_planner
    root_s = (
        TIME.root_bounds_learning_s if planner.problem.n < LEARNING_TASKS else TIME.root_bounds_s
    )
    root_s = min(root_s, limits.time_limit_s)
    known = initially_known(
        planner.problem, Limits(root_s, bound=raised.ticks, solution=Solution(start))
    )
    raise_bounds(known, AfterSeconds(root_s))
    if known.bound_by:
        ticks = max(raised.ticks, known.bound)
        raised = RaisedBound(ticks, known.bound_by, known.bound_source)
    return plan, raised, search_planner
