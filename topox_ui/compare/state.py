"""What can be chosen on the Compare page beside the what-ifs and the contest (``answers/state.py``)."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from topox_core.fabrics.registry import FABRICS
from topox_ui.state.page_state import Index, NotNegative, PageState, one_of


class CompareState(PageState):
    """What the map spans, which lanes are in view, and what fails."""

    of_graph = True
    resets: ClassVar = {"lanes": ("lanes_server", "lanes_from_ms", "lanes_to_ms")}

    across: Literal["port_gbps", "degree"] = "port_gbps"
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
