"""What can be chosen on the view Claims against each other."""

from typing import Literal

from topox_ui.state.session import PageState

NETWORKS = {
    "2x100": "2 ports of 100 Gbit/s",
    "2x400": "2 ports of 400 Gbit/s",
    "4x100": "4 ports of 100 Gbit/s",
    "4x400": "4 ports of 400 Gbit/s",
}


class ArgumentState(PageState):
    """Of which network the map shows the cells."""

    prefix = "argument."

    network: Literal["2x100", "2x400", "4x100", "4x400"] = "2x100"

    @property
    def ports_and_gbps(self) -> tuple[int, float]:
        """Return ports a server and the speed of each."""
        ports, gbps = self.network.split("x")
        return int(ports), float(gbps)
