"""The problem on continuous time: clocks so fine that slots mean nothing, for bounds and for exact solves.

Circuits may start at any time there. Durations are rounded down to a tick, so that bounds hold for
unrounded time; schedules are taken as orders and carried out on unrounded time
(:mod:`topox_core.schedule.replay`).
"""

import math
import time
from dataclasses import dataclass, field, replace

import numpy as np

from topox_core.model.cluster import Cluster
from topox_core.model.transfer_graph import FloatArray, TransferGraph, durations_ms
from topox_core.schedule.bounds.ancestor_bounds import (
    ancestor_bound,
    ancestor_heads_and_tails,
    near_of,
)
from topox_core.schedule.bounds.best_bound import Bound as TickBound, best_bound
from topox_core.schedule.bounds.unrounded import Bound, chain_heads_and_tails, circuit_bound
from topox_core.schedule.bounds.windows import clocks, coarsened
from topox_core.schedule.circuits.held_ports import Booking, Solution, ports_of
from topox_core.schedule.engines.disjunctions import cpsat_counts_set_ups
from topox_core.schedule.engines.engine import Limits, StoppedBy
from topox_core.schedule.engines.solver_process import SolverProcess
from topox_core.schedule.planner import Planner, Prepared, SchedulePlan
from topox_core.schedule.problem import Int, Problem
from topox_core.schedule.reduction import Reduction, without_clock
from topox_core.schedule.replay import Replay, replay
from topox_core.schedule.settings import Settings
from topox_core.schedule.source import ENGINES, LOADS, TraceSource

# All tasks one after another take at most so many ticks in a bound, so that sums stay whole numbers.
LONGEST_TICKS = 1 << 58
NEAR = 100  # ancestors that count for a bound of many tasks
ULPS = 2.0  # by so many steps of a binary fraction a product of two may miss
EXACT = 1e-9  # of the makespan: what rounding every task may cost an exact solve
ENGINE = "cpsat"  # who solves exactly
LAST_DIGITS = 1e-13  # relative: what adding binary fractions in another order may change


def fine_problem(
    graph: TransferGraph, cluster: Cluster, settings: Settings, ticks_per_ms: float
) -> Problem:
    """Return the problem with set-ups on ticks as fine as slots, durations and delay rounded down.

    The ticks are then made as coarse as loses nothing.

    Parameters
    ----------
    graph, cluster, settings
        As :func:`topox_core.schedule.reduction.reduce`; the cluster's slot and the tick in the
        settings mean nothing here.
    ticks_per_ms
        A power of ten.
    """
    plain = without_clock(graph, cluster, settings)
    delay = _floor_ticks(np.array([cluster.reconfiguration_ms]), ticks_per_ms)
    fine = replace(
        plain,
        duration=_floor_ticks(durations_ms(graph, cluster), ticks_per_ms),
        ticks_per_slot=1,
        tick_ms=1 / ticks_per_ms,
        network=replace(plain.switch_network, dark_slots=int(delay[0])),
    )
    return coarsened(fine)


def exact_ticks_per_ms(length_ms: FloatArray, makespan_ms: float) -> float:
    """Return a power of ten so fine that rounding down every task loses less than a proof needs, and none all."""
    finest_ms = EXACT * max(makespan_ms, EXACT) / max(1, len(length_ms))
    finest_ms = min(finest_ms, float(length_ms[length_ms > 0].min(initial=np.inf)))
    return float(10.0 ** math.ceil(-math.log10(finest_ms)))


def _floor_ticks(duration_ms: FloatArray, ticks_per_ms: float) -> Int:
    """Return durations rounded down; what binary fractions leave just below a whole number is that number."""
    ticks = duration_ms * ticks_per_ms
    nearest = np.round(ticks)
    whole = np.abs(ticks - nearest) <= ULPS * np.spacing(ticks)
    return np.where(whole, nearest, np.floor(ticks)).astype(np.int64)


