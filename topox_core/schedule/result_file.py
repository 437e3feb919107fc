"""The result as a file: ``*.schedule.json`` (docs/files.md)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from topox_core.model.cluster import Cluster
from topox_core.model.execution import Execution, PathRates
from topox_core.model.layout import Layout
from topox_core.model.transfer_graph import TRANSFER
from topox_core.schedule.result import Result


def to_record(result: Result, file_cluster: Cluster | None = None) -> dict[str, Any]:
    """Return everything of a result as plain values, in the order the file shows them.

    Parameters
    ----------
    file_cluster
        The cluster as its file gives it: ``settings.cluster`` then holds only the keys that differ
        from it, and the rest stays the file's to say. Without it every key is written.
    """
    record: dict[str, Any] = {
        "format": "topox-schedule",
        "version": 1,
        "status": result.status,
        "engine": result.engine,
        "makespan_ms": result.makespan_ms,
        "bound_ms": result.bound_ms,
        "gap": result.gap,
        "bound_by": result.bound_by,
        "unrounded_bound_ms": result.unrounded_bound_ms,
        "stopped_by": result.stopped_by,
        "wall_s": round(result.wall_s, 6),
        "slot_ms": result.slot_ms,
        "tick_ms": result.tick_ms,
        "rounding": result.rounding,
    }
    if result.slotted_ms is not None:
        record["slotted_ms"] = result.slotted_ms
        record["bound_slotted_ms"] = result.bound_slotted_ms
        record["switching"] = result.switching
    if result.bound_fixed_ms is not None:
        record["bound_switching_ms"] = result.bound_switching_ms
        record["bound_fixed_ms"] = result.bound_fixed_ms
    if result.alternative is not None:
        record["best_switching_ms"] = result.alternative.makespan_ms
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


def _details(execution: Execution) -> dict[str, Any]:
    """Return tasks, lowered transfers and circuits."""
    graph, circuits = execution.graph, execution.circuits
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
    several_ports = execution.cluster.ports_per_server > execution.cluster.switches
    columns: dict[str, list[Any]] = {
        "switch": circuits.switch.tolist(),
        "source": circuits.source.tolist(),
        "destination": circuits.destination.tolist(),
        "setup_ms": circuits.setup_ms.tolist(),
        "start_ms": circuits.start_ms.tolist(),
        "end_ms": circuits.end_ms.tolist(),
        "task": [graph.ids[n] for n in circuits.node.tolist()],
    }
    if several_ports:
        columns["source_port"] = circuits.source_port.tolist()
        columns["destination_port"] = circuits.destination_port.tolist()
    keys = list(columns)
    rows = [dict(zip(keys, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    details: dict[str, Any] = {"tasks": tasks, "transfers": transfers, "circuits": rows}
    if execution.layout is not None and execution.rates is not None:
        details["fixed"] = _fixed(execution.layout, execution.rates)
    return details


def _fixed(layout: Layout, rates: PathRates) -> dict[str, Any]:
    """Return circuits that never change: the links, who crosses them, and at what rate from when until when."""
    names = {
        "links": (("source", "destination", "circuits"), layout.links),
        "paths": (("source", "destination"), (rates.source, rates.destination)),
        "hops": (("path", "link"), (rates.hop_path, rates.hop_link)),
        "rates": (
            ("path", "start_ms", "end_ms", "bytes_per_ms"),
            (rates.path, rates.begin_ms, rates.end_ms, rates.bytes_per_ms),
        ),
    }
    return {
        key: [
            dict(zip(fields, row, strict=True))
            for row in zip(*(column.tolist() for column in columns), strict=True)
        ]
        for key, (fields, columns) in names.items()
    }


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
