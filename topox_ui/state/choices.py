"""What can be chosen on Home and the views of Schedule and Compare beside the what-ifs: one namespace, their keys have no prefix."""

from collections.abc import Collection
from typing import Annotated, ClassVar, Literal

from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.registry import FABRICS, USUAL
from topox_core.schema.fields import fields_of, setting
from topox_ui.runs.limits import server_limits
from topox_ui.state.session import (
    Count,
    Index,
    NotNegative,
    PageState,
    Ratio,
)


class HomeState(PageState):
    """The tab in view on Home; a link may ask for one, none carries it on."""

    way: Literal["samples", "files", "generate"] = "samples"

    def local(self) -> Collection[str]:
        """Return the tab: it says nothing of the job."""
        return ("way",)


class _OfGraph(PageState):
    """Choices that belong to the task graph in view."""

    of_graph = True


class ScheduleState(_OfGraph):
    """The time window and the servers in view on Timeline."""

    from_ms: NotNegative | None = None
    to_ms: NotNegative | None = None
    first_server: Index | None = None


class RaceState(_OfGraph):
    """How long each engine of the race has on Proof."""

    race_s: Annotated[float, setting(ge=0.5, le=300)] = 5.0

    def check(self) -> None:
        """Raise InputError where an engine would have more time than the server gives."""
        server_limits().check_time_limit(self.race_s, "race_s")


class CircuitsState(_OfGraph):
    """The slot in view on Circuits, and the switch whose ports are drawn; None draws all switches."""

    slot: Index | None = None
    switch: Index | None = None


Fabric = Annotated[str, setting(choices=FABRICS)]


class ContestState(_OfGraph):
    """The fabrics that compete, the fat-tree among them, and how fixed circuits are laid: chosen on Compare, counted with on others.

    ``cost_ratio`` is None where the price catalogue says what the circuits' money buys.
    """

    fabrics: Annotated[tuple[Fabric, ...], setting(min_length=1)] = USUAL
    fat_tree: Literal["cost", "racks"] = "cost"
    cost_ratio: Ratio | None = None
    oversubscription: Ratio = 4.0
    servers_per_rack: Count | None = None
    variant: Literal["published", "released"] = "published"

    def without_what_ifs(self) -> "ContestState":
        """Return which fabrics compete, each built as the page begins with it."""
        return ContestState(fabrics=self.fabrics)


VARIANTS = {"published": "paper", "released": "its code"}


class MapState(_OfGraph):
    """What the map of Where which wins spans beside the delay."""

    across: Literal["port_gbps", "degree"] = "port_gbps"


class CompareState(_OfGraph):
    """Which lanes are in view on All fabrics, and what fails."""

    resets: ClassVar = {"lanes": ("lanes_server", "lanes_from_ms", "lanes_to_ms")}

    lanes: Annotated[str, setting(choices=("all", *FABRICS))] = "all"
    lanes_server: Index = 0
    lanes_from_ms: NotNegative | None = None
    lanes_to_ms: NotNegative | None = None

    fails: Literal["fibre", "port", "switch", "server"] = "fibre"
    failed_circuit: Annotated[str, setting(pattern=r"^\d{1,6}-\d{1,6}$")] | None = None
    failed_server: Index = 0
    failed_port: Index = 0
    failed_switch: Index = 0
    substitute: Index | None = None
    failed_at: Annotated[int, setting(ge=0, le=90)] = 50


class GatingState(_OfGraph):
    """Whether the gating changes by iteration, how it is drawn, and what the networks under it are told."""

    gated: bool = False
    gating: Literal["walk", "dirichlet", "zipf"] = "walk"
    gating_skew: Annotated[float, setting(ge=1e-3, le=100)] = 1.0
    gating_seed: Annotated[int, setting(ge=0, le=9)] = 0
    gating_iterations: Annotated[int, setting(ge=1, le=50)] = 8
    packet_ports: Index | None = None
    regional_circuits: Literal["gate", "foreseen", "fixed"] = "gate"
    reevaluate_ms: Annotated[float, fields_of(FabricOptions)["reevaluate_ms"].limits] = 50.0
    pause: Literal["all", "changed"] = "all"


class TopologyState(_OfGraph):
    """Of Fixed circuits: the degree, who lays circuits and for whose traffic, the step in view, two servers with drawn routes."""

    degree: Index | None = None
    layout_by: Literal["topoopt", "matrix", "graph"] = "topoopt"
    traffic: Literal["graph", "ring"] = "graph"
    step: Index | None = None
    route_from: Index | None = None
    route_to: Index | None = None


MAX_MEMBERS = 64


class CollectiveState(_OfGraph):
    """One collective: its kind and size, the delay of a change, and how its ports share the work; None is that of the job."""

    collective: Literal["all_to_all", "all_reduce", "all_gather", "reduce_scatter"] | None = None
    members: Annotated[int, setting(ge=2, le=MAX_MEMBERS)] | None = None
    tensor_mb: Annotated[float, setting(gt=0, le=1e6)] | None = None
    switch_ms: Annotated[float, setting(ge=0, le=3.6e6)] | None = None
    collective_way: Literal["together", "one_port", "split"] = "split"
