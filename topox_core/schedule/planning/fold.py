"""Folding: tasks that cannot be told apart become one task of a smaller problem, whose schedules all unfold.

docs/folding.md proves what is relied on here. The smaller problem (the quotient) is sound for any
partition of the tasks; a partition that colour refinement made is also faithful: its bounds by
critical path and loads are those of the whole.
"""

from dataclasses import dataclass, fields, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from topox_core.model.arrays.csr import (
    entries_of,
    grouped,
    pointer_of,
    ranks,
    row_of_entry,
    transposed,
)
from topox_core.schedule.circuits.held_ports import Booking
from topox_core.schedule.kernels.colouring import colour_slots
from topox_core.schedule.kernels.refinement import (
    Surroundings,
    first_fit,
    gather,
    joined,
    sweep,
)
from topox_core.schedule.problem import Int, Int32, Problem, SwitchNetwork

FOLD_ABOVE = 500  # tasks; below, the whole is searched as fast
MIN_RATIO = 3  # the quotient must be so many times smaller
MAX_PARTS = 256  # that one orbit may be cut into


@dataclass(frozen=True)
class Folding:
    """A problem folded: ``problem`` is the quotient, ``orbit`` the quotient's task that each task starts with.

    The quotient has a network where its real ports stand for those of the whole: what books them
    unfolds as well.
    """

    problem: Problem
    orbit: Int32

    @property
    def words(self) -> str:
        """What was folded, in words: the equal copies that run side by side are orbits as large as that of most tasks."""
        size = np.bincount(self.orbit)
        replicas = int(np.argmax(np.bincount(size, weights=size)))
        return (
            f"{replicas:,} equal replicas, {self.problem.n:,} tasks instead of {len(self.orbit):,}"
        )

    def unfolded(self, start: Int) -> Int:
        """Return the whole problem's start ticks: every task starts with its orbit."""
        return start[self.orbit]

    def unfolded_booking(self, booking: Booking) -> Booking:
        """Return the whole problem's circuits: every transfer on the switch and the ports of its orbit's."""
        row_of = np.full(self.problem.n, -1, np.int64)
        row_of[booking.node] = np.arange(len(booking.node))
        node = np.flatnonzero(row_of[self.orbit] >= 0).astype(np.int32)
        row = row_of[self.orbit[node]]
        columns = [getattr(booking, one.name)[row] for one in fields(booking)[1:]]
        return Booking(node, *columns)


def fold(
    problem: Problem, least: float = MIN_RATIO, dark_slots: int | None = None
) -> Folding | None:
    """Return the folding of a problem, or None if its quotient is not ``least`` times smaller.

    Also None for a plain RCPSP, for shared circuits (eq. 6 as printed: whether two transfers need
    one circuit or two is no matter of counting), and where no schedule exists. Given ``dark_slots``
    (continuous circuits), the quotient has a network of its own if the whole's ports fold.
    """
    if problem.network is None or problem.shares or problem.n == 0:
        return None
    most = int(problem.n / least)
    orbit = _refined(problem, np.zeros(problem.n, np.int32), most)
    for cut in (partial(_by_room, ports=False), _by_ports, _by_room):
        part = None if orbit is None else cut(problem, orbit)
        if orbit is None or part is None:
            return None
        if part.any():
            orbit = _cut(problem, orbit, part, most)
    if orbit is None:
        return None
    folding = _folding(problem, orbit)
    if folding is None or dark_slots is None:
        return folding
    return replace(
        folding, problem=replace(folding.problem, network=_lifted(problem, orbit, dark_slots))
    )


def _cut(problem: Problem, orbit: Int32, part: Int32, most: int) -> Int32 | None:
    """Return the orbits cut into parts and refined again, or just cut where refining goes too far; None if that does, too."""
    finer = _numbered(orbit.astype(np.int64) * (int(part.max()) + 1) + part)
    again = _refined(problem, finer, most)
    if again is None and int(finer.max()) < most:
        return finer
    return again


def _refined(problem: Problem, orbit: Int32, most: int) -> Int32 | None:
    """Return the coarsest equitable partition within ``orbit``, numbered by first tasks; None if it has more than ``most``.

    A sweep down and one up take in whole pasts and futures at once, so that a few rounds reach the
    fixed point.
    """
    p, around = problem, surroundings(problem)
    looks = np.stack([orbit, p.duration, p.on_grid], axis=1).astype(np.int64)
    alike = np.unique(looks, axis=0, return_inverse=True)[1]
    colour = _numbered(alike).astype(np.uint64) + np.uint64(1)
    rows = np.append(p.capacity, np.zeros(p.devices)).astype(np.uint64)  # no port is like a device
    count = 0
    while True:
        gather(around, colour, rows)
        sweep(p.order, around, colour, rows)
        sweep(p.order[::-1].copy(), around, colour, rows)
        orbits = len(np.unique(colour))
        if orbits > most:
            return None
        now = orbits + len(np.unique(rows))
        if now == count:
            return _numbered(colour)
        count = now


