"""Where things sit on a Gantt chart: lanes by server, its devices first, then its out-ports."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topox_core.figures.palette import DARK, IDLE, categories
from topox_core.model.execution import Execution
from topox_core.model.transfer_graph import COMPUTE, FloatArray, IntArray

DEVICE_LANE, PORT_LANE, GAP = 1.0, 0.8, 0.45
PIXELS = 13.75  # a unit; makes a port lane 11 px, the least that reads
MOST_UNITS = 52.0  # lanes that fit a screen (about 720 px)
NO_TASK = -1


@dataclass(frozen=True)
class Bars:
    """All bars as arrays, ordered by start: compute tasks, circuits, dark stretches.

    ``row`` counts lanes within the server (devices, then ports); ``node`` is the task it belongs
    to; ``circuit`` the circuit's position or -1 for compute tasks.
    """

    server: IntArray
    row: IntArray
    category: NDArray[np.uint8]
    start_ms: FloatArray
    end_ms: FloatArray
    node: IntArray
    circuit: IntArray

    def __len__(self) -> int:
        return len(self.node)


@dataclass(frozen=True)
class Lanes:
    """The lanes of all servers, and where they are with ``first`` to ``last`` in view."""

    servers: int
    devices: int
    ports: tuple[tuple[int, int], ...]  # (switch, port on it)
    first: int = 0
    last: int = -1

    @property
    def rows(self) -> int:
        """Lanes a server."""
        return self.devices + len(self.ports)

    @property
    def unit_per_server(self) -> float:
        """Height of one server with the gap below it."""
        return self.devices * DEVICE_LANE + len(self.ports) * PORT_LANE + GAP

    @property
    def most_servers(self) -> int:
        """How many servers fit a screen."""
        return max(1, min(self.servers, int(MOST_UNITS / self.unit_per_server)))

    @property
    def in_view(self) -> int:
        """Number of servers in view."""
        return self.last - self.first + 1

    @property
    def height(self) -> float:
        """Height of the lanes in view, in px at scale 1."""
        return self.in_view * self.unit_per_server * PIXELS

    def showing(self, first: int, last: int) -> Lanes:
        """Return the same lanes with other servers in view."""
        first = max(0, min(first, self.servers - 1))
        last = max(first, min(last, self.servers - 1))
        return Lanes(self.servers, self.devices, self.ports, first, last)

    def top(self, server: int) -> float:
        """Return the y at which a server's lanes begin (y grows downwards)."""
        return (server - self.first) * self.unit_per_server

    def middle(self, server: IntArray, row: IntArray) -> FloatArray:
        """Return the y of the middle of lanes."""
        port = row - self.devices
        inside = np.where(
            port < 0,
            (row + 0.5) * DEVICE_LANE,
            self.devices * DEVICE_LANE + (port + 0.5) * PORT_LANE,
        )
        return np.asarray((server - self.first) * self.unit_per_server + inside, np.float64)

    def names(self) -> list[str]:
        """Return the short names of a server's lanes: gpu, sw0, sw1."""
        devices = ["gpu"] if self.devices == 1 else [f"gpu{d}" for d in range(self.devices)]
        several = max((port for _, port in self.ports), default=0) > 0
        return devices + [
            f"sw{switch}.{port}" if several else f"sw{switch}" for switch, port in self.ports
        ]


def lanes_of(execution: Execution) -> Lanes:
    """Return all devices and ports as lanes; of more than eight ports only those in use."""
    circuits, cluster = execution.circuits, execution.cluster
    used = (
        {
            (int(switch), int(port))
            for switch, port in np.unique(
                np.stack([circuits.switch, circuits.source_port], axis=1), axis=0
            )
        }
        if len(circuits)
        else set()
    )
    each = max(1, cluster.ports_per_server // cluster.switches)
    ports = (
        {(r, p) for r in range(cluster.switches) for p in range(each)}
        if cluster.switches * each <= 8
        else set()
    )
    compute = execution.graph.kind == COMPUTE
    devices = max(
        cluster.devices_per_server if cluster.devices_per_server <= 8 else 1,
        int(execution.graph.device[compute].max(initial=0)) + 1,
    )
    lanes = Lanes(cluster.servers, devices, tuple(sorted(used | ports)))
    return lanes.showing(0, lanes.most_servers - 1)


def bars_of(execution: Execution, lanes: Lanes) -> Bars:
    """Return every bar: compute tasks on devices, circuits and dark stretches on ports."""
    graph, circuits = execution.graph, execution.circuits
    category = categories(graph)
    compute = np.flatnonzero(
        (graph.kind == COMPUTE) & (execution.end_ms > execution.start_ms)
    ).astype(np.int32)
    row_of = {port: lanes.devices + i for i, port in enumerate(lanes.ports)}
    rows = np.fromiter(
        (
            row_of[p]
            for p in zip(circuits.switch.tolist(), circuits.source_port.tolist(), strict=True)
        ),
        np.int32,
        len(circuits),
    )
    dark, dark_begin, dark_end = circuits.dark_times(execution.makespan_ms)
    dark = dark.astype(np.int32)
    every = np.arange(len(circuits), dtype=np.int32)
    parts = [
        (
            graph.server[compute],
            graph.device[compute],
            category[compute],
            execution.start_ms[compute],
            execution.end_ms[compute],
            compute,
            np.full(len(compute), NO_TASK, np.int32),
        ),
        (
            circuits.source,
            rows,
            np.where(
                category[circuits.node] == IDLE, category.dtype.type(4), category[circuits.node]
            ),
            circuits.start_ms,
            circuits.end_ms,
            circuits.node,
            every,
        ),
        (
            circuits.source[dark],
            rows[dark],
            np.full(len(dark), DARK, np.uint8),
            dark_begin,
            dark_end,
            circuits.node[dark],
            dark,
        ),
    ]
    server, row, bar_category, start, end, node, circuit = (
        np.concatenate(columns) for columns in zip(*parts, strict=True)
    )
    order = np.argsort(start, kind="stable")
    return Bars(
        server[order],
        row[order],
        bar_category[order].astype(np.uint8),
        start[order],
        end[order],
        node[order],
        circuit[order],
    )


def first_window(
    bars: Bars, lanes: Lanes, makespan_ms: float, slot_ms: float, target: int = 600
) -> tuple[float, float]:
    """Return the first window: all, or up to where ``target`` bars in view have begun."""
    start = bars.start_ms[(bars.server >= lanes.first) & (bars.server <= lanes.last)]
    if len(start) <= target or makespan_ms <= 0:
        return 0.0, makespan_ms
    end = float(start[target])
    step = 10.0 ** np.floor(np.log10(max(end, makespan_ms / 1000)))
    end = max(float(np.ceil(end / step * 2) * step / 2), min(slot_ms, makespan_ms))
    return 0.0, min(end, makespan_ms)
