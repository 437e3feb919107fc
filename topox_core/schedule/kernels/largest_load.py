"""Which of the things that nodes share one at a time has the largest load, in float milliseconds."""

from __future__ import annotations

from topox_core.compiled import compiled
from topox_core.model.loads import Load, load_bound
from topox_core.model.transfer_graph import FloatArray, IntArray


@compiled
def largest_load(
    ptr: IntArray, head: FloatArray, work: FloatArray, tail: FloatArray, limit: int
) -> tuple[int, float, float, float]:
    """Return which of the rows ``ptr[r]:ptr[r + 1]`` has the largest load bound, and that (-1 if none has work)."""
    which, best, best_head, best_tail = -1, 0.0, 0.0, 0.0
    for r in range(len(ptr) - 1):
        lo, hi = ptr[r], ptr[r + 1]
        if hi > lo:
            bound, first, last = load_bound(Load(head[lo:hi], work[lo:hi], tail[lo:hi]), limit)
            if bound > best:
                which, best, best_head, best_tail = r, bound, first, last
    return which, best, best_head, best_tail
