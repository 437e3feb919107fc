"""Circuits that stay fixed beside a plan: found once, they compete with all that switch."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from topox_core.errors import InputError
from topox_core.fabrics.fluid import Stopped
from topox_core.fabrics.packet import ideal_bound
from topox_core.fabrics.run import FabricRequest, FabricRun
from topox_core.fabrics.static import run_static, with_rates
from topox_core.runs.stopping import Stop
from topox_core.schedule.result import MET, ClassBound, FixedCircuits, Result
from topox_core.schedule.settings import Settings
from topox_core.schedule.source import TraceSource

FIXED = {
    "static": TraceSource("fixed", "TopologyFinder's circuits"),
    "static_graph": TraceSource("fixed", "circuits searched for the task graph"),
}
# Which fixed circuits a plan keeps depends on what runs beside it; whoever reads its time is told.
SEARCHED_BESIDE = (
    "They are those of “Fixed by task graph”, which runs beside the plan. Without it the plan would keep "
    "TopologyFinder's circuits, and could take longer."
)
TOPOLOGYFINDERS = (
    "They are TopologyFinder's. Those of “Fixed by task graph” could be shorter: a plan keeps them only where both "
    "run side by side, as on Compare."
)


@dataclass(frozen=True)
class FixedBeside:
    """An iteration on circuits that never change, and what of it competes with plans."""

    run: FabricRun
    standing: FixedCircuits


def fixed_beside(order: FabricRequest, stop: Stop) -> FixedBeside | None:
    """Return the iteration on circuits that never change; None where the settings or the graph rule it out.

    Fixed circuits share and forward, so that bounds that give a transfer one circuit at full speed
    do not hold for them: theirs lets a server send and receive on all its ports at once.
    """
    began, settings = time.monotonic(), order.settings
    if not may_stay_fixed(settings):
        return None
    try:
        fixed = order.runs.get("static") or run_static(order, stop)
        searched = order.runs.get("static_graph")
        if searched is not None and searched.iteration_ms < fixed.iteration_ms:
            fixed = searched
        layout, cluster = fixed.execution.layout, order.cluster
        room = cluster.switches * cluster.ports_per_switch
        if layout is not None and layout.circuits.sum() > room:
            # A patch panel has a place for every port; these switches have not (eq. 7).
            raise InputError(
                f"must be at least {-(-int(layout.circuits.sum()) // cluster.switches)} for circuits "
                f"that stay fixed (got {cluster.ports_per_switch})",
                file="cluster",
                field="ports_per_switch",
            )
    except InputError:
        if settings.switching == "fixed":
            raise
        return None  # too few places, or two servers that talk are not connected: only switching serves them
    except Stopped:
        return None
    bound, source, fixed_ms = ideal_bound(order), FIXED[fixed.fabric], fixed.iteration_ms
    bound_ms, wall_s, alone = (
        min(bound.ms, fixed_ms),
        time.monotonic() - began,
        _only_fixed(settings),
    )
    return FixedBeside(fixed, FixedCircuits(fixed_ms, bound_ms, bound.text, wall_s, source, alone))


def with_fixed(order: FabricRequest, result: Result, fixed: FixedBeside | None) -> Result:
    """Return the better of a schedule that switches and fixed circuits, as far as the settings allow both.

    The bound of the result is the smaller one of what was allowed.
    """
    if fixed is None or result.makespan_ms is None:
        return result
    standing, alone = fixed.standing, fixed.standing.alone
    keeps_fixed = alone or standing.makespan_ms < result.makespan_ms * (1 - MET)
    makespan_ms = standing.makespan_ms if keeps_fixed else result.makespan_ms
    weaker = alone or standing.bound_ms < result.bound_ms
    bound_ms = min(makespan_ms, standing.bound_ms if weaker else result.bound_ms)
    proved = makespan_ms <= bound_ms * (1 + MET)
    was_proof = result.stopped_by == "proof"
    beside = ClassBound(False, standing.makespan_ms, standing.bound_ms)
    return replace(
        result,
        status="optimal" if proved else "feasible",
        stopped_by="proof" if proved else "heuristic" if was_proof else result.stopped_by,
        makespan_ms=makespan_ms,
        bound_ms=bound_ms,
        bound_by=standing.bound_by if weaker else result.bound_by,
        unrounded_bound_ms=bound_ms,
        execution=with_rates(fixed.run.execution, order.settings.exclusive_devices)
        if keeps_fixed
        else result.execution,
        settings=_settings_of(result, fixed.run) if keeps_fixed else result.settings,
        switching="fixed" if keeps_fixed else result.switching,
        classes=(beside,) if alone else (*result.classes, beside),
        alternative=result if keeps_fixed else None,
        trace=standing.beside(result.trace),
    )


def _settings_of(result: Result, fixed: FabricRun) -> Settings:
    """Return the settings of a result on fixed circuits, which may have chosen another lowering."""
    if fixed.chosen is None:
        return result.settings
    return replace(result.settings, lowering=fixed.chosen.lowering)


def stays_fixed(result: Result, fixed: FabricRun) -> str:
    """Return why the circuits stay fixed, and which those are, in words."""
    which = SEARCHED_BESIDE if fixed.fabric == "static_graph" else TOPOLOGYFINDERS
    if result.alternative is None or _only_fixed(result.settings):
        return f"The circuits stay fixed, as asked. {which}"
    return (
        "Switching does not pay here: the circuits stay fixed; "
        f"the best plan that switches takes {result.alternative.makespan_ms:.6g} ms. {which}"
    )


def may_stay_fixed(settings: Settings) -> bool:
    """Return whether circuits that never change are a choice; slots have no place for them."""
    return not settings.on_slots and settings.switching in ("auto", "fixed")


def _only_fixed(settings: Settings) -> bool:
    """Return whether only circuits that never change are allowed."""
    return settings.switching == "fixed"
