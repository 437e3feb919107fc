"""Which fabrics compete and how they are built: chosen on the Compare page, and counted with on others."""

from typing import Annotated, Literal

from pydantic import Field

from topox_core.fabrics.registry import FABRICS, USUAL
from topox_ui.state.session import Count, PageState, Ratio, some_of

VARIANTS = {"published": "paper", "released": "its code"}


class ContestState(PageState):
    """The fabrics, the fat-tree among them, and how fixed circuits are laid.

    ``cost_ratio`` is None where the price catalogue says what the circuits' money buys.
    """

    of_graph = True

    fabrics: Annotated[tuple[str, ...], *some_of(FABRICS), Field(min_length=1)] = USUAL
    fat_tree: Literal["cost", "racks"] = "cost"
    cost_ratio: Ratio | None = None
    oversubscription: Ratio = 4.0
    servers_per_rack: Count | None = None
    variant: Literal["published", "released"] = "published"

    def without_what_ifs(self) -> "ContestState":
        """Return which fabrics compete, each built as the page begins with it."""
        return ContestState(fabrics=self.fabrics)
