"""Constraints on when tasks run: eqs 3 to 5, durations, and one task at a time on a device."""

import numpy as np

from topox_core.check.algorithms import steps_of
from topox_core.check.intervals import Float, Int, Openings
from topox_core.check.plan import BARRIER_CODE, COLLECTIVE_CODE, COMPUTE_CODE, CheckedPlan
from topox_core.check.report import ConstraintReport, ms


def one_start(plan: CheckedPlan) -> ConstraintReport:
    """Eq. 3: every task and every listed transfer starts exactly once, at or after 0.

    Nothing else runs.
    """
    finding = ConstraintReport("one start", "3", len(plan.ids))
    needed = plan.kind != COLLECTIVE_CODE
    finding.each(
        np.flatnonzero(needed & (plan.appearances == 0)),
        lambda i: (_name(plan, i), "does not appear in the schedule"),
    )
    finding.each(
        np.flatnonzero(plan.appearances > 1),
        lambda i: (_name(plan, i), f"starts {plan.appearances[i]} times, must start once"),
    )
    finding.each(
        np.flatnonzero(plan.start_ms < -plan.tolerance_ms),
        lambda i: (
            _name(plan, i),
            f"starts at {ms(plan.start_ms[i])}, before the iteration begins",
        ),
    )
    for name in plan.unknown:
        finding.add(f"task {name}", "is neither a task of the graph nor a listed transfer")
    return finding


def on_the_clock(plan: CheckedPlan) -> ConstraintReport:
    """Eq. 4: transfers start, and circuits change, on slot boundaries.

    Compute tasks start on ticks that divide the slot.
    """
    schedule, rules, slot = plan.schedule, plan.rules, plan.cluster.slot_ms
    finding = ConstraintReport("start on the clock", "4", int((plan.kind != COLLECTIVE_CODE).sum()))
    if abs(schedule.slot_ms - slot) > 1e-9 * slot:
        finding.add("slot_ms", f"is {ms(schedule.slot_ms)}, but the cluster's slot is {ms(slot)}")
    parts = schedule.slot_ms / schedule.tick_ms
    if round(parts) < 1 or abs(parts - round(parts)) > 1e-6 * parts:
        finding.add(
            "tick_ms", f"{ms(schedule.tick_ms)} does not divide the slot of {ms(schedule.slot_ms)}"
        )
    tick = slot if rules.tick == "slot" else rules.tick
    if not isinstance(tick, str) and abs(schedule.tick_ms - tick) > 1e-6 * tick:
        finding.add("tick_ms", f"is {ms(schedule.tick_ms)}, but the settings ask for {ms(tick)}")
    finding.each(
        np.flatnonzero(plan.is_transfer & _off(plan.start_ms, slot, plan.tolerance_ms)),
        lambda i: (
            _name(plan, i),
            f"starts at {ms(plan.start_ms[i])}, not on a slot boundary ({ms(slot)})",
        ),
    )
    finding.each(
        np.flatnonzero(
            (plan.kind == COMPUTE_CODE) & _off(plan.start_ms, plan.tick_ms, plan.tolerance_ms)
        ),
        lambda i: (
            _name(plan, i),
            f"starts at {ms(plan.start_ms[i])}, not on a tick ({ms(plan.tick_ms)})",
        ),
    )
    begin, end = schedule.circuit_start_ms, schedule.circuit_end_ms
    finding.each(
        np.flatnonzero(_off(begin, slot, plan.tolerance_ms) | _off(end, slot, plan.tolerance_ms)),
        lambda i: (
            f"circuit number {i} (of {schedule.circuit_task[i]})",
            f"carries from {ms(begin[i])} to {ms(end[i])}, not between slot boundaries ({ms(slot)})",
        ),
    )
    return finding


