"""What can be chosen on the Cost page beside the prices."""

from typing import Annotated, Literal

from pydantic import Field

from topox_core.economics.comparison import Question, Running
from topox_core.economics.networks import COUNTINGS, NETWORKS, Counting
from topox_core.figures.rails_delay import switch_word
from topox_core.rails.technologies import TECHNOLOGIES as LISTED
from topox_ui.state.loading import own_job
from topox_ui.state.prices import catalogue
from topox_ui.state.session import PageState, one_of

TECHNOLOGIES = {one.key: one for one in LISTED}
MINE = "photonic_rails"
RIVALS = {name: words for name, words in NETWORKS.items() if name != MINE}
PerGpu = Annotated[int, Field(ge=1, le=64)]


class CostState(PageState):
    """How large a network is built, how its parts are counted, against what, and what a year is reckoned with.

    ``gpus`` and ``gpus_per_server`` are None where the job that the reader loaded says them, else the paper's example.
    """

    prefix = "cost."

    gpus: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    gpus_per_server: Annotated[int, Field(ge=1, le=4_096)] | None = None
    counting: Annotated[str, one_of(COUNTINGS)] = "paper"
    against: Annotated[str, one_of(RIVALS)] = "rail_optimized"
    nics: bool = False
    fibre: bool = False
    fibre_m: Annotated[float, Field(ge=0, le=100_000)] = 30.0
    ocs_ports: PerGpu = 2
    optics: PerGpu = 1
    switch_optics: bool | None = None
    joined: bool = False
    look_ahead: bool = True
    usd_per_kwh: Annotated[float, Field(ge=0, le=100)] = Running.usd_per_kwh
    pue: Annotated[float, Field(ge=1, le=10)] = Running.pue
    years: Annotated[float, Field(ge=0.1, le=100)] = Running.years
    switch: Annotated[str, one_of(TECHNOLOGIES)] = "piezo"
    measure: Literal["cost", "power"] = "cost"
    bill: Annotated[str, one_of(NETWORKS)] = MINE

    @property
    def each(self) -> int:
        """GPUs of a server."""
        own = own_job()
        return self.gpus_per_server or (own.machine.gpus_per_server if own else 8)

    @property
    def built_gpus(self) -> int:
        """The GPUs asked for, in whole servers."""
        own = own_job()
        gpus = self.gpus or (own.plan.gpus if own else 1_024)
        return max(1, round(gpus / self.each)) * self.each

    @property
    def count_rules(self) -> Counting:
        """How parts are counted."""
        return Counting(
            self.each,
            self.counting,
            self.nics,
            self.fibre,
            self.fibre_m,
            self.ocs_ports,
            self.optics,
            self.switch_optics,
            self.joined,
            self.look_ahead,
        )

    @property
    def running(self) -> Running:
        """What a year is reckoned with."""
        return Running(self.usd_per_kwh, self.pue, self.years)


def question() -> Question:
    """Return what the page answers."""
    now = CostState.now()
    return Question(now.built_gpus, catalogue(), now.count_rules)


def radix() -> tuple[int, str]:
    """Return the ports and the name of the optical switch that a rail is to be built of."""
    technology = TECHNOLOGIES[CostState.now().switch]
    return technology.radix, f"{technology.vendor} ({switch_word(technology.name)})"
