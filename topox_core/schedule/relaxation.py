"""Which readings of the model are relaxations of which: every schedule of the stricter one is a schedule of theirs."""

from __future__ import annotations

import math
from dataclasses import replace

from topox_core.model.cluster import Cluster
from topox_core.schedule.planner import Prepared, SchedulePlan, prepare
from topox_core.schedule.reduction import ports_on_switch
from topox_core.schedule.settings import Settings


def stricter(settings: Settings, cluster: Cluster) -> tuple[Settings, ...]:
    """Return the readings one step stricter, on the same cluster and clock, for the list engine.

    A circuit for every transfer is stricter than shared ones, devices that compute one task at a
    time than free ones, circuits that stay on real ports than circuits drawn slot by slot. With one
    port of a server on each switch, cabling and free choice of the switch (``any_port``) are the
    same thing; with several, free choice is stricter, since eqs 9 and 10 then grant one a switch.
    """
    own = replace(settings, engine="list")
    if settings.on_slots:
        own = replace(own, clock="slots")
    steps = []
    if settings.share_circuits:
        steps.append(replace(own, share_circuits=False))
    if not settings.exclusive_devices:
        steps.append(replace(own, exclusive_devices=True))
    if settings.any_port:
        cabled = replace(own, any_port=False)
        if cluster.ports_per_server == cluster.switches:
            return (cabled,)  # the same schedules; the other steps are its own
    elif settings.circuits == "per-slot":
        if ports_on_switch(cluster, settings) > 1:
            steps.append(replace(own, any_port=True))
        if not settings.share_circuits:
            steps.append(replace(own, circuits="continuous"))
    return tuple(steps)


def carried_over(
    plan: SchedulePlan, strict: Prepared, prepared: Prepared
) -> tuple[Prepared, SchedulePlan]:
    """Return a plan of a stricter reading as one of ``prepared``, on a tick fine enough for both.

    Transfers keep their slots, so that the plan stays as long as it is or becomes shorter, where
    compute is rounded to a finer tick.
    """
    assert prepared.graph is not None
    assert prepared.cluster is not None
    given, own = (one.reduction.problem.ticks_per_slot for one in (strict, prepared))
    both = math.lcm(given, own)
    if both != own:
        ticked = replace(prepared.settings, tick=prepared.cluster.slot_ms / both)
        finer = prepare(prepared.graph, prepared.cluster, ticked)
        prepared = replace(finer, settings=prepared.settings)
    problem, planner = prepared.reduction.problem, prepared.planner
    start = plan.start * (both // given)
    makespan = int((start + problem.duration).max(initial=0))
    if planner.ports is None:
        return prepared, planner.with_circuits(start, makespan, plan.source)
    kept = replace(plan, start=start, makespan=makespan)
    return prepared, replace(kept, reduced_start=start, reduced_makespan=makespan)


def length_ms(prepared: Prepared, plan: SchedulePlan) -> float:
    """Return the length of a plan, which ticks of another length measure otherwise."""
    return prepared.reduction.problem.ms(plan.makespan)
