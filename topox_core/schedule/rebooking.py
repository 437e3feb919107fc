"""A schedule on fewer ports: what a lost port carried goes over those that are left, in the order of the schedule.

Serial generation on continuous time: transfers take their ports one after the other, each the pair
on which it can start first.
"""

import math
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Literal, NamedTuple

import numpy as np

from topox_core.errors import needed
from topox_core.model.cluster import Cluster
from topox_core.model.csr import ranks
from topox_core.model.execution import BookedPorts, Circuits, Execution
from topox_core.model.transfer_graph import TRANSFER
from topox_core.schedule.replay import replayed_on_circuits
from topox_core.schedule.settings import Settings


class LostPort(NamedTuple):
    """One end of circuits that is gone: the out- or the in-port of a server on a switch (half duplex: both)."""

    way: Literal["out", "in"]
    server: int
    switch: int
    port: int


def rebooked(
    execution: Execution,
    lost: frozenset[LostPort],
    settings: Settings,
) -> Execution:
    """Return an execution with the orders of another one that uses none of the lost ports.

    Parameters
    ----------
    execution
        Whose transfers hold circuits.
    settings
        Whether devices are held alone, transfers start on slots, and the iteration repeats.

    Raises
    ------
    InputError
        If a server that talks has no port left.
    """
    graph, cluster = execution.graph, execution.cluster
    length = execution.end_ms - execution.start_ms
    exclusive, slot_ms = settings.exclusive_devices, cluster.slot_ms if settings.on_slots else 0.0
    device, _ = graph.devices(exclusive)
    ports = _Ports(cluster, lost, slot_ms)
    start, device_end = np.zeros(len(graph)), dict[int, float]()
    rows: list[tuple[int, int, int, int, bool]] = []
    for j in np.lexsort((ranks(graph.order), execution.start_ms)).tolist():
        waits = graph.pred_idx[graph.pred_ptr[j] : graph.pred_ptr[j + 1]]
        ready = float((start[waits] + length[waits]).max(initial=0.0))
        if graph.kind[j] == TRANSFER and length[j] > 0:
            ends = int(graph.source[j]), int(graph.destination[j])
            ready, booked = ports.book(ends, ready, float(length[j]))
            rows.append((j, *booked))
        elif device[j] >= 0 and length[j] > 0:
            ready = max(ready, device_end.get(device[j], 0.0))
            device_end[device[j]] = ready + float(length[j])
        start[j] = ready
    node, switch, out_port, in_port = np.array([r[:4] for r in rows], np.int32).reshape(-1, 4).T
    changed = np.array([row[4] for row in rows], np.bool_)
    booked_ports = BookedPorts(node, switch, out_port, in_port, changed)
    end = start + length
    circuits = Circuits.at(graph, booked_ports, start, end, ports.dark_ms)
    result = replace(execution, start_ms=start, end_ms=end, circuits=circuits)
    return replayed_on_circuits(result, cluster, settings, rounded=settings.on_slots)


_Port = tuple[str, int, int, int]  # way (both in half duplex), server, switch, port


@dataclass
class _Ports:
    """The ports that are left, what each held last and until when, and the places on the switches (eq. 7)."""

    cluster: Cluster
    lost: frozenset[LostPort]
    slot_ms: float
    held: dict[_Port, tuple[float, tuple[_Port, _Port, int]]] = field(default_factory=dict)
    places: dict[int, list[float]] = field(default_factory=dict)

    @property
    def dark_ms(self) -> float:
        """How long a port is dark that changes its circuit."""
        return self._on_slot(self.cluster.reconfiguration_ms)

    def _on_slot(self, time_ms: float) -> float:
        if not self.slot_ms:
            return time_ms
        return math.ceil(time_ms / self.slot_ms - 1e-9) * self.slot_ms

    def _of(self, way: Literal["out", "in"], server: int, switch: int) -> list[_Port]:
        """Return the ports of a server on a switch that are left, of those never used one."""
        half = self.cluster.duplex == "half"
        each = self.cluster.ports_per_server // self.cluster.switches
        ways: tuple[Literal["out", "in"], ...] = ("out", "in") if half else (way,)
        left: list[_Port] = [
            ("" if half else way, server, switch, port)
            for port in range(each)
            if not any(LostPort(one, server, switch, port) in self.lost for one in ways)
        ]
        used = [port for port in left if port in self.held]
        return used + [port for port in left if port not in self.held][:1]

    def book(
        self, ends: tuple[int, int], ready_ms: float, length_ms: float
    ) -> tuple[float, tuple[int, int, int, bool]]:
        """Book the earliest circuit of a transfer; return its start, and (switch, out-port, in-port, changed)."""
        best: tuple[float, int, float, _Port, _Port] | None = None
        for switch in range(self.cluster.switches):
            pairs = product(self._of("out", ends[0], switch), self._of("in", ends[1], switch))
            for out_port, in_port in pairs:
                option = self._option(out_port, in_port, ends, ready_ms)
                if best is None or option[:3] < best[:3]:
                    best = option
        start_ms, state, _, out_port, in_port = needed(
            best,
            f"server {ends[0]} can no longer reach server {ends[1]}: no switch has a port of both",
            file="failure",
        )
        end_ms = start_ms + length_ms
        self.held[out_port] = self.held[in_port] = end_ms, (out_port, in_port, ends[0])
        self._take_place(out_port[2], start_ms, state == 2, end_ms)
        return start_ms, (out_port[2], out_port[3], in_port[3], state == 2)

    def _option(
        self, out_port: _Port, in_port: _Port, ends: tuple[int, int], ready_ms: float
    ) -> tuple[float, int, float, _Port, _Port]:
        """Return start, state (0 the circuit stands, 1 unused, 2 changed) and idle time of a pair of ports."""
        held = [self.held[port] for port in (out_port, in_port) if port in self.held]
        changed = any(circuit != (out_port, in_port, ends[0]) for _, circuit in held)
        state = 2 if changed else 0 if held else 1
        idle_ms = max((end_ms for end_ms, _ in held), default=0.0)
        set_up_ms = max(idle_ms, ready_ms - (self.dark_ms if changed else 0.0))
        idle_ms = max(idle_ms, self._place_free(out_port[2], set_up_ms))
        start_ms = self._on_slot(max(ready_ms, idle_ms + (self.dark_ms if changed else 0.0)))
        return start_ms, state, -idle_ms, out_port, in_port

    def _place_free(self, switch: int, by_ms: float) -> float:
        """Return when a place on a switch is free; 0 where eq. 7 cannot bind or one is free by then."""
        room = self.cluster.switch_limit
        taken = self.places.get(switch, [])
        if not room or len(taken) < room or min(taken) <= by_ms:
            return 0.0
        return min(taken)

    def _take_place(self, switch: int, start_ms: float, changed: bool, end_ms: float) -> None:
        room = self.cluster.switch_limit
        if not room:
            return
        taken = self.places.setdefault(switch, [])
        setup_ms = start_ms - (self.dark_ms if changed else 0.0)
        if len(taken) >= room:
            free = [time for time in taken if time <= setup_ms + 1e-9]
            taken.remove(max(free) if free else min(taken))
        taken.append(end_ms)
