"""A file of PyTorch's profiler (Kineto JSON) as a :class:`Recording` of one rank."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from operator import itemgetter
from typing import Any

import numpy as np

from topox_core.errors import InputError, as_mb, needed, refuse_if
from topox_core.io.content import gc_paused
from topox_core.io.limits import (
    MAX_KEPT_OBJECTS,
    MAX_RANKS,
    MAX_STEPS,
    MAX_TOLD_BYTES,
    RECORDING,
    check_count,
    is_whole,
)
from topox_core.model.arrays.groups import by_key
from topox_core.traces.communication import COMMUNICATION
from topox_core.traces.recorded.event_stream import Event, EventStream
from topox_core.traces.recorded.recording import (
    ExactWait,
    Floats,
    Ints,
    Kernel,
    Recording,
    Scope,
    Step,
    Work,
)
from topox_core.traces.source import Source, groups_listed, rank_in_name

_WORK = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"})
# How the names of scopes begin that tell something.
_OPERATORS = ("record_param_comms", "c10d::", "autograd::engine")
_ANNOTATIONS = ("ProfilerStep#", "Optimizer.step", "nccl:")
# Host calls that start nothing on a GPU.
_STARTS_NOTHING = re.compile(
    r"Query|GetAttrib|PointerGet|IsCaptur|CaptureInfo|Priorit|Occupancy|EventCreate|EventDestroy|"
    r"GetDevice|DeviceGet|SetDevice|Malloc|Free|HostAlloc|FuncSet|FuncGet|LastError|PeekAt|ModuleGet"
)
# An entry of a list of numbers: a place in it, and a number.
BYTES_PER_ENTRY = 40
# Kernels that one launch starts are told apart by so much.
ONE_LAUNCH_US = 1e-6
_STEP = re.compile(r"ProfilerStep#(\d{1,15})")
_IN_NAME = (r"rank[-_]?(\d+)", r"worker(\d+)", r"_(\d+)\.")
# What the profiler writes of devices that have no kernels of this kind.
_OTHER_DEVICE = re.compile(r"(mtia|xpu|hpu|npu|tpu)\w*")


@dataclass
class _Columns:
    """What is kept of the events as they pass; columns of numbers lie row by row in one array.

    Attributes
    ----------
    base_us
        Before the first event, subtracted from all times: what is left has more digits.
    work_times, work_numbers
        Of each activity start and length; stream and correlation.
    others
        Categories that tell nothing.
    call_times, call_numbers
        Of each call of the host its begin; correlation, thread, and whether it starts an activity.
    """

    base_us: float | None = None
    work_times: array[float] = field(default_factory=lambda: array("d"))
    work_numbers: array[int] = field(default_factory=lambda: array("q"))
    call_times: array[float] = field(default_factory=lambda: array("d"))
    call_numbers: array[int] = field(default_factory=lambda: array("q"))
    kernels: list[tuple[float, float, int, int, str, dict[str, Any]]] = field(default_factory=list)
    scopes: list[Scope] = field(default_factory=list)
    waits: list[tuple[float, int, int]] = field(default_factory=list)
    syncs: list[tuple[float, int, int, int, int]] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    updates: list[tuple[float, float]] = field(default_factory=list)
    backward: set[int] = field(default_factory=set)
    others: dict[str, None] = field(default_factory=dict)
    threads: dict[object, int] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    told_bytes: int = 0

    def __len__(self) -> int:
        rows = len(self.work_times) // 2 + len(self.call_times)
        return rows + len(self.kernels) + len(self.scopes)

    @property
    def objects(self) -> int:
        """How many events are kept as objects: communications, scopes, and what waits."""
        kept: tuple[list[Any], ...] = (self.kernels, self.scopes, self.waits, self.syncs)
        return sum(map(len, (*kept, self.updates)))

    def begin_us(self, event: Event) -> float:
        """Return when an event begins, less the base."""
        begin = float(event["ts"])
        if self.base_us is None:
            self.base_us = begin // 1
        return begin - self.base_us

    def told(self, args: Mapping[str, Any], wanted: Callable[[str], bool]) -> dict[str, Any]:
        """Return the arguments of a communication that are kept; a text that many of them have is kept once."""
        kept: dict[str, Any] = {}
        for key, value in args.items():
            if not wanted(key):
                continue
            if isinstance(value, str):
                if value not in self.texts:
                    self.texts[value] = value
                    self.told_bytes += len(value)
                value = self.texts[value]
            elif isinstance(value, list):
                self.told_bytes += BYTES_PER_ENTRY * _entries(value)
            kept[key] = value
        return kept


def read_kineto(source: Source, communication: str = "", rank: int | None = None) -> Recording:
    """Read one file of PyTorch's profiler.

    Parameters
    ----------
    communication
        A regular expression of further kernels that communicate.
    rank
        The rank if neither the file nor its name tells.

    Raises
    ------
    InputError
        If it is no such file, is damaged or too large, tells no rank, or has no GPU's work.
    """
    pattern = f"{COMMUNICATION}|{communication}" if communication else COMMUNICATION
    try:
        communicates = re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise InputError(
            f"is no regular expression ({error})", file="settings", field="communication"
        ) from None
    columns, known = _Columns(), lru_cache(100_000)(communicates.search)
    stream = EventStream(source)
    with gc_paused():
        for events in stream:
            _take(events, columns, known, source.name)
            check_count(
                len(columns), RECORDING.entries, "events of use that a trace may have", source.name
            )
            check_count(
                columns.objects,
                MAX_KEPT_OBJECTS,
                "communications, their scopes and waits a trace may have",
                source.name,
            )
            check_count(len(columns.steps), MAX_STEPS, "steps a trace may have", source.name)
            refuse_if(
                (
                    columns.told_bytes > MAX_TOLD_BYTES,
                    f"tells more of its communications than the {as_mb(MAX_TOLD_BYTES)} that are kept",
                ),
                file=source.name,
            )
    if not columns.work_times and not columns.kernels:
        if stream.cut:
            raise ends_early(source.name, stream.seen)
        raise _without_work(source.name, columns.others, stream.seen)
    return _recording(source.name, stream, columns, rank)


def ends_early(file: str, events: int) -> InputError:
    """Return the error of a file that ends before its first step is whole."""
    return InputError(
        f"ends early; {events:,} events were read, no complete step before the end", file=file
    )


def _without_work(file: str, others: Iterable[str], seen: int) -> InputError:
    for category in others:
        if _OTHER_DEVICE.match(category):
            return InputError(
                f"has {category} but no kernel events; this device is not read yet", file=file
            )
    return InputError(
        f"has no GPU kernel ({seen:,} host events): record with ProfilerActivity.CUDA", file=file
    )


def _take(
    events: list[Event], columns: _Columns, communicates: Callable[[str], object], file: str
) -> None:
    """Keep what is needed of a chunk of events."""
    event: Event = {}
    try:
        for event in events:
            if event.get("ph") != "X":
                continue
            category = str(event.get("cat", "")).lower()
            if category in _WORK:
                _take_work(event, columns, communicates)
            elif category in _HOST:
                _HOST[category](event, columns)
            elif len(columns.others) < 200:
                columns.others[category] = None
    except (TypeError, KeyError, ValueError, OverflowError, AttributeError):
        name = str(event.get("name", ""))[:60]
        raise InputError(
            "ts, dur, tid and args must be numbers and an object", file=file, item=f"event {name!r}"
        ) from None


def _take_work(event: Event, columns: _Columns, communicates: Callable[[str], object]) -> None:
    args = event.get("args") or {}
    stream = args.get("stream", event.get("tid", 0))
    stream = stream if isinstance(stream, int) else int(str(stream).split()[-1])
    correlation = args.get("correlation", -1)
    name, begin = event["name"], columns.begin_us(event)
    if communicates(name):
        kept = columns.told(args, lambda key: key[:1].isupper() or key == "dtype")
        lasts = float(event.get("dur", 0))
        columns.kernels.append((begin, lasts, stream, int(correlation), name[:200], kept))
        return
    columns.work_times.extend((begin, event.get("dur", 0)))
    columns.work_numbers.extend((stream, correlation))


def _entries(value: list[Any]) -> int:
    """Return how many things lie in a list, at any depth: lists may be nested deeper than calls may."""
    count, lists = 0, [value]
    while lists:
        inner = lists.pop()
        count += len(inner)
        lists += [one for one in inner if isinstance(one, list)]
    return count


def _take_runtime(event: Event, columns: _Columns) -> None:
    name = event["name"]
    if _STARTS_NOTHING.search(name):
        return
    args = event.get("args") or {}
    begin = columns.begin_us(event)
    thread = columns.threads.setdefault(event.get("tid"), len(columns.threads))
    correlation = args.get("correlation", -1)
    starts = "Launch" in name or "Memcpy" in name or "Memset" in name
    columns.call_times.append(begin)
    columns.call_numbers.extend((correlation, thread, starts and "HostFunc" not in name))
    if "StreamWaitEvent" in name:
        columns.waits.append((begin, thread, correlation))


def _take_sync(event: Event, columns: _Columns) -> None:
    if event.get("name") != "Stream Wait Event":
        return
    args = event["args"]
    columns.syncs.append(
        (
            columns.begin_us(event),
            int(args["stream"]),
            int(args.get("wait_on_stream", -1)),
            int(args.get("wait_on_cuda_event_record_corr_id", -1)),
            int(args.get("correlation", -1)),
        )
    )


def _take_scope(event: Event, columns: _Columns, names: tuple[str, ...]) -> None:
    name = event["name"]
    if not name.startswith(names):
        return
    begin = columns.begin_us(event)
    end = begin + float(event.get("dur", 0))
    thread = columns.threads.setdefault(event.get("tid"), len(columns.threads))
    if name.startswith("autograd::engine"):
        columns.backward.add(thread)
    elif name.startswith("Optimizer.step"):
        columns.updates.append((begin, end))
    elif found := _STEP.match(name):
        columns.steps.append(Step(int(found[1]), begin, end))
    else:
        args = event.get("args") or {}
        kept = columns.told(args, lambda key: key not in ("External id", "Ev Idx"))
        columns.scopes.append(Scope(begin, end, thread, name, kept))


# What else is taken, by category.
_HOST: dict[str, Callable[[Event, _Columns], None]] = {
    **dict.fromkeys(("cuda_runtime", "hip_runtime", "runtime"), _take_runtime),
    **dict.fromkeys(("cuda_driver", "hip_driver", "driver"), _take_runtime),
    **dict.fromkeys(("cpu_op", "operator"), partial(_take_scope, names=_OPERATORS)),
    "user_annotation": partial(_take_scope, names=_ANNOTATIONS),
    "cuda_sync": _take_sync,
}


def _recording(file: str, stream: EventStream, columns: _Columns, rank: int | None) -> Recording:
    launches, many = _Launches(columns), len(columns.work_times) // 2
    times = np.array(columns.work_times).reshape(-1, 2)
    start, lasts = np.concatenate((times, [one[:2] for one in columns.kernels] or times[:0])).T
    end = start + lasts
    refuse_if(
        (
            not (abs(columns.base_us or 0.0) < 1e18 and np.isfinite(end).all())
            or (end < start).any(),
            "has times or durations that are no numbers from 0",
        ),
        file=file,
        field="dur",
    )
    refuse_if(
        (float(end.max() - start.min()) > 1e13, "spans more than 100 days"), file=file, field="ts"
    )
    stream_of, asked = np.array(columns.work_numbers).reshape(-1, 2).T
    asked = np.append(asked, np.array([one[3] for one in columns.kernels], np.int64))
    at = launches.positions(asked)
    launch, thread = launches.launch[at] + _in_order_of_start(asked, start), launches.thread[at]
    work = Work(start[:many], end[:many], launch[:many], stream_of, thread[:many])
    work = work.taken(np.lexsort((work.end_us, work.start_us)))
    of_kernels = (column[many:].tolist() for column in (end, launch, thread))
    kernels = [
        Kernel(begin, until, called, host, stream, name, args)
        for (begin, _, stream, _, name, args), until, called, host in zip(
            columns.kernels, *of_kernels, strict=True
        )
    ]
    has_launches = len(columns.call_times) > 0
    missing = int(np.isnan(launch).sum()) if has_launches else 0
    info = stream.header.get("distributedInfo")
    info = info if isinstance(info, dict) else {}
    world = info.get("world_size")
    return Recording(
        file,
        _rank(info, file, rank),
        world if is_whole(world, 1, MAX_RANKS) else 0,
        groups_listed(info.get("pg_config"), missing=[]),
        columns.base_us or 0.0,
        work,
        tuple(sorted(kernels, key=lambda one: (one.start_us, one.end_us))),
        tuple(sorted(columns.scopes, key=lambda one: (one.begin_us, -one.end_us))),
        tuple(sorted(columns.waits, key=itemgetter(0))),
        tuple(_exact_waits(columns, launches)),
        _steps(columns.steps),
        tuple(sorted(columns.updates)),
        frozenset(columns.backward),
        has_launches,
        missing,
        launches.unfinished(asked),
        stream.repairs,
        stream.cut,
        stream.seen,
    )


class _Launches:
    """The host's calls by correlation, of several of one number the first; the last stands for what was not recorded."""

    def __init__(self, columns: _Columns) -> None:
        begin = np.array(columns.call_times)
        number, thread, starts = np.array(columns.call_numbers).reshape(-1, 3).T
        order = np.lexsort((begin, number))
        self.number = np.append(number[order], np.iinfo(np.int64).max)
        self.launch = np.append(begin[order], np.nan)
        self.thread = np.append(thread[order], -1)
        self._starts = np.append(starts[order] != 0, False)

    def positions(self, asked: Ints) -> Ints:
        """Return where the call of each number stands, -1 (the last) if it was not recorded."""
        at = np.searchsorted(self.number, asked)
        return np.where((self.number[at] == asked) & (asked >= 0), at, -1)

    def unfinished(self, done: Ints) -> Floats:
        """Return when the host launched what has no activity, in order of time."""
        absent = self._starts & ~np.isin(self.number, done)
        return np.sort(self.launch[absent])


