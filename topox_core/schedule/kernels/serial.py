"""Serial schedule generation: tasks in sequence, each as early as its predecessors and resources allow."""

import numpy as np

from topox_core.compiled import compiled, written_out
from topox_core.schedule.kernels.slots import WORD, book, book_short, first_free, nothing_held
from topox_core.schedule.kernels.tasks import Tasks
from topox_core.schedule.problem import Int, Int32

FAR = 1 << 60  # past every slot
NOTHING = -2  # no circuit at all
FIRST, END, CIRCUIT, TASK = range(4)  # rows of bookings: first slot or tick, end, circuit, for whom


@written_out
def ended_by(booked: Int, base: int, count: int, start: int) -> int:
    """Return how many of a port's bookings, which are sorted, end by ``start``."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if booked[END, base + middle] > start:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def earliest_on_port(
    booked: Int,
    base: int,
    count: int,
    start: int,
    slots: int,
    held: int,
    dark: int,
    begins: tuple[int, int],
) -> int:
    """Return the first slot at or after ``start`` where a port can hold circuit ``held`` for ``slots`` slots.

    ``begins`` is what it holds at first and since when.
    """
    s = start
    i = ended_by(booked, base, count, start)
    while True:
        if i > 0:
            gap = 0 if booked[CIRCUIT, base + i - 1] == held else dark
            s = max(s, booked[END, base + i - 1] + gap)
        elif begins[0] != NOTHING and begins[0] != held:
            s = max(s, begins[1] + dark)
        if i == count:
            return s
        gap = 0 if booked[CIRCUIT, base + i] == held else dark
        if s + slots + gap <= booked[FIRST, base + i]:
            return s
        i += 1


@compiled
def insert(
    booked: Int, base: int, count: int, start: int, slots: int, held: int, task: int
) -> None:
    """Insert a booking in a port's sorted list (the caller raises its count)."""
    i = count
    while i > 0 and booked[FIRST, base + i - 1] > start:
        for row in range(4):
            booked[row, base + i] = booked[row, base + i - 1]
        i -= 1
    booked[FIRST, base + i] = start
    booked[END, base + i] = start + slots
    booked[CIRCUIT, base + i] = held
    booked[TASK, base + i] = task


@compiled
def hold_device(
    booked: Int, count: Int32, device: int, base: int, earliest: int, length: int
) -> int:
    """Book a device, a port without dark times, for the first gap of ``length`` ticks from ``earliest`` on; return the start."""
    t = earliest_on_port(booked, base, count[device], earliest, length, 0, 0, (NOTHING, 0))
    insert(booked, base, count[device], t, length, 0, 0)
    count[device] += 1
    return t


@compiled
def hold_counted(
    use: Int32,
    pair_use: Int32,
    first: int,
    slots: int,
    resource: Int32,
    amount: Int32,
    capacity: Int32,
    pair: int,
) -> int:
    """Hold resources for ``slots`` slots at or after ``first`` where they are free; return the first, or -1 past the horizon.

    For demands of any amount and circuits that a pair may share. Scans a candidate window from its
    last slot backwards and jumps past the last full slot found.
    """
    s, u = first, first + slots - 1
    while u >= s:
        if s + slots > use.shape[1]:
            return -1
        full = False
        if pair < 0 or pair_use[pair, u] == 0:
            for e in range(len(resource)):
                full = full or use[resource[e], u] + amount[e] > capacity[resource[e]]
        s, u = (u + 1, u + slots) if full else (s, u - 1)
    for u in range(s, s + slots):
        if pair >= 0:
            pair_use[pair, u] += 1
            if pair_use[pair, u] > 1:
                continue
        for e in range(len(resource)):
            use[resource[e], u] += amount[e]
    return s


@compiled
def ready_at(j: int, end: Int, pred_ptr: Int32, pred_idx: Int32) -> int:
    """Return when the last predecessor of task ``j`` ends."""
    t = 0
    for e in range(pred_ptr[j], pred_ptr[j + 1]):
        t = max(t, end[pred_idx[e]])
    return t


@compiled
def serial(sequence: Int32, tasks: Tasks, horizon: int) -> tuple[Int, int]:
    """Return (start ticks, makespan) of the serial scheme, or makespan -1 if ``horizon`` slots do not suffice.

    Kolisch (1996), serial method: the tasks of a ``sequence`` that keeps the precedence, one after
    the other, each as early as possible. With the edges turned round it schedules backwards in
    time: the slot grid is symmetric.

    Where slots are single ticks a device is a row of slots like any port: half the time of its
    bookings in a sorted list, since few jumps depend on the schedule.
    """
    # Taken apart here once: handing the record on to a function for every task costs ten times the
    # work itself.
    duration, slot, on_grid, plain = tasks.duration, tasks.slot, tasks.on_grid, tasks.plain
    ptr, row, amount, capacity = tasks.ptr, tasks.row, tasks.amount, tasks.capacity
    pred_ptr, pred_idx, pair, device_ptr = (
        tasks.pred_ptr,
        tasks.pred_idx,
        tasks.pair,
        tasks.device_ptr,
    )
    ports = len(capacity) - len(device_ptr) + 1
    rows = len(capacity) if plain and slot == 1 else ports
    bits, digits = nothing_held(capacity[:rows], horizon if plain else 0)
    use = np.zeros((0 if plain else ports, horizon), np.int32)
    pair_use = np.zeros((tasks.pairs, horizon if tasks.pairs > 0 else 0), np.int32)
    booked = np.zeros((4, device_ptr[-1]), np.int64)
    count = np.zeros(len(device_ptr) - 1, np.int32)
    end = np.zeros(len(sequence), np.int64)
    makespan = 0
    for i in range(len(sequence)):
        j = sequence[i]
        t = 0  # as ready_at, written out: the loop that a search spends most of its time in
        for e in range(pred_ptr[j], pred_ptr[j + 1]):
            t = max(t, end[pred_idx[e]])
        length, lo, hi, clock = duration[j], ptr[j], ptr[j + 1], 1
        if slot > 1 and on_grid[j]:
            t, length, clock = -(-t // slot), length // slot, slot
        if length > 0 and hi > lo:
            if plain and row[lo] < rows:
                t = first_free(bits, row, lo, hi, t, length, horizon)
                if t < 0:
                    return end, -1
                if length <= WORD:
                    for e in range(lo, hi):
                        book_short(bits, row[e], digits[row[e]], t, length)
                else:
                    for e in range(lo, hi):
                        book(bits, row[e], digits[row[e]], t, length)
            elif row[lo] < ports:
                held, many = row[lo:hi], amount[lo:hi]
                t = hold_counted(use, pair_use, t, length, held, many, capacity, pair[j])
                if t < 0:
                    return end, -1
            else:
                device = row[lo] - ports
                t = hold_device(booked, count, device, device_ptr[device], t, length)
        end[j] = t * clock + duration[j]
        makespan = max(makespan, end[j])
    return end - duration, makespan
