"""What can be chosen on the page Your trace."""

from collections.abc import Collection
from typing import Annotated, ClassVar

from topox_core.model.cluster import MAX_PORTS
from topox_core.schema.fields import setting
from topox_ui.state.session import Index, PageState, Speed

Amount = Annotated[float, setting(ge=0, le=1e9)]
_VIEW = ("from_ms", "to_ms")


class RecordedState(PageState):
    """Which step on which network; ``example``: the made-up run, which a link can carry."""

    prefix = "recorded."
    resets: ClassVar = {"step": _VIEW, "example": ("step", *_VIEW)}

    example: bool = False
    nic_gbps: Speed = 400.0
    delay_ms: Amount = 1.0
    step: Annotated[int, setting(ge=-1, le=10**15)] | None = None
    gpus_per_server: Annotated[int, setting(ge=1, le=MAX_PORTS // 2)] = 1
    symmetry: bool = False
    assume_gbps: Speed | None = None
    first_rank: Index = 0
    from_ms: Amount | None = None
    to_ms: Amount | None = None

    def local(self) -> Collection[str]:
        """Return what says nothing without the files, which no link carries."""
        own = ("step", "gpus_per_server", "symmetry", "assume_gbps", "first_rank", *_VIEW)
        return () if self.example else own