def duration(plan: CheckedPlan) -> ConstraintReport:
    """p_j of eqs 5 and 6: a task ends its duration, in whole ticks or slots, after it starts."""
    known = plan.kind != COLLECTIVE_CODE
    if plan.schedule.fixed is not None:
        known &= ~plan.is_transfer  # they share circuits: their bytes are counted instead
    finding = ConstraintReport("duration", "p_j", int(known.sum()))
    took = plan.end_ms - plan.start_ms
    wrong = known & (np.abs(took - plan.length_ms) > plan.tolerance_ms * 2)
    wrong |= plan.end_ms < plan.start_ms - plan.tolerance_ms

    def describe(i: int) -> tuple[str, str]:
        if plan.kind[i] == COLLECTIVE_CODE:
            return _name(plan, i), f"ends at {ms(plan.end_ms[i])}, before it starts"
        unit = "tick" if plan.kind[i] == COMPUTE_CODE else "slot"
        in_units = f" in whole {unit}s" if plan.rules.on_slots else ""
        words = (
            "takes no time"
            if plan.kind[i] == BARRIER_CODE
            else f"takes {ms(plan.length_ms[i])}{in_units}"
        )
        return _name(plan, i), f"runs for {ms(took[i])}, but it {words}"

    finding.each(np.flatnonzero(wrong), describe)
    return finding


def precedence(plan: CheckedPlan) -> ConstraintReport:
    """Eq. 5: nothing starts before all that it waits for has ended.

    A collective has ended when all its transfers have, and never before all that it waited for, so
    that it passes waiting on even where it moves nothing.
    """
    later, earlier = plan.edges
    finding = ConstraintReport("precedence", "5", len(later) + len(plan.schedule.transfer))
    ready, done = _collective_times(plan)
    slack = plan.tolerance_ms
    held = (plan.kind[later] != COLLECTIVE_CODE) & (plan.start_ms[later] < done[earlier] - slack)
    finding.each(
        np.flatnonzero(held),
        lambda e: (_name(plan, int(later[e])), _too_early(plan, later[e], earlier[e], done)),
    )
    _transfers_after_collective_is_ready(plan, finding, ready)
    _transfers_after_each_other(plan, finding, done)
    _rows_of_collectives(plan, finding, ready)
    return finding


def _too_early(plan: CheckedPlan, later: int, earlier: int, done: Float) -> str:
    return f"starts at {ms(plan.start_ms[later])}, before {plan.ids[earlier]} ends at {ms(done[earlier])}"


def _collective_times(plan: CheckedPlan) -> tuple[Float, Float]:
    """Return of each graph task when all it waits for has ended (collectives only, else NaN), and when it has ended itself."""
    n = plan.tasks
    later, earlier = plan.edges
    own = plan.collective >= 0
    done = plan.end_ms[:n].copy()
    np.fmax.at(done, plan.collective[own], plan.end_ms[own])
    ready = np.full(n, np.nan)
    is_collective = plan.kind[:n] == COLLECTIVE_CODE
    into = is_collective[later]
    plain = into & ~is_collective[earlier]
    np.fmax.at(ready, later[plain], done[earlier[plain]])
    ready[is_collective & np.isnan(ready)] = 0.0
    done[is_collective] = np.fmax(done[is_collective], ready[is_collective])
    chained = into & ~plain
    _pass_on(ready, done, later[chained], earlier[chained])
    return ready, done


def _pass_on(ready: Float, done: Float, later: Int, earlier: Int) -> None:
    """Carry ends along chains of collectives, each after all that it waits for."""
    waits: dict[int, list[int]] = {j: [] for j in earlier.tolist()}
    for k, j in zip(later.tolist(), earlier.tolist(), strict=True):
        waits.setdefault(k, []).append(j)
    step = steps_of(waits)
    for k in sorted(step, key=step.__getitem__):
        ready[k] = done[waits[k]].max(initial=ready[k])
        done[k] = max(done[k], ready[k])


def _transfers_after_collective_is_ready(
    plan: CheckedPlan, finding: ConstraintReport, ready: Float
) -> None:
    node = np.flatnonzero(plan.collective >= 0)
    early = plan.start_ms[node] < ready[plan.collective[node]] - plan.tolerance_ms
    finding.each(
        node[early],
        lambda i: (
            _name(plan, i),
            f"starts at {ms(plan.start_ms[i])}, before all that {plan.ids[plan.collective[i]]} waits for "
            f"has ended at {ms(ready[plan.collective[i]])}",
        ),
    )


