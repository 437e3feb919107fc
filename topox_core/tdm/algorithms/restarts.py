"""Ways off the plateaus on which hill climbing stops: many starts, and simulated annealing."""

from __future__ import annotations

import numpy as np

from topox_core.model.csr import row_pointer
from topox_core.tdm.algorithms.hill_climbing import climb, start_of
from topox_core.tdm.kernels.grouping import Cooling, OrderedJobs, Switching, anneal
from topox_core.tdm.model.round import Round
from topox_core.tdm.model.rounds import after_push_s
from topox_core.tdm.model.traffic import load_of
from topox_core.tdm.search import Search, shortest

# First and last temperature, as shares of the round at the start.
HOT, COLD = 0.1, 1e-4
# Annealing is asked to stop between pieces of this many steps times jobs.
PIECE = 2_000_000


def multi_start(search: Search) -> Round:
    """Return the best of hill climbing from all jobs in one group and from ``settings.starts`` random groupings."""
    best, starts = start_of(search) or search.all_at_once(), search.settings.starts
    random = np.random.default_rng(search.settings.seed)
    for number in range(starts):
        drawn = random.integers(0, 2, len(search.jobs)).tolist()
        if search.stop():
            return search.answer(best, message=f"Stopped after {number} of {starts} random starts.")
        result = climb(search.table, drawn, search.stop)
        if result.round_s < best.round_s:
            best = search.round(result.group, source=f"start {number + 1}")
    return search.answer(best)


def annealing(search: Search) -> Round:
    """Return the best round of simulated annealing from hill climbing's, climbed once more at its end.

    ``settings.steps`` bounds it, so that a seed gives the same round on every machine.
    """
    jobs, settings = search.jobs, search.settings
    best = start_of(search) or search.all_at_once()
    if not len(jobs):
        return search.answer(best)
    order = np.array([n for members in search.table.members for n in members], np.int64)
    ordered = OrderedJobs(
        load_of(jobs, order.tolist(), settings.reading),
        row_pointer([len(part) for part in search.table.members], np.int64),
        np.array([jobs.jobs[n].train_s for n in order]),
        np.array([after_push_s(jobs.jobs[n], settings.reading) for n in order]),
    )
    switching = Switching(True, True, search.dark_s, settings.reading.delay_inside)
    random = np.random.default_rng(settings.seed)
    second = np.array(best.group, np.int64)[order] == 1
    pieces = max(1, -(-settings.steps * len(jobs) // (len(search.table.members) * PIECE)))
    temperature = HOT * (COLD / HOT) ** np.linspace(0.0, 1.0, pieces + 1)
    for number in range(pieces):
        if search.stop():
            return search.answer(
                best, message=f"Stopped after {number / pieces:.0%} of {settings.steps:,} steps."
            )
        steps = settings.steps * (number + 1) // pieces - settings.steps * number // pieces
        cooling = Cooling(steps, float(temperature[number]), float(temperature[number + 1]))
        length, second = anneal(ordered, search.table.fabric, switching, second, cooling, random)
        if length < best.round_s:
            group = np.zeros(len(jobs), np.int64)
            group[order] = second
            best = shortest(best, search.round(group.tolist(), source="annealing")) or best
    result = climb(search.table, best.group, search.stop)
    if result.round_s < best.round_s:
        best = search.round(result.group, source="hill climbing at the end")
    return search.answer(best)
