"""All-reduce traffic is mutable: the rings of a lowered graph move to laid circuits."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from topox_core.errors import InputError
from topox_core.model.algorithm_choice import (
    RING,
    Choice,
    Pattern,
    distinct_rings,
    pattern,
    step_pattern,
)
from topox_core.model.csr import row_pointer
from topox_core.model.lowering import MAX_TRANSFERS
from topox_core.model.lowering_choices import Lowering
from topox_core.model.transfer_graph import TRANSFER, IntArray, TransferGraph
from topox_core.topology.ring_circuits import LayoutResult, ring_strides
from topox_core.topology.traffic import Group, ring_collectives


@dataclass(frozen=True)
class _Block:
    """One collective: where its transfers stand, what they become, and how much each then moves."""

    first: int
    nodes: int
    members: Group
    shape: Pattern
    size_bytes: float


StridesOf = Callable[[Group], tuple[int, ...]]


def on_rings(graph: TransferGraph, result: LayoutResult) -> TransferGraph:
    """Return the graph with ring collectives on a layout's rings, one a stride, equal shares.

    The collectives move the same bytes as before; only who sends to whom changes. Groups may have
    different strides, which a ``Lowering`` cannot say. Strides are those of
    :func:`~topox_core.topology.ring_circuits.ring_strides`: one a circuit out of a member, so parallel
    circuits carry parallel rings, and rings laid in both directions run both ways.

    Raises
    ------
    InputError
        If a group is not one the layout was found for, or the transfers become too many.
    """
    return on_strides(graph, lambda members: ring_strides(result, members))


def on_ring_count(graph: TransferGraph, rings: int) -> TransferGraph:
    """Return the graph with every ring collective on so many rings, as far as its group has them."""
    return on_strides(graph, lambda members: distinct_rings(len(members))[:rings] or (1,))


def on_strides(graph: TransferGraph, strides_of: StridesOf) -> TransferGraph:
    """Return the graph with each group's ring collectives on the strides given for it, equal shares.

    Raises
    ------
    InputError
        If the transfers become too many.
    """
    blocks = _blocks(graph, strides_of)
    if not blocks:
        return graph
    count = np.ones(len(graph), np.int64)
    for block in blocks:
        count[block.first : block.first + block.nodes] = 0
        count[block.first] = len(block.shape)
    transfers = int(count[graph.kind == TRANSFER].sum())
    if transfers > MAX_TRANSFERS:
        raise InputError(
            f"the rings of this layout become {transfers:,} transfers, more than the limit of {MAX_TRANSFERS:,}: "
            "use a smaller degree",
            file="topology",
            field="degree",
        )
    first = row_pointer(count, np.int64)
    was = np.repeat(np.arange(len(graph)), count)  # of each new node the old one it comes from
    source, destination, size = graph.source[was], graph.destination[was], graph.size_bytes[was]
    ids = _taken(graph.ids, was)
    for block in blocks:
        here = slice(int(first[block.first]), int(first[block.first]) + len(block.shape))
        shape, members = block.shape, block.members
        source[here] = [members[i] for i in shape.source]
        destination[here] = [members[i] for i in shape.destination]
        size[here] = block.size_bytes
        whole = graph.ids[block.first + block.nodes]  # its closing barrier
        ids[here] = [whole + suffix for suffix in shape.suffix]
    waits, ptr = _predecessors(graph, blocks, count, first)
    strides = {block.members: strides_of(block.members) for block in blocks}
    words = "".join(f"{members}{p}" for members, p in strides.items())
    return TransferGraph(
        ids=tuple(ids),
        kind=graph.kind[was],
        origin=graph.origin[was],
        server=graph.server[was],
        device=graph.device[was],
        source=source,
        destination=destination,
        duration_ms=graph.duration_ms[was],
        size_bytes=size,
        pred_ptr=ptr,
        pred_idx=waits,
        task_kind=tuple(_taken(graph.task_kind, was)),
        parallelism=tuple(_taken(graph.parallelism, was)),
        lowering=_lowering(graph, list(strides.values())),
        digest=hashlib.sha256(f"{graph.digest} on rings {words}".encode()).hexdigest(),
        algorithm=graph.algorithm,
    )


def _blocks(graph: TransferGraph, strides_of: StridesOf) -> list[_Block]:
    shapes: dict[tuple[str, int, tuple[int, ...], bool], Pattern] = {}
    blocks = []
    for members, nodes, _ in ring_collectives(graph):
        first = int(nodes[0])
        kind, strides = graph.task_kind[first], strides_of(members)
        in_steps = int(graph.origin[first]) in graph.algorithm
        key = (kind, len(members), strides, in_steps)
        if key not in shapes:
            shapes[key] = (
                step_pattern(kind, Choice(RING), len(members), 0, strides)
                if in_steps
                else pattern(kind, len(members), 0, strides, graph.lowering)
            )
        total = float(graph.size_bytes[nodes].sum())
        blocks.append(_Block(first, len(nodes), members, shapes[key], total / len(shapes[key])))
    return blocks


def _predecessors(
    graph: TransferGraph, blocks: list[_Block], count: NDArray[np.int64], first: NDArray[np.int64]
) -> tuple[IntArray, IntArray]:
    """Return predecessors of the new nodes in compressed rows; only a collective's closing barrier waits for its transfers."""
    old_ptr, old_idx, moved = graph.pred_ptr.tolist(), graph.pred_idx.tolist(), first.tolist()
    block_at = {block.first: block for block in blocks}
    closing = {block.first + block.nodes: block for block in blocks}
    waits: list[int] = []
    counts: list[int] = []
    for i, copies in enumerate(count.tolist()):
        if not copies:
            continue
        own = [moved[j] for j in old_idx[old_ptr[i] : old_ptr[i + 1]]]
        if i in closing:
            start = moved[closing[i].first]
            own = [start + k for k in closing[i].shape.last]
        block = block_at.get(i)
        if block is None:
            waits += own
            counts.append(len(own))
            continue
        for k in range(copies):
            earlier = [moved[i] + e for e in block.shape.after[k]] if block.shape.after else []
            waits += earlier or own
            counts.append(len(earlier) or len(own))
    return np.array(waits, np.int32), row_pointer(counts)


def _taken(words: tuple[str, ...], where: NDArray[np.int64]) -> list[str]:
    return [words[i] for i in where.tolist()]


def _lowering(graph: TransferGraph, strides: list[tuple[int, ...]]) -> Lowering:
    """Return the lowering that would have made this graph, if one can say it."""
    first = strides[0]
    if any(one != first for one in strides) or len(set(first)) < len(first):
        return graph.lowering
    return replace(graph.lowering, rings=len(first), strides=first)
