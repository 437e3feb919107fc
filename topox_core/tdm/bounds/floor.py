"""What no round can go below, whatever the grouping, the number of groups, the rings and the barrier."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from topox_core.tdm.model.rounds import after_push_s
from topox_core.tdm.model.stage_table import StageTable
from topox_core.tdm.model.traffic import between_pods_gbit

ANY_ROUND = "any grouping, any rings"


@dataclass(frozen=True)
class Floor:
    """A lower bound on a round, and what it comes from."""

    seconds: float
    by: str


def floor_of(table: StageTable) -> Floor:
    """Return the largest of three bounds: one job alone, the ports of one pod, the top-of-rack switch of one pod.

    A job pushes, computes, pulls and computes in turn, and its group communicates no faster than it
    would alone. Every job pushes and pulls once a round, at different times if in different groups,
    so that twice the traffic of a pod must pass its ports; a ring enters and leaves each of its
    pods once, whatever its order.
    """
    best = Floor(0.0, "")
    network = table.jobs.network
    for g, members in enumerate(table.members):
        ports, local = np.zeros(network.pods_per_group), np.zeros(network.pods_per_group)
        local += table.load(g).local_gbit.sum(0)
        for n in members:
            job = table.jobs.jobs[n]
            demand = between_pods_gbit(job, table.reading, job.pods)
            ports += demand.sum(0) + demand.sum(1)
            alone = (
                2.0 * table.communication_s(g, (n,))
                + after_push_s(job, table.reading)
                + job.train_s
            )
            if np.isfinite(alone) and alone > best.seconds:
                best = Floor(alone, f"job {job.id}: push, compute, pull and compute")
        for what, seconds in (
            ("ports", 2.0 * ports / (network.ports_per_pod * network.port_gbps)),
            ("top-of-rack switch", 2.0 * local / network.tor_gbps),
        ):
            pod = int(seconds.argmax())
            if seconds[pod] > best.seconds:
                best = Floor(
                    float(seconds[pod]),
                    f"{what} of pod {pod} in pod group {g}: the traffic of all jobs, twice",
                )
    return best
