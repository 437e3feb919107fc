"""Heads of tasks from the transfers that end just before them at one server's ports (and tails, turned round)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from topox_core.compiled import compiled
from topox_core.model.transfer_graph import FloatArray, IntArray


class Ends(NamedTuple):
    """The two sides of each transfer: the ports that it holds there (-1: none), and the circuit that it needs.

    Both are of shape (2, nodes); two transfers at one side with different circuits need a change
    between them on one port. ``circuits`` is the number of distinct ones.
    """

    side: IntArray
    circuit: IntArray
    circuits: int


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
    """Raise heads in place: a task waits for the direct predecessors that share the ``ports`` of one side.

    For those with heads from h on it starts no sooner than h + (work + changes * delay) / ports,
    where only the first circuit of each port needs no change after h.
    """
    seen = np.zeros(ends.circuits + 1, np.int32)
    stamp = 0
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
                        circuit[count] = ends.circuit[k, p]
                        count += 1
            late = np.argsort(-head[node], kind="mergesort")
            by_side = late[np.argsort(side[late], kind="mergesort")]
            here, work, needed = -1, 0.0, 0
            for c in by_side:
                if side[c] != here:
                    here, work, needed = side[c], 0.0, 0
                    stamp += 1
                if seen[circuit[c]] != stamp:
                    seen[circuit[c]] = stamp
                    needed += 1
                work += length[node[c]]
                busy = work + max(0, needed - ports) * delay
                start = max(start, head[node[c]] + busy / ports)
        head[j] = start
