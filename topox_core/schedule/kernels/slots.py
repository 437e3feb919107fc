"""How many circuits each row of ports holds in every slot, a bit a slot, and the first stretch that is free in several rows.

Plane 0 tells which slots are full. The planes after it are the digits of a binary counter a slot,
lowest first, which begins so high that its overflow means full: booking a stretch adds one to all
of its slots at once, by bitwise carries, where a count a slot would take a step for each.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from topox_core.compiled import WITHOUT, compiled, compiled_in_place, written_out
from topox_core.schedule.problem import Int, Int32

Bits = NDArray[np.uint64]
WORD = 64
_NONE, _ONE, _LAST, _ALL = np.uint64(0), np.uint64(1), np.uint64(63), np.uint64(2**64 - 1)


class Held(NamedTuple):
    """The planes of each row, words of 64 slots (row, word, plane), and how many digits each row counts with."""

    bits: Bits
    digits: Int


def _lowest_bit(_context: Any, _word: Any) -> Any:
    """Return the number of the lowest bit of a word that is set (one must be)."""

    def generate(_lowering: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


def _lowest_bit_plainly(word: Any) -> int:
    return (int(word) & -int(word)).bit_length() - 1


lowest_bit = (
    _lowest_bit_plainly if WITHOUT else cast("Callable[[Any], int]", intrinsic(_lowest_bit))
)


@compiled
def nothing_held(capacity: Int32, slots: int) -> Held:
    """Return rows of so many circuits each, without any in the first ``slots`` slots."""
    digits = np.zeros(len(capacity), np.int64)
    for r in range(len(capacity)):
        while (1 << digits[r]) < capacity[r]:
            digits[r] += 1
    most = digits.max() if len(capacity) > 0 else 0
    bits = np.zeros((len(capacity), (slots >> 6) + 3, most + 1), np.uint64)
    for r in range(len(capacity)):
        ahead = (1 << digits[r]) - capacity[r]
        for k in range(digits[r]):
            if (ahead >> k) & 1:
                bits[r, :, k + 1] = _ALL
    return Held(bits, digits)


@written_out
def book_short(bits: Bits, row: int, digits: int, first: int, slots: int) -> None:
    """Book one circuit more of a row from slot ``first`` on, for 64 slots at most: in two words, whether it needs them or not."""
    word, offset = first >> 6, np.uint64(first & 63)
    mask = _ALL >> np.uint64(WORD - slots)
    low, high = mask << offset, (mask >> _ONE) >> (_LAST - offset)
    for k in range(1, digits + 1):
        digit, next_digit = bits[row, word, k], bits[row, word + 1, k]
        bits[row, word, k], bits[row, word + 1, k] = digit ^ low, next_digit ^ high
        low &= digit
        high &= next_digit
    bits[row, word, 0] |= low
    bits[row, word + 1, 0] |= high


@compiled_in_place
def book(bits: Bits, row: int, digits: int, first: int, slots: int) -> None:
    """Book one circuit more of a row from slot ``first`` on."""
    while slots > WORD:
        book_short(bits, row, digits, first, WORD)
        first += WORD
        slots -= WORD
    book_short(bits, row, digits, first, slots)


@written_out
def first_free(
    bits: Bits, rows: Int32, lo: int, hi: int, first: int, slots: int, horizon: int
) -> int:
    """Return the first slot from ``first`` on with ``slots`` slots free in all rows ``rows[lo:hi]``, or -1 past the horizon.

    Up to 64 slots are looked for in a word that begins where the stretch would: folding the free
    slots onto themselves leaves those that as many free ones follow.
    """
    if slots > WORD:
        return first_free_long(bits, rows, lo, hi, first, slots, horizon)
    s = first
    while s + slots <= horizon:
        word, offset = s >> 6, np.uint64(s & 63)
        full = _NONE
        for e in range(lo, hi):
            r = rows[e]
            full |= (bits[r, word, 0] >> offset) | (
                (bits[r, word + 1, 0] << _ONE) << (_LAST - offset)
            )
        begins, many = ~full, 1
        while many < slots:
            more = min(many, slots - many)
            begins &= begins >> np.uint64(more)
            many += more
        if begins != 0:
            s += lowest_bit(begins)
            return s if s + slots <= horizon else -1
        s += WORD + 1 - slots
    return -1


@compiled_in_place
def full_words(bits: Bits, rows: Int32, lo: int, hi: int, word: int) -> Any:
    """Return the bits of the slots that are full in one of the rows ``rows[lo:hi]``."""
    full = bits[rows[lo], word, 0]
    for e in range(lo + 1, hi):
        full |= bits[rows[e], word, 0]
    return full


@compiled_in_place
def first_free_long(
    bits: Bits, rows: Int32, lo: int, hi: int, first: int, slots: int, horizon: int
) -> int:
    """Return what :func:`first_free` does, for any number of slots: word by word."""
    s = first
    while True:
        end = s + slots
        if end > horizon:
            return -1
        u, met = s, -1
        while u < end:
            full = full_words(bits, rows, lo, hi, u >> 6) >> np.uint64(u & 63)
            if full != 0:
                u += lowest_bit(full)
                if u < end:
                    met = u
                break
            u = ((u >> 6) + 1) << 6
        if met < 0:
            return s
        u = met
        while u < horizon:
            free = ~full_words(bits, rows, lo, hi, u >> 6) >> np.uint64(u & 63)
            if free != 0:
                u += lowest_bit(free)
                break
            u = ((u >> 6) + 1) << 6
        s = u
