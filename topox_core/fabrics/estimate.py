"""How long an iteration takes on a fabric, quickly: for the inner loop of a search, whose answer is then run."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace

from topox_core.errors import InputError
from topox_core.fabrics.compare import run_freely, run_one
from topox_core.fabrics.free_choices import Case, ring_choices
from topox_core.fabrics.run import FabricOptions, JobRequest
from topox_core.fabrics.scheduled import quick_ms
from topox_core.schedule.bounds.circuit_bound import circuit_bound


@dataclass(frozen=True)
class Estimate:
    """An estimate; ``cut_short`` where a bound alone says that the iteration is not among the fastest."""

    iteration_ms: float
    cut_short: bool = False


def estimate(name: str, job: JobRequest, best_ms: float = math.inf) -> Estimate:
    """Estimate the iteration time on a fabric.

    ``scheduled`` is taken half-way between the lower bound of plans that switch and the best of a few
    quick plans (the plans of 12 strategies for DLRM were within 5 % of that), or as static circuits
    where those are faster; no plan is made whose bound is above ``best_ms``. ``ideal`` is taken as
    fair shares. Every other fabric is run.

    Raises
    ------
    InputError
        If the fabric cannot run the graph.
    """
    if name == "ideal":
        at_full = replace(job, options=FabricOptions())  # a fat-tree of full bandwidth
        return Estimate(run_one("fat_tree", at_full.lowered(job.settings.lowering)).iteration_ms)
    if name != "scheduled" or job.settings.on_slots:
        return Estimate(run_freely(name, job).iteration_ms)
    own = job.lowered(job.settings.lowering)
    requests = [own, *map(job.lowered, ring_choices(Case(name, job)))]
    bounds_ms = [circuit_bound(one.graph, job.cluster, job.settings).ms for one in requests]
    bound_ms, fixed_ms = min(bounds_ms), math.inf
    if job.settings.switching in ("auto", "fixed"):
        # Where two servers that talk are not connected, only switching serves them.
        with suppress(InputError):
            fixed_ms = run_one("static", own).iteration_ms
    if fixed_ms <= bound_ms:
        return Estimate(fixed_ms)
    if bound_ms > best_ms:
        return Estimate(bound_ms, cut_short=True)
    plan_ms = quick_ms(requests[bounds_ms.index(bound_ms)])
    return Estimate(min(fixed_ms, (bound_ms + plan_ms) / 2))
