"""Networks set side by side: by cluster size, by what their difference hangs on, and by year."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from topox_core.economics.networks import NETWORKS, Bill, Counting, bill, bills, saving
from topox_core.economics.parts import Catalogue
from topox_core.errors import InputError
from topox_core.io.errors import shown

HOURS_PER_YEAR = 8_760.0
MEASURES = ("cost", "power")


@dataclass(frozen=True)
class Question:
    """What is bought, at whose prices, and how it is counted."""

    gpus: int
    catalogue: Catalogue
    counting: Counting

    def bill(self, network: str) -> Bill:
        """Return the bill of one network; raises InputError as :func:`topox_core.economics.networks.bill` does."""
        return bill(network, self.gpus, self.catalogue, self.counting)

    def saving(self, mine: str, other: str, measure: str) -> float:
        """Return the share of ``other``'s cost (or power) that ``mine`` saves."""
        return saving(self.bill(mine).amount(measure), self.bill(other).amount(measure))


def sizes_up_to(most_gpus: int, gpus_per_server: int, also: Iterable[int] = ()) -> tuple[int, ...]:
    """Return cluster sizes from two servers on, doubling, with those of ``also``."""
    found = {also_gpus for also_gpus in also if also_gpus >= gpus_per_server}
    gpus = 2 * gpus_per_server
    while gpus <= most_gpus:
        found.add(gpus)
        gpus *= 2
    return tuple(sorted(found))


def curves(
    question: Question, sizes: Iterable[int], networks: Iterable[str] = NETWORKS
) -> dict[str, list[Bill]]:
    """Return each network's bill at each cluster size; raises InputError where a size does not fill servers."""
    chosen = tuple(networks)
    found: dict[str, list[Bill]] = {network: [] for network in chosen}
    for gpus in sizes:
        for network, one in bills(gpus, question.catalogue, question.counting, chosen).items():
            found[network].append(one)
    return found


@dataclass(frozen=True)
class Swing:
    """One row of a tornado: the saving when one number or choice moves down, and when it moves up.

    ``low`` and ``high`` are (what it moves to, in words; the saving there), None where it can move
    one way only.
    """

    name: str
    low: tuple[str, float] | None
    high: tuple[str, float] | None

    @property
    def reach(self) -> float:
        """Distance between the two ends, for sorting."""
        ends = [end[1] for end in (self.low, self.high) if end is not None]
        return max(ends) - min(ends) if len(ends) > 1 else 0.0


def tornado(
    question: Question,
    mine: str = "photonic_rails",
    other: str = "rail_optimized",
    measure: str = "cost",
) -> tuple[Swing, ...]:
    """Return what ``mine``'s saving against ``other`` hangs on: every price halved and doubled, every counting choice turned.

    The widest first; what does not move the saving by 0.05 points is left out.

    Raises
    ------
    InputError
        If the measure is unknown, or the question itself cannot be answered.
    """
    if measure not in MEASURES:
        raise InputError(f"must be cost or power (got {shown(measure)})", field="measure")
    base = question.saving(mine, other, measure)
    rows = []
    for row in (
        *_prices(question, mine, other, measure),
        *_choices(question, mine, other, measure),
    ):
        values = [end[1] for end in (row.low, row.high) if end is not None]
        if any(abs(value - base) >= 0.0005 for value in values):
            rows.append((max(*values, base) - min(*values, base), row))
    return tuple(row for _, row in sorted(rows, key=lambda found: -found[0]))


_MOVED = {
    "ocs_port": "Optical-switch port",
    "packet_switch": "Packet-switch port",
    "transceiver": "Transceiver",
    "patch_panel_port": "Patch-panel port",
    "one_by_two_switch": "1 x 2 switch",
    "nic": "NIC",
    "fibre_m": "Fibre",
}


def _prices(question: Question, mine: str, other: str, measure: str) -> list[Swing]:
    field, word = ("price_usd", "price") if measure == "cost" else ("power_w", "power")
    rows = []
    for name, words in _MOVED.items():
        part = question.catalogue.part(name)
        ends = []
        for factor in (0.5, 2.0):
            value = getattr(part, field) * factor
            changed = replace(
                question, catalogue=question.catalogue.changed({name: {field: value}})
            )
            ends.append(
                (_amount(value / part.ports, measure), changed.saving(mine, other, measure))
            )
        if getattr(part, field) > 0:
            rows.append(Swing(f"{words} {word}", ends[0], ends[1]))
    return rows


