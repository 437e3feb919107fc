"""What can be chosen on the page Your trace."""

from collections.abc import Collection
from typing import Annotated, ClassVar

from topox_core.model.quantities import DelayMs, Gbps
from topox_core.schema.fields import setting
from topox_core.traces.source import ImportSettings
from topox_ui.state.session import Index, NotNegative, PageState, as_in

_VIEW = ("from_ms", "to_ms")


class RecordedState(PageState):
    """Which step on which network; ``example``: the made-up run, which a link can carry."""

    prefix = "recorded."
    resets: ClassVar = {"step": _VIEW, "example": ("step", *_VIEW)}

    example: bool = False
    nic_gbps: Annotated[float, as_in(ImportSettings, "nic_gbps")] = ImportSettings.nic_gbps
    delay_ms: DelayMs = 1.0
    step: Annotated[int, setting(ge=-1, le=10**15)] | None = None
    gpus_per_server: Annotated[int, as_in(ImportSettings, "gpus_per_server")] = (
        ImportSettings.gpus_per_server
    )
    symmetry: bool = ImportSettings.symmetry
    assume_gbps: Gbps | None = None
    first_rank: Index = 0
    from_ms: NotNegative | None = None
    to_ms: NotNegative | None = None

    def local(self) -> Collection[str]:
        """Return what says nothing without the files, which no link carries."""
        own = ("step", "gpus_per_server", "symmetry", "assume_gbps", "first_rank", *_VIEW)
        return () if self.example else own
