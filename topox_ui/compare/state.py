"""What can be chosen on the Compare page beside the what-ifs and the contest (``answers/state.py``)."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.registry import FABRICS
from topox_ui.state.session import Index, NotNegative, PageState, like, one_of


class MapState(PageState):
    """What the map spans beside the delay."""

    of_graph = True

    across: Literal["port_gbps", "degree"] = "port_gbps"


class CompareState(PageState):
    """Which lanes are in view, and what fails."""

    of_graph = True
    resets: ClassVar = {"lanes": ("lanes_server", "lanes_from_ms", "lanes_to_ms")}

    lanes: Annotated[str, one_of(("all", *FABRICS))] = "all"
    lanes_server: Index = 0
    lanes_from_ms: NotNegative | None = None
    lanes_to_ms: NotNegative | None = None

    fails: Literal["fibre", "port", "switch", "server"] = "fibre"
    failed_circuit: Annotated[str, Field(pattern=r"^\d{1,6}-\d{1,6}$")] | None = None
    failed_server: Index = 0
    failed_port: Index = 0
    failed_switch: Index = 0
    substitute: Index | None = None
    failed_at: Annotated[int, Field(ge=0, le=90)] = 50


class GatingState(PageState):
    """Whether the gating changes by iteration, how it is drawn, and what the networks under it are told."""

    of_graph = True

    gated: bool = False
    gating: Literal["walk", "dirichlet", "zipf"] = "walk"
    gating_skew: Annotated[float, Field(ge=1e-3, le=100)] = 1.0
    gating_seed: Annotated[int, Field(ge=0, le=9)] = 0
    gating_iterations: Annotated[int, Field(ge=1, le=50)] = 8
    packet_ports: Index | None = None
    regional_circuits: Literal["gate", "foreseen", "fixed"] = "gate"
    reevaluate_ms: Annotated[float, like(FabricOptions, "reevaluate_ms")] = 50.0
    pause: Literal["all", "changed"] = "all"
