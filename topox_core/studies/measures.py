"""What a study may report of a point, with the words and units of tables and axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from topox_core.errors import InputError, shown

FABRIC, RAIL, ROUND, BILL = "fabric", "rail", "round", "bill"


@dataclass(frozen=True)
class Measure:
    """One number of a point.

    Attributes
    ----------
    runs
        For which kinds of run it is known.
    better
        ``least`` or ``most``; empty where neither is better.
    share
        Whether it is a share, shown in percent.
    """

    name: str
    words: str
    unit: str
    runs: tuple[str, ...]
    better: str = "least"
    share: bool = False

    @property
    def title(self) -> str:
        """Words with the unit, as an axis has them."""
        unit = "%" if self.share else self.unit
        return f"{self.words} ({unit})" if unit else self.words


MEASURES: Mapping[str, Measure] = {
    one.name: one
    for one in (
        Measure("iteration_ms", "Iteration time", "ms", (FABRIC, RAIL)),
        Measure("bound_ms", "Lower bound", "ms", (FABRIC,), ""),
        Measure("undisturbed_ms", "Without any delay", "ms", (RAIL,), ""),
        Measure("overhead", "Longer than without delay", "", (RAIL,), share=True),
        Measure("round_s", "Round", "s", (ROUND,)),
        Measure("mean_round_s", "Mean round of a job", "s", (ROUND,)),
        Measure("bound_s", "Lower bound", "s", (ROUND,), ""),
        Measure("reduction", "Shorter than without turns", "", (ROUND,), "most", True),
        Measure(
            "mean_reduction", "Mean round shorter than without turns", "", (ROUND,), "most", True
        ),
        Measure("communicating_s", "Communicating", "s", (ROUND,), ""),
        Measure("computing_s", "Computing", "s", (ROUND,), ""),
        Measure("gap", "Gap to the bound", "", (FABRIC, ROUND), share=True),
        Measure("dark_share", "Ports dark", "", (FABRIC,), share=True),
        Measure("changes", "Circuit changes", "", (FABRIC, RAIL)),
        Measure("windows", "Windows between transfers", "", (FABRIC, RAIL), ""),
        Measure("window_ms", "Median window", "ms", (FABRIC, RAIL), ""),
        Measure("bandwidth_tax", "Bandwidth tax", "", (FABRIC,)),
        Measure("dollars", "Price of the network", "$", (FABRIC, BILL)),
        Measure("watts", "Power of the network", "W", (FABRIC, BILL)),
        Measure("iterations_per_dollar", "Iterations a dollar", "", (FABRIC,), "most"),
        Measure("joules_per_iteration", "Energy an iteration", "J", (FABRIC,)),
        Measure("cost_saving", "Cheaper than the other network", "", (BILL,), "most", True),
        Measure("power_saving", "Less power than the other network", "", (BILL,), "most", True),
    )
}
USUAL: Mapping[str, tuple[str, ...]] = {
    FABRIC: (
        "iteration_ms",
        "bound_ms",
        "gap",
        "dark_share",
        "changes",
        "dollars",
        "watts",
        "iterations_per_dollar",
        "joules_per_iteration",
    ),
    RAIL: ("iteration_ms", "overhead"),
    ROUND: ("round_s", "bound_s", "gap", "reduction"),
    BILL: ("dollars", "watts", "cost_saving", "power_saving"),
}


def of_runs(runs: str) -> tuple[str, ...]:
    """Return the measures of a kind of run."""
    return tuple(name for name, one in MEASURES.items() if runs in one.runs)


def chosen_measures(names: object, runs: str) -> tuple[str, ...]:
    """Return the measures that a study asks for, in their order here.

    Raises
    ------
    InputError
        If one is unknown or is not known for such runs.
    """
    known = of_runs(runs)
    if not isinstance(names, Iterable) or isinstance(names, str | bytes | Mapping):
        raise InputError(f"must be a list in brackets (got {shown(names)})", field="measures")
    asked = list(names)
    for name in asked:
        if name not in known:
            raise InputError(
                f"must be some of {', '.join(known)} (got {shown(name)})", field="measures"
            )
    if not asked:
        raise InputError(f"must name at least one of {', '.join(known)}", field="measures")
    return tuple(name for name in known if name in asked)
