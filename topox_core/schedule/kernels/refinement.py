"""Colour refinement of tasks and of what they hold together, and the parts that a colour must be cut into.

Colours are 64-bit numbers. Equal neighbourhoods give equal colours; unequal ones give unequal
colours up to a collision of the mixing function, which can only make a folding coarser than it
should be.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topox_core.compiled import compiled
from topox_core.schedule.problem import Int, Int32

Colour = NDArray[np.uint64]

# Odd constants of splitmix64 (Steele, Lea and Flood, OOPSLA 2014, figure 13, variant 13), and three
# words that keep what comes before, what comes after and what is held apart.
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
BEFORE, AFTER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
HELD = np.uint64(0xD6E8FEB86659FD93)


class Surroundings(NamedTuple):
    """What a task's colour looks at: precedence both ways, and the rows it holds (CSR over tasks) with how much of each."""

    pred_ptr: Int32
    pred_idx: Int32
    succ_ptr: Int32
    succ_idx: Int32
    ptr: Int32
    row: Int32
    amount: Int32


@compiled
def mixed(x: Any) -> Any:
    """Return a word in which every bit of ``x`` has a say."""
    x = (x ^ (x >> np.uint64(30))) * FIRST
    x = (x ^ (x >> np.uint64(27))) * SECOND
    return x ^ (x >> np.uint64(31))


@compiled
def sweep(order: Int32, around: Surroundings, colour: Colour, row_colour: Colour) -> None:
    """Recolour the tasks one after the other, in place: by their own colour and the multisets of colours around them."""
    for i in range(len(order)):
        j = order[i]
        earlier = np.uint64(0)
        for e in range(around.pred_ptr[j], around.pred_ptr[j + 1]):
            earlier += mixed(colour[around.pred_idx[e]])
        later = np.uint64(0)
        for e in range(around.succ_ptr[j], around.succ_ptr[j + 1]):
            later += mixed(colour[around.succ_idx[e]])
        held = np.uint64(0)
        for e in range(around.ptr[j], around.ptr[j + 1]):
            held += mixed(row_colour[around.row[e]] + np.uint64(around.amount[e]) * HELD)
        word = mixed(colour[j] + BEFORE)
        word = mixed(word + earlier)
        word = mixed((word ^ AFTER) + later)
        colour[j] = mixed(word + held)


@compiled
def gather(around: Surroundings, colour: Colour, row_colour: Colour) -> None:
    """Recolour rows, in place: by their own colour and the multiset of their tasks' colours."""
    on_row = np.zeros(len(row_colour), np.uint64)
    for j in range(len(colour)):
        word = mixed(colour[j])
        for e in range(around.ptr[j], around.ptr[j + 1]):
            on_row[around.row[e]] += mixed(word + np.uint64(around.amount[e]))
    for r in range(len(row_colour)):
        row_colour[r] = mixed(mixed(row_colour[r]) + on_row[r])


@compiled
def first_fit(
    members_ptr: Int32, members: Int32, around: Surroundings, capacity: Int, most: int
) -> Int32:
    """Return the part of its orbit that each task goes to, so that all tasks of a part can run at once.

    ``members`` are the tasks of each orbit in compressed rows. In their order, each goes to the first
    part in which its rows have room; -1 for all if an orbit needs more than ``most`` parts.
    """
    part = np.zeros(len(members), np.int32)
    use = np.zeros((len(capacity), most), np.int32)
    for o in range(len(members_ptr) - 1):
        orbit = members[members_ptr[o] : members_ptr[o + 1]]
        for j in orbit:
            p, fits = -1, False
            while not fits:
                p, fits = p + 1, True
                if p == most:
                    part[:] = -1
                    return part
                for e in range(around.ptr[j], around.ptr[j + 1]):
                    r = around.row[e]
                    fits = fits and use[r, p] + around.amount[e] <= capacity[r]
            part[j] = p
            for e in range(around.ptr[j], around.ptr[j + 1]):
                use[around.row[e], p] += around.amount[e]
        for j in orbit:
            for e in range(around.ptr[j], around.ptr[j + 1]):
                use[around.row[e], part[j]] = 0
    return part


@compiled
def joined(a: Int32, b: Int32, count: int) -> Int32:
    """Return the least number of the component of each of ``count`` things, where ``a[i]`` and ``b[i]`` belong together."""
    root = np.arange(count).astype(np.int32)
    for i in range(len(a)):
        x, y = a[i], b[i]
        while root[x] != x:
            root[x] = root[root[x]]
            x = root[x]
        while root[y] != y:
            root[y] = root[root[y]]
            y = root[y]
        root[max(x, y)] = min(x, y)
    for x in range(count):
        root[x] = root[root[x]]
    return root
