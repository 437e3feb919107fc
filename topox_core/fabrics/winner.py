"""Who wins a point of the crossover map, by how much over whom, and whether a gap or rounding decides it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

from topox_core.fabrics.compare import same_time
from topox_core.fabrics.registry import FABRICS, PAYS_DELAY

Name = TypeVar("Name", bound=Hashable)
Doubt = Literal["", "gap", "rounding"]


@dataclass(frozen=True)
class MapOutcome:
    """What the map keeps of one run.

    Attributes
    ----------
    plan_ms, plan_bound_ms
        Of the scheduled fabric: the best schedule that switches, and what no such schedule goes
        below; None for other fabrics, and where only fixed circuits are allowed.
    rounding_ms
        Of ``plan_ms``: what rounding to slots adds to it; 0 on continuous time.
    keeps_fixed
        Whether the circuits stay fixed for the whole iteration because that is faster.
    """

    iteration_ms: float
    plan_ms: float | None = None
    plan_bound_ms: float = 0.0
    rounding_ms: float = 0.0
    keeps_fixed: bool = False


@dataclass(frozen=True)
class Winner:
    """Who wins a point of the map.

    Attributes
    ----------
    fabric
        The winner; empty where fixed and changing circuits are equal, or nothing could run.
    equals
        All fabrics that are as fast as the fastest, the simplest controller first.
    next
        The next-best fabric; empty if there is no other.
    lead
        How much sooner the winner ends than ``next``, as a share of the latter's time; 0 where the
        two are equal.
    beyond, beyond_lead
        Where others equal the winner: the best fabric that does not, and the winner's lead over it.
    doubt
        ``gap``: the plan is behind, or equal, by less than its distance to its bound, so that a
        better plan would change the answer. ``rounding``: it is so only because its times are
        rounded to slots. Empty where neither decides.
    """

    fabric: str = ""
    equals: tuple[str, ...] = ()
    next: str = ""
    lead: float = 0.0
    beyond: str = ""
    beyond_lead: float = 0.0
    doubt: Doubt = ""

    @property
    def key(self) -> tuple[str, bool]:
        """What the colour of a cell says: the winner, or that there is none, or nothing at all."""
        return self.fabric, bool(self.equals)


def ties(costs: Mapping[Name, float]) -> tuple[Name, ...]:
    """Return what costs least with all that costs the same, in the order given: none of them is best alone."""
    least = min(costs.values(), default=0.0)
    return tuple(name for name, cost in costs.items() if same_time(cost, least))


def winner(outcomes: Mapping[str, MapOutcome]) -> Winner:
    """Return who wins among the outcomes of a point.

    Fabrics as fast as the fastest are equal. If all of those change circuits, or none does, the
    simplest of them wins; if some do and some do not, nobody wins. Planned circuits that stay fixed
    are the static fabric itself: where that one is compared, the plan stands for its best
    schedule that switches.
    """
    times = {name: _time_ms(name, outcomes) for name in FABRICS if name in outcomes}
    if not times:
        return Winner()
    ranked = sorted(times, key=lambda name: times[name])
    equals = ties(times)
    changing = {_changes(name, outcomes) for name in equals}
    fabric = equals[0] if len(changing) == 1 else ""
    next_best = next((name for name in ranked if name != fabric), "") if fabric else ""
    beyond = next((name for name in ranked if name not in equals), "")
    return Winner(
        fabric,
        equals,
        next_best,
        _lead(times, fabric, next_best) if next_best not in equals else 0.0,
        beyond if fabric and len(equals) > 1 else "",
        _lead(times, fabric, beyond) if fabric and len(equals) > 1 else 0.0,
        _doubt(times, outcomes),
    )


def _time_ms(name: str, outcomes: Mapping[str, MapOutcome]) -> float:
    one = outcomes[name]
    beside_fixed = "static" in outcomes or "static_graph" in outcomes
    return one.plan_ms if one.plan_ms is not None and beside_fixed else one.iteration_ms


def _changes(name: str, outcomes: Mapping[str, MapOutcome]) -> bool:
    """Return whether a fabric changes circuits at this point."""
    one = outcomes[name]
    return name in PAYS_DELAY and not (one.keeps_fixed and one.plan_ms is None)


def _lead(times: Mapping[str, float], fabric: str, other: str) -> float:
    return 1 - times[fabric] / times[other] if fabric and other and times[other] > 0 else 0.0


def _doubt(times: Mapping[str, float], outcomes: Mapping[str, MapOutcome]) -> Doubt:
    plan = outcomes.get("scheduled")
    rival_ms = min((time for name, time in times.items() if name != "scheduled"), default=0.0)
    if plan is None or plan.plan_ms is None or not rival_ms:
        return ""
    now = _standing(plan.plan_ms, rival_ms)
    if _standing(plan.plan_ms - plan.rounding_ms, rival_ms) != now:
        return "rounding"
    return "gap" if _standing(plan.plan_bound_ms, rival_ms) != now else ""


def _standing(time_ms: float, rival_ms: float) -> int:
    """Return -1, 0 or 1 for a time that is shorter than another one, equal to it, or longer."""
    if same_time(time_ms, rival_ms):
        return 0
    return -1 if time_ms < rival_ms else 1
