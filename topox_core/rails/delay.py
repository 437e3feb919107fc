"""Iteration time against the switching delay (Fig. 8), and how slow a switch may be; of a job, or of any fabric's execution.

Over a list of windows in series a circuit that is asked for on demand costs the whole delay each
time, a provisioned one what does not fit into its window: T + sum of max(0, R - W). Over an
iteration or an execution the start times are computed anew, for that sum is only an upper bound
when windows lie side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from topox_core.errors import refuse_if
from topox_core.model.arrays.csr import pointer_of, row_of_entry
from topox_core.model.execution import Execution
from topox_core.model.quantities import DELAYS_MS, MAX_MS
from topox_core.model.transfer_graph import COMPUTE as COMPUTE_NODE, TRANSFER, FloatArray
from topox_core.rails.builder import build
from topox_core.rails.control.simulate import Simulation
from topox_core.rails.iteration import (
    ALL_REDUCE,
    COMPUTE,
    KINDS,
    SEND,
    UPDATE,
    Rail,
    RailGroup,
    RailIteration,
    RailRun,
)
from topox_core.rails.window_lengths import lengths_ms
from topox_core.rails.windows import calls_of
from topox_core.schema.fields import fields_of, setting
from topox_core.schema.records import check_value
from topox_core.training.job import Job

Ints = NDArray[np.int64]
# What a delay study is asked: of the iteration without switching, of the rail, and how much longer it may be.
BASE_MS = Annotated[float, setting(ge=0, le=1e15)]
DELAY_MS = fields_of(Rail)["reconfiguration_ms"].hint
LIMIT_PERCENT = Annotated[float, setting(ge=0, le=1e6)]


def recorded(execution: Execution) -> tuple[RailIteration, FloatArray]:
    """Return an execution as an iteration on one rail, and its nodes' durations in ms.

    A rank is a server, a collective one communication of all its servers, another transfer one of a
    pair; all switches together count as the rail. A collective lasts from when the last of its
    servers has begun its first transfer to the end of the last. Devices go through their tasks, and
    groups through their communications, in the order that was executed.

    Raises
    ------
    InputError
        If the execution has no transfer.
    """
    graph = execution.graph
    transfers = np.flatnonzero(graph.kind == TRANSFER)
    refuse_if((not len(transfers), "has no transfer, so no circuit is ever asked for"))
    tasks, first, node_task = np.unique(graph.origin, return_index=True, return_inverse=True)
    n = len(tasks)
    ends = np.stack((graph.source[transfers], graph.destination[transfers]))
    times_ms = execution.start_ms[transfers], execution.end_ms[transfers]
    owner, server, start, end = calls_of(node_task[transfers], ends, times_ms, n)
    start, end = np.maximum(start, 0.0), np.maximum(end, 0.0)
    members = [one.tolist() for one in np.split(server, pointer_of(owner, n)[1:-1])]
    computes = np.flatnonzero(graph.kind == COMPUTE_NODE)
    start[node_task[computes]], end[node_task[computes]] = (
        execution.start_ms[computes],
        execution.end_ms[computes],
    )
    rank = np.full(n, -1, np.int32)
    rank[node_task[computes]] = graph.server[computes]
    kind, group, groups = _groups(execution, members, first)
    sent_bytes = np.nan_to_num(graph.size_bytes[transfers])
    # What takes no time takes no turn on its device; its dependencies order it.
    lasting = computes[execution.end_ms[computes] > execution.start_ms[computes]]
    pred_ptr, pred_idx = _predecessors(execution, node_task, lasting, n)
    ranks = execution.cluster.servers
    issued = np.lexsort((owner, start[owner], server))
    label = tuple(graph.ids[i] or graph.task_kind[i] for i in first.tolist())
    iteration = RailIteration(
        name="recorded",
        ranks=ranks,
        stands_for=np.ones(ranks, np.int32),
        stage=np.zeros(ranks, np.int32),
        kind=kind,
        rank=rank,
        duration_ms=np.where(kind == COMPUTE, end - start, 0.0),
        work=np.where(kind == COMPUTE, UPDATE, -1).astype(np.int32),
        group=group,
        size_bytes=np.bincount(node_task[transfers], sent_bytes, n).astype(np.float64),
        microbatch=np.full(n, -1, np.int32),
        layer=np.full(n, -1, np.int32),
        label=label,
        pred_ptr=pred_ptr,
        pred_idx=pred_idx,
        issue_ptr=pointer_of(server[issued], ranks),
        issue_idx=owner[issued].astype(np.int32),
        groups=groups,
    )
    return iteration, end - start


def _groups(
    execution: Execution, members: list[list[int]], first: Ints
) -> tuple[NDArray[np.int32], NDArray[np.int32], tuple[RailGroup, ...]]:
    """Return the kind and group of every task, and the groups: same parallelism, same servers."""
    graph = execution.graph
    kind, group = np.full(len(members), COMPUTE, np.int32), np.full(len(members), -1, np.int32)
    numbers: dict[tuple[str, bool, tuple[int, ...]], int] = {}
    for task, ranks in enumerate(members):
        if ranks:
            word = graph.task_kind[first[task]]
            send = word not in KINDS[1:]
            kind[task] = (
                SEND if send and len(ranks) == 2 else ALL_REDUCE if send else KINDS.index(word)
            )
            key = (
                graph.parallelism[first[task]] or word or "transfer",
                bool(kind[task] == SEND),
                tuple(ranks),
            )
            group[task] = numbers.setdefault(key, len(numbers))
    groups = tuple(
        RailGroup(
            f"{parallelism}.{'-'.join(map(str, ranks[:4]))}" + ("…" if len(ranks) > 4 else ""),
            parallelism,
            ranks,
            len(ranks),
        )
        for parallelism, _, ranks in numbers
    )
    return kind, group, groups


def _predecessors(
    execution: Execution, node_task: Ints, computes: Ints, n: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the dependencies between tasks, with the order in which each device ran them."""
    graph = execution.graph
    after = node_task[row_of_entry(graph.pred_ptr)]
    before = node_task[graph.pred_idx]
    device = (
        graph.server[computes].astype(np.int64) * execution.cluster.devices_per_server
        + graph.device[computes]
    )
    task = node_task[computes]
    order = np.lexsort((computes, execution.end_ms[computes], execution.start_ms[computes], device))
    same = device[order][1:] == device[order][:-1]
    before = np.concatenate((before, task[order][:-1][same]))
    after = np.concatenate((after, task[order][1:][same]))
    code = np.unique(after[before != after].astype(np.int64) * n + before[before != after])
    return pointer_of(code // n, n), (code % n).astype(np.int32)


UNDISTURBED, RUN, BOTH = "undisturbed", "run", "both"


@dataclass(frozen=True)
class Recorded:
    """An execution of any fabric as a job on a rail; equal ``key`` means equal execution."""

    key: str
    execution: Execution = field(compare=False)


Running = Job | Recorded
Answer = RailRun | tuple[float, float]


@dataclass(frozen=True)
class Question:
    """One simulation of a job; a job's replicas are folded.

    Attributes
    ----------
    what
        ``undisturbed``: the run when switching takes no time. ``run``: on the rail as it is.
        ``both``: the iteration with ``dark_ms`` a change, on demand and provisioned.
    """

    what: str
    job: Running
    rail: Rail
    dark_ms: float = 0.0

    @property
    def key(self) -> Question:
        """The question without what its answer does not depend on."""
        if self.what == RUN:
            return replace(self, dark_ms=0.0)
        rail = replace(self.rail, reconfiguration_ms=0.0, link_up_ms=0.0, provisioned=True)
        return replace(self, rail=rail, dark_ms=self.dark_ms if self.what == BOTH else 0.0)


@lru_cache(maxsize=4)
def iteration_of(job: Running) -> tuple[RailIteration, FloatArray | None]:
    """Return a job's iteration, and its nodes' durations where the rail does not give them.

    Raises
    ------
    InputError
        As :func:`topox_core.rails.builder.build`, and if an execution has no transfer.
    """
    if isinstance(job, Job):
        return build(job, fold=True), None
    return recorded(job.execution)


@lru_cache(maxsize=2)
def simulation(job: Running, rail: Rail) -> Simulation:
    """Return a job prepared for a rail; the last two are kept.

    Raises
    ------
    InputError
        As :func:`iteration_of`, and if a setting of the rail is out of range.
    """
    iteration, duration_ms = iteration_of(job)
    return Simulation(iteration, rail, duration_ms)


def answer(question: Question) -> Answer:
    """Return the run, or the two iteration times in ms (on demand, provisioned).

    Raises
    ------
    InputError
        As :func:`simulation`.
    """
    key = question.key
    if key.what == BOTH:
        return simulation(key.job, key.rail).both_ms(key.dark_ms)
    return simulation(key.job, key.rail).run(messages=0 if key.what == UNDISTURBED else 500)


RAIL_DELAYS_MS = tuple(delay for delay in DELAYS_MS if delay == 0 or 1 <= delay <= 1000)
MAX_DELAYS = 200
# A delay is found to one part in a thousand, finer than any switch is specified.
CLOSE = 1e-3
MAX_STEPS = 200


@dataclass(frozen=True)
class DelayRow:
    """Iteration times with one switching delay."""

    delay_ms: float
    on_demand_ms: float
    provisioned_ms: float


@dataclass(frozen=True)
class DelayStudy:
    """Iteration times over switching delays.

    Attributes
    ----------
    base_ms
        The undisturbed iteration.
    source
        What was studied, in words.
    """

    base_ms: float
    rows: tuple[DelayRow, ...]
    source: str

    def overhead(self, iteration_ms: float) -> float:
        """Return how much longer an iteration is than the undisturbed one, in percent."""
        return 100.0 * (iteration_ms / self.base_ms - 1.0) if self.base_ms else 0.0


@dataclass(frozen=True)
class Source:
    """Source of a delay study: ``both_ms(delay)`` is the time (on demand, provisioned)."""

    name: str
    base_ms: float
    both_ms: Callable[[float], tuple[float, float]]


def on_demand_ms(base_ms: float, windows_ms: Sequence[float], delay_ms: float) -> float:
    """Return the iteration time on demand: every window's change costs the whole delay R.

    A negative window is an overlap, which circuits serialise: its length is added too, with any
    delay.

    Raises
    ------
    InputError
        If there is no window, or a time or the delay is out of range.
    """
    windows = _checked(base_ms, windows_ms, delay_ms)
    return base_ms + float(np.sum(delay_ms + np.maximum(0.0, -windows)))


def provisioned_ms(base_ms: float, windows_ms: Sequence[float], delay_ms: float) -> float:
    """Return the iteration time provisioned, asked where windows begin: T + sum of max(0, R - W).

    Raises
    ------
    InputError
        If there is no window, or a time or the delay is out of range.
    """
    windows = _checked(base_ms, windows_ms, delay_ms)
    return base_ms + float(np.sum(np.maximum(0.0, delay_ms - windows)))


def windows_source(
    base_ms: float, windows_ms: Sequence[float], name: str = "list of windows"
) -> Source:
    """Return windows in series as a source; each stands for a change of circuits.

    Raises
    ------
    InputError
        If there is no window, or a time is out of range.
    """
    _checked(base_ms, windows_ms, 0.0)
    kept = tuple(windows_ms)
    return Source(
        name,
        base_ms,
        lambda delay: (on_demand_ms(base_ms, kept, delay), provisioned_ms(base_ms, kept, delay)),
    )


def iteration_source(
    iteration: RailIteration, rail: Rail, duration_ms: FloatArray | None = None
) -> Source:
    """Return a simulated iteration as a source, whatever the rail's own delays and control.

    Parameters
    ----------
    duration_ms
        Of its nodes, where the rail does not give them.

    Raises
    ------
    InputError
        If a setting of the rail is out of range.
    """
    simulated = Simulation(iteration, rail, duration_ms)
    return Source(iteration.name, simulated.undisturbed_ms, simulated.both_ms)


def execution_source(execution: Execution) -> Source:
    """Return any fabric's execution as a source: its order and durations, on one photonic rail.

    Raises
    ------
    InputError
        If the execution has no transfer.
    """
    iteration, duration_ms = recorded(execution)
    return iteration_source(iteration, Rail(), duration_ms)


def study(source: Source, delays_ms: Sequence[float] = RAIL_DELAYS_MS) -> DelayStudy:
    """Return iteration times over delays, ascending.

    Raises
    ------
    InputError
        If there is no delay, more than ``MAX_DELAYS``, or one is out of range.
    """
    refuse_if(
        (
            not 0 < len(delays_ms) <= MAX_DELAYS,
            f"must be 1 to {MAX_DELAYS} values (got {len(delays_ms):,})",
        ),
        file="settings",
        field="delays_ms",
    )
    for delay in delays_ms:
        check_value(DELAY_MS, delay, file="settings", field="delay_ms")
    rows = tuple(DelayRow(delay, *source.both_ms(delay)) for delay in sorted(set(delays_ms)))
    return DelayStudy(source.base_ms, rows, source.name)


def slowest_switch(
    source: Source, limit_percent: float, provisioned: bool = True, link_up_ms: float = 0.0
) -> float | None:
    """Return the slowest delay of a switch, in ms, that keeps the overhead within ``limit_percent``.

    None if no delay exceeds it (nothing is ever switched). Found by closing in on the true
    iteration time. A list of windows makes that time a rising function; a simulated iteration need
    not, where a slower switch changes who comes first: then the answer is a delay that keeps the
    limit, just below one that does not. A circuit is dark for ``link_up_ms`` more than the delay.

    Raises
    ------
    InputError
        If the limit is negative, or already exceeded without any delay.
    """
    check_value(LIMIT_PERCENT, limit_percent, file="settings", field="limit_percent")
    most = source.base_ms * (1 + limit_percent / 100)
    most += 1e-9 * source.base_ms  # rounding of sums over thousands of events

    def above(delay_ms: float) -> float:
        return source.both_ms(delay_ms)[int(provisioned)] - most

    low, high = 0.0, max(1e-6, source.base_ms * limit_percent / 100)
    below = above(low)
    refuse_if(
        (
            below > 0,
            f"the overhead is above {limit_percent:g} % even if switching takes no time (overlapping traffic is "
            "serialised)",
        ),
        file="settings",
        field="limit_percent",
    )
    while (over := above(high)) <= 0:
        if high >= MAX_MS:
            return None
        low, below, high = high, over, min(4 * high, MAX_MS)
    before, was = low, below  # the last delay known to keep the limit before ``low``
    for step in range(MAX_STEPS):
        least = CLOSE * high
        if high - low <= least:
            break
        # The time is made of straight pieces, rising ever faster while nobody overtakes: the chord
        # ends short of the limit, the line through the last two delays that keep it beyond; half
        # way in between guards against everything else.
        chord = low - below * (high - low) / (over - below)
        line = low - below * (low - before) / (below - was) if below > was else chord
        guess = min(
            max((chord, line, (low + high) / 2)[step % 3], low + least / 2), high - least / 2
        )
        excess = above(guess)
        if excess > 0:
            high, over = guess, excess
        else:
            before, was, low, below = low, below, guess, excess
    last = low - below * (high - low) / (over - below)
    dark_ms = last if above(last) <= 0 else low
    refuse_if(
        (
            dark_ms < link_up_ms,
            f"the overhead is above {limit_percent:g} % with any switch: the link start-up alone takes longer",
        ),
        file="settings",
        field="limit_percent",
    )
    return dark_ms - link_up_ms


def _checked(
    base_ms: float, windows_ms: Sequence[float], delay_ms: float
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    check_value(BASE_MS, base_ms, file="settings", field="base_ms")
    check_value(DELAY_MS, delay_ms, file="settings", field="delay_ms")
    return lengths_ms(windows_ms)
