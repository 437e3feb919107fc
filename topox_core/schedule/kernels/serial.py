"""Serial schedule generation: tasks in sequence, each as early as its predecessors and resources allow."""

import numpy as np

from topox_core.compiled import compiled, written_out
from topox_core.schedule.kernels.slots import WORD, book, book_short, first_free, nothing_held
from topox_core.schedule.kernels.tasks import Rows, Tasks
from topox_core.schedule.problem import Int, Int32

FAR = 1 << 60  # past every slot
NOTHING = -2  # no circuit at all
FIRST, END, CIRCUIT = range(3)  # rows of bookings: first slot or tick, end, circuit


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
def insert(booked: Int, base: int, count: int, start: int, slots: int, held: int) -> None:
    """Insert a booking in a port's sorted list (the caller raises its count)."""
    i = count
    while i > 0 and booked[FIRST, base + i - 1] > start:
        for row in range(3):
            booked[row, base + i] = booked[row, base + i - 1]
        i -= 1
    booked[FIRST, base + i] = start
    booked[END, base + i] = start + slots
    booked[CIRCUIT, base + i] = held


@compiled
def hold_device(
    booked: Int, count: Int32, device: int, base: int, earliest: int, length: int
) -> int:
    """Book a device, a port without dark times, for the first gap of ``length`` ticks from ``earliest`` on; return the start."""
    t = earliest_on_port(booked, base, count[device], earliest, length, 0, 0, (NOTHING, 0))
    insert(booked, base, count[device], t, length, 0)
    count[device] += 1
    return t


@compiled
def fit_in_slots(
    use: Int32,
    pair_use: Int32,
    first: int,
    slots: int,
    resource: Int32,
    amount: Int32,
    capacity: Int32,
    pair: int,
) -> int:
    """Return the first slot at or after ``first`` where ``slots`` slots are free, or -1 past the horizon.

    For demands of any amount and circuits that a pair may share. Scans a candidate window from its
    last slot backwards and jumps past the last full slot found.
    """
    horizon = use.shape[1]
    s = first
    while True:
        if s + slots > horizon:
            return -1
        jumped = False
        u = s + slots - 1
        while u >= s:
            if pair < 0 or pair_use[pair, u] == 0:
                for e in range(len(resource)):
                    if use[resource[e], u] + amount[e] > capacity[resource[e]]:
                        jumped = True
                        break
            if jumped:
                s = u + 1
                break
            u -= 1
        if not jumped:
            return s


@compiled
def ready_at(j: int, start: Int, duration: Int, pred_ptr: Int32, pred_idx: Int32) -> int:
    """Return when the last predecessor of task ``j`` ends."""
    t = 0
    for e in range(pred_ptr[j], pred_ptr[j + 1]):
        p = pred_idx[e]
        t = max(t, start[p] + duration[p])
    return t


@compiled
def serial_in_slots(
    sequence: Int32, duration: Int, pred_ptr: Int32, pred_idx: Int32, rows: Rows, horizon: int
) -> tuple[Int, int]:
    """Return what :func:`serial` does where all keep to slots of one tick and a device is a row like any port.

    Few jumps that depend on the schedule, so that a processor guesses few of them wrong: half the
    time of bookings slot by slot and a device's in a sorted list.
    """
    ptr, row = rows.ptr, rows.row
    bits, digits = nothing_held(rows.capacity, horizon)
    end = np.zeros(len(sequence), np.int64)
    makespan = 0
    for i in range(len(sequence)):
        j = sequence[i]
        s = 0
        for e in range(pred_ptr[j], pred_ptr[j + 1]):
            s = max(s, end[pred_idx[e]])
        slots, lo, hi = duration[j], ptr[j], ptr[j + 1]
        if slots > 0 and hi > lo:
            s = first_free(bits, row, lo, hi, s, slots, horizon)
            if s < 0:
                return end, -1
            if slots <= WORD:
                for e in range(lo, hi):
                    book_short(bits, row[e], digits[row[e]], s, slots)
            else:
                for e in range(lo, hi):
                    book(bits, row[e], digits[row[e]], s, slots)
        end[j] = s + slots
        makespan = max(makespan, end[j])
    return end - duration, makespan


@compiled
def serial(sequence: Int32, tasks: Tasks, horizon: int) -> tuple[Int, int]:
    """Return (start ticks, makespan) of the serial scheme, or makespan -1 if ``horizon`` slots do not suffice.

    Kolisch (1996), serial method: the tasks of a ``sequence`` that keeps the precedence, one after
    the other, each as early as possible. With the edges turned round it schedules backwards in
    time: the slot grid is symmetric.
    """
    # Taken apart here once: handing the record on to a function for every task costs ten times the
    # work itself.
    duration, slot, on_grid = tasks.duration, tasks.slot, tasks.on_grid
    device, device_ptr, demand_ptr = tasks.device, tasks.device_ptr, tasks.demand_ptr
    resource, amount, capacity, pair = tasks.resource, tasks.amount, tasks.capacity, tasks.pair
    pred_ptr, pred_idx, plain = tasks.pred_ptr, tasks.pred_idx, tasks.plain
    if tasks.in_slots:
        return serial_in_slots(sequence, duration, pred_ptr, pred_idx, tasks.rows, horizon)
    use = np.zeros((0 if plain else len(capacity), horizon), np.int32)
    bits, digits = nothing_held(capacity, horizon if plain else 0)
    pair_use = np.zeros((tasks.pairs, horizon if tasks.pairs > 0 else 0), np.int32)
    booked = np.zeros((3, device_ptr[-1]), np.int64)
    count = np.zeros(len(device_ptr) - 1, np.int32)
    start = np.zeros(len(sequence), np.int64)
    makespan = 0
    for i in range(len(sequence)):
        j = sequence[i]
        t = ready_at(j, start, duration, pred_ptr, pred_idx)
        if on_grid[j]:
            s, slots = -(-t // slot), duration[j] // slot
            lo, hi = demand_ptr[j], demand_ptr[j + 1]
            if slots > 0 and hi > lo and plain:
                s = first_free(bits, resource, lo, hi, s, slots, horizon)
                if s < 0:
                    return start, -1
                for e in range(lo, hi):
                    book(bits, resource[e], digits[resource[e]], s, slots)
            elif slots > 0 and hi > lo:
                s = fit_in_slots(
                    use, pair_use, s, slots, resource[lo:hi], amount[lo:hi], capacity, pair[j]
                )
                if s < 0:
                    return start, -1
                for u in range(s, s + slots):
                    if pair[j] >= 0:
                        pair_use[pair[j], u] += 1
                        if pair_use[pair[j], u] > 1:
                            continue
                    for e in range(lo, hi):
                        use[resource[e], u] += amount[e]
            t = s * slot
        elif device[j] >= 0 and duration[j] > 0:
            t = hold_device(booked, count, device[j], device_ptr[device[j]], t, duration[j])
        start[j] = t
        makespan = max(makespan, t + duration[j])
    return start, makespan
