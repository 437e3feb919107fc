"""Generators about photonic rails.

``windows``: a pipeline whose windows are counted, and seven windows against the delay of a switch. ``price``: photonic
rails against rails of packet switches, at drawn prices and sizes.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from topox_core.economics.comparison import HOURS_PER_YEAR, Question, Running, tornado
from topox_core.economics.networks import Bill, Counting
from topox_core.economics.price_sets import PRICE_SETS
from topox_core.labs.generators.generator import Draws, Generator, GivenTable, Instance
from topox_core.rails.delay import on_demand_ms, provisioned_ms, slowest_switch, windows_source
from topox_core.rails.technologies import TECHNOLOGIES
from topox_core.rails.windows import windows_by_stage

DELAY_MS = 25.0
NEAR_MS = (15.0, 25.0, 100.0)


@dataclass(frozen=True)
class Windows(Instance):
    """One instance of ``windows``.

    Attributes
    ----------
    stages, microbatches
        Of the pipeline.
    lengths_ms, base_ms, limit_percent
        Windows of an iteration in order, the iteration without any delay, and how much longer it
        may become.
    """

    stages: int
    microbatches: int
    lengths_ms: tuple[int, ...]
    base_ms: int
    limit_percent: int

    def counted(self, stage: int, schedule: str = "1f1b") -> int:
        """Return the windows of a stage."""
        return windows_by_stage(self.stages, self.microbatches, schedule)[stage]

    @property
    def ahead_ms(self) -> float:
        """What a 25 ms switch that changes ahead of time adds to the iteration."""
        return provisioned_ms(self.base_ms, self.lengths_ms, DELAY_MS) - self.base_ms

    @cached_property
    def slowest_ms(self) -> tuple[float, float]:
        """The slowest delays within the limit: ahead of time, on demand."""
        source = windows_source(self.base_ms, self.lengths_ms)
        ahead, demand = (
            slowest_switch(source, self.limit_percent, provisioned) for provisioned in (True, False)
        )
        assert ahead is not None and demand is not None  # every delay costs something at last
        return ahead, demand

    def slowest_product(self, ahead: bool) -> str:
        """Return the slowest product within the limit."""
        slowest_ms = self.slowest_ms[0 if ahead else 1]
        fit = [one for one in TECHNOLOGIES if one.reconfiguration_ms <= slowest_ms]
        return max(fit, key=lambda one: one.reconfiguration_ms).key

    def given(self) -> GivenTable:
        """Return the windows."""
        rows = tuple((str(k), f"{ms} ms") for k, ms in enumerate(self.lengths_ms, 1))
        return GivenTable(("window", "length"), rows)


def _drawn_windows(draws: Draws) -> dict[str, Any]:
    long = (10 * tens for tens in draws.row("l", 2, 12, 60))
    lengths = (*draws.row("s", 2, 1, 8), *draws.row("m", 3, 12, 45), *long)
    return {
        "stages": draws.pick("P", (3, 4, 6)),
        "microbatches": draws.pick("M", (8, 10, 12, 16)),
        "lengths_ms": tuple(draws.shuffle("order", lengths)),
        "base_ms": 100 * draws.whole("base", 20, 60),
        "limit_percent": draws.pick("limit", (1, 2, 3)),
    }


def _is_hard_windows(one: Windows) -> bool:
    """Whether a product fits ahead of time that does not fit on demand, and none is a near miss."""
    ahead, demand = one.slowest_ms
    clear = all(abs(ahead - ms) >= 1.5 and abs(demand - ms) >= 1.0 for ms in NEAR_MS)
    between = any(demand < ms < ahead for ms in NEAR_MS)
    return clear and between and min(one.lengths_ms) < DELAY_MS


GPUS_PER_SERVER = 8
OCS_PORTS_PER_GPU = 2
RUNNING = Running()
MINE, OTHER, PUBLISHED_OTHER = "photonic_rails", "rail_only", "rail_optimized"
# The parts whose prices are moved, as options; electricity is no part of a purchase.
_OPTIONS = {
    "Optical-switch port price": "ocs_port",
    "Transceiver price": "transceiver",
    "Packet-switch port price": "packet_switch",
}


@dataclass(frozen=True)
class Price(Instance):
    """One instance of ``price``: ``gpus``, the prices of an optical port and a transceiver, and a number of years."""

    gpus: int
    ocs_port_usd: int
    transceiver_usd: int
    years: int

    def question(self, method: str = "whole-switches", joined_rails: bool = False) -> Question:
        """Return the purchase at these prices, in whole switches or as published."""
        changed = {
            "ocs_port": {"price_usd": float(self.ocs_port_usd)},
            "transceiver": {"price_usd": float(self.transceiver_usd)},
        }
        catalogue = PRICE_SETS["opus-v1"].changed(changed)
        counting = Counting(GPUS_PER_SERVER, method, joined_rails=joined_rails)
        return Question(self.gpus, catalogue, counting)

    def bill(self, network: str) -> Bill:
        """Return the bill of a network of whole switches; rail-optimised ones have a spine."""
        return self.question(joined_rails=network == PUBLISHED_OTHER).bill(network)

    def purchase_usd(self, network: str) -> float:
        """Return what a network costs."""
        return self.bill(network).cost_usd

    def electricity_usd(self, network: str) -> float:
        """Return its electricity over the years."""
        per_watt = HOURS_PER_YEAR * RUNNING.pue * RUNNING.usd_per_kwh / 1_000
        return self.bill(network).power_w * per_watt * self.years

    def total_usd(self, network: str) -> float:
        """Return purchase and electricity."""
        return self.purchase_usd(network) + self.electricity_usd(network)

    @cached_property
    def saving_percent(self) -> float:
        """What photonic rails save against rail-only, whole switches, in percent."""
        return 100 * self.question().saving(MINE, OTHER, "cost")

    @cached_property
    def published_percent(self) -> float:
        """What they save against rail-optimised switches, counted as published, in percent."""
        return 100 * self.question("paper").saving(MINE, PUBLISHED_OTHER, "cost")

    @property
    def break_even_usd(self) -> float:
        """The price of an optical port at which the saving is gone: both bills are straight in it."""
        transceivers = self.gpus * self.transceiver_usd
        return (self.purchase_usd(OTHER) - transceivers) / (OCS_PORTS_PER_GPU * self.gpus)

    @cached_property
    def budget_usd(self) -> int:
        """The mean of both totals, rounded to 100,000 dollars."""
        return 100_000 * round((self.total_usd(OTHER) + self.total_usd(MINE)) / 200_000)

    @property
    def buildable_gpus(self) -> int:
        """The most GPUs of photonic rails with one switch a rail, of those that switch within a second."""
        ports = max(one.radix for one in TECHNOLOGIES if one.reconfiguration_ms <= 1_000)
        return GPUS_PER_SERVER * ports // OCS_PORTS_PER_GPU

    @property
    def order(self) -> tuple[str, ...]:
        """Which networks are within the budget and can be built."""
        within = [
            network
            for network in (PUBLISHED_OTHER, OTHER, MINE)
            if self.total_usd(network) <= self.budget_usd
            and (network != MINE or self.gpus <= self.buildable_gpus)
        ]
        return tuple(within) or ("none",)

    def given(self) -> GivenTable:
        """Return prices and sizes."""
        switch = self.question().catalogue.part("packet_switch")
        rows = (
            ("GPUs, 8 a server", f"{self.gpus:,}"),
            ("optical port", f"{self.ocs_port_usd} $"),
            ("transceiver", f"{self.transceiver_usd} $"),
            (f"packet switch, {switch.ports} ports", f"{switch.price_usd:,.0f} $"),
            ("power of a packet switch", f"{switch.power_w:,.0f} W"),
            (
                "power of a transceiver",
                f"{self.question().catalogue.part('transceiver').power_w:g} W",
            ),
            ("years", str(self.years)),
            ("budget", f"{self.budget_usd:,} $"),
        )
        return GivenTable(("what", "how much"), rows)


GENERATORS = (
    Generator(
        "windows",
        1,
        "f",
        Windows,
        _drawn_windows,
        _is_hard_windows,
        {
            "P": "stages",
            "M": "microbatches",
            "list": lambda one: ", ".join(map(str, one.lengths_ms)),
            "T": "base_ms",
            "L": "limit_percent",
        },
        {
            # Windows longer than 25 ms, in percent.
            "share_longer": lambda one: (
                100 * sum(ms > DELAY_MS for ms in one.lengths_ms) / len(one.lengths_ms)
            ),
            "ahead": "ahead_ms",
            "ahead_percent": lambda one: 100 * one.ahead_ms / one.base_ms,
            # What the same switch adds if it changes on demand.
            "on_demand": lambda one: (
                on_demand_ms(one.base_ms, one.lengths_ms, DELAY_MS) - one.base_ms
            ),
            # The limit shared by all windows, which is the answer on demand.
            "limit_by_seven": lambda one: (
                one.base_ms * one.limit_percent / 100 / len(one.lengths_ms)
            ),
            "last_stage": lambda one: one.counted(-1),
            "first_stage": lambda one: one.counted(0),
            "middle": lambda one: one.counted(1),
            "afab_first": lambda one: one.counted(0, "afab"),
            "slowest_ahead": lambda one: one.slowest_ms[0],
            "slowest_on_demand": lambda one: one.slowest_ms[1],
            "product_ahead": lambda one: one.slowest_product(ahead=True),
            "product_on_demand": lambda one: one.slowest_product(ahead=False),
            "shortest": lambda one: min(one.lengths_ms),
        },
    ),
    Generator(
        "price",
        1,
        "h",
        Price,
        lambda draws: {
            "gpus": draws.pick("gpus", (512, 1_024, 2_048, 4_096)),
            "ocs_port_usd": 20 * draws.whole("ocs", 15, 50),
            "transceiver_usd": 10 * draws.whole("tr", 15, 60),
            "years": draws.pick("years", (3, 4, 5)),
        },
        # The published saving is large, the honest one well below it, and not near nothing.
        lambda one: (
            one.published_percent > 30
            and one.published_percent - one.saving_percent >= 10
            and abs(one.saving_percent) >= 3
        ),
        {
            "G": lambda one: f"{one.gpus:,}",
            "Y": "years",
            "p": "ocs_port_usd",
            "t": "transceiver_usd",
            "B": lambda one: f"{one.budget_usd:,}",
        },
        {
            "saving": "saving_percent",
            "published": "published_percent",
            # Which price moves the saving most when halved or doubled.
            "mover": lambda one: next(
                _OPTIONS[row.name]
                for row in tornado(one.question(), MINE, OTHER)
                if row.name in _OPTIONS
            ),
            "break_even": "break_even_usd",
            # As if a GPU had one optical port.
            "one_port": lambda one: OCS_PORTS_PER_GPU * one.break_even_usd,
            # Five switch ports and six transceivers per GPU, as published for rails with a spine.
            "fractional": lambda one: (
                one.gpus
                * (
                    5 * one.question().catalogue.part("packet_switch").port_usd
                    + 6 * one.transceiver_usd
                )
            ),
            "budget": "budget_usd",
            "order": "order",
            "photonic": lambda one: one.purchase_usd(MINE),
            "rail_only": lambda one: one.purchase_usd(OTHER),
            "electricity": lambda one: one.electricity_usd(OTHER),
            "photonic_electricity": lambda one: one.electricity_usd(MINE),
            "rail_optimized_total": lambda one: one.total_usd(PUBLISHED_OTHER),
            "rail_only_total": lambda one: one.total_usd(OTHER),
        },
    ),
)
