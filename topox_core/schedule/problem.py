"""The reduced problem: an RCPSP on two clocks, as arrays.

The switch index of the printed model is not needed while solving: a slot's circuits split into
switches whenever every server has at most its ports out and in and the total is at most
N_OCS * d_OCS (Koenig's theorem and de Werra's balancing), so eqs 7, 9 and 10 become capacity rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topox_core.model.arrays.csr import grouped, row_of_entry
from topox_core.model.arrays.passes import topological_order

Int = NDArray[np.int64]
Int32 = NDArray[np.int32]


@dataclass(frozen=True)
class SwitchNetwork:
    """What the printed model needs besides: who talks to whom, and the switches (eqs 6-10).

    ``source`` and ``destination`` run over tasks (-1 where a task is no transfer).
    ``ports_on_switch`` is the right-hand side of eqs 9 and 10: circuits a server may have on one
    switch, each way. ``ports_per_server`` is d_S of eq. 8; ``half_duplex`` tells whether it bounds
    in + out (as printed) or out and in apart. ``shares`` is eq. 6 as printed: one circuit for all
    of a pair. ``dark_slots`` is how long a port is dark before a circuit that it did not hold; None
    in the reduced problem, whose ports have no state. ``repeats``: a port is to end with the circuit
    that it began with, or come back to it before the next iteration needs it.
    """

    source: Int32
    destination: Int32
    servers: int
    switches: int
    circuits_per_switch: int
    ports_per_server: int
    ports_on_switch: int
    half_duplex: bool
    shares: bool
    dark_slots: int | None = None
    repeats: bool = False

    @property
    def ports_each_way(self) -> int:
        """Ports of a server on all switches, each way."""
        return self.switches * self.ports_on_switch

    @property
    def switches_may_fill(self) -> bool:
        """Whether eq. 7 can bind: a switch carries fewer circuits than its servers have ports on it."""
        most = self.servers * self.ports_on_switch // (2 if self.half_duplex else 1)
        return self.circuits_per_switch < most


@dataclass(frozen=True)
class Problem:
    """Tasks 0..n-1 with durations in ticks; ``ticks_per_slot`` ticks make a slot.

    Attributes
    ----------
    duration
        In ticks; of a task on the grid a multiple of ``ticks_per_slot``.
    on_grid
        Tasks that start on a slot boundary (transfers). Only these hold resources below.
    device
        Device number (0..devices-1) that a task holds alone, or -1.
    capacity
        Of each renewable resource, counted in circuits; used slot by slot.
    demand_ptr, demand_resource, demand_amount
        Which resources a task uses while active, in compressed rows.
    server_ports
        Which resources are ports of one server; the row of all switches together is not.
    pair
        With shared circuits: number of the (source, destination) pair, else -1. Transfers of one
        pair that are active together use the pair's resources once.
    pred_ptr, pred_idx, succ_ptr, succ_idx
        Precedence in compressed rows, both ways.
    device_names, resource_names
        Words for bounds, e.g. ``out-ports of server 3``.
    task_names
        Ids for messages.
    tick_ms
        Length of a tick.
    network
        The switches behind the capacities; None for a plain RCPSP (PSPLIB).
    """

    duration: Int
    on_grid: NDArray[np.bool_]
    device: Int32
    capacity: Int32
    demand_ptr: Int32
    demand_resource: Int32
    demand_amount: Int32
    server_ports: NDArray[np.bool_]
    pair: Int32
    pred_ptr: Int32
    pred_idx: Int32
    succ_ptr: Int32
    succ_idx: Int32
    ticks_per_slot: int
    tick_ms: float
    device_names: tuple[str, ...]
    resource_names: tuple[str, ...]
    task_names: tuple[str, ...]
    network: SwitchNetwork | None = None

    @property
    def n(self) -> int:
        """Number of tasks."""
        return len(self.duration)

    @cached_property
    def order(self) -> Int32:
        """The tasks, each after its predecessors; tasks on a cycle are missing."""
        return topological_order(self.pred_ptr, self.succ_ptr, self.succ_idx)

    @cached_property
    def uses(self) -> tuple[Int, Int32, Int]:
        """What tasks hold while they run, as (task, row, how much) by task: resources, and devices in the rows behind them."""
        held = np.flatnonzero(self.device >= 0)
        task = np.concatenate((row_of_entry(self.demand_ptr), held))
        row = np.concatenate((self.demand_resource, self.device[held] + len(self.capacity)))
        amount = np.concatenate((self.demand_amount, np.ones(len(held))))
        by_task = np.argsort(task, kind="stable")
        return (
            task[by_task],
            row[by_task].astype(np.int32),
            amount[by_task].astype(np.int64),
        )

    def held_by_row(self) -> Iterator[tuple[int, Int, Int]]:
        """Yield (row, tasks, how much) of each row of :attr:`uses`, the devices first."""
        task, row, amount = self.uses
        ports, rows = len(self.capacity), len(self.rooms)
        edges, order = grouped(row, np.arange(len(row)), rows)
        for r in (*range(ports, rows), *range(ports)):
            entries = order[edges[r] : edges[r + 1]]
            yield r, task[entries], amount[entries]

    @property
    def rooms(self) -> Int:
        """How much there is of each row of :attr:`uses`."""
        return np.concatenate((self.capacity, np.ones(self.devices))).astype(np.int64)

    @property
    def switch_network(self) -> SwitchNetwork:
        """The switches of a problem whose transfers take circuits.

        Raises
        ------
        ValueError
            If it has none (a plain RCPSP).
        """
        if self.network is None:
            raise ValueError("a plain RCPSP has no circuits")
        return self.network

    @property
    def slot_clock(self) -> Int:
        """Ticks that each task's start is a multiple of: transfers start on slots."""
        return np.where(self.on_grid, self.ticks_per_slot, 1).astype(np.int64)

    @property
    def devices(self) -> int:
        """Number of devices that run one task at a time."""
        return len(self.device_names)

    @property
    def dark_ticks(self) -> int | None:
        """Ticks that a port is dark before a circuit that it did not hold; None where ports have no state."""
        dark = None if self.network is None else self.network.dark_slots
        return None if dark is None else dark * self.ticks_per_slot

    @property
    def shares(self) -> bool:
        """Whether transfers of a pair may share a circuit (eq. 6 as printed)."""
        return bool((self.pair >= 0).any())

    def ms(self, ticks: int) -> float:
        """Ticks as milliseconds, free of accumulated rounding."""
        return round(ticks * self.tick_ms, 9)
