"""What can be chosen on the views Fixed circuits and One collective beside the what-ifs; the algorithm is the one of Compare."""

from typing import Annotated, Literal

from pydantic import Field

from topox_ui.state.session import Index, PageState

MAX_MEMBERS = 64
# Kinds of collective with an algorithm whose steps are permutations.
COLLECTIVES = ("all_to_all", "all_reduce", "all_gather", "reduce_scatter")


class TopologyState(PageState):
    """The degree, who lays circuits and for whose traffic, the step in view, two servers with drawn routes."""

    of_graph = True

    degree: Index | None = None
    layout_by: Literal["topoopt", "matrix", "graph"] = "topoopt"
    traffic: Literal["graph", "ring"] = "graph"
    step: Index | None = None
    route_from: Index | None = None
    route_to: Index | None = None


class CollectiveState(PageState):
    """One collective: its kind and size, the delay of a change, and how its ports share the work; None is that of the job."""

    of_graph = True

    collective: Literal["all_to_all", "all_reduce", "all_gather", "reduce_scatter"] | None = None
    members: Annotated[int, Field(ge=2, le=MAX_MEMBERS)] | None = None
    tensor_mb: Annotated[float, Field(gt=0, le=1e6)] | None = None
    switch_ms: Annotated[float, Field(ge=0, le=3.6e6)] | None = None
    collective_way: Literal["together", "one_port", "split"] = "split"
