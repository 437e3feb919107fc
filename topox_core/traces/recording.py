"""What one rank's profiler recorded, in columns: work, communications, launches and what waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Work:
    """Activities of a GPU that communicate nothing, in order of start; times in us of the file's clock.

    ``launch_us`` is when the host asked for it, NaN if that was not recorded; ``thread`` is the
    host's thread, -1 if unknown.
    """

    start_us: Floats
    end_us: Floats
    launch_us: Floats
    stream: Ints
    thread: Ints

    def __len__(self) -> int:
        return len(self.start_us)

    def taken(self, chosen: NDArray[Any]) -> Work:
        """Return the chosen ones, in the order that was chosen."""
        return Work(
            self.start_us[chosen],
            self.end_us[chosen],
            self.launch_us[chosen],
            self.stream[chosen],
            self.thread[chosen],
        )


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel that communicates."""

    start_us: float
    end_us: float
    launch_us: float
    thread: int
    stream: int
    name: str
    args: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Scope:
    """A named stretch of a host thread: an operator, an annotation, the metadata of a communication."""

    begin_us: float
    end_us: float
    thread: int
    name: str
    args: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ExactWait:
    """A recorded wait of one stream for another, of which the profiler told both.

    ``recorded_us`` is when the host recorded the event that is waited for; NaN if that is unknown.
    """

    at_us: float
    stream: int
    waits_for: int
    recorded_us: float
    correlation: int


@dataclass(frozen=True, slots=True)
class Step:
    """One ``ProfilerStep#N`` of the host."""

    number: int
    begin_us: float
    end_us: float


@dataclass(frozen=True)
class Recording:
    """One rank's file.

    Attributes
    ----------
    world
        Ranks of the job if the file tells; 0 if not.
    groups
        By name: ranks (empty: all) and description.
    base_us
        Subtracted from all times of the file.
    stream_waits
        Calls of the host that let a stream wait: when (us), thread, correlation.
    unlaunched
        Activities whose launch was not recorded, in a file that has launches.
    unfinished_us
        When the host launched what the file has no activity of: after it, steps are incomplete.
    backward
        Host threads that run the backward pass.
    repairs, cut, events
        How the file was read (see :class:`~topox_core.traces.event_stream.EventStream`).
    """

    file: str
    rank: int
    world: int
    groups: Mapping[str, tuple[tuple[int, ...], str]]
    base_us: float
    work: Work
    kernels: tuple[Kernel, ...]
    scopes: tuple[Scope, ...]
    stream_waits: tuple[tuple[float, int, int], ...]
    exact_waits: tuple[ExactWait, ...]
    blocks: tuple[tuple[float, float], ...]
    steps: tuple[Step, ...]
    updates: tuple[tuple[float, float], ...]
    backward: frozenset[int]
    has_launches: bool
    unlaunched: int
    unfinished_us: Floats
    repairs: int
    cut: bool
    events: int
