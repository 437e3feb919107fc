"""The problem on continuous time: clocks so fine that slots mean nothing, for bounds and for exact solves.

Circuits may start at any time there. Durations are rounded down to a tick, so that bounds hold for
unrounded time; schedules are taken as orders and carried out on unrounded time
(:mod:`topox_core.schedule.replay`).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from topox_core.model.cluster import Cluster
from topox_core.model.durations import durations_ms
from topox_core.model.transfer_graph import FloatArray, TransferGraph
from topox_core.schedule.bounds.ancestor_bounds import (
    ancestor_bound,
    near_of,
    set_up_heads_and_tails,
)
from topox_core.schedule.bounds.best_bound import best_bound
from topox_core.schedule.bounds.circuit_bound import chain_heads_and_tails, circuit_bound
from topox_core.schedule.bounds.unrounded import Bound
from topox_core.schedule.bounds.windows import clocks, coarsened
from topox_core.schedule.problem import Int, Problem
from topox_core.schedule.reduction import without_clock
from topox_core.schedule.settings import Settings

# All tasks one after another take at most so many ticks in a bound, so that sums stay whole numbers.
LONGEST_TICKS = 1 << 58
NEAR = 100  # ancestors that count for a bound of many tasks
ULPS = 2.0  # by so many steps of a binary fraction a product of two may miss
EXACT = 1e-9  # of the makespan: what rounding every task may cost an exact solve


def fine_problem(
    graph: TransferGraph, cluster: Cluster, settings: Settings, ticks_per_ms: float
) -> Problem:
    """Return the problem with set-ups on ticks as fine as slots, durations and delay rounded down.

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
    return replace(
        plain,
        duration=_floor_ticks(durations_ms(graph, cluster), ticks_per_ms),
        ticks_per_slot=1,
        tick_ms=1 / ticks_per_ms,
        network=replace(plain.switch_network, dark_slots=int(delay[0])),
    )


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


def _below(ticks: FloatArray) -> Int:
    """Return whole ticks that are no more than a sum of fractions is, whatever its last digits."""
    return np.floor(ticks * (1 - 1e-12)).astype(np.int64)


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
    problem, tick = coarsened(fine_problem(graph, cluster, settings, ticks_per_ms))
    dark = problem.dark_ticks or 0
    bound = best_bound(problem, dark)
    if near != 0:
        near = near_of(problem, NEAR) if near is None else near
        by_chains = chain_heads_and_tails(graph, cluster, durations_ms(graph, cluster))
        head, tail = (_below(one * (ticks_per_ms / tick)) for one in by_chains)
        head, tail = set_up_heads_and_tails(problem, clocks(problem), near, dark, (head, tail))
        bound = ancestor_bound(problem, head, tail, bound.ticks, dark) or bound
    raised_ms = bound.ticks * tick / ticks_per_ms
    return Bound(raised_ms, bound.text) if raised_ms > best.ms * (1 + EXACT) else best
