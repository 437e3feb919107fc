"""Whether a result's own numbers agree: makespan (eq. 2), bound, gap and status."""

from __future__ import annotations

from topox_core.check.plan import CheckedPlan
from topox_core.check.report import ConstraintFinding, ms

GAP_TOLERANCE = 1e-6


def claims(plan: CheckedPlan) -> ConstraintFinding:
    """Eq. 2 and what is said of it: the makespan is the last end, the bound is below it, gap and status follow."""
    given, slack = plan.schedule, 2 * plan.tolerance_ms
    finding = ConstraintFinding("makespan, bound and gap", "2", 4)
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
    if given.first_ms is not None and given.first_ms > given.makespan_ms + slack:
        finding.add(
            "first_ms",
            f"is {ms(given.first_ms)}, above the {ms(given.makespan_ms)} of every later iteration",
        )
    if given.slotted_ms is not None and given.slotted_ms < given.makespan_ms - slack:
        finding.add(
            "slotted_ms",
            f"is {ms(given.slotted_ms)}, below the makespan of {ms(given.makespan_ms)}",
        )
    for key, bound_ms, most_ms in (
        ("bound_slotted_ms", given.bound_slotted_ms, given.slotted_ms),
        ("bound_ms", given.bound_ms, given.bound_switching_ms),
        ("bound_ms", given.bound_ms, given.bound_fixed_ms),
        ("makespan_ms", given.makespan_ms, given.best_switching_ms),
        ("makespan_ms", given.makespan_ms, given.best_fixed_ms),
    ):
        if bound_ms is not None and most_ms is not None and bound_ms > most_ms + slack:
            finding.add(key, f"is {ms(bound_ms)}, above {ms(most_ms)}, which it may not pass")
    if given.status in ("infeasible", "unknown"):
        finding.add("status", f"is {given.status}, but there is a schedule")
    return finding