def surroundings(problem: Problem) -> Surroundings:
    """Return what a task's colour looks at; tasks of no time hold nothing."""
    p = problem
    task, row, amount = p.uses
    lasts = p.duration[task] > 0
    return Surroundings(
        p.pred_ptr,
        p.pred_idx,
        p.succ_ptr,
        p.succ_idx,
        pointer_of(task[lasts], p.n),
        row[lasts],
        amount[lasts].astype(np.int32),
    )


def _numbered(key: NDArray[np.integer]) -> Int32:
    """Return equal keys as equal numbers, 0, 1, ... in the order of first sight."""
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    numbers: Int32 = ranks(np.argsort(first))[place.reshape(-1)]
    return numbers


def _by_ports(problem: Problem, orbit: Int32) -> Int32 | None:
    """Return parts in which every server sends at most once and receives at most once.

    An orbit of transfers is a bipartite multigraph, senders by receivers; where all have one
    degree, as in an all-to-all, its colours are perfect matchings (Koenig), so that the parts are
    as alike as the orbit was.
    """
    network = problem.switch_network
    part = np.zeros(problem.n, np.int32)
    carried = np.flatnonzero(problem.on_grid & (problem.duration > 0))
    if not len(carried):
        return part
    group = _numbered(orbit[carried])
    talking, servers = np.unique(
        np.concatenate([network.source[carried], network.destination[carried]]),
        return_inverse=True,
    )
    ends = servers.reshape(2, -1).astype(np.int32)
    degree = np.zeros(int(group.max()) + 1, np.int64)
    for end in ends:
        code, times = np.unique(group.astype(np.int64) * len(talking) + end, return_counts=True)
        np.maximum.at(degree, code // len(talking), times)
    for colours in np.unique(degree[degree > 1]).tolist():
        here = np.flatnonzero(degree[group] == colours)
        moment = group[here].astype(np.int64)
        edge, colour, _, _ = colour_slots(
            ends[:, here], moment, moment + 1, len(talking), colours, 1, len(talking)
        )
        part[carried[here[edge]]] = colour
    return part


def _by_room(problem: Problem, orbit: Int32, ports: bool = True) -> Int32 | None:
    """Return parts that devices and resources have room for; None if there are too many, or a task fits nowhere.

    Without ``ports`` so that no part holds a device twice.
    """
    around = surroundings(problem)
    if not ports:
        around = around._replace(amount=around.amount * (around.row >= len(problem.capacity)))
    tasks = np.arange(problem.n, dtype=np.int32)
    pointer, members = grouped(orbit, tasks, int(orbit.max()) + 1)
    part = first_fit(pointer, members, around, problem.rooms, MAX_PARTS)
    return None if part.min() < 0 else part


def _folding(problem: Problem, orbit: Int32) -> Folding | None:
    """Return the quotient by a partition whose parts can each run at once; None if it would go round in circles."""
    p = problem
    orbits = int(orbit.max()) + 1
    _, first = np.unique(orbit, return_index=True)
    waits = np.unique(orbit[row_of_entry(p.pred_ptr)].astype(np.int64) * orbits + orbit[p.pred_idx])
    pred_ptr, pred_idx = grouped(waits // orbits, (waits % orbits).astype(np.int32), orbits)
    succ_ptr, succ_idx = transposed(pred_ptr, pred_idx, orbits)
    device, device_names = _devices(p, orbit, orbits)
    demand_ptr, demand_resource, demand_amount, kept, resource_names = _resources(p, orbit, orbits)
    quotient = replace(
        p,
        duration=p.duration[first],
        on_grid=p.on_grid[first],
        device=device,
        capacity=p.capacity[kept],
        demand_ptr=demand_ptr,
        demand_resource=demand_resource,
        demand_amount=demand_amount,
        server_ports=p.server_ports[kept],
        pair=np.full(orbits, -1, np.int32),
        pred_ptr=pred_ptr,
        pred_idx=pred_idx,
        succ_ptr=succ_ptr,
        succ_idx=succ_idx,
        device_names=device_names,
        resource_names=resource_names,
        task_names=tuple(p.task_names[j] for j in first.tolist()),
        network=None,
    )
    return Folding(quotient, orbit) if len(quotient.order) == orbits else None


def _devices(problem: Problem, orbit: Int32, orbits: int) -> tuple[Int32, tuple[str, ...]]:
    """Return each orbit's device and the devices' names: devices that hold tasks of one orbit become one."""
    held = np.flatnonzero((problem.device >= 0) & (problem.duration > 0))
    device = np.full(orbits, -1, np.int32)
    if not len(held):
        return device, ()
    joint = joined(
        (problem.devices + orbit[held]).astype(np.int32),
        problem.device[held],
        problem.devices + orbits,
    )
    roots, number = np.unique(joint[problem.device[held]], return_inverse=True)
    device[orbit[held]] = number
    _, one = np.unique(problem.device[held], return_index=True)
    many = np.bincount(number[one], minlength=len(roots))
    return device, tuple(
        _alike(problem.device_names[d], m)
        for d, m in zip(roots.tolist(), many.tolist(), strict=True)
    )


def _resources(
    problem: Problem, orbit: Int32, orbits: int
) -> tuple[Int32, Int32, Int32, Int, tuple[str, ...]]:
    """Return (demand_ptr, resource, amount, kept, names): every resource's use by orbits, equal ones once.

    A resource that all orbits together cannot fill is left out; ``kept`` are the numbers of the others.
    """
    p = problem
    owner = np.repeat(orbit, np.diff(p.demand_ptr)).astype(np.int64)
    lasts = np.repeat(p.duration > 0, np.diff(p.demand_ptr))
    code, place = np.unique(
        p.demand_resource[lasts].astype(np.int64) * orbits + owner[lasts], return_inverse=True
    )
    amount = np.bincount(place, weights=p.demand_amount[lasts], minlength=len(code)).astype(
        np.int64
    )
    resource, user = code // orbits, code % orbits
    full = np.bincount(resource, weights=amount, minlength=len(p.capacity)) > p.capacity
    # Rows as bytes are compared whole, so that two resources are one only if every use of theirs
    # is.
    edges = pointer_of(resource, len(p.capacity))
    known: dict[bytes, int] = {}
    many: list[int] = []
    kept: list[int] = []
    row = np.stack([user, amount], axis=1)
    for r in np.flatnonzero(full).tolist():
        key = p.capacity[r].tobytes() + row[edges[r] : edges[r + 1]].tobytes()
        number = known.setdefault(key, len(known))
        if number == len(kept):
            kept.append(r)
            many.append(0)
        many[number] += 1
    rows = np.array(kept, np.int64)
    entry = entries_of(edges, rows)
    new = np.repeat(np.arange(len(kept), dtype=np.int32), np.diff(edges)[rows])
    pointer, by_user = grouped(user[entry], np.arange(len(entry)), orbits)
    return (
        pointer,
        new[by_user],
        amount[entry][by_user].astype(np.int32),
        rows,
        tuple(_alike(p.resource_names[r], m) for r, m in zip(kept, many, strict=True)),
    )


def _lifted(problem: Problem, orbit: Int32, dark_slots: int) -> SwitchNetwork | None:
    """Return the network of the quotient, in which a server stands for all that send (or receive) an orbit together.

    None where its ports would not stand for theirs: half duplex, a total that may bind on a switch,
    an orbit with two transfers at one port, or, with a delay, one circuit of the quotient that is
    several of the whole.
    """
    whole = problem.switch_network
    if whole.half_duplex or whole.circuits_per_switch < whole.servers * whole.ports_on_switch:
        return None
    carried = np.flatnonzero(problem.on_grid & (problem.duration > 0))
    orbits = int(orbit.max()) + 1
    group = orbit[carried].astype(np.int64)
    ends = []
    for server in (whole.source[carried], whole.destination[carried]):
        if len(np.unique(group * whole.servers + server)) < len(carried):
            return None
        joint = joined(
            (whole.servers + group).astype(np.int32),
            server.astype(np.int32),
            whole.servers + orbits,
        )
        end = np.full(orbits, -1, np.int32)
        end[group] = joint[server]
        ends.append(end)
    source, destination = ends
    if dark_slots:
        pair = source[group].astype(np.int64) * whole.servers + destination[group]
        _, place = np.unique(pair, return_inverse=True)
        circuit = np.unique(
            np.stack([place.reshape(-1), whole.source[carried], whole.destination[carried]]), axis=1
        )
        if (np.bincount(group)[group] < np.bincount(circuit[0])[place.reshape(-1)]).any():
            return None
    return replace(whole, source=source, destination=destination)


def _alike(name: str, many: int) -> str:
    return name if many == 1 else f"{name} and {many - 1:,} alike"
