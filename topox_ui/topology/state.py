"""What can be chosen on the Topology page beside the what-ifs; its algorithm is the one of the Compare page."""

from typing import Literal

from topox_ui.state.page_state import Index, PageState


class TopologyState(PageState):
    """The degree, whose traffic is served, the step in view, and two servers whose routes are drawn."""

    of_graph = True

    degree: Index | None = None
    traffic: Literal["graph", "ring"] = "graph"
    step: Index | None = None
    route_from: Index | None = None
    route_to: Index | None = None
