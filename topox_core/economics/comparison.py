"""Networks set side by side: by cluster size, by what their difference depends on, and by year."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count, takewhile
from typing import Annotated

from topox_core.economics.networks import (
    COUNTINGS,
    NETWORKS,
    Bill,
    Counting,
    bill,
    bills,
    check_size,
    limit_per_gpu,
    saving,
)
from topox_core.economics.price_sets import Catalogue
from topox_core.errors import refuse_if
from topox_core.schema.fields import setting
from topox_core.schema.records import check_fields
from topox_core.text.numbers import plural

HOURS_PER_YEAR = 8_760.0


@dataclass(frozen=True)
class Question:
    """What is bought, at whose prices, and how it is counted."""

    gpus: int
    catalogue: Catalogue
    counting: Counting

    def bill(self, network: str) -> Bill:
        """Return the bill of one network; raises InputError as :func:`networks.bill` does."""
        return bill(network, self.gpus, self.catalogue, self.counting)

    def saving(self, mine: str, other: str, measure: str) -> float:
        """Return the share of ``other``'s cost (or power) that ``mine`` saves."""
        return saving(self.bill(mine).amount(measure), self.bill(other).amount(measure))


def sizes_up_to(most_gpus: int, gpus_per_server: int, also: Iterable[int] = ()) -> tuple[int, ...]:
    """Return cluster sizes from two servers on, doubling, with those of ``also``."""
    doubled = takewhile(lambda gpus: gpus <= most_gpus, (gpus_per_server << k for k in count(1)))
    return tuple(sorted({*doubled, *(gpus for gpus in also if gpus >= gpus_per_server)}))


def curves(question: Question, sizes: Iterable[int]) -> dict[str, list[Bill]]:
    """Return each network's bill at each cluster size; raises InputError for unfilled servers."""
    at = [bills(gpus, question.catalogue, question.counting) for gpus in sizes]
    return {network: [one[network] for one in at] for network in NETWORKS}


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
    def ends(self) -> list[tuple[str, float]]:
        """The ends that there are, the lower one first."""
        return [end for end in (self.low, self.high) if end is not None]

    def width(self, base: float) -> float:
        """Return how far apart its ends and the number now are."""
        values = [base, *(value for _, value in self.ends)]
        return max(values) - min(values)


def tornado(
    question: Question,
    mine: str = "photonic_rails",
    other: str = "rail_optimized",
    measure: str = "cost",
) -> tuple[Swing, ...]:
    """Return what a saving depends on: every price halved and doubled, every choice turned.

    The widest first; what does not move the saving by 0.05 points is left out.

    Raises
    ------
    InputError
        If the question itself cannot be answered.
    """
    moves = (*_prices(question, measure), *_choices(question))
    rows = [
        Swing(name, *(end and (end[0], end[1].saving(mine, other, measure)) for end in (low, high)))
        for name, low, high in moves
    ]
    return widest_first(rows, question.saving(mine, other, measure))


def widest_first(rows: Iterable[Swing], base: float) -> tuple[Swing, ...]:
    """Return the rows of a tornado round a share, the widest first, without those below 0.05 points or without an end."""
    wide = [row for row in rows if 0.0005 <= row.width(base) < math.inf]
    return tuple(sorted(wide, key=lambda row: row.width(base), reverse=True))


MOVED_PARTS = {
    "ocs_port": "Optical-switch port",
    "packet_switch": "Packet-switch port",
    "transceiver": "Transceiver",
    "patch_panel_port": "Patch-panel port",
    "one_by_two_switch": "1 x 2 switch",
    "nic": "NIC",
    "fibre_m": "Fibre",
}


# What moves, and to what in either way: in words, and what is then asked.
_End = tuple[str, Question] | None
_Move = tuple[str, _End, _End]


def _prices(question: Question, measure: str) -> Iterator[_Move]:
    field, word, unit = (
        ("price_usd", "price", "$") if measure == "cost" else ("power_w", "power", "W")
    )
    catalogue = question.catalogue
    for name, words in MOVED_PARTS.items():
        part = catalogue.part(name)
        half, double = (
            (
                amount_moved(factor * getattr(part, field) / part.ports, unit),
                replace(
                    question,
                    catalogue=catalogue.changed({name: {field: factor * getattr(part, field)}}),
                ),
            )
            for factor in (0.5, 2.0)
        )
        if getattr(part, field) > 0:
            yield f"{words} {word}", half, double


