"""A schedule in other tools' words: tables, the cross-connect program, a Perfetto trace."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topox_core.io.tables import table_bytes
from topox_core.model.critical_path import CriticalPath, critical_path
from topox_core.model.execution import Execution
from topox_core.model.measures import out_port
from topox_core.model.transfer_graph import BARRIER, COMPUTE, FloatArray

TASK_COLUMNS = (
    "id",
    "kind",
    "parallelism",
    "server",
    "device",
    "source",
    "destination",
    "size_bytes",
    "start_ms",
    "end_ms",
    "duration_ms",
    "switch",
    "critical",
)
PROGRAM_COLUMNS = (
    "switch",
    "slot",
    "setup_ms",
    "usable_ms",
    "until_ms",
    "source",
    "source_port",
    "destination",
    "destination_port",
    "transfers",
)


def task_rows(execution: Execution, path: CriticalPath | None = None) -> list[dict[str, Any]]:
    """Return one row a task (barriers that lowering added are left out), in order of start."""
    graph = execution.graph
    path = path or critical_path(execution)
    critical = path.mask(len(graph)).tolist()
    switches: dict[int, list[int]] = {}
    for node, switch in zip(
        execution.circuits.node.tolist(), execution.circuits.switch.tolist(), strict=True
    ):
        known = switches.setdefault(node, [])
        if switch not in known:
            known.append(switch)
    start, end, sizes = (
        execution.start_ms.tolist(),
        execution.end_ms.tolist(),
        graph.size_bytes.tolist(),
    )
    server, device = graph.server.tolist(), graph.device.tolist()
    source, destination = graph.source.tolist(), graph.destination.tolist()
    rows = []
    for i in np.lexsort((execution.end_ms, execution.start_ms)).tolist():
        if not graph.ids[i]:
            continue
        moves = source[i] >= 0
        rows.append(
            {
                "id": graph.ids[i],
                "kind": graph.task_kind[i],
                "parallelism": graph.parallelism[i],
                "server": server[i] if server[i] >= 0 else None,
                "device": device[i] if device[i] >= 0 else None,
                "source": source[i] if moves else None,
                "destination": destination[i] if moves else None,
                "size_bytes": sizes[i] if moves and sizes[i] == sizes[i] else None,
                "start_ms": start[i],
                "end_ms": end[i],
                "duration_ms": round(end[i] - start[i], 9),
                "switch": " ".join(map(str, switches.get(i, []))),
                "critical": "yes" if critical[i] else "",
            }
        )
    return rows


def tasks_csv(execution: Execution, path: CriticalPath | None = None) -> bytes:
    """Return the tasks as CSV."""
    return table_bytes(TASK_COLUMNS, task_rows(execution, path))


def cross_connects(execution: Execution) -> list[dict[str, Any]]:
    """Return what each switch must connect, in order of time: one row a circuit held.

    ``slot`` is the slot in which the set-up begins; the circuit is dark until ``usable_ms`` and may
    be torn down at ``until_ms``. A circuit that its ports keep between two transfers is one row.
    """
    circuits, graph = execution.circuits, execution.graph
    if not len(circuits):
        return []
    port = out_port(circuits)
    order = np.lexsort((circuits.start_ms, port))
    begins = circuits.changed[order].copy()
    begins[0] = True
    begins[1:] |= port[order][1:] != port[order][:-1]
    edges = [*np.flatnonzero(begins).tolist(), len(order)]
    rows = []
    for low, high in pairwise(edges):
        held = order[low:high]
        first = int(held[0])
        setup = float(circuits.setup_ms[first])
        rows.append(
            {
                "switch": int(circuits.switch[first]),
                "slot": int(setup / execution.cluster.slot_ms + 1e-6),
                "setup_ms": setup,
                "usable_ms": float(circuits.start_ms[first]),
                "until_ms": float(circuits.end_ms[held].max()),
                "source": int(circuits.source[first]),
                "source_port": int(circuits.source_port[first]),
                "destination": int(circuits.destination[first]),
                "destination_port": int(circuits.destination_port[first]),
                "transfers": " ".join(
                    dict.fromkeys(graph.ids[i] for i in circuits.node[held].tolist())
                ),
            }
        )
    rows.sort(key=lambda row: (row["switch"], row["setup_ms"], row["source"], row["source_port"]))
    return rows


def cross_connects_csv(execution: Execution) -> bytes:
    """Return the cross-connect program as CSV."""
    return table_bytes(PROGRAM_COLUMNS, cross_connects(execution))


def cross_connects_json(execution: Execution) -> bytes:
    """Return the cross-connect program as JSON: each switch's connections in order of time."""
    switches: dict[int, list[dict[str, Any]]] = {r: [] for r in range(execution.cluster.switches)}
    for row in cross_connects(execution):
        step = {key: value for key, value in row.items() if key != "switch"}
        switches[row["switch"]].append({**step, "transfers": row["transfers"].split()})
    program = {
        "format": "topox-cross-connects",
        "version": 1,
        "slot_ms": execution.cluster.slot_ms,
        "reconfiguration_ms": execution.cluster.reconfiguration_ms,
        "makespan_ms": execution.makespan_ms,
        "switches": [{"switch": r, "connections": steps} for r, steps in switches.items()],
    }
    return json.dumps(program, indent=1).encode()


