"""What can be chosen on the Home page: the way in which a job is opened."""

from collections.abc import Collection
from typing import Literal

from topox_ui.state.session import PageState


class HomeState(PageState):
    """The tab in view; a link may ask for one, none carries it on."""

    way: Literal["samples", "files", "generate"] = "samples"

    def local(self) -> Collection[str]:
        """Return the tab: it says nothing of the job."""
        return ("way",)