def _choices(question: Question) -> Iterator[_Move]:
    counting = question.counting

    def when(field: str, value: object, words: str) -> tuple[str, Question]:
        changed = replace(counting, **{field: value})  # type: ignore[arg-type]
        return words, replace(question, counting=changed)

    for name, field in (
        ("Optical ports per GPU", "ocs_ports_per_gpu"),
        ("Transceivers per GPU (optical)", "ocs_transceivers_per_gpu"),
    ):
        now = getattr(counting, field)
        half, double = now // 2, min(64, 2 * now)
        yield name, when(field, half, str(half)) if half else None, when(field, double, str(double))
    whole, at_switches = (
        counting.method == "whole-switches",
        counting.at_switches(question.catalogue),
    )
    either, counted, used = (False, True), ("not counted", "counted"), ("without", "with")
    for name, field, is_on, values, words in (
        ("Switches counted", "method", whole, COUNTINGS, ("published", "whole")),
        (
            "Transceivers at switches",
            "switch_transceivers",
            at_switches,
            either,
            ("none", "counted"),
        ),
        ("NICs", "nics", counting.nics, either, counted),
        ("Fibre", "fibre", counting.fibre, either, counted),
        ("Look-ahead", "look_ahead", counting.look_ahead, either, used),
        *([("Spine over the rails", "joined_rails", counting.joined_rails, either, used)] * whole),
    ):
        yield name, None, when(field, values[not is_on], words[not is_on])


def amount_moved(value: float, unit: str) -> str:
    """Return a figure at the end of a bar with its unit: $1,040, 0.39 W."""
    text = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"${text}" if unit == "$" else f"{text} {unit}"


@dataclass(frozen=True)
class Running:
    """Assumptions about a year: none of them is in the papers, all of them can be changed.

    Raises
    ------
    InputError
        If a figure is out of range.
    """

    usd_per_kwh: Annotated[
        float, setting("Price of electricity", "$/kWh", "assumed", ge=0, le=100)
    ] = 0.10
    pue: Annotated[
        float,
        setting(
            "Power usage effectiveness",
            description="watts that the building draws per watt of the network; assumed",
            ge=1,
            le=10,
        ),
    ] = 1.3
    years: Annotated[
        float, setting("Written off over", "years", "in equal parts; assumed", ge=0.1, le=100)
    ] = 4.0

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class Year:
    """What a network costs in a year: its share of the purchase, its electricity in $ and kWh."""

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


def year_of(bill: Bill, running: Running) -> Year:
    """Return a year of a network: listed watts all year times PUE, price over its years."""
    return year_at(bill.cost_usd, bill.power_w, running)


def year_at(cost_usd: float, power_w: float, running: Running) -> Year:
    """Return a year of what costs ``cost_usd`` and draws ``power_w``, as :func:`year_of` counts it."""
    energy = power_w / 1000 * running.pue * HOURS_PER_YEAR
    return Year(cost_usd / running.years, energy * running.usd_per_kwh, energy)


def usd_per_iteration(iteration_ms: float, year: Year, gpu_usd_per_hour: float) -> float:
    """Return dollars of an iteration: network and all GPUs by the hour, times its duration."""
    return (year.usd_per_hour + gpu_usd_per_hour) * iteration_ms / 3_600_000.0


def per_dollar(iteration_ms: float, year: Year) -> float:
    """Return iterations for one dollar of network, by the hour; infinite where it is free.

    Parameters
    ----------
    iteration_ms
        Time of one iteration on that network, in ms.
    """
    if iteration_ms <= 0:
        return math.inf
    hourly = year.usd_per_hour
    return 3_600_000.0 / iteration_ms / hourly if hourly > 0 else math.inf


@dataclass(frozen=True)
class IterationCost:
    """What an iteration of some duration in ms costs on a network, with all its GPUs by the hour."""

    iteration_ms: float
    bill: Bill
    year: Year
    gpu_usd_per_hour: float

    @property
    def usd(self) -> float:
        """Dollars of an iteration, GPU hours included."""
        return usd_per_iteration(self.iteration_ms, self.year, self.gpu_usd_per_hour)

    @property
    def per_usd(self) -> float:
        """Iterations for a dollar of network alone."""
        return per_dollar(self.iteration_ms, self.year)

    @property
    def gpu_share(self) -> float:
        """Share of GPU hours in the dollars; 0 where nothing costs."""
        return self.gpu_usd_per_hour / ((self.gpu_usd_per_hour + self.year.usd_per_hour) or 1.0)


