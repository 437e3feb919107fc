"""Slots of rows by bits: a counter's overflow says full, and the first free stretch is that of trying every slot."""

import numpy as np
import pytest

from topox_core.schedule.kernels.slots import book, first_free, nothing_held

HORIZON = 300
EVERY_ROW = np.arange(3, dtype=np.int32)


def tried_slot_by_slot(count, capacity, rows, first, slots):
    for s in range(first, HORIZON - slots + 1):
        if all((count[r, s : s + slots] < capacity[r]).all() for r in rows):
            return s
    return -1


@pytest.mark.parametrize("capacity", [(1, 1, 1), (1, 2, 3), (4, 5, 8), (7, 1, 2)])
@pytest.mark.parametrize("longest", [4, 64, 130])
def test_booking_where_the_first_free_stretch_is_keeps_the_counts_of_every_slot(capacity, longest):
    random = np.random.default_rng(sum(capacity) + longest)
    held = nothing_held(np.array(capacity, np.int32), HORIZON)
    count = np.zeros((3, HORIZON), int)
    for _ in range(400):
        slots, first = int(random.integers(1, longest + 1)), int(random.integers(0, HORIZON))
        lo, hi = sorted(random.choice(4, 2, replace=False).tolist())
        s = first_free(held.bits, EVERY_ROW, lo, hi, first, slots, HORIZON)
        assert s == tried_slot_by_slot(count, capacity, range(lo, hi), first, slots)
        if s >= 0:
            for row in range(lo, hi):
                book(held.bits, row, held.digits[row], s, slots)
                count[row, s : s + slots] += 1


def test_a_row_is_full_once_as_many_circuits_as_it_has_are_booked():
    held = nothing_held(np.array([3], np.int32), HORIZON)
    for booked in range(3):
        assert first_free(held.bits, EVERY_ROW, 0, 1, 10, 70, HORIZON) == 10, booked
        book(held.bits, 0, held.digits[0], 60, 80)
    assert first_free(held.bits, EVERY_ROW, 0, 1, 10, 50, HORIZON) == 10
    assert first_free(held.bits, EVERY_ROW, 0, 1, 10, 70, HORIZON) == 140
