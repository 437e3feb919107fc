"""Compile the scheduling kernels before anybody waits for them: ``python -m topox_core.warm_up``.

The machine code is cached on disk, so that only the first call on a machine takes long; a later one
loads it. The app calls :func:`warm_up` in the background, ``make setup`` calls it once.
"""

from __future__ import annotations

import math
import sys
import time

from topox_core.cluster import Cluster
from topox_core.compiled import forget_old_code
from topox_core.graph.task_graph import Task, TaskGraph
from topox_core.graph.validation import validated
from topox_core.schedule.answer import never
from topox_core.schedule.planner import prepare
from topox_core.schedule.propagation import Propagator, raised_bound
from topox_core.schedule.settings import Settings
from topox_core.schedule.solve import quick

SERVERS = 3


def warm_up() -> float:
    """Schedule a tiny iteration under both models and both rules for circuits; return the seconds it took.

    Every server sends to every other at once over a single port, so that no rule meets the bound at
    the first try and all of them are called, forwards and backwards, and circuits have to change.
    """
    began = time.perf_counter()
    tasks = []
    for server in range(SERVERS):
        tasks.append(Task(f"f{server}", "forward", server=server, device=0, duration_ms=1.5))
        others = [other for other in range(SERVERS) if other != server]
        tasks += [Task(f"{server}to{other}.{part}", "communication", (f"f{server}",), source=server, destination=other,
                       size_bytes=25e6 * (1 + other)) for other in others for part in range(2)]
        arrivals = tuple(f"{other}to{server}.{part}" for other in others for part in range(2))
        tasks.append(Task(f"b{server}", "backward", arrivals, server=server, device=0, duration_ms=2.5))
    graph = validated("warm-up", tasks, "warm-up")
    cluster = Cluster(servers=SERVERS, ports_per_server=1, switches=1, ports_per_switch=2, port_gbps=100.0)
    for duplex in ("full", "half"):
        quick(graph, cluster.changed(duplex=duplex, reconfiguration_ms=0.5), Settings.of("physical"))
        quick(graph, cluster.changed(duplex=duplex), Settings.of("physical", circuits="per-slot"))
        quick(graph, cluster.changed(duplex=duplex), Settings.of("paper"))
    _propagate(graph, cluster)
    return time.perf_counter() - began


def _propagate(graph: TaskGraph, cluster: Cluster) -> None:
    """Raise a bound by propagation, as an exact solve does first."""
    prepared = prepare(graph, cluster, Settings.of("physical", tick="slot"))
    problem, planner = prepared.reduction.problem, prepared.planner
    makespan = planner.best_plan().reduced_makespan
    raised_bound(Propagator(problem), 0, makespan, 1, math.inf, never, _unheard)


def _unheard(_bound: int) -> None:
    """Take no notice of a bound."""


if __name__ == "__main__":
    forget_old_code()
    sys.stdout.write(f"Kernels ready after {warm_up():.1f} s\n")
