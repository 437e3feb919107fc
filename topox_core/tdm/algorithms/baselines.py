"""Baselines of time division: all jobs at once, one topology, a greedy split, a random split."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topox_core.tdm.model.jobs import Jobs
from topox_core.tdm.model.round import DRAFT, Round, RoundForm
from topox_core.tdm.search import Search


def non_tdm(search: Search) -> Round:
    """Return the round without time division: all push, all compute, all pull, all compute."""
    return _fixed(search, (0,) * len(search.jobs))


def static_topology(search: Search) -> Round:
    """Return the round without time division over circuits that never change."""
    return _fixed(search, (0,) * len(search.jobs), RoundForm(static=True))


def greedy(search: Search) -> Round:
    """Return the round of :func:`split_by_traffic`."""
    return _fixed(search, split_by_traffic(search.jobs))


def random_grouping(search: Search) -> Round:
    """Return the round of groups drawn at random from the seed."""
    random = np.random.default_rng(search.settings.seed)
    return _fixed(search, random.integers(0, 2, len(search.jobs)).tolist())


def split_by_traffic(jobs: Jobs) -> tuple[int, ...]:
    """Return a grouping that evens out the traffic of each pod group.

    The largest job first, each to the lighter group (longest processing time first; ties to the
    lowest index).
    """
    carried = np.zeros((jobs.network.pod_groups, 2))
    group = [0] * len(jobs)
    for n in sorted(range(len(jobs)), key=lambda n: (-jobs.jobs[n].total_gbit, n)):
        row = carried[jobs.jobs[n].pod_group]
        group[n] = int(row.argmin())
        row[group[n]] += jobs.jobs[n].total_gbit
    return tuple(group)


def _fixed(search: Search, group: Sequence[int], form: RoundForm = DRAFT) -> Round:
    return search.answer(search.round(group, form), stopped_by="heuristic")
