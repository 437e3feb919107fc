"""The problem on continuous time: clocks so fine that slots mean nothing, for bounds and for exact solves.

Circuits may start at any time there. Durations rounded down to a tick give a problem whose bounds
hold for unrounded time; the orders of its schedules are carried out on unrounded time afterwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from topox_core.model.cluster import Cluster
from topox_core.model.durations import durations_ms
from topox_core.model.transfer_graph import FloatArray, TransferGraph
from topox_core.schedule.bounds.best_bound import best_bound
from topox_core.schedule.bounds.set_up_bounds import (
    near_of,
    set_up_bound,
    set_up_heads_and_tails,
)
from topox_core.schedule.bounds.windows import clocks
from topox_core.schedule.problem import Int, Problem
from topox_core.schedule.reduction import ceil_units, without_clock
from topox_core.schedule.settings import Settings

FINE_TICK_MS = 0.001  # exact solves: 1 us
LONGEST_TICKS = 1 << 58  # all tasks one after another, for bounds: sums stay whole numbers
NEAR = 100  # ancestors that count for a bound of many tasks


@dataclass(frozen=True)
class ContinuousBound:
    """No iteration with planned circuits ends before ``ms`` on continuous time; ``text`` says what binds."""

    ms: float
    text: str


def fine_problem(
    graph: TransferGraph,
    cluster: Cluster,
    settings: Settings,
    tick_ms: float = FINE_TICK_MS,
    up: bool = False,
) -> Problem:
    """Return the problem with set-ups on ticks as fine as slots.

    Parameters
    ----------
    graph, cluster, settings
        As :func:`topox_core.schedule.reduction.reduce`; the cluster's slot and the tick in the
        settings mean nothing here.
    tick_ms
        Length of a tick.
    up
        Round durations and the delay up: its schedules are schedules of unrounded time. False:
        down, so that its bounds hold for unrounded time.
    """
    length_ms = durations_ms(graph, cluster)
    delay_ms = np.array([cluster.reconfiguration_ms])
    rounded = ceil_units if up else _floor_units
    plain = without_clock(graph, cluster, settings)
    assert plain.network is not None
    return replace(
        plain,
        duration=rounded(length_ms, tick_ms),
        ticks_per_slot=1,
        tick_ms=tick_ms,
        network=replace(plain.network, dark_slots=int(rounded(delay_ms, tick_ms)[0])),
    )


def _floor_units(duration_ms: FloatArray, unit_ms: float) -> Int:
    return np.floor(duration_ms / unit_ms).astype(np.int64)


def continuous_bound(
    graph: TransferGraph, cluster: Cluster, settings: Settings, near: int | None = None
) -> ContinuousBound:
    """Return a lower bound on iterations whose circuits may start at any time, and what binds.

    Critical path, loads of devices and ports, work of ancestors and set-ups along paths, on a clock
    so fine that rounding is lost in the last digits.

    Parameters
    ----------
    near
        How many ancestors of a task count (None: 1,000 up to 2,000 tasks, else 100); 0: none, which
        takes milliseconds.
    """
    problem = fine_problem(graph, cluster, settings, _finest_tick_ms(graph, cluster))
    dark = problem.dark_ticks or 0
    cheap = best_bound(problem, dark)
    bound = cheap
    if near != 0:
        near = near_of(problem, NEAR) if near is None else near
        head, tail = set_up_heads_and_tails(problem, clocks(problem), near, dark)
        bound = set_up_bound(problem, head, tail, cheap.ticks, dark) or cheap
    return ContinuousBound(bound.ticks * problem.tick_ms, bound.text)


def _finest_tick_ms(graph: TransferGraph, cluster: Cluster) -> float:
    """Return a power of ten such that all tasks one after another, with their set-ups, are few enough ticks."""
    total_ms = float(durations_ms(graph, cluster).sum()) + len(graph) * cluster.reconfiguration_ms
    if total_ms <= 0:
        return FINE_TICK_MS
    return float(10.0 ** math.ceil(math.log10(total_ms / LONGEST_TICKS)))
