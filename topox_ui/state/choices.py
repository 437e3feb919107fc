"""What can be chosen on Home and the views of Schedule and Compare beside the what-ifs: one namespace, their keys have no prefix."""

from collections.abc import Collection
from typing import Annotated, ClassVar, Literal

from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.registry import FABRICS, USUAL
from topox_core.model.quantities import SMALL_COUNTS, DelayMs
from topox_core.schema.fields import setting
from topox_ui.runs.limits import server_limits
from topox_ui.state.session import (
    Count,
    Index,
    NotNegative,
    PageState,
    as_in,
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

    race_s: Annotated[
        float,
        setting(
            "Time limit of each engine",
            "s",
            ge=0.5,
            le=300,
            steps=(1.0, 2.0, 5.0, 10.0, 30.0, 60.0),
        ),
    ] = 5.0

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
    cost_ratio: Annotated[float, setting(ge=1, le=1_000)] | None = None
    oversubscription: Annotated[float, as_in(FabricOptions, "oversubscription")] = 4.0
    servers_per_rack: (
        Annotated[Count, setting("Servers per rack", steps=(1, 2, 4, 8, 16, 32, 64))] | None
    ) = None
    variant: Annotated[str, as_in(FabricOptions, "topology_variant")] = (
        FabricOptions.topology_variant
    )

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
    gating_skew: Annotated[float, as_in(FabricOptions, "gating_skew")] = FabricOptions.gating_skew
    gating_seed: Annotated[int, setting(ge=0, le=9)] = 0
    gating_iterations: Annotated[int, setting(ge=1, le=50)] = 8
    packet_ports: Index | None = None
    regional_circuits: Annotated[str, as_in(FabricOptions, "regional_circuits")] = (
        FabricOptions.regional_circuits
    )
    reevaluate_ms: Annotated[float, as_in(FabricOptions, "reevaluate_ms")] = (
        FabricOptions.reevaluate_ms
    )
    pause: Annotated[str, as_in(FabricOptions, "pause")] = FabricOptions.pause

    def check(self) -> None:
        """Raise InputError where the gating cannot be drawn with its skew."""
        FabricOptions(gating=self.gating, gating_skew=self.gating_skew)


class TopologyState(_OfGraph):
    """Of Fixed circuits: the degree, who lays circuits and for whose traffic, the step in view, two servers with drawn routes."""

    degree: Annotated[Index, setting("Degree", steps=SMALL_COUNTS)] | None = None
    layout_by: Annotated[str, as_in(FabricOptions, "layout_by")] = FabricOptions.layout_by
    traffic: Literal["graph", "ring"] = "graph"
    step: Index | None = None
    route_from: Index | None = None
    route_to: Index | None = None


# Kinds with an algorithm whose steps are permutations.
COLLECTIVES = ("all_to_all", "all_reduce", "all_gather", "reduce_scatter")
MAX_MEMBERS = 64


class CollectiveState(_OfGraph):
    """One collective: its kind and size, the delay of a change, and how its ports share the work; None is that of the job."""

    collective: Annotated[str, setting("Collective", choices=COLLECTIVES)] | None = None
    members: (
        Annotated[int, setting("Members", ge=2, le=MAX_MEMBERS, steps=(2, 4, 8, 16, 32, 64))] | None
    ) = None
    tensor_mb: (
        Annotated[
            float,
            setting(
                "Tensor",
                gt=0,
                le=1e6,
                steps=(0.01, 0.1, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0),
            ),
        ]
        | None
    ) = None
    switch_ms: DelayMs | None = None
    collective_way: Literal["together", "one_port", "split"] = "split"
