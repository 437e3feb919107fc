"""Heads of transfers that must wait for a set-up after others before them in the graph at the same ports."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from topox_core.compiled import compiled
from topox_core.schedule.kernels.tasks import Precedence
from topox_core.schedule.problem import Int, Int32

ALONE, PAIRS = 3, 3  # labels kept: enough to leave out one or two peers, and one of a pair
NOBODY = -1


class Sides(NamedTuple):
    """The transfers at each side of each server (CSR) and the peer of each, with its direction."""

    ptr: Int32
    task: Int32
    peer: Int32


@compiled
def keep_end(end: Int, peer: Int32, j: int, new_end: int, new_peer: int) -> None:
    """Keep the latest ends of ``j``'s labels with distinct peers, the latest first."""
    most = end.shape[1]
    for k in range(most):
        if peer[j, k] == new_peer:
            if new_end <= end[j, k]:
                return
            for m in range(k, most - 1):
                end[j, m], peer[j, m] = end[j, m + 1], peer[j, m + 1]
            peer[j, most - 1] = NOBODY
            break
    k = most - 1
    if peer[j, k] != NOBODY and end[j, k] >= new_end:
        return
    while k > 0 and (peer[j, k - 1] == NOBODY or end[j, k - 1] < new_end):
        end[j, k], peer[j, k] = end[j, k - 1], peer[j, k - 1]
        k -= 1
    end[j, k], peer[j, k] = new_end, new_peer


@compiled
def keep_pair(end: Int, first: Int32, second: Int32, j: int, new: tuple[int, int, int]) -> None:
    """Keep the latest end of a pair, and the latest of those without its first and without its second peer.

    These three have the latest end without any one peer among them.
    """
    ends, firsts, seconds = (
        np.empty(PAIRS + 1, np.int64),
        np.empty(PAIRS + 1, np.int32),
        np.empty(PAIRS + 1, np.int32),
    )
    for k in range(PAIRS):
        ends[k], firsts[k], seconds[k] = end[j, k], first[j, k], second[j, k]
        if firsts[k] == new[1] and seconds[k] == new[2] and ends[k] >= new[0]:
            return
    ends[PAIRS], firsts[PAIRS], seconds[PAIRS] = new[0], new[1], new[2]
    best = NOBODY
    for k in range(PAIRS + 1):
        if firsts[k] != NOBODY and (best == NOBODY or ends[k] > ends[best]):
            best = k
    for k in range(PAIRS):
        without = NOBODY if k == 0 else firsts[best] if k == 1 else seconds[best]
        kept = best if k == 0 else NOBODY
        if k > 0:
            for m in range(PAIRS + 1):
                if firsts[m] == NOBODY or firsts[m] == without or seconds[m] == without:
                    continue
                if kept == NOBODY or ends[m] > ends[kept]:
                    kept = m
        if kept == NOBODY:
            first[j, k] = NOBODY
        else:
            end[j, k], first[j, k], second[j, k] = ends[kept], firsts[kept], seconds[kept]


@compiled
def lag_heads(head: Int, edges: Precedence, sides: Sides, ports: int, lag: int) -> bool:
    """Raise heads, in place, by the set-ups that paths in the graph need at a side; return whether any rose.

    With one port a side, a transfer follows every ancestor with another peer after a set-up. With
    two, of three transfers on a path with three peers two share a port. More ports are left out.
    """
    order, pred_ptr, pred_idx, duration = (
        edges.order,
        edges.pred_ptr,
        edges.pred_idx,
        edges.duration,
    )
    n = len(order)
    peer_of = np.full(n, NOBODY, np.int32)
    end, peer = np.zeros((n, ALONE), np.int64), np.full((n, ALONE), NOBODY, np.int32)
    pair_end = np.zeros((n, PAIRS), np.int64)
    first, second = np.full((n, PAIRS), NOBODY, np.int32), np.full((n, PAIRS), NOBODY, np.int32)
    rose = False
    for r in range(len(sides.ptr) - 1):
        mine = sides.task[sides.ptr[r] : sides.ptr[r + 1]]
        peers = sides.peer[sides.ptr[r] : sides.ptr[r + 1]]
        if len(np.unique(peers)) <= ports:
            continue
        peer_of[mine] = peers
        peer[:] = NOBODY
        first[:] = NOBODY
        for j in order:
            h = head[j]
            for e in range(pred_ptr[j], pred_ptr[j + 1]):
                i = pred_idx[e]
                h = max(h, head[i] + duration[i])
                for k in range(ALONE):
                    if peer[i, k] == NOBODY:
                        break
                    keep_end(end, peer, j, end[i, k], peer[i, k])
                if ports == 2:
                    for k in range(PAIRS):
                        if first[i, k] != NOBODY:
                            keep_pair(
                                pair_end,
                                first,
                                second,
                                j,
                                (pair_end[i, k], first[i, k], second[i, k]),
                            )
            q = peer_of[j]
            if q != NOBODY:
                if ports == 1:
                    for k in range(ALONE):
                        if peer[j, k] != NOBODY and peer[j, k] != q:
                            h = max(h, end[j, k] + lag)
                            break
                else:
                    for k in range(PAIRS):
                        if first[j, k] != NOBODY and first[j, k] != q and second[j, k] != q:
                            h = max(h, pair_end[j, k] + lag)
            h = -(-h // edges.clock[j]) * edges.clock[j]
            if h > head[j]:
                head[j], rose = h, True
            if q != NOBODY:
                if ports == 2:
                    for k in range(ALONE):
                        if peer[j, k] != NOBODY and peer[j, k] != q:
                            keep_pair(pair_end, first, second, j, (end[j, k], peer[j, k], q))
                keep_end(end, peer, j, h + duration[j], q)
        peer_of[mine] = NOBODY
    return rose
