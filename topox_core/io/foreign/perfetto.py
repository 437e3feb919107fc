"""An execution as a Chrome trace for ui.perfetto.dev: slices, arrows, counters; and what reads it back."""

import heapq
import json
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topox_core.model.arrays.waiting_order import order_of
from topox_core.model.critical_path import CriticalPath, critical_path
from topox_core.model.execution import Execution
from topox_core.model.task_graph import TaskGraph
from topox_core.model.transfer_graph import BARRIER, COMPUTE, TRANSFER, FloatArray

FORMAT, VERSION = "topox-trace", 1
# Arrows and counters are left out of larger traces unless they are asked for.
MAX_SLICES_WITH_ARROWS = 50_000
_NO_CIRCUIT = 99_000_000
Place = tuple[int, int]


def perfetto_trace(
    execution: Execution,
    name: str,
    path: CriticalPath | None = None,
    graph: TaskGraph | None = None,
    *,
    arrows: bool | None = None,
) -> bytes:
    """Return a Chrome trace for ui.perfetto.dev: servers and switches, devices and ports.

    Slices of one thread never overlap: where a model lets two tasks share a device or two transfers
    a circuit, the second moves to a thread of its own.

    Parameters
    ----------
    graph
        The tasks that the execution is of: transfers then tell their group.
    arrows
        Whether to draw an arrow to each task from the dependency that ended last, and to count busy
        out-ports; None: where there are fewer than 50,000 slices.
    """
    writer = _Writer(execution, path or critical_path(execution), graph)
    writer.without_circuit()
    writer.circuits()
    if arrows or (arrows is None and len(writer.slices) < MAX_SLICES_WITH_ARROWS):
        writer.arrows()
        writer.counters()
    trace = {
        "displayTimeUnit": "ms",
        "otherData": {
            "format": FORMAT,
            "version": VERSION,
            "makespan_ms": execution.makespan_ms,
            "graph": name,
            "servers": execution.cluster.servers,
        },
        "traceEvents": [*writer.titles(), *writer.slices, *writer.others, *writer.markers()],
    }
    return json.dumps(trace, separators=(",", ":")).encode()


