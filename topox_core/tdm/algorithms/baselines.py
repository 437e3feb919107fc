"""What the drafts' scheme is measured against: no time division, a greedy split, one topology, a random split."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from topox_core.runs.stopping import Stop
from topox_core.tdm.bounds.floor import ANY_ROUND, floor_of
from topox_core.tdm.model.jobs import Jobs
from topox_core.tdm.model.round import OnMoment, Round, RoundTracePoint, TdmSettings
from topox_core.tdm.model.rounds import round_of
from topox_core.tdm.model.stage_table import StageTable
from topox_core.tdm.model.traffic import total_gbit


def non_tdm(jobs: Jobs, settings: TdmSettings, _stop: Stop, on_moment: OnMoment) -> Round:
    """Return the round without time division: all push, all compute, all pull, all compute.

    Raises
    ------
    InputError
        If ports are too few for the pairs that must talk.
    """
    return _fixed(jobs, settings, on_moment, "non-tdm", (0,) * len(jobs))


def static_topology(jobs: Jobs, settings: TdmSettings, _stop: Stop, on_moment: OnMoment) -> Round:
    """Return the round without time division over circuits that stay as they are.

    Raises
    ------
    InputError
        If ports are too few for the pairs that must talk.
    """
    return _fixed(jobs, settings, on_moment, "static", (0,) * len(jobs), static=True)


def greedy(jobs: Jobs, settings: TdmSettings, _stop: Stop, on_moment: OnMoment) -> Round:
    """Return the round when each pod group splits its jobs by traffic: the largest first, each to the lighter group.

    Raises
    ------
    InputError
        If ports are too few for the pairs that must talk.
    """
    return _fixed(jobs, settings, on_moment, "greedy", split_by_traffic(jobs))


def random_grouping(jobs: Jobs, settings: TdmSettings, _stop: Stop, on_moment: OnMoment) -> Round:
    """Return the round when each job's group is drawn; the same seed draws the same groups.

    Raises
    ------
    InputError
        If ports are too few for the pairs that must talk.
    """
    drawn = np.random.default_rng(settings.seed).integers(0, 2, len(jobs))
    return _fixed(jobs, settings, on_moment, "random", [int(k) for k in drawn])


def split_by_traffic(jobs: Jobs) -> tuple[int, ...]:
    """Return a grouping that evens out the traffic in each pod group (longest processing time first; ties lowest index)."""
    gbit = [total_gbit(job.collective, job.units, job.volume_gbit) for job in jobs.jobs]
    carried = np.zeros((jobs.network.pod_groups, 2))
    group = [0] * len(jobs)
    for n in sorted(range(len(jobs)), key=lambda n: (-gbit[n], n)):
        row = carried[jobs.jobs[n].pod_group]
        group[n] = int(row.argmin())
        row[group[n]] += gbit[n]
    return tuple(group)


def _fixed(
    jobs: Jobs,
    settings: TdmSettings,
    on_moment: OnMoment,
    algorithm: str,
    group: Sequence[int],
    static: bool = False,
) -> Round:
    began = time.perf_counter()
    table = StageTable(jobs, settings.reading)
    floor = floor_of(table)
    found = round_of(
        table,
        group,
        algorithm=algorithm,
        static=static,
        bound_s=floor.seconds,
        bound_by=floor.by,
        bound_for=ANY_ROUND,
        seed=settings.seed,
    )
    moment = RoundTracePoint(
        time.perf_counter() - began, 0, found.round_s, floor.seconds, algorithm
    )
    on_moment(moment)
    return replace(found, wall_s=moment.elapsed_s, story=(moment,))
