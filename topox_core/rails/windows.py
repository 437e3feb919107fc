"""Phases and windows: when a rank's traffic changes its parallelism, and the idle time between.

A window lies between two phases P1 and P2 of one rank on one rail: min over P2 of start(j) minus
max over P1 of end(i), where start(j) is when the last of its ranks joins and end(i) is common to
all (section 3.1 of the photonic rails paper). A phase is a maximal run, in order of start, of
communications of one parallelism. A negative window is an overlap of the two.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topox_core.errors import check_known, refuse_if
from topox_core.io.limits import check_whole
from topox_core.model.arrays.csr import row_of_entry
from topox_core.model.execution import Execution
from topox_core.model.transfer_graph import TRANSFER, FloatArray
from topox_core.rails.iteration import COMPUTE, KINDS, RailIteration, Window
from topox_core.training.plan import ORDERS, pass_order

SAME_MS = 1e-9  # calls that are no further apart follow each other without a pause
MAX_PASSES = 1_000_000  # forward and backward passes walked for one answer


FORMULA_NOTE = (
    "4M - 1 windows at M microbatches. The text of the paper that we have lacks its equation; this form gives the "
    "published 127 at M = 32. It is the first stage's count when all forwards come first (or M <= P stages)"
)


def windows_by_formula(microbatches: int) -> int:
    """Return 4M - 1, the reconstructed Eq. 1 of the photonic rails paper (see ``FORMULA_NOTE``).

    Raises
    ------
    InputError
        If there is no micro-batch.
    """
    check_whole(microbatches, file="settings", field="microbatches")
    return 4 * microbatches - 1


def windows_by_stage(
    stages: int, microbatches: int, schedule: str = "1f1b", chunks: int = 2
) -> list[int]:
    """Return the windows of one rank of every stage, counted by walking its communications.

    Each forward and backward pass of a stage gathers (and scatters) parameters between what it
    receives from and sends to its neighbours; the optimizer's all-reduces end the iteration.
    Windows lie between neighbouring phases of different parallelism (section 3.1 of the paper).

    Parameters
    ----------
    schedule
        ``1f1b``, ``afab`` (all forwards, then all backwards) or ``interleaved`` (1F1B over
        ``chunks`` model chunks a stage, as Megatron-LM orders them).

    Raises
    ------
    InputError
        On an unknown schedule, a number below one, or an interleaved schedule whose micro-batches
        are no multiple of the stages.
    """
    _check(stages, microbatches, schedule, chunks)
    phases = (
        groupby(_communications(stages, microbatches, schedule, stage, chunks))
        for stage in range(stages)
    )
    return [sum(1 for _ in one) - 1 for one in phases]


def _communications(
    stages: int, microbatches: int, schedule: str, stage: int, chunks: int
) -> Iterator[str]:
    """Yield the parallelism of each communication of a stage, in order."""
    chunks = chunks if schedule == "interleaved" else 1
    for way, _, chunk in pass_order(stage, stages, microbatches, schedule, chunks):
        begins_model = stage == 0 and chunk == 0
        ends_model = stage == stages - 1 and chunk == chunks - 1
        before, after = (begins_model, ends_model) if way == "f" else (ends_model, begins_model)
        # With one stage the chunks follow each other on the same rank: nothing is sent.
        if stages > 1 and not before:
            yield "pp"
        yield "fsdp"
        if stages > 1 and not after:
            yield "pp"
    yield "sync"


def _check(stages: int, microbatches: int, schedule: str, chunks: int) -> None:
    check_whole(stages, file="settings", field="stages")
    check_whole(microbatches, file="settings", field="microbatches")
    check_whole(chunks, file="settings", field="chunks")
    check_known(schedule, ORDERS, "schedule", file="settings", field="schedule")
    refuse_if(
        (
            schedule == "interleaved" and microbatches % stages,
            f"must be a multiple of the {stages} stages when they are interleaved (got {microbatches})",
        ),
        file="settings",
        field="microbatches",
    )
    passes = 2 * stages * microbatches * (chunks if schedule == "interleaved" else 1)
    refuse_if(
        (
            passes > MAX_PASSES,
            f"{stages:,} stages and {microbatches:,} microbatches make {passes:,} passes, "
            f"more than the {MAX_PASSES:,} that are walked",
        ),
        file="settings",
    )


@dataclass(frozen=True)
class Phase:
    """One phase of one rank on one rail, from its first communication's start to its last's end.

    Attributes
    ----------
    communications
        0 where a list of windows does not say how many.
    """

    rank: int
    rail: int
    parallelism: str
    operation: str
    begin_ms: float
    end_ms: float
    communications: int
    size_bytes: float


def windows_of_execution(execution: Execution) -> tuple[Window, ...]:
    """Return the windows of an execution of any fabric, by server, switch and time.

    A collective is one communication: it starts when the last of its servers sends or receives its
    first transfer, and ends with the last transfer. On a fabric without switches there is one rail,
    0.

    Raises
    ------
    InputError
        If the execution has no transfer.
    """
    graph = execution.graph
    node, rail = _rails(execution)
    return windows_of_transfers(
        graph.origin[node].astype(np.int64),
        rail,
        np.stack((graph.source[node], graph.destination[node])),
        execution.start_ms[node],
        execution.end_ms[node],
        np.nan_to_num(graph.size_bytes[node]),
        [graph.parallelism[i] or graph.task_kind[i] or "transfer" for i in node.tolist()],
        [graph.task_kind[i] or "transfer" for i in node.tolist()],
    )


def strip(
    iteration: RailIteration, start_ms: FloatArray, end_ms: FloatArray, apart: bool = False
) -> tuple[Phase, ...]:
    """Return the communication pattern (Fig. 3): a run's phases, by rank and time.

    Parameters
    ----------
    apart
        Take phases apart where they pause: each stretch then sends from its begin to its end.
    """
    communicates = iteration.kind[iteration.issue_idx] != COMPUTE
    node, rank = (
        entries[communicates]
        for entries in (iteration.issue_idx, row_of_entry(iteration.issue_ptr))
    )
    names = np.array([group.parallelism for group in iteration.groups] or [""], np.object_)
    return _phases(
        (rank, np.zeros_like(rank), names[iteration.group[node]]),
        np.array(KINDS, np.object_)[iteration.kind[node]],
        start_ms[node],
        end_ms[node],
        iteration.size_bytes[node],
        apart,
    )


def windows_of_transfers(
    task: NDArray[np.int64],
    rail: NDArray[np.int64],
    ends: NDArray[np.integer[Any]],
    start_ms: FloatArray,
    end_ms: FloatArray,
    size_bytes: FloatArray,
    label: Sequence[str],
    operation: Sequence[str],
) -> tuple[Window, ...]:
    """Return the windows of transfers that ran, one row for each rail that one used, by server, rail and time.

    Parameters
    ----------
    task
        The position of the task that a transfer is of.
    ends
        Sources, and destinations.
    label, operation
        The kind of traffic, and of task.

    Raises
    ------
    InputError
        If there is no transfer.
    """
    refuse_if((not len(task), "has no transfer, so it has no phases of communication"))
    rails = int(rail.max()) + 1
    # One communication is one task on one rail.
    call, first, call_of = np.unique(task * rails + rail, return_index=True, return_inverse=True)
    owner, server, start, end = calls_of(call_of, ends, (start_ms, end_ms), len(call))
    size: FloatArray = np.bincount(call_of, weights=size_bytes).astype(np.float64)
    labels, kinds = (
        np.array([words[i] for i in first.tolist()], np.object_) for words in (label, operation)
    )
    return windows_between(
        _phases(
            (server, call[owner] % rails, labels[owner]),
            kinds[owner],
            start[owner],
            end[owner],
            size[owner],
        )
    )


def calls_of(
    task: NDArray[np.int64],
    ends: NDArray[np.integer[Any]],
    times_ms: tuple[FloatArray, FloatArray],
    tasks: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatArray, FloatArray]:
    """Return (task, server) for every server that takes part in a task, and when each task began and ended.

    A task begins when the last of its servers sends or receives its first transfer, and ends with
    its last transfer; one without a transfer at minus infinity.

    Parameters
    ----------
    task
        Of each transfer.
    ends, times_ms
        Sources and destinations of the transfers; when they began and ended.
    """
    servers, twice = int(ends.max()) + 1, np.tile(np.arange(len(task)), 2)
    call, call_of = np.unique(
        task[twice].astype(np.int64) * servers + ends.ravel(), return_inverse=True
    )
    joined = _by(call_of, times_ms[0][twice], len(call), np.minimum, np.inf)
    owner = call // servers
    start = _by(owner, joined, tasks, np.maximum, -np.inf)
    return owner, call % servers, start, _by(task, times_ms[1], tasks, np.maximum, -np.inf)


def windows_of_calls(
    calls: Iterable[tuple[int, str, str, float, float, float]],
) -> tuple[Window, ...]:
    """Return the windows of recorded communications, by rank and time.

    Parameters
    ----------
    calls
        Of each rank of a communication: rank, parallelism, operation, when the last of its ranks was
        there and when it ended (ms), and its bytes.
    """
    columns = list(zip(*calls, strict=True))
    if not columns:
        return ()
    rank = np.array(columns[0], np.int64)
    parallelism, operation = (np.array(one, np.object_) for one in columns[1:3])
    start, end, size = (np.array(one, np.float64) for one in columns[3:])
    return windows_between(
        _phases((rank, np.zeros_like(rank), parallelism), operation, start, end, size)
    )


def traffic_between(windows: Sequence[Window], until_ms: float) -> tuple[Phase, ...]:
    """Return the phases between one lane's windows, from a window's end to the next begin."""
    ordered = sorted(windows, key=lambda one: one.begin_ms)
    phases = []
    begin, operation, size = 0.0, "", 0.0
    for one in ordered:
        end = max(begin, one.begin_ms)
        phases.append(Phase(one.rank, one.rail, one.before, operation, begin, end, 0, size))
        begin = max(begin, one.begin_ms + one.length_ms)
        operation, size = one.operation, one.size_bytes
    if ordered:
        last, end = ordered[-1], max(begin, until_ms)
        phases.append(Phase(last.rank, last.rail, last.after, operation, begin, end, 0, size))
    return tuple(phases)


def _rails(execution: Execution) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (transfer, switch) of every transfer; switch 0 where no circuit is named."""
    graph, circuits = execution.graph, execution.circuits
    node = np.flatnonzero(graph.kind == TRANSFER)
    if not len(circuits):
        return node, np.zeros(len(node), np.int64)
    pairs = np.unique(
        np.stack((circuits.node.astype(np.int64), circuits.switch.astype(np.int64))), axis=1
    )
    without = np.setdiff1d(node, pairs[0])
    return np.concatenate((pairs[0], without)), np.concatenate(
        (pairs[1], np.zeros(len(without), np.int64))
    )


