"""Generator ``price``: photonic rails against rails of packet switches, at drawn prices and sizes."""

from dataclasses import dataclass
from functools import cached_property

from topox_core.economics.comparison import HOURS_PER_YEAR, Question, Running, tornado
from topox_core.economics.networks import Bill, Counting
from topox_core.economics.price_sets import PRICE_SETS
from topox_core.labs.generators.generator import Generator, GivenTable, Instance
from topox_core.rails.technologies import TECHNOLOGIES

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
    """One instance: ``gpus``, the prices of an optical port and a transceiver, and a number of years."""

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


GENERATOR = Generator(
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
        # Five switch ports and six transceivers a GPU, as published for rails with a spine.
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
)