def continuous_bound(
    graph: TransferGraph, cluster: Cluster, settings: Settings, near: int | None = None
) -> Bound:
    """Return a lower bound on iterations whose circuits may start at any time, and what binds.

    Critical path, loads of devices and ports, work of ancestors and set-ups along paths, on a clock
    so fine that rounding is lost in the last digits.

    Parameters
    ----------
    near
        How many ancestors of a task count (None: 1,000 up to 2,000 tasks, else 100); 0: none, which
        takes milliseconds.
    """
    best = circuit_bound(graph, cluster, settings)
    total_ms = float(durations_ms(graph, cluster).sum()) + len(graph) * cluster.reconfiguration_ms
    if total_ms <= 0:
        return best
    ticks_per_ms = float(10.0 ** math.floor(math.log10(LONGEST_TICKS / total_ms)))
    # Where tasks and delay last whole slots, say, so do the best schedules: bounds are rounded up to that.
    problem = fine_problem(graph, cluster, settings, ticks_per_ms)
    dark = problem.dark_ticks or 0
    bound = best_bound(problem, dark)
    if near != 0:
        near = near_of(problem, NEAR) if near is None else near
        by_chains = chain_heads_and_tails(graph, cluster, durations_ms(graph, cluster))
        # Whole ticks that are no more than a sum of fractions is, whatever its last digits.
        below = [one / problem.tick_ms * (1 - 1e-12) for one in by_chains]
        head, tail = (np.floor(one).astype(np.int64) for one in below)
        head, tail = ancestor_heads_and_tails(problem, clocks(problem), near, dark, (head, tail))
        bound = ancestor_bound(problem, head, tail, bound.ticks, dark) or bound
    raised_ms = bound.ticks * problem.tick_ms
    return Bound(raised_ms, bound.text) if raised_ms > best.ms * (1 + EXACT) else best


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
        graph, cluster = self.prepared.graph_and_cluster
        ticks_per_ms = exact_ticks_per_ms(durations_ms(graph, cluster), self.known.makespan_ms)
        problem = fine_problem(graph, cluster, self.prepared.settings, ticks_per_ms)
        dark = problem.switch_network.dark_slots or 0
        planner = Planner.of(problem, 0, continuous=True, dark_slots=dark)
        reduction = Reduction(problem, TickBound(0, ""), dark, problem, problem)
        self._fine = replace(self.prepared, reduction=reduction, planner=planner)
        self._began = time.monotonic()
        self._ended: float | None = None
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
        return self._ended is None

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start, standing still once the solve has ended."""
        return (self._ended or time.monotonic()) - self._began

    def poll(self) -> bool:
        """Take in what the child says; return whether iteration or bound became better."""
        before = self.best.cost, self.bound.ms
        for progress in self._process.poll():
            if progress.start is not None:
                self._take(Solution(progress.start, progress.ports), progress.source)
            self._raise(progress.bound, progress.words, progress.source)
        if self.running and not self._process.running:
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
        if self.running:
            self._process.close()
            self.poll()
            self._ended = self._ended or time.monotonic()

    def _end(self) -> None:
        self._ended = time.monotonic()
        answer = self._process.answer
        assert answer is not None
        self.stopped_by, self.message = answer.stopped_by, answer.message
        if answer.start is not None:
            self._take(Solution(answer.start, answer.ports), ENGINES[ENGINE])
        self._raise(answer.bound, answer.bound_by, answer.bound_source or ENGINES[ENGINE])

    def _take(self, solution: Solution, source: TraceSource) -> None:
        _, cluster = self.prepared.graph_and_cluster
        plan = self._fine.planner.of_solution(solution, source)
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
        booking = Booking.at(problem, known.ports, ticks)
        plan = SchedulePlan(ticks, 0, booking, 0, known.source, ticks, 0)
        graph, cluster = self._fine.graph_and_cluster
        # Milliseconds of this graph are ticks: whole numbers, exact up to 2**53.
        in_ticks = replace(graph, duration_ms=problem.duration.astype(np.float64))
        cluster = cluster.changed(reconfiguration_ms=float(problem.dark_ticks or 0))
        start = replay(replace(self._fine, graph=in_ticks), plan, cluster).start_ms
        return Solution(start.astype(np.int64), ports_of(problem, booking))
