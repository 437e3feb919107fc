"""What found a schedule or raised a bound: its family, and its name for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Family = Literal[
    "rules", "controllers", "passed", "fixed", "search", "neighbourhoods", "exact", "bounds"
]


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