def _by(
    owner: NDArray[np.int64], value: FloatArray, count: int, best: np.ufunc, start: float
) -> FloatArray:
    best_of = np.full(count, start, dtype=np.float64)
    best.at(best_of, owner, value)
    return best_of


def _phases(
    lanes: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.object_]],
    operation: NDArray[np.object_],
    start_ms: FloatArray,
    end_ms: FloatArray,
    size_bytes: FloatArray,
    apart: bool = False,
) -> tuple[Phase, ...]:
    """Return the phases of calls: one row for every rank that takes part in a communication.

    Parameters
    ----------
    lanes
        Rank, rail and parallelism of each call.
    apart
        As of :func:`strip`.
    """
    order = np.lexsort((end_ms, start_ms, *lanes[1::-1]))
    sorted_lanes = [lane[order] for lane in lanes]
    begins = np.ones(len(order), np.bool_)
    begins[1:] = np.logical_or.reduce([lane[1:] != lane[:-1] for lane in sorted_lanes])
    until_ms = -np.inf
    for k, call in enumerate(order.tolist() if apart else ()):
        begins[k] |= start_ms[call] > until_ms + SAME_MS
        until_ms = end_ms[call] if begins[k] else max(until_ms, end_ms[call])
    first = np.flatnonzero(begins)
    if not len(first):
        return ()
    columns = (
        *(lane[first] for lane in sorted_lanes),
        operation[order][first],
        start_ms[order][first],
        np.maximum.reduceat(end_ms[order], first),
        np.diff(np.append(first, len(order))),
        np.add.reduceat(size_bytes[order], first),
    )
    return tuple(Phase(*row) for row in zip(*(one.tolist() for one in columns), strict=True))


def windows_between(phases: tuple[Phase, ...]) -> tuple[Window, ...]:
    """Return the windows between phases that follow each other on one rank and rail."""
    return tuple(
        Window(
            after.rank,
            after.rail,
            before.parallelism,
            after.parallelism,
            after.operation,
            before.end_ms,
            after.begin_ms - before.end_ms,
            after.size_bytes,
        )
        for before, after in pairwise(phases)
        if before.rank == after.rank and before.rail == after.rail
    )
