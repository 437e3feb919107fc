"""One setting at another reconfiguration delay: what the delay curve of a schedule is made of."""

from __future__ import annotations

from dataclasses import dataclass

from topox_core.schedule.result import Result


@dataclass(frozen=True)
class DelayPoint:
    """Makespan, bound and status at one delay; None and an empty status where there is no schedule."""

    makespan_ms: float | None = None
    bound_ms: float | None = None
    status: str = ""

    @staticmethod
    def of(result: Result) -> DelayPoint:
        """Return the point of a result."""
        return DelayPoint(result.makespan_ms, result.bound_ms, result.status)
