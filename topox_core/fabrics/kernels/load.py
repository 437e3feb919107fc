"""Passes over a lowered graph in float milliseconds: heads, tails, and the load of whatever is shared."""

from __future__ import annotations

import numpy as np

from topox_core.compiled import compiled
from topox_core.model.transfer_graph import FloatArray, IntArray


@compiled
def heads(
    order: IntArray, pred_ptr: IntArray, pred_idx: IntArray, length: FloatArray
) -> FloatArray:
    """Return how early each node can start, if everything else takes ``length`` and waits for nothing shared."""
    earliest = np.zeros(len(order))
    for i in range(len(order)):
        j = order[i]
        for e in range(pred_ptr[j], pred_ptr[j + 1]):
            p = pred_idx[e]
            earliest[j] = max(earliest[j], earliest[p] + length[p])
    return earliest


@compiled
def tails(
    order: IntArray, succ_ptr: IntArray, succ_idx: IntArray, length: FloatArray
) -> FloatArray:
    """Return the least time between the end of each node and the end of the iteration."""
    after = np.zeros(len(order))
    for i in range(len(order) - 1, -1, -1):
        j = order[i]
        for e in range(succ_ptr[j], succ_ptr[j + 1]):
            s = succ_idx[e]
            after[j] = max(after[j], after[s] + length[s])
    return after


@compiled
def load_of(
    head: FloatArray, work: FloatArray, tail: FloatArray, limit: int
) -> tuple[float, float, float]:
    """Return the best of ``head + work + tail`` over head and tail thresholds, and these two.

    Whatever starts no earlier than a head and has at least a tail behind it must pass one after the
    other; at most ``limit`` thresholds of each kind are tried.
    """
    k = len(head)
    by_head = np.argsort(-head)
    stride = max(1, k // limit)
    levels = np.unique(np.sort(tail)[::stride])
    load = np.zeros(len(levels))
    best, best_head, best_tail = 0.0, 0.0, 0.0
    i = 0
    while i < k:
        stop = min(k, i + stride)
        # Nodes with the same head enter together, so that a threshold covers all of them.
        while stop < k and head[by_head[stop]] == head[by_head[stop - 1]]:
            stop += 1
        for e in range(i, stop):
            j = by_head[e]
            load[np.searchsorted(levels, tail[j], side="right") - 1] += work[j]
        i = stop
        threshold = head[by_head[stop - 1]]
        total = 0.0
        for level in range(len(levels) - 1, -1, -1):
            total += load[level]
            if total > 0.0 and threshold + total + levels[level] > best:
                best, best_head, best_tail = (
                    threshold + total + levels[level],
                    threshold,
                    levels[level],
                )
    return best, best_head, best_tail


@compiled
def largest_load(
    ptr: IntArray, head: FloatArray, work: FloatArray, tail: FloatArray, limit: int
) -> tuple[int, float, float, float]:
    """Return which of the rows ``ptr[r]:ptr[r + 1]`` has the largest :func:`load_of`, and that (-1 if none has work)."""
    which, best, best_head, best_tail = -1, 0.0, 0.0, 0.0
    for r in range(len(ptr) - 1):
        lo, hi = ptr[r], ptr[r + 1]
        if hi > lo:
            bound, first, last = load_of(head[lo:hi], work[lo:hi], tail[lo:hi], limit)
            if bound > best:
                which, best, best_head, best_tail = r, bound, first, last
    return which, best, best_head, best_tail


@compiled
def items_by_link(
    part_node: IntArray,
    part_class: IntArray,
    part_bytes: FloatArray,
    class_ptr: IntArray,
    class_link: IntArray,
    links: int,
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return in compressed rows, link by link, the nodes that cross it and the bytes of each."""
    ptr = np.zeros(links + 1, np.int32)
    for part in range(len(part_node)):
        c = part_class[part]
        for e in range(class_ptr[c], class_ptr[c + 1]):
            ptr[class_link[e] + 1] += 1
    for link in range(links):
        ptr[link + 1] += ptr[link]
    node = np.empty(ptr[links], np.int32)
    size = np.empty(ptr[links])
    filled = ptr[:-1].copy()
    for part in range(len(part_node)):
        c = part_class[part]
        for e in range(class_ptr[c], class_ptr[c + 1]):
            at = filled[class_link[e]]
            filled[class_link[e]] += 1
            node[at] = part_node[part]
            size[at] = part_bytes[part]
    return ptr, node, size