def perfetto_trace(execution: Execution, name: str, path: CriticalPath | None = None) -> bytes:
    """Return a Chrome trace for ui.perfetto.dev: servers and switches, devices and ports.

    Slices of one thread never overlap: where a model lets two tasks share a device or two transfers
    a circuit, the second moves to a thread of its own.
    """
    graph, circuits, cluster = execution.graph, execution.circuits, execution.cluster
    compute = np.flatnonzero((graph.kind == COMPUTE) & (execution.end_ms > execution.start_ms))
    critical = (path or critical_path(execution)).mask(len(graph)).tolist()
    threads = _Threads()
    names, kinds, uses = graph.ids, graph.task_kind, graph.parallelism
    events = [
        _slice(
            threads.of(server, device, f"device {device}", low, high),
            names[node],
            kinds[node],
            low,
            high,
            {"critical": critical[node]},
        )
        for node, server, device, low, high in _in_time(
            compute,
            graph.server[compute],
            graph.device[compute],
            start=execution.start_ms[compute],
            end=execution.end_ms[compute],
        )
    ]
    for position, source, switch, port, low, high in _in_time(
        np.arange(len(circuits)),
        circuits.source,
        circuits.switch,
        circuits.source_port,
        start=circuits.setup_ms,
        end=circuits.end_ms,
    ):
        node, destination = int(circuits.node[position]), int(circuits.destination[position])
        usable = _ns(float(circuits.start_ms[position]))
        lane = (switch + 1) * 10_000 + port
        places = (
            threads.of(source, lane, f"out-port, switch {switch} port {port}", low, high),
            threads.of(
                cluster.servers + switch,
                source * 4_096 + port,
                f"from server {source} port {port}",
                low,
                high,
            ),
        )
        facts = {
            "source": source,
            "destination": destination,
            "switch": switch,
            "critical": critical[node],
        }
        for place in places:
            if usable > low:
                events.append(
                    _slice(
                        place,
                        f"set up {source} to {destination}",
                        "reconfiguring",
                        low,
                        usable,
                        facts,
                    )
                )
            events.append(
                _slice(
                    place, names[node], f"{kinds[node]} {uses[node]}".strip(), usable, high, facts
                )
            )
    markers = [
        {
            "ph": "i",
            "s": "g",
            "name": names[i],
            "cat": "barrier",
            "pid": 0,
            "tid": 0,
            "ts": float(execution.start_ms[i]) * 1000,
        }
        for i in np.flatnonzero(graph.kind == BARRIER).tolist()
        if names[i]
    ]
    titles = [
        {"ph": "M", "name": "process_name", "pid": p, "args": {"name": f"server {p}"}}
        for p in range(cluster.servers)
    ]
    titles += [
        {
            "ph": "M",
            "name": "process_name",
            "pid": cluster.servers + r,
            "args": {"name": f"optical switch {r}"},
        }
        for r in range(cluster.switches)
    ]
    titles += [
        {"ph": "M", "name": "thread_name", "pid": p, "tid": t, "args": {"name": name}}
        for (p, t), name in threads.names.items()
    ]
    trace = {
        "displayTimeUnit": "ms",
        "otherData": {"makespan_ms": execution.makespan_ms, "graph": name},
        "traceEvents": [*titles, *events, *markers],
    }
    return json.dumps(trace, separators=(",", ":")).encode()


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


def _ns(time_ms: float) -> int:
    return round(time_ms * 1e6)


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
