"""What no round is below, whatever the grouping, the number of groups, the rings and the barrier."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from topox_core.tdm.model.round import RoundBound
from topox_core.tdm.model.rounds import after_push_s
from topox_core.tdm.model.stage_table import StageTable
from topox_core.tdm.model.traffic import between_pods_gbit

ANY_ROUND = RoundBound(holds_for="any grouping, any rings", any_rings=True)


def floor_of(table: StageTable) -> RoundBound:
    """Return the largest of three bounds: one job alone, the ports of one pod, one top-of-rack switch.

    A job pushes, computes, pulls and computes in turn, and its group communicates no faster than it
    would alone. Every job pushes and pulls once a round, at different times if in different groups,
    so that twice the traffic of a pod must pass its ports; a ring enters and leaves each of its
    pods once, whatever its order.
    """
    best = ANY_ROUND
    network = table.jobs.network
    for g, members in enumerate(table.members):
        ports = np.zeros(network.pods_per_group)
        for n in members:
            job = table.jobs.jobs[n]
            demand = between_pods_gbit(job, table.reading, job.pods)
            ports += demand.sum(0) + demand.sum(1)
            computing_s = after_push_s(job, table.reading) + job.train_s
            alone_s = 2.0 * table.communication_s(g, (n,)) + computing_s
            if np.isfinite(alone_s) and alone_s > best.round_s:
                by = f"job {job.id}: push, compute, pull and compute"
                best = replace(best, round_s=alone_s, by=by)
        local = table.load(g).local_gbit.sum(0)
        for what, seconds in (
            ("ports", 2.0 * ports / (network.ports_per_pod * network.port_gbps)),
            ("top-of-rack switch", 2.0 * local / network.tor_gbps),
        ):
            pod = int(seconds.argmax())
            if seconds[pod] > best.round_s:
                by = f"{what} of pod {pod} in pod group {g}: the traffic of all jobs, twice"
                best = replace(best, round_s=float(seconds[pod]), by=by)
    return best
