"""The order of readiness: the one rule by which every fabric decides who goes first.

1. Who became ready earlier goes first. A task is ready when its last predecessor has ended.
2. Of those ready at the same time, the one that stands earlier in the lowered graph (its position in
   ``TransferGraph``, which follows the order of the user's file) goes first.
3. Nobody is interrupted, and nobody waits for somebody who is not ready yet.
4. A task of no length needs no device: it ends when it is ready.

Times that differ by less than ``TIE`` of their size are the same time: everything that ends then
has ended before anybody is chosen, so that rounding of floats never decides who goes first. The heap of
:mod:`topox_core.model.heap` keeps rules 1 and 2: by time, then by position.
"""

from __future__ import annotations

from topox_core.compiled import compiled

TIE = 1e-12


@compiled
def earlier(one: float, other: float) -> bool:
    """Return whether one time lies before the other by more than rounding."""
    return one < other - TIE * abs(other)
