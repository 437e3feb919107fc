"""What to buy for a job: the question, the networks that are compared, and the study that computes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from math import inf
from typing import Annotated, Self

from topox_core.economics.comparison import Running, usd_per_iteration, year_at
from topox_core.errors import refuse_if
from topox_core.fabrics.comparison.compare import fabric_bill
from topox_core.fabrics.planning.passed_plans import PassedPlan, best_passed
from topox_core.io.limits import is_whole
from topox_core.model.cluster import MAX_PORTS, Cluster
from topox_core.schema.fields import setting
from topox_core.schema.records import check_fields, check_value
from topox_core.studies.axes import Axis, Design
from topox_core.studies.buying.offers import LEVELS, OFFERS, Estimate, SwitchProduct
from topox_core.studies.keys import LABEL, Value
from topox_core.studies.outcomes import fabric_at, point_job, priced_at
from topox_core.studies.study import Study
from topox_core.studies.subject import Resolved

DELAY, DEGREE = "cluster.reconfiguration_ms", "cluster.degree"
PRICE, POWER = "prices.ocs_port.price_usd", "prices.ocs_port.power_w"
FABRIC, FAT_TREE = "fabric", "fabric.fat_tree"
VARIED = (LABEL, FABRIC, FAT_TREE, DEGREE, DELAY, PRICE, POWER)
# Without a switch that changes circuits: what each is run as.
RIVALS: Mapping[str, tuple[str, Mapping[str, Value]]] = {
    "fixed": ("Fixed circuits on a patch panel", {FABRIC: "static_graph"}),
    "fat_tree": ("Full fat-tree", {FABRIC: "fat_tree", FAT_TREE: "full"}),
    "same_cost": ("Fat-tree of the same cost", {FABRIC: "fat_tree", FAT_TREE: "cost"}),
}
# What is least for the winner, and its unit.
CRITERIA = {
    "dollars": ("Dollars per iteration", "$"),
    "time": ("Iteration time", "ms"),
    "price": ("Price of the network", "$"),
}
MAX_DEGREES = 8
MEASURES = ("iteration_ms", "dollars", "watts")
USD_PER_HOUR = Annotated[float, setting(ge=0, le=10_000)]
# Assumed, as are their ends.
GPU_HOUR_USD = Estimate(1.0, 2.0, 4.0)
KWH_USD = Estimate(0.05, Running.usd_per_kwh, 0.20)
YEARS = Estimate(3.0, Running.years, 6.0)


@dataclass(frozen=True)
class Assumptions:
    """What no paper says and every answer in dollars depends on.

    Attributes
    ----------
    usd_per_gpu_hour
        What an hour of one GPU costs with its server, power and building.
    usd_per_kwh, years, pue
        Of the network: electricity, over how many years it is written off, and power usage
        effectiveness.
    gpus_per_server
        None: those of the training job's machine, else the devices that the cluster names.

    Raises
    ------
    InputError
        If a figure is out of range.
    """

    usd_per_gpu_hour: Estimate = GPU_HOUR_USD
    usd_per_kwh: Estimate = KWH_USD
    years: Estimate = YEARS
    pue: float = Running.pue
    gpus_per_server: Annotated[int, setting(ge=1, le=MAX_PORTS)] | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        for level in LEVELS:
            check_value(USD_PER_HOUR, self.usd_per_gpu_hour.at(level), field="usd_per_gpu_hour")
            Running(self.usd_per_kwh.at(level), self.pue, self.years.at(level))

    @classmethod
    def of(cls, usd_per_gpu_hour: float, running: Running, gpus_per_server: int | None) -> Self:
        """Return the assumptions with other usual values than their own; an end that one passes moves with it."""
        return cls(
            GPU_HOUR_USD.moved(usd_per_gpu_hour),
            KWH_USD.moved(running.usd_per_kwh),
            YEARS.moved(running.years),
            running.pue,
            gpus_per_server,
        )

    @property
    def running(self) -> Running:
        """The assumptions about a year of the network."""
        return Running(self.usd_per_kwh.usual, self.pue, self.years.usual)


@dataclass(frozen=True)
class Choice:
    """One network that is compared.

    Attributes
    ----------
    key
        Of an offer, or of a rival.
    name, short
        What it is called, of an offer with its vendor and without.
    degree
        Ports per server.
    level
        ``usual``; of an offer also ``low`` (fastest, cheapest, least watts) and ``high``.
    values
        What is set at its point.
    """

    key: str
    name: str
    short: str
    degree: int
    level: str
    values: Mapping[str, Value]

    @property
    def rival(self) -> bool:
        """Whether it changes no circuits."""
        return self.key in RIVALS

    @property
    def title(self) -> str:
        """Its name with its ports."""
        return f"{self.name}, {self.degree} port{'s' * (self.degree != 1)} per server"


@dataclass(frozen=True)
class Row:
    """What computing a choice gave; without a time where it cannot be run, and the message says why.

    ``handed_on``: whether its time is that of a plan which was known before the question.
    """

    choice: Choice
    iteration_ms: float | None
    network_usd: float | None
    network_w: float | None
    message: str = ""
    handed_on: bool = False

    @property
    def known(self) -> bool:
        """Whether it ran and has a price."""
        return None not in (self.iteration_ms, self.network_usd, self.network_w)


def levels_of(rows: Sequence[Row], row: Row) -> dict[str, Row]:
    """Return a network at its usual figures and at the ends of their ranges, as far as they are there, by level."""
    of = row.choice.key, row.choice.degree
    return {one.choice.level: one for one in rows if (one.choice.key, one.choice.degree) == of}


@dataclass(frozen=True)
class Question:
    """What is asked: for which job, among which offers and rivals, and what counts.

    Attributes
    ----------
    resolved
        The job with its cluster.
    fixed
        What holds at every point, by the keys of a study: what-ifs and prices.
    degrees
        Ports per server to consider; empty: the cluster's own.
    by
        One of :data:`CRITERIA`.

    Raises
    ------
    InputError
        If the job has no network, or a choice cannot be.
    """

    resolved: Resolved
    offers: tuple[SwitchProduct, ...] = OFFERS
    degrees: tuple[int, ...] = ()
    rivals: tuple[Annotated[str, setting(choices=RIVALS)], ...] = tuple(RIVALS)
    fixed: Mapping[str, Value] = field(default_factory=dict)
    assumed: Assumptions = field(default_factory=Assumptions)
    by: Annotated[str, setting(choices=CRITERIA)] = "dollars"

    def __post_init__(self) -> None:
        runs = self.resolved.subject.runs
        refuse_if((runs != "fabric", "has no task graph to run on switches"), field="subject")
        check_fields(self)
        # Of VARIED the study says at every point what holds.
        kept = {name: value for name, value in self.fixed.items() if name not in VARIED}
        kept |= {f"running.{name}": value for name, value in vars(self.assumed.running).items()}
        object.__setattr__(self, "fixed", kept)
        degrees = tuple(sorted(set(self.degrees or (self.cluster.ports_per_server,))))
        wrong = [one for one in degrees if not is_whole(one, 1, MAX_PORTS)]
        refuse_if(
            (not self.rivals, f"must name some of {', '.join(RIVALS)}", "rivals"),
            (not self.offers, "must have at least one offer", "offers"),
            (
                wrong,
                f"must be whole numbers from 1 to {MAX_PORTS:,} (got {', '.join(map(str, wrong))})",
                "ports",
            ),
            (
                len(degrees) > MAX_DEGREES,
                f"has {len(degrees)} values (limit {MAX_DEGREES})",
                "ports",
            ),
        )
        object.__setattr__(self, "degrees", degrees)

    @cached_property
    def cluster(self) -> Cluster:
        """The cluster with the what-ifs; raises InputError."""
        return point_job(self.resolved, {**self.fixed, FABRIC: "static_graph"}).cluster

    @property
    def gpus(self) -> int:
        """GPUs that wait while an iteration runs."""
        return self.cluster.servers * (
            self.assumed.gpus_per_server or self.resolved.gpus_per_server
        )

    def values(self, choice: Choice) -> dict[str, Value]:
        """Return all that is set at a choice's point."""
        return {**self.fixed, **choice.values}

    def at(
        self,
        offer: SwitchProduct,
        degree: int,
        level: str = "usual",
        changes: Mapping[str, Value] = {},
    ) -> Choice:
        """Return an offer as a network, with some values changed; ``low`` and ``high`` are those ends of all its figures."""
        values: dict[str, Value] = {
            FABRIC: "scheduled",
            DEGREE: degree,
            DELAY: offer.delay_ms.at(level),
            PRICE: offer.port_usd.at(level),
            POWER: offer.port_w.at(level),
            **changes,
        }
        return Choice(offer.key, offer.title, offer.name, degree, level, values)

    def rival(self, key: str, degree: int) -> Choice:
        """Return a rival as a network."""
        name, values = RIVALS[key]
        return Choice(key, name, name, degree, "usual", {**values, DEGREE: degree})

    def planes(self, degree: int) -> tuple[int, int]:
        """Return how many switches stand side by side, none joined to another, and the ports that each must have."""
        cluster = self.cluster
        planes = degree if cluster.ports_per_server == cluster.switches else cluster.switches
        return planes, cluster.servers * max(1, degree // planes)

    def fits(self, offer: SwitchProduct, degree: int) -> bool:
        """Return whether an offer's switch has a port for all that one must reach."""
        return offer.ports.usual >= self.planes(degree)[1]

    def switches(self, offer: SwitchProduct, degree: int) -> int:
        """Return how many whole switches of an offer that fits carry all ports of the servers."""
        planes, needed = self.planes(degree)
        return -(-planes // (int(offer.ports.usual) // needed))

    @cached_property
    def choices(self) -> tuple[Choice, ...]:
        """All networks: rivals and usual offers first, then the ends of the ranges."""
        every = [(one, degree) for degree in self.degrees for one in self.offers]
        rivals = [self.rival(key, degree) for degree in self.degrees for key in self.rivals]
        offers = [
            self.at(*one, level)
            for level in ("usual", "low", "high")
            for one in every
            if self.fits(*one)
        ]
        return (*rivals, *offers)

    @property
    def unfits(self) -> tuple[tuple[SwitchProduct, int], ...]:
        """The offers that have too few ports, each with the ports per server."""
        every = ((one, degree) for degree in self.degrees for one in self.offers)
        return tuple(one for one in every if not self.fits(*one))

    def cost(self, row: Row, by: str = "") -> float:
        """Return what is least for the winner, or what another criterion counts, in its unit; infinite where it is not known."""
        ms, usd, watts = row.iteration_ms, row.network_usd, row.network_w
        if ms is None or usd is None or watts is None:
            return inf
        dollars = self.usd_per_iteration(ms, usd, watts)
        return {"time": ms, "price": usd, "dollars": dollars}[by or self.by]

    def usd_per_iteration(self, iteration_ms: float, network_usd: float, network_w: float) -> float:
        """Return dollars of an iteration: network and GPUs by the hour, times its duration."""
        year = year_at(network_usd, network_w, self.assumed.running)
        gpu_usd_per_hour = self.gpus * self.assumed.usd_per_gpu_hour.usual
        return usd_per_iteration(iteration_ms, year, gpu_usd_per_hour)

    def at_price(self, row: Row, port_usd: float) -> Row:
        """Return a network at another price of a port, which changes no plan: nothing is run; raises InputError."""
        choice = replace(row.choice, values={**row.choice.values, PRICE: port_usd})
        values = self.values(choice)
        job, prices = point_job(self.resolved, values), priced_at(values)
        bill = fabric_bill(fabric_at(values), job.cluster, prices, job.options)
        assert bill is not None  # every choice can be bought
        return replace(row, choice=choice, network_usd=bill.cost_usd)


def buying_study(
    question: Question, choices: Sequence[Choice] | None = None, name: str = ""
) -> Study:
    """Return the study that computes choices, by default all of a question: one listed point each.

    The points are listed: a design of one axis at a time has its base where the subject has it, not at an offer.

    Raises
    ------
    InputError
        If a value cannot be.
    """
    points = question.choices if choices is None else tuple(choices)
    keys, varied = question.resolved.subject.keys, {LABEL, *chain(*(one.values for one in points))}
    rows: list[dict[str, Value]] = []
    for one in points:
        label = one.title if one.rival else f"{one.title}, {one.level}"
        held = {**question.values(one), LABEL: label}
        rows.append({key: keys[key].value(held[key]) for key in held if key in varied})
    axes = tuple(
        Axis(keys[key], tuple(dict.fromkeys(row[key] for row in rows if key in row)))
        for key in sorted(varied, key=(*VARIED, *sorted(varied)).index)
    )
    listed = tuple(tuple(row.get(axis.key.name) for axis in axes) for row in rows)
    return Study(
        name or f"What to buy for {question.resolved.title}"[:120],
        question.resolved.subject,
        axes,
        {name: value for name, value in question.fixed.items() if name not in varied},
        Design("listed", listed=listed),
        MEASURES,
    )


def with_known_plans(
    question: Question, rows: Sequence[Row], plans: Sequence[PassedPlan]
) -> tuple[Row, ...]:
    """Return rows with the time of a plan that is known from elsewhere where it is shorter than their own.

    Parameters
    ----------
    plans
        Of the question's job, whatever the delay that each was made for.
    """

    def served(row: Row) -> Row:
        if row.choice.values.get(FABRIC) != "scheduled" or row.iteration_ms is None:
            return row
        job = point_job(question.resolved, question.values(row.choice))
        passed = best_passed(job, plans, row.iteration_ms)
        if passed is None:
            return row
        return replace(row, iteration_ms=passed.execution.makespan_ms, handed_on=True)

    return tuple(map(served, rows)) if plans else tuple(rows)


def planned_at(rows: Sequence[Row], row: Row) -> float | None:
    """Return for which delay the plan of a row was made, in ms; None of a rival, and where the plan was known before."""
    if row.choice.rival or row.handed_on or row.iteration_ms is None:
        return None
    return max(
        float(one.choice.values[DELAY])
        for one in rows
        if not one.choice.rival
        and one.choice.degree == row.choice.degree
        and one.iteration_ms == row.iteration_ms
    )
