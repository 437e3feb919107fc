"""Symmetric replicas folded to one representative a stage, and unfolded again."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from topox_core.errors import InputError
from topox_core.model.csr import pointer_of, ranges, row_of_entry, row_pointer
from topox_core.model.transfer_graph import IntArray
from topox_core.rails.iteration import RailGroup, RailIteration
from topox_core.training.job import Job
from topox_core.training.program import Spread, instances

Ints = NDArray[np.int64]
# Limits are named before memory is spent: a node takes about 100 bytes, a dependency 4.
MAX_NODES = 4_000_000
MAX_DEPENDENCIES = 40_000_000


def equal_groups(job: Job) -> list[IntArray]:
    """Return by spread the equal group of each replica of a stage (context first, then data)."""
    return [np.array(one, np.int32) for one in instances(job).values()]


def _copies(folded: RailIteration, equal: list[IntArray]) -> tuple[IntArray, Ints]:
    """Return of each node its spread, and how often it is there when unfolded."""
    spread = np.array([Spread.REPLICA, *(group.spread for group in folded.groups)], np.int32)
    of_node = spread[folded.group + 1]
    return of_node, np.array([int(one.max()) + 1 for one in equal], np.int64)[of_node]


def unfold(folded: RailIteration, job: Job) -> RailIteration:
    """Return the iteration with every rank of the job in it.

    A computation or a pipeline's transfer is there once a replica, a collective once a group; who
    waits for whom, and each rank's order, are those of its representative.

    Raises
    ------
    InputError
        If it would have more than ``MAX_NODES`` nodes or ``MAX_DEPENDENCIES`` dependencies.
    """
    equal = equal_groups(job)
    spread, copies = _copies(folded, equal)
    first = row_pointer(copies, np.int64)
    _check_size(job, int(first[-1]), folded, equal, spread)
    ptr, idx = _predecessors(folded, equal, spread, first)
    groups, group = _groups(folded, job, equal, copies)
    issue_ptr, issue_idx = _issues(folded, job, equal, spread, first)
    own = np.repeat(folded.rank.astype(np.int64), copies)
    number = ranges(np.zeros_like(copies), copies)
    labels = np.array(folded.label, dtype=object)
    stages = job.plan.replicas
    return replace(
        folded,
        ranks=folded.ranks * stages,
        stands_for=np.ones(folded.ranks * stages, np.int32),
        stage=np.repeat(folded.stage, stages),
        kind=np.repeat(folded.kind, copies),
        rank=np.where(own < 0, -1, own * stages + number).astype(np.int32),
        duration_ms=np.repeat(folded.duration_ms, copies),
        work=np.repeat(folded.work, copies),
        group=group,
        size_bytes=np.repeat(folded.size_bytes, copies),
        microbatch=np.repeat(folded.microbatch, copies),
        layer=np.repeat(folded.layer, copies),
        label=tuple(np.repeat(labels, copies).tolist()),
        pred_ptr=ptr,
        pred_idx=idx,
        issue_ptr=issue_ptr,
        issue_idx=issue_idx,
        groups=groups,
    )


def unfolded_size(folded: RailIteration, job: Job) -> tuple[int, int]:
    """Return nodes and dependencies of the unfolded iteration, without building it."""
    equal = equal_groups(job)
    spread, copies = _copies(folded, equal)
    return int(copies.sum()), _edges(folded, equal, spread)


def _edges(folded: RailIteration, equal: list[IntArray], spread: IntArray) -> int:
    pairs = _pairs_between(equal)
    waiting = row_of_entry(folded.pred_ptr)
    counts = np.array(
        [[len(pairs[a, b]) for b in range(len(equal))] for a in range(len(equal))], np.int64
    )
    return int(counts[spread[folded.pred_idx], spread[waiting]].sum())


def _check_size(
    job: Job, nodes: int, folded: RailIteration, equal: list[IntArray], spread: IntArray
) -> None:
    edges = _edges(folded, equal, spread)
    for count, most, what in (
        (nodes, MAX_NODES, "nodes"),
        (edges, MAX_DEPENDENCIES, "dependencies"),
    ):
        if count > most:
            raise InputError(
                f"would have {count:,} {what} on {job.servers:,} ranks, more than the limit of {most:,}: fold its "
                "replicas, or merge the layers",
                file=f"job {job.name}",
            )


def _pairs_between(equal: list[IntArray]) -> dict[tuple[int, int], IntArray]:
    """Return for two spreads which groups meet in some replica, each pair once."""
    return {
        (a, b): np.unique(np.stack([equal[a], equal[b]], axis=1), axis=0)
        for a in range(len(equal))
        for b in range(len(equal))
    }


def _predecessors(
    folded: RailIteration, equal: list[IntArray], spread: IntArray, first: Ints
) -> tuple[IntArray, IntArray]:
    waiting = row_of_entry(folded.pred_ptr)
    before = folded.pred_idx
    starts, ends, places = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for (a, b), pairs in _pairs_between(equal).items():
        edges = np.flatnonzero((spread[before] == a) & (spread[waiting] == b))
        starts.append((first[before[edges]][:, None] + pairs[None, :, 0]).ravel())
        ends.append((first[waiting[edges]][:, None] + pairs[None, :, 1]).ravel())
        places.append(np.repeat(edges, len(pairs)))
    start, end = np.concatenate(starts), np.concatenate(ends)
    # What a node waits for keeps the order it has in the folded iteration: a message's sender comes
    # first.
    order = np.lexsort((start, np.concatenate(places), end))
    return pointer_of(end, int(first[-1])), start[order].astype(np.int32)


def _groups(
    folded: RailIteration, job: Job, equal: list[IntArray], copies: Ints
) -> tuple[tuple[RailGroup, ...], IntArray]:
    groups: list[RailGroup] = []
    first: list[int] = []
    for group in folded.groups:
        own = equal[group.spread]
        count = int(own.max()) + 1
        first.append(len(groups))
        for instance in range(count):
            replicas = np.flatnonzero(own == instance)
            ranks = tuple(
                int(stage * job.plan.replicas + replica)
                for stage in group.ranks
                for replica in replicas
            )
            tail = f".{instance}" if count > 1 else ""
            groups.append(replace(group, name=group.name + tail, ranks=ranks, size=len(ranks)))
    number = ranges(np.zeros_like(copies), copies)
    base = np.repeat(np.array([-1, *first], np.int64)[folded.group + 1], copies)
    return tuple(groups), np.where(base < 0, -1, base + number).astype(np.int32)


def _issues(
    folded: RailIteration, job: Job, equal: list[IntArray], spread: IntArray, first: Ints
) -> tuple[IntArray, IntArray]:
    table = np.stack(equal)
    ptr, pieces = [0], []
    for stage in range(folded.ranks):
        nodes = folded.issue_idx[folded.issue_ptr[stage] : folded.issue_ptr[stage + 1]]
        pieces.append((first[nodes][None, :] + table[spread[nodes]].T).ravel())
        ptr += [ptr[-1] + len(nodes) * (k + 1) for k in range(job.plan.replicas)]
    return np.array(ptr, np.int32), np.concatenate(pieces).astype(np.int32)