def _in_order_of_start(correlation: Ints, start: Floats) -> Floats:
    """Return what to add to launches (us): kernels of one launch (a CUDA graph) follow each other."""
    order = np.lexsort((start, correlation))
    number = correlation[order]
    later = np.zeros(len(number))
    later[order] = np.arange(len(number)) - np.searchsorted(number, number)
    return later * ONE_LAUNCH_US


def _exact_waits(columns: _Columns, launches: _Launches) -> Iterator[ExactWait]:
    syncs = sorted(columns.syncs)
    numbers = np.array([one[3:] for one in syncs], np.int64).reshape(-1, 2)
    called = launches.launch[launches.positions(numbers)].tolist()
    for (at, stream, waits_for, _, number), (recorded, asked) in zip(syncs, called, strict=True):
        begin = asked if asked == asked else at
        yield ExactWait(begin, stream, waits_for, recorded, number)


def _steps(steps: list[Step]) -> tuple[Step, ...]:
    """Return the steps in order of time, each number once."""
    ordered = sorted(steps, key=lambda step: step.begin_us)
    return tuple(same[0] for same in by_key((one.number, one) for one in ordered).values())


def _rank(info: Mapping[str, Any], file: str, given: int | None) -> int:
    told = info.get("rank")
    found = told if is_whole(told, 0, MAX_RANKS - 1) else rank_in_name(file, *_IN_NAME)
    found = given if found is None else found
    return needed(found, "names no rank: rename it to ..._rank0.json, or give --ranks", file=file)
