"""The independent checker: is this schedule one that the model allows? It shares no code with the engines."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from topox_core.check.circuits.fixed import fixed_circuits
from topox_core.check.circuits.network import (
    HeldCircuits,
    circuit_for_every_transfer,
    in_one_peer,
    one_way_a_port,
    out_one_peer,
    server_ports,
    switch_capacity,
)
from topox_core.check.circuits.ports import (
    BookedPorts,
    continuity,
    per_slot_delay,
    port_bookings,
    reconfiguration,
)
from topox_core.check.collectives import collectives_move_their_bytes
from topox_core.check.plan import CheckedPlan
from topox_core.check.report import CheckReport, ConstraintReport, Violation, ms
from topox_core.check.schedule_file import Rules, changed_cluster, columns_of, read_schedule
from topox_core.check.times import duration, on_the_clock, one_start, one_task_a_device, precedence
from topox_core.errors import InputError
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph

GAP_TOLERANCE = 1e-6
NOT_ABOVE = "above {}, which it may not pass"


def claims(plan: CheckedPlan) -> ConstraintReport:
    """Eq. 2 and what is said of it: the makespan is the last end, the bound is below it, gap and status follow."""
    given, slack = plan.schedule, 2 * plan.tolerance_ms
    finding = ConstraintReport("makespan, bound and gap", "2", 4)
    last = float(given.end_ms.max(initial=0.0))
    if abs(given.makespan_ms - last) > slack:
        finding.add(
            "makespan_ms", f"is {ms(given.makespan_ms)}, but the last task ends at {ms(last)}"
        )
    if given.bound_ms > given.makespan_ms + slack:
        finding.add(
            "bound_ms", f"is {ms(given.bound_ms)}, above the makespan of {ms(given.makespan_ms)}"
        )
    distance = given.makespan_ms - given.bound_ms
    gap = max(0.0, distance / given.makespan_ms) if given.makespan_ms > 0 else 0.0
    if given.gap is None or abs(given.gap - gap) > GAP_TOLERANCE:
        said = "missing" if given.gap is None else f"{given.gap:.6g}"
        finding.add("gap", f"is {said}, but (makespan - bound) / makespan is {gap:.6g}")
    if given.status == "optimal" and distance > slack:
        finding.add(
            "status",
            f"is optimal, but the bound of {ms(given.bound_ms)} is below the makespan of {ms(given.makespan_ms)}",
        )
    times_ms = {**given.claims_ms, "makespan_ms": given.makespan_ms, "bound_ms": given.bound_ms}
    for key, other, way, words in (
        ("first_ms", "makespan_ms", 1, "above the {} of every later iteration"),
        ("slotted_ms", "makespan_ms", -1, "below the makespan of {}"),
        ("bound_slotted_ms", "slotted_ms", 1, NOT_ABOVE),
        ("bound_ms", "bound_switching_ms", 1, NOT_ABOVE),
        ("bound_ms", "bound_fixed_ms", 1, NOT_ABOVE),
        ("makespan_ms", "best_switching_ms", 1, NOT_ABOVE),
        ("makespan_ms", "best_fixed_ms", 1, NOT_ABOVE),
    ):
        both = key in times_ms and other in times_ms
        if both and way * (times_ms[key] - times_ms[other]) > slack:
            finding.add(key, f"is {ms(times_ms[key])}, {words.format(ms(times_ms[other]))}")
    if given.status in ("infeasible", "unknown"):
        finding.add("status", f"is {given.status}, but there is a schedule")
    return finding


__all__ = ["CheckReport", "ConstraintReport", "Violation", "check", "read_schedule"]


def check(
    graph: TaskGraph,
    cluster: Cluster,
    record: Mapping[str, Any],
    *,
    file: str = "",
    model: str | None = None,
    circuits: str | None = None,
    cluster_changes: Mapping[str, Any] | None = None,
) -> CheckReport:
    """Check a result against every constraint that its settings choose, and against its own claims.

    Parameters
    ----------
    graph, cluster
        The input files.
    record
        The result as its file has it; ``settings`` say which constraints hold and which keys of the
        cluster were overridden.
    file
        Name of the result file, for errors.
    model, circuits
        Constraints to check instead of those of the settings: ``physical`` or ``paper``,
        ``continuous`` or ``per-slot``.
    cluster_changes
        Cluster keys that win over those of the settings.

    Raises
    ------
    InputError
        If the record is no result file, or graph and cluster do not fit together. A schedule that
        breaks a constraint is no error: the report names it.
    """
    schedule = columns_of(record, file)
    cluster = changed_cluster(cluster, schedule.settings.get("cluster"), file)
    if cluster_changes:
        cluster = cluster.changed(**cluster_changes)
    rules = Rules.of(schedule.settings, file, model, circuits, schedule.clock)
    if not schedule.has_schedule:
        nothing = ConstraintReport("one start", "3")
        nothing.add("schedule", f"there is none to check (status {schedule.status})")
        return CheckReport((nothing,))
    try:
        # Absurd times in a file may overflow to infinity; comparisons with it are right.
        with np.errstate(over="ignore", invalid="ignore"):
            plan = CheckedPlan.of(graph, cluster, rules, schedule)
            findings = _times(plan) + _circuits(plan)
    except InputError as error:
        raise error.in_file(file) from None
    return CheckReport(tuple(findings))


def _times(plan: CheckedPlan) -> list[ConstraintReport]:
    findings = [claims(plan), one_start(plan)]
    if plan.rules.on_slots:
        findings.append(on_the_clock(plan))
    findings += [duration(plan), precedence(plan)]
    if plan.rules.exclusive_devices:
        findings.append(one_task_a_device(plan))
    findings.append(collectives_move_their_bytes(plan))
    return findings


def _circuits(plan: CheckedPlan) -> list[ConstraintReport]:
    if not plan.is_transfer.any() and not len(plan.circuit_node):
        return []
    if plan.schedule.fixed is not None:
        return fixed_circuits(plan, plan.schedule.fixed)
    k = plan.rules.ports_on_switch(plan.cluster)
    held = HeldCircuits.of(plan)
    findings = [
        circuit_for_every_transfer(plan),
        switch_capacity(plan, held),
        server_ports(plan, held),
        in_one_peer(plan, held, k),
        out_one_peer(plan, held, k),
    ]
    if not plan.rules.continuous:
        # The printed model charges nothing for a change but the slot.
        return findings if plan.rules.model == "paper" else [*findings, per_slot_delay(plan)]
    if plan.cluster.duplex == "half":
        findings.append(one_way_a_port(held, k))
    findings.append(continuity(plan))
    booked = BookedPorts.of(plan, k)
    if booked is not None:
        findings.append(port_bookings(plan, k, booked))
    findings.append(reconfiguration(plan, k, booked))
    return findings