def _transfers_after_each_other(plan: CheckedPlan, finding: ConstraintReport, done: Float) -> None:
    """Check the dependencies that listed transfers have beyond those of their collective."""
    tasks, listed = plan.graph.tasks, plan.schedule.transfer_dependencies
    later: list[int] = []
    earlier: list[int] = []
    for i, waits in enumerate(listed):
        owner = plan.collective[plan.tasks + i]
        inherited = tasks[owner].dependencies if owner >= 0 else ()
        rest = waits[len(inherited) :] if tuple(waits[: len(inherited)]) == inherited else waits
        for name in rest:
            node = plan.node_of.get(name)
            if node is not None:
                later.append(plan.tasks + i)
                earlier.append(node)
    if not later:
        return
    ended = np.concatenate([done, plan.end_ms[plan.tasks :]])
    k, j = np.array(later), np.array(earlier)
    finding.checked += len(k)
    finding.each(
        np.flatnonzero(plan.start_ms[k] < ended[j] - plan.tolerance_ms),
        lambda e: (_name(plan, int(k[e])), _too_early(plan, k[e], j[e], ended)),
    )


def _rows_of_collectives(plan: CheckedPlan, finding: ConstraintReport, ready: Float) -> None:
    """Where a collective has a row of its own, it spans its transfers and starts when it is ready at the earliest."""
    n = plan.tasks
    own = plan.collective >= 0
    first, last = np.full(n, np.nan), np.full(n, np.nan)
    np.fmin.at(first, plan.collective[own], plan.start_ms[own])
    np.fmax.at(last, plan.collective[own], plan.end_ms[own])
    rows = (plan.kind[:n] == COLLECTIVE_CODE) & (plan.appearances[:n] > 0)
    finding.checked += int(rows.sum())
    slack = plan.tolerance_ms
    start, end = plan.start_ms[:n], plan.end_ms[:n]
    for wrong, verb, when, why, limit in (
        (start > first + slack, "starts", start, "after its first transfer", first),
        (end < last - slack, "ends", end, "before its last transfer", last),
        (start < ready - slack, "starts", start, "before all that it waits for has ended", ready),
    ):
        for i in np.flatnonzero(rows & wrong):
            words = f"{verb} at {ms(when[i])}, {why} at {ms(limit[i])}"
            finding.add(_name(plan, int(i)), words)


def one_task_a_device(plan: CheckedPlan) -> ConstraintReport:
    """Physical: a device runs one compute task at a time (the printed model has no such constraint)."""
    n = plan.tasks
    compute = np.flatnonzero(plan.kind[:n] == COMPUTE_CODE)
    finding = ConstraintReport("device exclusivity", "physical", len(compute))
    tasks = [plan.graph.tasks[i] for i in compute.tolist()]
    wide = plan.cluster.devices_per_server
    device = np.array([(task.server or 0) * wide + (task.device or 0) for task in tasks], np.int64)
    start, end = np.nan_to_num(plan.start_ms[compute]), np.nan_to_num(plan.end_ms[compute])
    finding.above(
        Openings.of(start, end, plan.tolerance_ms),
        device,
        1,
        lambda i, count: (
            _name(plan, int(compute[i])),
            f"is one of {count} tasks at {ms(start[i])} on device {device[i] % wide} "
            f"of server {device[i] // wide}, which runs one",
        ),
    )
    return finding


def _off(times: Float, unit: float, tolerance: float) -> np.typing.NDArray[np.bool_]:
    """Return which times are no multiple of the unit; a time that is not there is no fault here."""
    return np.asarray(np.abs(times - np.rint(times / unit) * unit) > tolerance)


def _name(plan: CheckedPlan, node: int) -> str:
    return f"{'task' if node < plan.tasks else 'transfer'} {plan.ids[node]}"
