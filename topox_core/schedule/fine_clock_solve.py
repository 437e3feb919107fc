"""An exact solve on continuous time: CP-SAT on a clock so fine that rounding is lost in the last digits."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import numpy as np

from topox_core.errors import InputError
from topox_core.model.durations import durations_ms
from topox_core.schedule.bounds.best_bound import Bound as TickBound
from topox_core.schedule.bounds.unrounded import Bound
from topox_core.schedule.circuits.assignment import Booking
from topox_core.schedule.circuits.held_ports import Solution, ports_of
from topox_core.schedule.engines.disjunctions import cpsat_counts_set_ups
from topox_core.schedule.engines.engine import Limits, StoppedBy
from topox_core.schedule.engines.solver_process import SolverProcess
from topox_core.schedule.fine_clock import EXACT, exact_ticks_per_ms, fine_problem
from topox_core.schedule.planner import Planner, Prepared, SchedulePlan
from topox_core.schedule.problem import Problem
from topox_core.schedule.reduction import Reduction
from topox_core.schedule.replay import Replay, replay
from topox_core.schedule.source import ENGINES, LOADS, TraceSource

ENGINE = "cpsat"
LAST_DIGITS = 1e-13  # relative: what adding binary fractions in another order may change


def fine_prepared(prepared: Prepared, makespan_ms: float) -> Prepared:
    """Return the problem on a clock for schedules of about ``makespan_ms``, with the planner that books its ports."""
    graph, cluster = prepared.graph_and_cluster
    ticks_per_ms = exact_ticks_per_ms(durations_ms(graph, cluster), makespan_ms)
    problem = fine_problem(graph, cluster, prepared.settings, ticks_per_ms)
    dark = problem.switch_network.dark_slots or 0
    planner = Planner.of(problem, 0, continuous=True, dark_slots=dark)
    reduction = Reduction(problem, TickBound(0, ""), dark, problem, problem)
    return replace(prepared, reduction=reduction, planner=planner)


@dataclass
class FineClockSolve:
    """One exact solve in a child process; poll it until it no longer runs. Nothing here blocks but :meth:`close`.

    ``best`` is the best iteration so far, ``bound`` holds for every iteration whose circuits are
    planned; its schedules are carried out on unrounded time, so that both meet where it is proved.

    Parameters
    ----------
    prepared
        Graph, cluster and settings; its own clock means nothing here.
    known
        The iteration to start from.
    limits
        Time, gap, seed and threads.
    """

    prepared: Prepared
    known: Replay
    limits: Limits
    best: Replay = field(init=False)
    bound: Bound = field(init=False)
    stopped_by: StoppedBy = field(init=False, default="time_limit")
    message: str = field(init=False, default="")
    moved_by: TraceSource = field(init=False, default=LOADS)
    bound_source: TraceSource = field(init=False, default=LOADS)

    def __post_init__(self) -> None:
        self.best, self.bound = self.known, Bound(0.0, "")
        self._fine = fine_prepared(self.prepared, self.known.makespan_ms)
        self._ended = False
        self._began, self._ended_s = time.monotonic(), 0.0
        given = self._solution(self.known)
        self._process = SolverProcess(
            ENGINE,
            self._problem,
            replace(self.limits, bound=0, start=given.start, ports=given.ports),
        )

    @staticmethod
    def fits(prepared: Prepared) -> bool:
        """Whether the problem may be small enough."""
        problem = prepared.reduction.problem
        return problem.network is not None and cpsat_counts_set_ups(problem)

    @property
    def _problem(self) -> Problem:
        return self._fine.reduction.problem

    @property
    def running(self) -> bool:
        """Whether the solve goes on."""
        return not self._ended

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start, standing still once the solve has ended."""
        return self._ended_s if self._ended else time.monotonic() - self._began

    def poll(self) -> bool:
        """Take in what the child says; return whether iteration or bound became better."""
        before = self.best.cost, self.bound.ms
        for progress in self._process.poll():
            if progress.start is not None:
                self._take(Solution(progress.start, progress.ports), progress.source)
            self._raise(progress.bound, progress.words, progress.source)
        if not self._ended and not self._process.running:
            self._end()
        return (self.best.cost, self.bound.ms) != before

    def offer(self, known: Replay) -> None:
        """Tell the child an iteration that was found elsewhere, if it is shorter."""
        if known.cost < self.best.cost:
            self.best = known
            self._process.offer(self._solution(known))

    def cancel(self) -> None:
        """Ask the child to stop."""
        self._process.cancel()

    def close(self) -> None:
        """End the child at once; what it told is kept."""
        if not self._ended:
            self._process.close()
            self.poll()
            self._finish()

    def _finish(self) -> None:
        if not self._ended:
            self._ended, self._ended_s = True, time.monotonic() - self._began

    def _end(self) -> None:
        self._finish()
        try:
            answer = self._process.answer
        except InputError as refusal:
            self.stopped_by, self.message = "heuristic", f"No exact solve: {refusal.problem}."
            return
        assert answer is not None
        self.stopped_by, self.message = answer.stopped_by, answer.message
        if answer.start is not None:
            self._take(Solution(answer.start, answer.ports), ENGINES[ENGINE])
        self._raise(answer.bound, answer.bound_by, answer.bound_source or ENGINES[ENGINE])

    def _take(self, solution: Solution, source: TraceSource) -> None:
        _, cluster = self.prepared.graph_and_cluster
        plan = self._fine.planner.with_ports(solution, source)
        carried_out = replay(self._fine, plan, cluster)
        carried_out = replace(carried_out, planned_slot_ms=None)  # a tick is no slot
        if carried_out.cost < self.best.cost:
            self.best, self.moved_by = carried_out, source

    def _raise(self, ticks: int, words: str, source: TraceSource) -> None:
        bound = Bound(ticks * self._problem.tick_ms * (1 - LAST_DIGITS), words or "critical path")
        if self.bound.ms < bound.ms <= self.best.makespan_ms * (1 + EXACT):
            self.bound, self.bound_source, self.moved_by = bound, source, source

    def _solution(self, known: Replay) -> Solution:
        """Return an iteration on the fine clock: its orders, as early as they allow."""
        problem = self._problem
        ticks = np.round(known.start_ms / problem.tick_ms).astype(np.int64)
        node, none = known.ports.node, np.zeros(len(known.ports.node), np.int64)
        booking = Booking(
            node,
            known.ports.switch,
            known.ports.source_port,
            known.ports.destination_port,
            none,
            none,
        )
        plan = SchedulePlan(ticks, 0, booking, 0, known.source, ticks, 0)
        graph, cluster = self._fine.graph_and_cluster
        # Milliseconds of this graph are ticks: whole numbers, exact up to 2**53.
        in_ticks = replace(graph, duration_ms=problem.duration.astype(np.float64))
        cluster = cluster.changed(reconfiguration_ms=float(problem.dark_ticks or 0))
        start = replay(replace(self._fine, graph=in_ticks), plan, cluster).start_ms
        return Solution(start.astype(np.int64), ports_of(problem, booking))