class _Writer:
    def __init__(self, execution: Execution, path: CriticalPath, graph: TaskGraph | None) -> None:
        self._execution, self._graph = execution, execution.graph
        self._critical = path.mask(len(self._graph)).tolist()
        self._threads = _Threads()
        self._of = {one.id: one.collective for one in self._graph.lowered}
        self._groups = [task.group for task in graph.tasks] if graph is not None else None
        self.slices: list[dict[str, Any]] = []
        self.others: list[dict[str, Any]] = []
        # Of each node its first and its last slice on a server: place and time in ns.
        self._first: dict[int, tuple[Place, int]] = {}
        self._last: dict[int, tuple[Place, int]] = {}

    def circuits(self) -> None:
        """Draw every circuit on its source and on its switch."""
        execution, circuits = self._execution, self._execution.circuits
        for position, source, switch, port, low, high in _in_time(
            np.arange(len(circuits)),
            circuits.source,
            circuits.switch,
            circuits.source_port,
            start=circuits.setup_ms,
            end=circuits.end_ms,
        ):
            node = int(circuits.node[position])
            destination = int(circuits.destination[position])
            usable = round(float(circuits.start_ms[position]) * 1e6)  # ns, as all times of slices
            lane = (switch + 1) * 10_000 + port
            servers, threads = execution.cluster.servers, self._threads
            own = threads.of(source, lane, f"out-port, switch {switch} port {port}", low, high)
            name = f"from server {source} port {port}"
            other = threads.of(servers + switch, source * 4_096 + port, name, low, high)
            facts = self._facts(node, source, destination, switch)
            for place in (own, other):
                if usable > low:
                    words = f"set up {source} to {destination}"
                    dark = _slice(place, words, "reconfiguring", low, usable, facts)
                    self.slices.append(dark)
                spans = usable, high
                self._draw(place, node, self._told(node), spans, facts, on_server=place is own)

    def without_circuit(self) -> None:
        """Draw what devices do and, at their source, transfers of no bytes or of a model without circuits."""
        graph, execution = self._graph, self._execution
        has = np.zeros(len(graph), np.bool_)
        has[execution.circuits.node] = True
        computes = (graph.kind == COMPUTE) & (execution.end_ms > execution.start_ms)
        on = np.flatnonzero(computes | ((graph.kind == TRANSFER) & ~has))
        for node, server, device, source, destination, low, high in _in_time(
            on,
            graph.server[on],
            graph.device[on],
            graph.source[on],
            graph.destination[on],
            start=execution.start_ms[on],
            end=execution.end_ms[on],
        ):
            if computes[node]:
                place = self._threads.of(server, device, f"device {device}", low, high)
                category, facts = graph.task_kind[node], {"critical": self._critical[node]}
            else:
                place = self._threads.of(source, _NO_CIRCUIT, "no circuit", low, high)
                category, facts = self._told(node), self._facts(node, source, destination, None)
            self._draw(place, node, category, (low, high), facts)

    def _told(self, node: int) -> str:
        return f"{self._graph.task_kind[node]} {self._graph.parallelism[node]}".strip()

    def _facts(
        self, node: int, source: int, destination: int, switch: int | None
    ) -> dict[str, Any]:
        graph, execution = self._graph, self._execution
        size = float(graph.size_bytes[node])
        task = int(graph.origin[node])
        facts: dict[str, Any] = {
            "source": source,
            "destination": destination,
            "critical": self._critical[node],
            "task": task,
            "collective": self._of.get(graph.ids[node], ""),
            "kind": graph.task_kind[node],
            "parallelism": graph.parallelism[node],
            "size_bytes": size if size == size else None,
            "start_ms": float(execution.start_ms[node]),
            "end_ms": float(execution.end_ms[node]),
        }
        if switch is not None:
            facts["switch"] = switch
        if self._groups is not None:
            facts["group"] = self._groups[task]
        return facts

    def _draw(
        self,
        place: Place,
        node: int,
        category: str,
        span: tuple[int, int],
        facts: dict[str, Any],
        *,
        on_server: bool = True,
    ) -> None:
        low, high = span
        self.slices.append(_slice(place, self._graph.ids[node], category, low, high, facts))
        if not on_server:
            return
        if node not in self._first or low < self._first[node][1]:
            self._first[node] = (place, low)
        if high > low and (node not in self._last or high > self._last[node][1]):
            self._last[node] = (place, high)

    def arrows(self) -> None:
        """Draw to each task an arrow from the dependency that ended last, looked through barriers."""
        before = self._graph.pred_idx.tolist()
        waits = [before[low:high] for low, high in pairwise(self._graph.pred_ptr.tolist())]
        end = self._execution.end_ms.tolist()
        latest = [-1] * len(waits)  # -1: nothing before it has a slice
        for node in order_of(waits):
            for p in waits[node]:
                one = p if p in self._last else latest[p]
                if one >= 0 and (latest[node] < 0 or end[one] > end[latest[node]]):
                    latest[node] = one
        number = 0
        for node, (place, low) in sorted(self._first.items()):
            source = latest[node]
            if source < 0 or self._last[source][1] > low:
                continue
            number += 1
            (process, thread), high = self._last[source]
            flow = {"cat": "dependency", "name": "dependency", "id": number}
            begin = {"ph": "s", "pid": process, "tid": thread, "ts": (high - 1) / 1000}
            arrives = {"ph": "f", "bp": "e", "pid": place[0], "tid": place[1], "ts": low / 1000}
            self.others += [flow | begin, flow | arrives]

    def counters(self) -> None:
        """Count each server's out-ports that carry, an event for every change."""
        circuits = self._execution.circuits
        change: Counter[tuple[int, int]] = Counter()
        for times, by in ((circuits.start_ms, 1), (circuits.end_ms, -1)):
            at = np.round(times * 1e6).astype(np.int64).tolist()
            for end in zip(circuits.source.tolist(), at, strict=True):
                change[end] += by
        busy = 0  # again 0 at the end of each server
        for (server, when), by in sorted(change.items()):
            busy += by
            if by:
                counter = {"ph": "C", "name": "out-ports busy", "pid": server, "tid": 0}
                self.others.append({**counter, "ts": when / 1000, "args": {"ports": busy}})

    def markers(self) -> list[dict[str, Any]]:
        """Return barriers as instants."""
        graph = self._graph
        return [
            {
                "ph": "i",
                "s": "g",
                "name": graph.ids[i],
                "cat": "barrier",
                "pid": 0,
                "tid": 0,
                "ts": float(self._execution.start_ms[i]) * 1000,
            }
            for i in np.flatnonzero(graph.kind == BARRIER).tolist()
            if graph.ids[i]
        ]

    def titles(self) -> list[dict[str, Any]]:
        """Return names and order of processes and threads."""
        cluster = self._execution.cluster
        names = [f"server {p}" for p in range(cluster.servers)]
        names += [f"optical switch {r}" for r in range(cluster.switches)]
        rows = [("process", (process, 0), name) for process, name in enumerate(names)]
        threads = [("thread", *one) for one in sorted(self._threads.names.items())]
        return [
            {
                "ph": "M",
                "name": f"{what}_{key}",
                "pid": place[0],
                "tid": place[1],
                "args": {key: says},
            }
            for named in (rows, threads)
            for at, (what, place, name) in enumerate(named)
            for key, says in (("name", name), ("sort_index", at))
        ]


class _Threads:
    """Hands out threads; a slice that would overlap goes to the next spare thread."""

    SPARE = 100_000_000

    def __init__(self) -> None:
        self.names: dict[tuple[int, int], str] = {}
        self._free_from: dict[tuple[int, int], list[tuple[int, int]]] = {}

    def of(self, process: int, thread: int, name: str, low: int, high: int) -> tuple[int, int]:
        """Return (pid, tid) for a slice; slices of one lane must come in order of start."""
        lanes = self._free_from.setdefault((process, thread), [])
        if lanes and lanes[0][0] <= low:
            _, place = heapq.heappop(lanes)
        else:
            place = thread + len(lanes) * self.SPARE
            self.names[process, place] = name if not lanes else f"{name} ({len(lanes) + 1})"
        heapq.heappush(lanes, (high, place))
        return process, place


def _in_time(
    *columns: NDArray[Any], start: FloatArray, end: FloatArray
) -> Iterable[tuple[int, ...]]:
    """Return rows of the columns with start and end in whole ns, in order of start."""
    order = np.lexsort((end, start))
    low, high = (np.round(times[order] * 1e6).astype(np.int64).tolist() for times in (start, end))
    return zip(*(column[order].tolist() for column in columns), low, high, strict=True)


def _slice(
    place: tuple[int, int], name: str, category: str, low: int, high: int, facts: dict[str, Any]
) -> dict[str, Any]:
    return {
        "ph": "X",
        "pid": place[0],
        "tid": place[1],
        "name": name,
        "cat": category,
        "ts": low / 1000,
        "dur": (high - low) / 1000,
        "args": facts,
    }
