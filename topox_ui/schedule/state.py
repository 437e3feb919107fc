"""What can be chosen on the views Timeline and Proof of Schedule beside the what-ifs."""

from typing import Annotated

from pydantic import Field

from topox_ui.runs.limits import server_limits
from topox_ui.state.session import Index, NotNegative, PageState


class ScheduleState(PageState):
    """The time window and the servers in view."""

    of_graph = True

    from_ms: NotNegative | None = None
    to_ms: NotNegative | None = None
    first_server: Index | None = None


class RaceState(PageState):
    """How long each engine of the race has."""

    of_graph = True

    race_s: Annotated[float, Field(ge=0.5, le=300)] = 5.0

    def check(self) -> None:
        """Raise InputError where an engine would have more time than the server gives."""
        server_limits().check_time_limit(self.race_s, "race_s")
