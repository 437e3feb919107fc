"""Which slots of a row of ports are full, a bit a slot, and the first stretch that is free in several rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from topox_core.compiled import compiled
from topox_core.schedule.problem import Int32

Bits = NDArray[np.uint64]
# de Bruijn's sequence: the top six bits of its product with a power of two tell the exponent.
_DE_BRUIJN = 0x03F79D71B4CB0A89
_PRODUCTS = [((_DE_BRUIJN << i) & (2**64 - 1)) >> 58 for i in range(64)]
_EXPONENT = np.array([_PRODUCTS.index(i) for i in range(64)], np.int64)
_MULTIPLIER = np.uint64(_DE_BRUIJN)
_SIX_BITS, _NONE, _ONE = np.uint64(58), np.uint64(0), np.uint64(1)


@compiled
def lowest_bit(word: Any) -> int:
    """Return the number of the lowest bit of a word that is set (one must be)."""
    return int(_EXPONENT[((word & (_NONE - word)) * _MULTIPLIER) >> _SIX_BITS])


@compiled
def bit_rows(rows: int, slots: int) -> Bits:
    """Return rows without a full slot."""
    return np.zeros((rows, (slots >> 6) + 2), np.uint64)


@compiled
def set_bit(bits: Bits, row: int, slot: int) -> None:
    """Note that a slot is full."""
    bits[row, slot >> 6] |= _ONE << np.uint64(slot & 63)


@compiled
def full_words(bits: Bits, rows: Int32, lo: int, hi: int, word: int) -> Any:
    """Return the bits of the slots that are full in one of the rows ``rows[lo:hi]``."""
    full = bits[rows[lo], word]
    for e in range(lo + 1, hi):
        full |= bits[rows[e], word]
    return full


@compiled
def first_free(
    bits: Bits, rows: Int32, lo: int, hi: int, first: int, slots: int, horizon: int
) -> int:
    """Return the first slot from ``first`` on with ``slots`` slots free in all rows ``rows[lo:hi]``, or -1 past the horizon."""
    s = first
    while True:
        end = s + slots
        if end > horizon:
            return -1
        u, met = s, -1
        while u < end:
            word = u >> 6
            full = full_words(bits, rows, lo, hi, word) >> np.uint64(u & 63)
            if full != 0:
                u += lowest_bit(full)
                if u < end:
                    met = u
                break
            u = (word + 1) << 6
        if met < 0:
            return s
        u = met
        while u < horizon:
            word = u >> 6
            free = ~full_words(bits, rows, lo, hi, word) >> np.uint64(u & 63)
            if free != 0:
                u += lowest_bit(free)
                break
            u = (word + 1) << 6
        s = u
