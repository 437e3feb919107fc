"""What one rank's profiler recorded, in columns: work, communications, launches and what waits.

And its communications with all that is told of them, in order of launch.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topox_core.errors import errors_at, errors_in_file, refuse_if
from topox_core.io.limits import MAX_CALL_MEMBERS
from topox_core.model.arrays.groups import by_key
from topox_core.traces.communication import (
    RECEIVE,
    SEND,
    UNKNOWN,
    Meta,
    kind_of_name,
    meta_of,
    meta_of_shapes,
    strided,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PARAMS = "record_param_comms"
# So many scopes that began last are looked at for those around a launch; recorders nest three or four.
NEAREST = 200


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
    """A kernel that communicates.

    ``parts``: all that is told of it, once :func:`entries_of` has put it together; a batch of sends and
    receives has several.
    """

    start_us: float
    end_us: float
    launch_us: float
    thread: int
    stream: int
    name: str
    args: Mapping[str, Any]
    parts: tuple[Meta, ...] = ()


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
        How the file was read (see :class:`~topox_core.traces.recorded.event_stream.EventStream`).
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
    steps: tuple[Step, ...]
    updates: tuple[tuple[float, float], ...]
    backward: frozenset[int]
    has_launches: bool
    unlaunched: int
    unfinished_us: Floats
    repairs: int
    cut: bool
    events: int


# -- communications with all that is told of them -------------------------------------------------


def launch_us(kernel: Kernel) -> float:
    """Return when the host asked for a kernel; its start where that was not recorded."""
    return kernel.start_us if math.isnan(kernel.launch_us) else kernel.launch_us


def entries_of(recording: Recording, host: Sequence[Meta] | None = None) -> tuple[Kernel, ...]:
    """Return the communications of a file in order of launch.

    Parameters
    ----------
    host
        What the host trace of the rank says of its communications, in order.

    Raises
    ------
    InputError
        If the type of a communication's elements is unknown.
    """
    ordered = sorted(recording.kernels, key=lambda k: (launch_us(k), k.start_us, k.stream))
    scopes, launches = Scopes(recording.scopes), _launches(recording)
    told = host if host is not None and len(host) == len(ordered) else None
    entries: list[Kernel] = []
    previous: dict[int, float] = {}
    members = 0
    with errors_in_file(recording.file):
        for number, kernel in enumerate(ordered):
            since = previous.get(kernel.thread, -math.inf)
            with errors_at(item=f"call {number} at {kernel.start_us / 1000:.1f} ms"):
                parts = _parts(kernel, scopes, launches[kernel.thread], since)
            if told is not None and len(parts) == 1:
                parts = (parts[0].completed(told[number]),)
            grouped = tuple(_with_group(part, recording) for part in parts)
            entries.append(replace(kernel, parts=grouped))
            members += sum(len(part.ranks or ()) for part in grouped)
            refuse_if(
                (
                    members > MAX_CALL_MEMBERS,
                    f"has communications of more than the {MAX_CALL_MEMBERS:,} members, added up, that a trace may have",
                )
            )
            previous[kernel.thread] = launch_us(kernel)
    return tuple(entries)


def _launches(recording: Recording) -> dict[int, list[float]]:
    """Return when each thread of the host asked for communications, in order."""
    return by_key(sorted((kernel.thread, launch_us(kernel)) for kernel in recording.kernels))


def _with_group(meta: Meta, recording: Recording) -> Meta:
    """Return the metadata with the ranks of its group, if the file lists it."""
    if meta.group not in recording.groups or (meta.ranks is not None and meta.description):
        return meta
    ranks, words = recording.groups[meta.group]
    ranks = ranks or strided(0, 1, recording.world)
    return replace(meta, ranks=meta.ranks or ranks or None, description=meta.description or words)


def waits_told(recording: Recording) -> tuple[Scope, ...]:
    """Return the waits that the profiler names, in order of time."""
    return tuple(
        one
        for one in recording.scopes
        if one.name.startswith(PARAMS) and one.args.get("Collective name") == "wait"
    )


def waits_by_order(recording: Recording, waits: Sequence[int]) -> tuple[tuple[Scope, int], ...]:
    """Return the waits of a host trace as (scope, entry): the k-th wait is the k-th scope that launches nothing.

    Nothing if the two differ in how many there are.
    """
    launches = _launches(recording)
    scopes = [
        one
        for one in recording.scopes
        if one.name.startswith(PARAMS)
        and one.args.get("Collective name", "wait") == "wait"
        and not _holds(launches[one.thread], one)
    ]
    if len(scopes) != len(waits):
        return ()
    return tuple((scope, call) for scope, call in zip(scopes, waits, strict=True) if call >= 0)


def launching(recording: Recording) -> Scopes:
    """Return the scopes of the host that start a communication: waits inside them order it behind the computing."""
    launches = _launches(recording)
    return Scopes(
        [one for one in recording.scopes if _starts(one) or _holds(launches[one.thread], one)]
    )


def _holds(times: Sequence[float], scope: Scope) -> bool:
    at = bisect_left(times, scope.begin_us)
    return at < len(times) and times[at] <= scope.end_us


def _starts(scope: Scope) -> bool:
    """Whether a scope is that of a send, receive or coalesced call whose kernel is launched later."""
    name = scope.args.get("Collective name")
    return scope.name.startswith(PARAMS) and isinstance(name, str) and name != "wait"


class Scopes:
    """The scopes of each thread, to be asked which contain a moment."""

    def __init__(self, scopes: Sequence[Scope]) -> None:
        self._of = by_key((one.thread, one) for one in scopes)
        self._begins = {thread: [s.begin_us for s in of] for thread, of in self._of.items()}
        self._longest = {
            thread: max(s.end_us - s.begin_us for s in of) for thread, of in self._of.items()
        }

    def around(self, thread: int, at_us: float) -> list[Scope]:
        """Return the scopes that contain a moment, the innermost first."""
        begins = self._begins.get(thread)
        if begins is None or math.isnan(at_us):
            return []
        high = bisect_right(begins, at_us)
        low = max(high - NEAREST, bisect_left(begins, at_us - self._longest[thread]))
        return [one for one in self._of[thread][low:high] if one.end_us >= at_us][::-1]

    def between(self, thread: int, since_us: float, until_us: float) -> list[Scope]:
        """Return the scopes that begin in a stretch of time."""
        begins = self._begins.get(thread, [])
        return (
            self._of[thread][bisect_right(begins, since_us) : bisect_left(begins, until_us)]
            if begins
            else []
        )


def _parts(
    kernel: Kernel, scopes: Scopes, launches: Sequence[float], since: float
) -> tuple[Meta, ...]:
    """Return what is told of a kernel, by the first that tells it."""
    own = meta_of(kernel.args) or Meta()
    around = scopes.around(kernel.thread, kernel.launch_us)
    for scope in (s for s in around if s.name.startswith(PARAMS)):
        own = own.completed(meta_of(scope.args) or _of_shapes(scope))
    if own.kind == UNKNOWN:
        batch = _batch(kernel, scopes, launches, since)
        if batch:
            return batch
    for scope in (s for s in around if not s.name.startswith(PARAMS)):
        own = own.completed(_of_shapes(scope))
    if own.kind == UNKNOWN:
        own = replace(own, kind=kind_of_name(kernel.name))
    return (_whole_tensor(own),)


def _of_shapes(scope: Scope) -> Meta:
    return meta_of_shapes(scope.args, "" if scope.name.startswith(PARAMS) else scope.name)


def _whole_tensor(meta: Meta) -> Meta:
    """Return the metadata with the whole tensor's size where shapes told that of one share."""
    if meta.source != "shapes" or meta.kind != "all_gather" or meta.size_bytes is None:
        return meta
    members = len(meta.ranks) if meta.ranks else meta.group_size
    return replace(meta, size_bytes=meta.size_bytes * members) if members else meta


def _batch(
    kernel: Kernel, scopes: Scopes, launches: Sequence[float], since: float
) -> tuple[Meta, ...]:
    """Return the sends and receives that the host queued since its last communication and before this one."""
    queued = [
        meta_of(one.args)
        for one in scopes.between(kernel.thread, since, kernel.launch_us)
        if one.name.startswith(PARAMS) and not _holds(launches, one)
    ]
    # What was queued as several calls runs as one kernel.
    return tuple(
        meta
        for meta in queued
        if meta is not None
        and meta.kind != UNKNOWN
        and (meta.kind in (SEND, RECEIVE) or meta.size_bytes)
    )
