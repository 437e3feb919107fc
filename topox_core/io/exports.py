"""A schedule in other tools' words: tables and the cross-connect program."""

from itertools import pairwise
from typing import Any

import numpy as np

from topox_core.io.tables import table_bytes
from topox_core.model.arrays.groups import by_key
from topox_core.model.critical_path import CriticalPath, critical_path
from topox_core.model.execution import Execution, held_circuits

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
    """Return one row per task (barriers that lowering added are left out), in order of start."""
    graph = execution.graph
    path = path or critical_path(execution)
    critical = path.mask(len(graph)).tolist()
    circuits = execution.circuits
    switches = by_key(zip(circuits.node.tolist(), circuits.switch.tolist(), strict=True))
    start, end, sizes = (
        execution.start_ms.tolist(),
        execution.end_ms.tolist(),
        graph.size_bytes.tolist(),
    )
    server, device = graph.server.tolist(), graph.device.tolist()
    source, destination = graph.source.tolist(), graph.destination.tolist()
    return [
        {
            "id": graph.ids[i],
            "kind": graph.task_kind[i],
            "parallelism": graph.parallelism[i],
            "server": server[i] if server[i] >= 0 else None,
            "device": device[i] if device[i] >= 0 else None,
            "source": source[i] if source[i] >= 0 else None,
            "destination": destination[i] if source[i] >= 0 else None,
            "size_bytes": sizes[i] if source[i] >= 0 and sizes[i] == sizes[i] else None,
            "start_ms": start[i],
            "end_ms": end[i],
            "duration_ms": round(end[i] - start[i], 9),
            "switch": " ".join(map(str, dict.fromkeys(switches.get(i, ())))),
            "critical": "yes" if critical[i] else "",
        }
        for i in np.lexsort((execution.end_ms, execution.start_ms)).tolist()
        if graph.ids[i]
    ]


def tasks_csv(execution: Execution, path: CriticalPath | None = None) -> bytes:
    """Return the tasks as CSV."""
    return table_bytes(TASK_COLUMNS, task_rows(execution, path))


def cross_connects(execution: Execution) -> list[dict[str, Any]]:
    """Return what each switch must connect, in order of time: one row per circuit held.

    ``slot`` is the slot in which the set-up begins; the circuit is dark until ``usable_ms`` and may
    be torn down at ``until_ms``. A circuit that its ports keep between two transfers is one row.
    """
    circuits, graph = execution.circuits, execution.graph
    order, begins = held_circuits(circuits)
    rows = []
    for low, high in pairwise([*begins.tolist(), len(order)]):
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


FORMAT, VERSION = "topox-cross-connects", 1


def cross_connects_record(execution: Execution) -> dict[str, Any]:
    """Return the cross-connect program as JSON has it: each switch's connections in order of time."""
    switches: dict[int, list[dict[str, Any]]] = {r: [] for r in range(execution.cluster.switches)}
    for row in cross_connects(execution):
        step = {key: value for key, value in row.items() if key != "switch"}
        switches[row["switch"]].append({**step, "transfers": row["transfers"].split()})
    return {
        "format": FORMAT,
        "version": VERSION,
        "slot_ms": execution.cluster.slot_ms,
        "reconfiguration_ms": execution.cluster.reconfiguration_ms,
        "makespan_ms": execution.makespan_ms,
        "switches": [{"switch": r, "connections": steps} for r, steps in switches.items()],
    }
