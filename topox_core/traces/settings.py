"""What a reader of a recorded run may choose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from topox_core.errors import wrong_setting
from topox_core.io.limits import MAX_RANKS
from topox_core.model.cluster import MAX_PORTS
from topox_core.model.task_graph import PARALLELISMS


@dataclass(frozen=True)
class ImportSettings:
    """How a recorded run is read (docs/recorded-runs.md).

    Attributes
    ----------
    step
        A number, ``median`` or ``last``.
    ranks
        Use these only; None for all that are given.
    gpus_per_server
        Neighbouring ranks that share a server; 1: every rank is a server.
    host_gaps
        ``keep``: a segment lasts as long as on the clock; ``drop``: only its kernels' time.
    symmetry
        Whether one rank stands for all, and of how many (``world``; 0: as the file says).
    assume_gbps
        Speed from which sizes that nothing tells are taken; None: they stay unknown.
    parallelism
        Label by name or description of a group.
    max_tasks
        Calls are bundled until there are no more.
    communication
        A regular expression of further kernels that communicate.
    nic_gbps
        Speed of a server for the cluster and the replay.
    uneven
        ``pairs``: an exchange of uneven parts becomes a transfer a pair; ``one``: it stays one call.
    """

    step: int | str = "median"
    ranks: tuple[int, ...] | None = None
    gpus_per_server: int = 1
    host_gaps: str = "keep"
    symmetry: bool = False
    world: int = 0
    assume_gbps: float | None = None
    parallelism: Mapping[str, str] = field(default_factory=dict)
    max_tasks: int = 20_000
    communication: str = ""
    nic_gbps: float = 400.0
    uneven: str = "pairs"

    def __post_init__(self) -> None:
        if isinstance(self.step, str) and self.step not in ("median", "last"):
            raise wrong_setting("step", f"must be a number, median or last (got {self.step!r})")
        if not 1 <= self.gpus_per_server <= MAX_PORTS // 2:
            raise wrong_setting("gpus_per_server", f"must be from 1 to {MAX_PORTS // 2:,}")
        if not 0 <= self.world <= MAX_RANKS:
            raise wrong_setting("world", f"must be from 0 to {MAX_RANKS:,} (got {self.world})")
        for name in ("assume_gbps", "nic_gbps"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1e9:
                raise wrong_setting(name, f"must be above 0 and below 1e9 (got {value:g})")
        if self.max_tasks < 1:
            raise wrong_setting("max_tasks", f"must be at least 1 (got {self.max_tasks})")
        for label in self.parallelism.values():
            if label not in PARALLELISMS:
                raise wrong_setting(
                    "parallelism", f"must be one of {', '.join(PARALLELISMS)} (got {label!r})"
                )
