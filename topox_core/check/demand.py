"""The independent checker of a demand plan: read from its record and the matrix alone."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topox_core.check.report import CheckReport, ConstraintReport, ms

# Starts and sums are floats added up in some order.
RELATIVE = 1e-9


def check_demand_plan(demand_ms: NDArray[np.float64], record: Mapping[str, Any]) -> CheckReport:
    """Return the verdict on a plan as its file has it, constraint by constraint.

    Every configuration must be a matching of the matrix's lines, begin a set-up after the one
    before it on its switch ends (the first of a switch at once if ``first_free``), and all together
    must serve every entry in full. The makespan must be the end of the last one.
    """
    demand = np.asarray(demand_ms, np.float64)
    switches: Sequence[Sequence[Mapping[str, Any]]] = record["switches"]
    slack = RELATIVE * max(1.0, float(record["makespan_ms"]))
    matchings = ConstraintReport("matchings", "physical", sum(map(len, switches)))
    times = ConstraintReport("set-ups", "physical", sum(map(len, switches)) + 1)
    served = ConstraintReport("demand", "p_j", int((demand > 0).sum()))
    sent = np.zeros_like(demand)
    last_ms = 0.0
    for r, configurations in enumerate(switches, 1):
        free_ms = 0.0
        for k, one in enumerate(configurations, 1):
            item = f"switch {r}, configuration {k}"
            if problem := _no_matching(one["circuits"], len(demand)):
                matchings.add(item, problem)
                continue
            start, duration = float(one["start_ms"]), float(one["duration_ms"])
            set_up = 0.0 if k == 1 and record["first_free"] else float(record["delay_ms"])
            if duration < 0 or start < free_ms + set_up - slack:
                times.add(
                    item,
                    f"sends from {ms(start)} for {ms(duration)}; it may from {ms(free_ms + set_up)}",
                )
            free_ms = start + duration
            for i, j in one["circuits"]:
                sent[i - 1, j - 1] += duration
        last_ms = max(last_ms, free_ms)
    if abs(last_ms - float(record["makespan_ms"])) > slack:
        times.add("makespan", f"is {ms(float(record['makespan_ms']))}; the last ends {ms(last_ms)}")
    for i, j in np.argwhere(sent < demand - slack).tolist():
        served.add(
            f"row {i + 1}, column {j + 1}",
            f"needs {ms(float(demand[i, j]))} and is sent for {ms(float(sent[i, j]))}",
        )
    return CheckReport((matchings, times, served))


def _no_matching(circuits: Sequence[Sequence[int]], lines: int) -> str:
    """Return why circuits cannot stand together; empty if they can."""
    ends = [[int(one[side]) for one in circuits] for side in (0, 1)]
    if any(not 1 <= end <= lines for side in ends for end in side):
        return f"has a circuit outside the {lines} lines"
    if any(len(set(side)) < len(side) for side in ends):
        return "has two circuits at one port"
    return ""
