"""Up to which size CP-SAT searches schedules with set-ups; apart from the models, which load OR-Tools."""

from __future__ import annotations

from topox_core.schedule.engines.disjunctions import Disjunctions
from topox_core.schedule.problem import Problem

WHOLE_TASKS = 600  # up to so many the problem is one model
LEARNING_TASKS = 250  # below, learning from conflicts decides sooner than linear programmes


NEIGHBOURHOOD_TASKS = 3_000


def neighbourhoods_fit(problem: Problem) -> bool:
    """Whether large neighbourhoods know all ports there are: one of a server on each switch, and no switch that fills."""
    net = problem.network
    if net is None or net.switches_may_fill or net.ports_on_switch > 1:
        return False
    return problem.n <= NEIGHBOURHOOD_TASKS


def cpsat_counts_set_ups(problem: Problem) -> bool:
    """Whether CP-SAT has a model of set-ups, or of neighbourhoods with them, that may be small enough."""
    return neighbourhoods_fit(problem) or Disjunctions.may_be_few(problem)
