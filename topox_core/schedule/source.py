"""What found a schedule or raised a bound, its family and its name for people; how good an answer is, and why its solve ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Family = Literal[
    "rules", "controllers", "passed", "fixed", "search", "neighbourhoods", "exact", "bounds"
]
Status = Literal["optimal", "feasible", "infeasible", "unknown"]
# ``lowering``: a proof for the rings and algorithms that were chosen, not for all that may be.
StoppedBy = Literal["proof", "lowering", "time_limit", "gap", "cancelled", "heuristic", "failed"]


@dataclass(frozen=True)
class TraceSource:
    """Who moved the incumbent or the bound; ``name`` is only shown, ``family`` is what figures go by."""

    family: Family
    name: str

    def __str__(self) -> str:
        return self.name

    def within(self, what: str) -> TraceSource:
        """Return the source of a schedule that was found on a smaller problem, named first."""
        return TraceSource(self.family, f"{what}, {self.name}")


LOADS = TraceSource("bounds", "loads and critical path")
HEADS_AND_TAILS = TraceSource("bounds", "heads and tails")
PROPAGATION = TraceSource("bounds", "propagation")
LOCAL_SEARCH = TraceSource("search", "local search")
ANOTHER_SOLVE = TraceSource("exact", "another solve")
ELSEWHERE = TraceSource("rules", "elsewhere")
ENGINES = {
    "cpsat": TraceSource("exact", "CP-SAT"),
    "highs": TraceSource("exact", "HiGHS"),
    "printed": TraceSource("exact", "printed MIP"),
}
