"""The problem on continuous time: clocks so fine that slots mean nothing, for bounds and for exact solves.

Circuits may start at any time there. Durations are rounded down to a tick, so that bounds hold for
unrounded time; schedules are taken as orders and carried out on unrounded time
(:mod:`topox_core.schedule.planning.replay`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

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
from topox_core.schedule.circuits.disjunctions import cpsat_counts_set_ups
from topox_core.schedule.circuits.held_ports import Booking
from topox_core.schedule.planning.planner import Planner, Prepared, SchedulePlan
from topox_core.schedule.planning.replay import Replay, replay
from topox_core.schedule.problem import Int, Problem
from topox_core.schedule.rcpsp.reduction import Reduction, without_clock
from topox_core.schedule.settings import Settings

# All tasks one after another take at most so many ticks in a bound, so that sums stay whole numbers.
LONGEST_TICKS = 1 << 58
NEAR = 100  # ancestors that count for a bound of many tasks
ULPS = 2.0  # by so many steps of a binary fraction a product of two may miss
EXACT = 1e-9  # of the makespan: what rounding every task may cost an exact solve
LAST_DIGITS = 1e-13  # relative: what adding binary fractions in another order may change


def fine_problem(
    graph: TransferGraph, cluster: Cluster, settings: Settings, ticks_per_ms: float
) -> Problem:
    """Return the problem with set-ups on ticks as fine as slots, durations and delay rounded down.

    The ticks are then made as coarse as loses nothing.

    Parameters
    ----------
    graph, cluster, settings
        As :func:`topox_core.schedule.rcpsp.reduction.reduce`; the cluster's slot and the tick in the
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

    Critical path, loads of devices and ports and work of ancestors, dark times included, on a clock
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


@dataclass(frozen=True)
class FineClock:
    """The problem with set-ups on a clock without slots: what an iteration is there, and what a plan there comes to.

    Its bounds hold for every iteration whose circuits are planned, and its plans are carried out on
    unrounded time, so that both meet where it is proved.
    """

    prepared: Prepared

    @staticmethod
    def of(prepared: Prepared, makespan_ms: float) -> FineClock:
        """Return the fine clock of graph, cluster and settings, for iterations of about such a length."""
        graph, cluster = prepared.graph_and_cluster
        ticks_per_ms = exact_ticks_per_ms(durations_ms(graph, cluster), makespan_ms)
        problem = fine_problem(graph, cluster, prepared.settings, ticks_per_ms)
        dark = problem.switch_network.dark_slots or 0
        planner = Planner.of(problem, 0, continuous=True, dark_slots=dark)
        reduction = Reduction(problem, TickBound(0, ""), dark, problem, problem)
        return FineClock(replace(prepared, reduction=reduction, planner=planner))

    @staticmethod
    def fits(prepared: Prepared) -> bool:
        """Whether the problem may be small enough for an exact solve."""
        problem = prepared.reduction.problem
        return problem.network is not None and cpsat_counts_set_ups(problem)

    def bound(self, ticks: int, words: str) -> Bound:
        """Return a bound of the problem in ms."""
        tick_ms = self.prepared.reduction.problem.tick_ms
        return Bound(ticks * tick_ms * (1 - LAST_DIGITS), words or "critical path")

    def carried_out(self, plan: SchedulePlan) -> Replay:
        """Return the iteration that a plan comes to."""
        _, cluster = self.prepared.graph_and_cluster
        return replace(replay(self.prepared, plan, cluster), planned_slot_ms=None)

    def plan_of(self, known: Replay) -> SchedulePlan:
        """Return the plan with the orders of an iteration, as early as they allow."""
        problem = self.prepared.reduction.problem
        ticks = np.round(known.start_ms / problem.tick_ms).astype(np.int64)
        plan = SchedulePlan.on_circuits(
            problem, ticks, Booking.at(problem, known.ports, ticks), known.source
        )
        graph, cluster = self.prepared.graph_and_cluster
        # Milliseconds of this graph are ticks: whole numbers, exact up to 2**53.
        in_ticks = replace(graph, duration_ms=problem.duration.astype(np.float64))
        cluster = cluster.changed(reconfiguration_ms=float(problem.dark_ticks or 0))
        earliest_ms = replay(replace(self.prepared, graph=in_ticks), plan, cluster).start_ms
        start = earliest_ms.astype(np.int64)
        booking = Booking.at(problem, known.ports, start)
        return SchedulePlan.on_circuits(problem, start, booking, known.source)
