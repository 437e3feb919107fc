"""Generator ``windows``: a pipeline whose windows are counted, and seven windows against the delay of a switch."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from topox_core.labs.generators.generator import Draws, Generator, GivenTable, Instance
from topox_core.rails.delay import on_demand_ms, provisioned_ms, slowest_switch, windows_source
from topox_core.rails.technologies import TECHNOLOGIES
from topox_core.rails.windows import windows_by_stage

DELAY_MS = 25.0
NEAR_MS = (15.0, 25.0, 100.0)


@dataclass(frozen=True)
class Windows(Instance):
    """One instance.

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


def _drawn(draws: Draws) -> dict[str, Any]:
    long = (10 * tens for tens in draws.row("l", 2, 12, 60))
    lengths = (*draws.row("s", 2, 1, 8), *draws.row("m", 3, 12, 45), *long)
    return {
        "stages": draws.pick("P", (3, 4, 6)),
        "microbatches": draws.pick("M", (8, 10, 12, 16)),
        "lengths_ms": tuple(draws.shuffle("order", lengths)),
        "base_ms": 100 * draws.whole("base", 20, 60),
        "limit_percent": draws.pick("limit", (1, 2, 3)),
    }


def _is_hard(one: Windows) -> bool:
    """Whether a product fits ahead of time that does not fit on demand, and none is a near miss."""
    ahead, demand = one.slowest_ms
    clear = all(abs(ahead - ms) >= 1.5 and abs(demand - ms) >= 1.0 for ms in NEAR_MS)
    between = any(demand < ms < ahead for ms in NEAR_MS)
    return clear and between and min(one.lengths_ms) < DELAY_MS


GENERATOR = Generator(
    "windows",
    1,
    "f",
    Windows,
    _drawn,
    _is_hard,
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
        "on_demand": lambda one: on_demand_ms(one.base_ms, one.lengths_ms, DELAY_MS) - one.base_ms,
        # The limit shared by all windows, which is the answer on demand.
        "limit_by_seven": lambda one: one.base_ms * one.limit_percent / 100 / len(one.lengths_ms),
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
)