def _choices(question: Question, mine: str, other: str, measure: str) -> list[Swing]:
    counting = question.counting

    def when(words: str, **changes: object) -> tuple[str, float]:
        changed = replace(question, counting=replace(counting, **changes))  # type: ignore[arg-type]
        return words, changed.saving(mine, other, measure)

    whole = counting.method == "whole-switches"
    ports, optics = counting.ocs_ports_per_gpu, counting.ocs_transceivers_per_gpu
    at_switches = (
        question.catalogue.switch_transceivers
        if counting.switch_transceivers is None
        else counting.switch_transceivers
    )
    rows = [
        Swing(
            "Optical ports a GPU",
            when(str(max(1, ports // 2)), ocs_ports_per_gpu=max(1, ports // 2))
            if ports > 1
            else None,
            when(str(min(64, 2 * ports)), ocs_ports_per_gpu=min(64, 2 * ports)),
        ),
        Swing(
            "Transceivers a GPU (optical)",
            when(str(max(1, optics // 2)), ocs_transceivers_per_gpu=max(1, optics // 2))
            if optics > 1
            else None,
            when(str(min(64, 2 * optics)), ocs_transceivers_per_gpu=min(64, 2 * optics)),
        ),
        Swing(
            "Switches counted",
            None,
            when("published" if whole else "whole", method="paper" if whole else "whole-switches"),
        ),
        Swing(
            "Transceivers at switches",
            None,
            when("none" if at_switches else "counted", switch_transceivers=not at_switches),
        ),
        Swing(
            "NICs",
            None,
            when("not counted" if counting.nics else "counted", nics=not counting.nics),
        ),
        Swing(
            "Fibre",
            None,
            when("not counted" if counting.fibre else "counted", fibre=not counting.fibre),
        ),
        Swing(
            "Look-ahead",
            None,
            when("without" if counting.look_ahead else "with", look_ahead=not counting.look_ahead),
        ),
    ]
    if whole:
        rows.append(
            Swing(
                "Spine over the rails",
                None,
                when(
                    "without" if counting.joined_rails else "with",
                    joined_rails=not counting.joined_rails,
                ),
            )
        )
    return rows


def _amount(value: float, measure: str) -> str:
    text = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"${text}" if measure == "cost" else f"{text} W"


@dataclass(frozen=True)
class Running:
    """Assumptions about a year: none of them is in the papers, all of them can be changed.

    Parameters
    ----------
    usd_per_kwh
        Price of electricity.
    pue
        Power drawn by the building for each watt in it (power usage effectiveness).
    years
        Over how many years what was bought is written off, in equal parts.

    Raises
    ------
    InputError
        If a figure is out of range.
    """

    usd_per_kwh: float = 0.10
    pue: float = 1.3
    years: float = 4.0

    def __post_init__(self) -> None:
        for field, least, most in (
            ("usd_per_kwh", 0.0, 100.0),
            ("pue", 1.0, 10.0),
            ("years", 0.1, 100.0),
        ):
            value = getattr(self, field)
            if (
                isinstance(value, bool)
                or not isinstance(value, int | float)
                or not least <= value <= most
            ):
                raise InputError(
                    f"must be from {least:g} to {most:g} (got {shown(value)})", field=field
                )


@dataclass(frozen=True)
class Year:
    """What a network costs in a year: its share of the purchase, its electricity, and the kilowatt-hours behind that."""

    purchase_usd: float
    electricity_usd: float
    energy_kwh: float

    @property
    def total_usd(self) -> float:
        """Dollars a year."""
        return self.purchase_usd + self.electricity_usd

    @property
    def usd_per_hour(self) -> float:
        """Dollars an hour, all year round."""
        return self.total_usd / HOURS_PER_YEAR


def year_of(found: Bill, running: Running) -> Year:
    """Return a year of a network: its listed watts all year round, times PUE; its price over the years of its life."""
    energy = found.power_w / 1000 * running.pue * HOURS_PER_YEAR
    return Year(found.cost_usd / running.years, energy * running.usd_per_kwh, energy)


def per_dollar(iteration_ms: float, year: Year) -> float:
    """Return iterations for one dollar of network: iterations an hour over dollars an hour; infinite where it is free.

    Parameters
    ----------
    iteration_ms
        Time of one iteration on that network, in ms.
    """
    if iteration_ms <= 0:
        return math.inf
    hourly = year.usd_per_hour
    return 3_600_000.0 / iteration_ms / hourly if hourly > 0 else math.inf
