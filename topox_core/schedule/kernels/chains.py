"""Heads of tasks from the transfers that end just before them at one server's ports (and tails, turned round)."""

from typing import NamedTuple

import numpy as np

from topox_core.compiled import compiled
from topox_core.model.transfer_graph import FloatArray, IntArray

# Where few circuits share many ports: from so many heads on, and for transfers of such shares of the
# span that one of each circuit has; llama3-70b cannot pay from 65 ms on, with neither not at all.
HEADS, SHARES = 64, (1.0, 0.5)


class Ends(NamedTuple):
    """The two sides of each transfer, of shape (2, nodes; -1: none), and the circuit that it needs.

    Two transfers at one side with different circuits need a change between them on one port.
    """

    side: IntArray
    circuit: IntArray


class Times(NamedTuple):
    """What is known of each node in ms: its head, how long it takes, and what must follow."""

    head: FloatArray
    length: FloatArray
    rest: FloatArray


@compiled
def apart_or_changed(
    node: IntArray,
    circuit: IntArray,
    times: Times,
    ports: int,
    delay: float,
    span: float,
    of: IntArray,
) -> float:
    """Return when transfers of the circuits ``of``, no more than there are ports, end at the earliest.

    Of those that take at least ``span`` with what must follow, some port carries two with a change
    between them, or every circuit has ports of its own. ``node`` comes by falling heads.
    """
    head, length, rest = times
    shortest = np.inf
    for p in node:
        if length[p] + rest[p] >= span:
            shortest = min(shortest, length[p])
    changed: float = head[node[-1]] + shortest + delay + span
    own, apart = np.ones(len(of)), 0.0
    for _ in range(ports - len(of) + 1):
        last, slowest = 0.0, 0
        for k in range(len(of)):
            work, least = 0.0, np.inf
            for i in range(len(node)):
                p = node[i]
                if circuit[i] == of[k] and length[p] + rest[p] >= span:
                    work += length[p]
                    least = min(least, rest[p])
                    if head[p] + work / own[k] + least > last:
                        last, slowest = head[p] + work / own[k] + least, k
        own[slowest] += 1
        apart = last
    return min(apart, changed)


@compiled
def latest_end(
    node: IntArray,
    circuit: IntArray,
    times: Times,
    ports: int,
    delay: float,
) -> float:
    """Return when transfers that share the ``ports`` of one side end at the earliest, and what ``rest`` must follow each.

    ``node`` comes by falling heads. Those with heads from h on take the ports (work + changes *
    delay) / ports on average, where only the first circuit of each needs no change after h. Of k *
    ports + 1 that need different circuits some k + 1 follow each other at one port, k changes
    between them. Fewer circuits than that stay apart or cost a change.
    """
    head, length, rest = times
    # Of each circuit the transfer after which most must follow, by falling spans.
    span, work, of = np.empty(len(node)), np.empty(len(node)), np.empty(len(node), np.int32)
    circuits, total, least, end = 0, 0.0, np.inf, 0.0
    step = 1 + len(node) // HEADS
    for i in range(len(node)):
        p = node[i]
        total += length[p]
        least = min(least, rest[p])
        at = 0
        while at < circuits and of[at] != circuit[i]:
            at += 1
        if at == circuits or span[at] < length[p] + rest[p]:
            circuits += at == circuits
            while at > 0 and span[at - 1] < length[p] + rest[p]:
                span[at], work[at], of[at] = span[at - 1], work[at - 1], of[at - 1]
                at -= 1
            span[at], work[at], of[at] = length[p] + rest[p], length[p], circuit[i]
        busy = (total + max(0, circuits - ports) * delay) / ports + least
        most = (circuits - 1) // ports
        for k in (1, most):
            if 0 < k <= most:
                first = np.sort(work[: k * ports + 1])[:k].sum()
                busy = max(busy, first + k * delay + span[k * ports])
        end = max(end, head[p] + busy)
        if 1 < circuits <= ports and i % step == 0:
            until = slice(0, i + 1)
            for share in SHARES:
                one = apart_or_changed(
                    node[until],
                    circuit[until],
                    times,
                    ports,
                    delay,
                    share * span[circuits - 1],
                    of[:circuits],
                )
                end = max(end, one)
    return end


@compiled
def latest_side(
    ptr: IntArray,
    node: IntArray,
    circuit: IntArray,
    times: Times,
    ports: int,
    delay: float,
) -> tuple[int, float]:
    """Return which of many sides ends last, with the earliest end (:func:`latest_end`); -1 where none holds anything."""
    which, end = -1, 0.0
    for side in range(len(ptr) - 1):
        own = slice(ptr[side], ptr[side + 1])
        late = np.argsort(-times.head[node[own]], kind="mergesort")
        one = latest_end(node[own][late], circuit[own][late], times, ports, delay)
        if one > end:
            which, end = side, one
    return which, end


@compiled
def chain_heads(
    head: FloatArray,
    order: IntArray,
    pred_ptr: IntArray,
    pred_idx: IntArray,
    length: FloatArray,
    ends: Ends,
    ports: int,
    delay: float,
) -> None:
    """Raise heads in place: a task waits for the direct predecessors that share the ``ports`` of one side."""
    times = Times(head, length, np.zeros(len(head)))
    for j in order:
        first, last = pred_ptr[j], pred_ptr[j + 1]
        start = head[j]
        held = 0
        for e in range(first, last):
            p = pred_idx[e]
            start = max(start, head[p] + length[p])
            held += ends.side[0, p] >= 0
        if held > 1:
            node, side, circuit = (
                np.empty(2 * held, np.int32),
                np.empty(2 * held, np.int32),
                np.empty(2 * held, np.int32),
            )
            count = 0
            for e in range(first, last):
                p = pred_idx[e]
                if ends.side[0, p] >= 0:
                    for k in range(2):
                        node[count], side[count] = p, ends.side[k, p]
                        circuit[count] = ends.circuit[p]
                        count += 1
            late = np.argsort(-head[node], kind="mergesort")
            late = late[np.argsort(side[late], kind="mergesort")]
            node, side, circuit = node[late], side[late], circuit[late]
            begin = 0
            for c in range(1, count + 1):
                if c == count or side[c] != side[begin]:
                    own = slice(begin, c)
                    end = latest_end(node[own], circuit[own], times, ports, delay)
                    start, begin = max(start, end), c
        head[j] = start