WARNING, NOTE = "warning", "note"


@dataclass(frozen=True)
class Caveat:
    """One caveat: its kind (``warning`` or ``note``), its name, and a sentence."""

    kind: str
    name: str
    text: str


def ports_needed(question: Question) -> int:
    """Return the ports of one rail's optical switch: each server brings those of one GPU."""
    return question.gpus // question.counting.gpus_per_server * question.counting.ocs_ports_per_gpu


def most_gpus(question: Question, radix: int) -> int:
    """Return the GPUs that one optical switch a rail joins (Table 3: scale-up times radix / 2)."""
    return radix // question.counting.ocs_ports_per_gpu * question.counting.gpus_per_server


def caveats_of(
    question: Question, radix: int | None = None, switch: str = "the optical switch"
) -> tuple[Caveat, ...]:
    """Return what does not hold: too few ports, dearer optics, savings that are rounding.

    Parameters
    ----------
    radix
        Ports of the largest optical switch to be had; None skips the question whether it can be
        built.
    switch
        That switch in words.

    Raises
    ------
    InputError
        If the GPUs do not fill whole servers, or the switch has no port.
    """
    refuse_if((radix is not None and radix < 1, f"must be at least 1 (got {radix})"), field="radix")
    check_size(question.gpus, question.counting)
    return tuple(_caveats(question, radix, switch))


def _caveats(question: Question, radix: int | None, switch: str) -> Iterator[Caveat]:
    if radix is not None and ports_needed(question) > radix:
        yield Caveat(
            WARNING,
            "radix",
            f"{question.gpus:,} GPUs need an optical switch of {ports_needed(question):,} ports on every rail; "
            f"{switch} has {radix:,}, enough for up to {most_gpus(question, radix):,} GPUs.",
        )
    yield from _dearer(question)
    yield from _rounding(question)
    optics = plural(question.counting.ocs_transceivers_per_gpu, "transceiver")
    ports = plural(question.counting.ocs_ports_per_gpu, "optical-switch port")
    counted = f"Photonic rails are counted with {optics} and {ports} per GPU."
    left_out = "Bidirectional optics, insertion loss and the control plane are not priced."
    yield Caveat(NOTE, "not-priced", f"{counted} {left_out}")


def _dearer(question: Question) -> Iterator[Caveat]:
    """Say where photonic rails lose to whole packet switches, whichever counting is chosen."""
    whole = replace(
        question, counting=replace(question.counting, method="whole-switches", joined_rails=False)
    )
    share = whole.saving("photonic_rails", "rail_only", "cost")
    published = question.saving("photonic_rails", "rail_optimized", "cost")
    if share < 0:
        servers = question.gpus // question.counting.gpus_per_server
        ports = question.catalogue.part("packet_switch").ports
        why = f": one {ports}-port packet switch per rail joins all {servers} servers"
        yield Caveat(
            WARNING,
            "dearer-than-whole-switches",
            f"Against whole packet switches, no more of them than needed, photonic rails for {question.gpus:,} GPUs are "
            f"{-100 * share:.0f} % more expensive{why if servers <= ports else ''}.",
        )
    elif question.counting.method == "paper" and published - share > 0.1:
        yield Caveat(
            NOTE,
            "whole-switches",
            f"With whole packet switches and no spine over the rails the saving is {100 * share:.0f} %, not "
            f"{100 * published:.0f} %.",
        )


def _rounding(question: Question) -> Iterator[Caveat]:
    """Say how much of the published saving is the rounding of a fractional radix."""
    mine, other = (
        limit_per_gpu(network, question.catalogue, question.counting).cost_usd
        for network in ("photonic_rails", "rail_optimized")
    )
    limit = saving(mine, other)
    here = question.saving("photonic_rails", "rail_optimized", "cost")
    if question.counting.method == "paper" and abs(here - limit) >= 0.0005:
        yield Caveat(
            NOTE,
            "rounding",
            f"The saving against {NETWORKS['rail_optimized'].lower()} switches is {100 * limit:.2f} % for ever larger "
            f"clusters; the {100 * here:.2f} % here differ because the radix of a switch is a whole number.",
        )
