"""From a lowered graph and a cluster to the reduced problem: rounding to two clocks, ports to capacities."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topox_core.errors import InputError, refuse_if
from topox_core.model.arrays.csr import grouped
from topox_core.model.cluster import Cluster
from topox_core.model.transfer_graph import (
    TRANSFER,
    FloatArray,
    TransferGraph,
    durations_ms,
)
from topox_core.schedule.bounds.best_bound import Bound, best_bound
from topox_core.schedule.problem import Int, Int32, Problem, SwitchNetwork
from topox_core.schedule.settings import Settings

MAX_SLOTS = 1_000_000
MAX_PROFILE_CELLS = 200_000_000  # resources x slots, four bytes each
TICKS_PER_SLOT = (1, 2, 4, 5, 8, 10, 16, 20, 25, 40, 50, 80, 100, 125, 200, 250, 400, 500, 1000)
MAX_RAISED = 0.01  # the fraction by which the automatic tick may raise the cheap bound
UNROUNDED = 1_000_000  # ticks a slot that stand for "not rounded"
TOLERANCE = 1e-9  # relative: 3.0000000000000004 slots are 3


@dataclass(frozen=True)
class Reduction:
    """The reduced problem and what rounding did to it.

    ``dark_slots`` is the reconfiguration delay in whole slots, as far as it delays a transfer;
    ``off_tick`` the problem whose durations are rounded to slots and not to ticks, ``off_slot`` the
    one whose durations are rounded to neither.
    """

    problem: Problem
    bound: Bound
    dark_slots: int
    off_tick: Problem
    off_slot: Problem

    @cached_property
    def rounding(self) -> float:
        """By how much the tick raises the cheap bound, as a fraction."""
        return _raised(self.problem, best_bound(self.problem, 0), best_bound(self.off_tick, 0))

    @cached_property
    def unrounded_bound_ms(self) -> float:
        """The cheap bound of durations rounded to neither tick nor slot."""
        return self.off_slot.ms(best_bound(self.off_slot, 0).ticks)


def ceil_units(duration_ms: FloatArray, unit_ms: float) -> Int:
    """Return durations rounded up to whole units; above zero at least one, zero stays zero."""
    raw = duration_ms / unit_ms
    units = np.ceil(raw - TOLERANCE * np.maximum(1.0, raw))
    return np.where(duration_ms > 0, np.maximum(units, 1.0), 0.0).astype(np.int64)


def ports_on_switch(cluster: Cluster, settings: Settings) -> int:
    """Return how many circuits a server may have on one switch, each way (right-hand side of eqs 9, 10)."""
    if settings.any_port:
        return 1
    refuse_if(
        (
            cluster.ports_per_server % cluster.switches,
            f"must be a multiple of switches ({cluster.switches}), so that ports are spread evenly (got "
            f"{cluster.ports_per_server}); the paper model lets any server use any switch",
        ),
        file="cluster",
        field="ports_per_server",
    )
    return cluster.ports_per_server // cluster.switches


def reduce(graph: TransferGraph, cluster: Cluster, settings: Settings) -> Reduction:
    """Return the reduced problem of a lowered graph.

    Parameters
    ----------
    graph, cluster, settings
        What to schedule, on what, and how the model is read.

    Raises
    ------
    InputError
        If ports cannot be cabled evenly, per-slot circuits are asked to pay a delay, the tick does
        not divide the slot, or the iteration has more slots than :data:`MAX_SLOTS`.
    """
    refuse_if(
        (
            settings.circuits == "per-slot" and cluster.reconfiguration_ms > 0,
            "per-slot circuits have no state that could pay a delay: set it to 0 or choose continuous circuits",
        ),
        file="cluster",
        field="reconfiguration_ms",
    )
    duration_ms = durations_ms(graph, cluster)
    _refuse_long_tasks(graph, duration_ms, cluster)
    skeleton = without_clock(graph, cluster, settings)
    dark_slots = _dark_slots(cluster)

    def rounded(ticks: int, slotted: bool = True) -> Problem:
        return _with_clock(skeleton, graph, duration_ms, cluster.slot_ms, ticks, slotted)

    off_tick = rounded(UNROUNDED)
    if settings.tick == "auto":
        reference = best_bound(off_tick, 0)
        _refuse_many_slots(skeleton, reference.ticks / UNROUNDED, cluster)
        for ticks in TICKS_PER_SLOT:
            problem = rounded(ticks)
            bound = best_bound(problem, 0)
            if _raised(problem, bound, reference) < MAX_RAISED:
                break
        if dark_slots:
            bound = best_bound(problem, dark_slots)
    else:
        tick_ms = cluster.slot_ms if settings.tick == "slot" else float(settings.tick)
        problem = rounded(_ticks_that_divide(tick_ms, cluster.slot_ms))
        bound = best_bound(problem, dark_slots)
        _refuse_many_slots(skeleton, bound.ticks / problem.ticks_per_slot, cluster)
    off_slot = rounded(UNROUNDED, slotted=False)
    return Reduction(problem, bound, dark_slots, off_tick, off_slot)


def _raised(problem: Problem, cheap: Bound, reference: Bound) -> float:
    """Return by how much a clock raises the cheap bound, as a fraction of the unrounded one."""
    exact = reference.ticks / UNROUNDED
    return cheap.ticks / problem.ticks_per_slot / exact - 1 if exact else 0.0


def _ticks_that_divide(tick_ms: float, slot_ms: float) -> int:
    ticks = round(slot_ms / tick_ms)
    refuse_if(
        (
            ticks < 1 or abs(ticks * tick_ms - slot_ms) > 1e-9 * slot_ms,
            f"must divide the slot of {slot_ms:g} ms (got {tick_ms:g})",
        ),
        (
            ticks > UNROUNDED,
            f"must be at least a millionth of the slot of {slot_ms:g} ms (got {tick_ms:g})",
        ),
        file="settings",
        field="tick",
    )
    return ticks


def _dark_slots(cluster: Cluster) -> int:
    slots = cluster.reconfiguration_ms / cluster.slot_ms
    most = MAX_SLOTS // cluster.switches
    refuse_if(
        (
            slots > most,
            f"must be at most {most:,} slots of {cluster.slot_ms:g} ms with {cluster.switches} switches (got {slots:.6g} slots); "
            "choose a longer slot",
        ),
        file="cluster",
        field="reconfiguration_ms",
    )
    return int(ceil_units(np.array([cluster.reconfiguration_ms]), cluster.slot_ms)[0])


def _refuse_long_tasks(graph: TransferGraph, duration_ms: FloatArray, cluster: Cluster) -> None:
    """Name the limit before anything is counted in slots: one task alone may be too long for whole numbers."""
    least = float(duration_ms.max(initial=0.0)) / cluster.slot_ms
    if least > MAX_SLOTS:
        longest = int(np.argmax(duration_ms))
        raise _too_many_slots(
            least,
            cluster,
            f" The longest task, {graph.ids[longest] or 'a lowered transfer'}, lasts "
            f"{duration_ms[longest]:g} ms.",
        )


def _refuse_many_slots(skeleton: Problem, least: float, cluster: Cluster) -> None:
    """Name the limits before memory is spent: ``least`` slots is what the bounds say the iteration must have."""
    if least > MAX_SLOTS:
        raise _too_many_slots(least, cluster, "")
    rows = len(skeleton.capacity) + int(skeleton.pair.max(initial=-1)) + 1
    refuse_if(
        (
            rows * 2 * least > MAX_PROFILE_CELLS,
            f"{rows:,} ports and shared circuits over at least {least:,.0f} slots need more than {MAX_PROFILE_CELLS:,} entries: "
            "choose a longer slot",
        ),
        file="cluster",
        field="slot_ms",
    )


def _too_many_slots(least: float, cluster: Cluster, longest: str) -> InputError:
    in_words = f"{least:,.0f}" if least < 1e15 else f"{least:.3g}"
    suggestion = float(f"{least * cluster.slot_ms / 10_000:.1g}")
    return InputError(
        f"the iteration has at least {in_words} slots of {cluster.slot_ms:g} ms (limit {MAX_SLOTS:,}); are units mixed up?"
        f"{longest} Try slot_ms {suggestion:g}",
        file="cluster",
        field="slot_ms",
    )


def without_clock(graph: TransferGraph, cluster: Cluster, settings: Settings) -> Problem:
    """Return the problem without its clock: devices, ports, pairs and precedence."""
    n = len(graph)
    device, places = graph.devices(settings.exclusive_devices)
    single = not any(d for _, d in places)
    device_names = tuple(
        f"the device of server {s}" if single else f"device {d} of server {s}" for s, d in places
    )
    network = SwitchNetwork(
        source=graph.source,
        destination=graph.destination,
        servers=cluster.servers,
        switches=cluster.switches,
        circuits_per_switch=cluster.ports_per_switch,
        ports_per_server=cluster.ports_per_server,
        ports_on_switch=ports_on_switch(cluster, settings),
        half_duplex=cluster.duplex == "half",
        shares=settings.share_circuits,
        repeats=settings.repeats,
    )
    pointer, resource, capacity, server_ports, names = _ports(graph, network)
    succ_ptr, succ_idx = graph.successors
    transfers = graph.kind == TRANSFER
    pair = np.full(n, -1, np.int32)
    if settings.share_circuits:
        pair[transfers] = pairs_that_repeat(
            graph.source[transfers].astype(np.int64) * cluster.servers
            + graph.destination[transfers]
        )
    return Problem(
        duration=np.zeros(n, np.int64),
        on_grid=transfers,
        device=device,
        capacity=capacity,
        demand_ptr=pointer,
        demand_resource=resource,
        demand_amount=np.ones(len(resource), np.int32),
        server_ports=server_ports,
        pair=pair,
        pred_ptr=graph.pred_ptr,
        pred_idx=graph.pred_idx,
        succ_ptr=succ_ptr,
        succ_idx=succ_idx,
        ticks_per_slot=1,
        tick_ms=cluster.slot_ms,
        device_names=device_names,
        resource_names=names,
        task_names=graph.ids,
        network=network,
    )


def pairs_that_repeat(code: Int) -> Int32:
    """Return the number of each transfer's pair; a pair's only transfer shares with nobody (-1)."""
    _, place, count = np.unique(code, return_inverse=True, return_counts=True)
    number = np.where(count > 1, np.cumsum(count > 1) - 1, -1)
    return number[place].astype(np.int32)


def _ports(
    graph: TransferGraph, network: SwitchNetwork
) -> tuple[Int32, Int32, Int32, NDArray[np.bool_], tuple[str, ...]]:
    """Return (demand_ptr, demand_resource, capacity, server_ports, names) of the port rows that can bind.

    Out and in: min(d_S, k * N_OCS) each (eqs 8-10); half duplex also in + out <= d_S (eq. 8 as
    printed); all together N_OCS * d_OCS (eq. 7). A row that fewer transfers use than it has ports
    never binds and is left out.
    """
    transfers = np.flatnonzero(graph.kind == TRANSFER).astype(np.int32)
    side = network.ports_on_switch * network.switches
    d_s = network.ports_per_server
    sides: list[tuple[Int32, Int32, int, str]] = []  # (transfers, server of each, capacity, name)
    source, destination = graph.source[transfers], graph.destination[transfers]
    if not (network.half_duplex and side >= d_s):
        each_way = side if network.half_duplex else min(side, d_s)
        sides.append((transfers, source, each_way, "out-ports of server {}"))
        sides.append((transfers, destination, each_way, "in-ports of server {}"))
    if network.half_duplex:
        ends = np.concatenate([source, destination])
        sides.append((np.tile(transfers, 2), ends, d_s, "ports of server {}"))
    rows: list[tuple[Int32, int, str]] = []  # the transfers that hold a port there, capacity, name
    at_once = 0
    for tasks, server, limit, name in sides:
        pointer, held = grouped(server, tasks, network.servers)
        count = np.diff(pointer)
        at_once = max(at_once, int(np.minimum(count, limit).sum()))
        rows += [
            (held[pointer[s] : pointer[s + 1]], limit, name.format(s))
            for s in np.flatnonzero(count > limit).tolist()
        ]
    servers = len(rows)
    total = network.switches * network.circuits_per_switch
    if at_once > total:
        rows.append((transfers, total, "all switches together"))
    owner = np.concatenate([transfers[:0], *(tasks for tasks, _, _ in rows)])
    numbers = np.arange(len(rows), dtype=np.int32)
    resource = np.repeat(numbers, [len(tasks) for tasks, _, _ in rows])
    pointer, resource = grouped(owner, resource, len(graph))
    capacity = np.array([limit for _, limit, _ in rows], np.int32)
    return pointer, resource, capacity, numbers < servers, tuple(name for *_, name in rows)


def _with_clock(
    skeleton: Problem,
    graph: TransferGraph,
    duration_ms: FloatArray,
    slot_ms: float,
    ticks: int,
    slotted: bool,
) -> Problem:
    """Round durations to ``ticks`` a slot, and transfers to whole slots (or not, for the unrounded bound)."""
    tick_ms = slot_ms / ticks
    transfers = graph.kind == TRANSFER
    in_ticks = (
        ceil_units(duration_ms, tick_ms)
        if slotted
        else np.floor(duration_ms / tick_ms).astype(np.int64)
    )
    if slotted:
        in_ticks = np.where(transfers, ceil_units(duration_ms, slot_ms) * ticks, in_ticks)
    return replace(
        skeleton, duration=in_ticks, ticks_per_slot=ticks if slotted else 1, tick_ms=tick_ms
    )
