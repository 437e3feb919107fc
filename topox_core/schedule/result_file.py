"""The result as a file: ``*.schedule.json`` (docs/files.md)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from topox_core.model.cluster import Cluster
from topox_core.model.execution import Execution, Layout
from topox_core.model.transfer_graph import TRANSFER
from topox_core.schedule.circuits.standing import (
    parts_of_transfers,
    places_of_circuits,
    total_rows,
)
from topox_core.schedule.replay import first_ms
from topox_core.schedule.result import Result

FORMAT, VERSION = "topox-schedule", 2


def to_record(result: Result, file_cluster: Cluster | None = None) -> dict[str, Any]:
    """Return everything of a result as plain values, in the order the file shows them.

    Parameters
    ----------
    file_cluster
        The cluster as its file gives it: ``settings.cluster`` then holds only the keys that differ
        from it, and the rest stays the file's to say. Without it every key is written.
    """
    execution = result.execution
    record: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "status": result.status,
        "engine": result.engine,
        "effort": result.settings.effort,
        "clock": "slots" if result.settings.on_slots else "continuous",
        "makespan_ms": result.makespan_ms,
        "first_ms": None if execution is None else first_ms(execution, result.settings),
        "bound_ms": result.bound_ms,
        "gap": result.gap,
        "bound_by": result.bound_by,
        "unrounded_bound_ms": result.unrounded_bound_ms,
        **_on_slots(result),
        **_by_class(result),
        "stopped_by": result.stopped_by,
        "wall_s": round(result.wall_s, 6),
        "working_s": round(result.wall_s if result.working_s is None else result.working_s, 6),
        "slot_ms": result.slot_ms,
        "tick_ms": result.tick_ms,
        "rounding": result.rounding,
        "chosen": _chosen(result),
    }
    if result.message:
        record["message"] = result.message
    settings = result.settings.as_record()
    if result.execution is not None:
        in_file = asdict(file_cluster) if file_cluster is not None else {}
        settings["cluster"] = {
            key: value
            for key, value in asdict(result.execution.cluster).items()
            if key != "name" and (file_cluster is None or value != in_file[key])
        }
    record["settings"] = settings
    if result.execution is not None:
        record.update(_details(result.execution))
    return record


def _on_slots(result: Result) -> dict[str, Any]:
    """Return the best plan on the cluster's slots and its bound, on slots the result's own; null where only fixed circuits may be."""
    if _only_fixed(result):
        return {"slotted_ms": None, "bound_slotted_ms": None}
    if result.settings.on_slots:
        return {"slotted_ms": result.makespan_ms, "bound_slotted_ms": result.bound_ms}
    return {"slotted_ms": result.slotted_ms, "bound_slotted_ms": result.bound_slotted_ms}


def _by_class(result: Result) -> dict[str, Any]:
    """Return bound and best of schedules that switch and of fixed circuits, null for what was not allowed."""
    record: dict[str, Any] = {}
    for name, changes in (("switching", True), ("fixed", False)):
        one = next((one for one in result.classes if one.changes_circuits == changes), None)
        record[f"bound_{name}_ms"] = None if one is None else one.bound_ms
        record[f"best_{name}_ms"] = None if one is None else one.best_ms
    return record


def _only_fixed(result: Result) -> bool:
    return not any(one.changes_circuits for one in result.classes)


def _chosen(result: Result) -> dict[str, Any]:
    """Return what the schedule chose; ``slot_ms`` is null where no slots were planned on."""
    planned_ms = result.slot_ms if result.settings.on_slots else result.planned_slot_ms
    return {
        "slot_ms": planned_ms if result.switching == "planned" else None,
        **result.settings.lowering.choices(),
        "switching": result.switching,
    }


def _details(execution: Execution) -> dict[str, Any]:
    """Return tasks, lowered transfers and circuits."""
    graph = execution.graph
    start, end = _spans(execution)
    tasks = [
        {"id": i, "start_ms": s, "end_ms": e}
        for i, s, e in zip(graph.ids, start.tolist(), end.tolist(), strict=True)
        if i
    ]
    transfers = [
        {
            "id": t.id,
            "collective": t.collective,
            "source": t.source,
            "destination": t.destination,
            "size_bytes": int(t.size_bytes) if float(t.size_bytes).is_integer() else t.size_bytes,
            "dependencies": list(t.dependencies),
        }
        for t in graph.lowered
    ]
    if execution.layout is not None and execution.rates is not None:
        transfers = _with_paths(execution, transfers)
        circuits = _standing(execution, execution.layout)
    else:
        circuits = _circuits(execution)
    return {"tasks": tasks, "transfers": transfers, "circuits": circuits}


def _circuits(execution: Execution) -> list[dict[str, Any]]:
    """Return a row for every circuit that carries a transfer."""
    graph, circuits = execution.graph, execution.circuits
    columns: dict[str, list[Any]] = {
        "switch": circuits.switch.tolist(),
        "source": circuits.source.tolist(),
        "destination": circuits.destination.tolist(),
        "setup_ms": circuits.setup_ms.tolist(),
        "start_ms": circuits.start_ms.tolist(),
        "end_ms": circuits.end_ms.tolist(),
        "task": [graph.ids[n] for n in circuits.node.tolist()],
    }
    if _several_ports(execution):
        columns["source_port"] = circuits.source_port.tolist()
        columns["destination_port"] = circuits.destination_port.tolist()
    return _as_rows(columns)


def _standing(execution: Execution, layout: Layout) -> list[dict[str, Any]]:
    """Return a row for every circuit of a layout, from the beginning to the end; none belongs to one transfer."""
    link, switch, port = places_of_circuits(layout, execution.cluster)
    whole = len(link)
    columns: dict[str, list[Any]] = {
        "switch": switch.tolist(),
        "source": layout.links[0][link].tolist(),
        "destination": layout.links[1][link].tolist(),
        "setup_ms": [0.0] * whole,
        "start_ms": [0.0] * whole,
        "end_ms": [execution.makespan_ms] * whole,
    }
    if _several_ports(execution):
        columns["source_port"] = columns["destination_port"] = port.tolist()
    return _as_rows(columns)


def _several_ports(execution: Execution) -> bool:
    """Whether a server has several ports on a switch, so that switch and server do not name one."""
    return execution.cluster.ports_per_server > execution.cluster.switches


def _as_rows(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    keys = list(columns)
    return [dict(zip(keys, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _with_paths(execution: Execution, lowered: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the transfers with their paths and rates, those of the graph itself after those of its collectives."""
    ids, rows = execution.graph.ids, {row["id"]: row for row in lowered}
    for node, parts in sorted(parts_of_transfers(execution).items()):
        paths: list[dict[str, Any]] = [
            {"servers": list(part.servers), "share": part.share} for part in parts
        ]
        if len(parts) > 1:
            for path, part in zip(paths, parts, strict=True):
                path["rates"] = part.rows
        row = rows.setdefault(ids[node], {"id": ids[node]})
        row["paths"], row["rates"] = paths, total_rows(parts)
    return list(rows.values())


def _spans(execution: Execution) -> tuple[np.ndarray, np.ndarray]:
    """Return start and end of every node; a collective's own entry spans its transfers."""
    graph = execution.graph
    start, end = execution.start_ms.copy(), execution.end_ms
    moved = np.flatnonzero(graph.kind == TRANSFER)
    first = np.full(int(graph.origin.max(initial=-1)) + 1, np.inf)
    np.minimum.at(first, graph.origin[moved], execution.start_ms[moved])
    closing = np.flatnonzero(graph.kind != TRANSFER)
    earlier = first[graph.origin[closing]] if len(closing) else np.zeros(0)
    start[closing] = np.where(
        np.isfinite(earlier), np.minimum(start[closing], earlier), start[closing]
    )
    return start, end
