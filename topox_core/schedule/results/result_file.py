"""The result as a file, ``*.schedule.json`` (docs/files.md), and read back: somebody else's solve as if it were found here."""

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from itertools import pairwise
from typing import Any, get_args

import numpy as np

from topox_core.errors import InputError, refuse_if, shown
from topox_core.io.limits import check_one_of
from topox_core.model.cluster import Cluster
from topox_core.model.execution import Circuits, Execution, Layout, PathRates
from topox_core.model.lowering.lowering import lower
from topox_core.model.lowering_choices import Lowering
from topox_core.model.task_graph import TaskGraph
from topox_core.model.transfer_graph import (
    BARRIER,
    TRANSFER,
    FloatArray,
    IntArray,
    TransferGraph,
)
from topox_core.schedule.circuits.held_ports import PortNumbers
from topox_core.schedule.circuits.standing import (
    parts_of_transfers,
    places_of_circuits,
    total_rows,
)
from topox_core.schedule.planning.replay import first_ms
from topox_core.schedule.results.result import ClassBound, Result, TracePoint
from topox_core.schedule.settings import AUTO, ENGINES, Settings
from topox_core.schedule.source import ANOTHER_SOLVE, StoppedBy

FORMAT, VERSION = "topox-schedule", 2
# Who solved and for how long is no part of the question.
_WHO = ("engine", "time_limit_s", "gap", "seed", "threads")
_UNSAID = {"iteration": "first"}  # what held before results said it
_MAX_WORDS = 300
Rows = list[dict[str, Any]]


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
    found = result.slotted_ms, result.bound_slotted_ms
    if result.settings.on_slots:
        found = result.makespan_ms, result.bound_ms
    if not any(one.changes_circuits for one in result.classes):
        found = None, None
    return dict(zip(("slotted_ms", "bound_slotted_ms"), found, strict=True))


def _by_class(result: Result) -> dict[str, Any]:
    """Return bound and best of schedules that switch and of fixed circuits, null for what was not allowed."""
    record: dict[str, Any] = {}
    for name, changes in (("switching", True), ("fixed", False)):
        one = next((one for one in result.classes if one.changes_circuits == changes), None)
        record[f"bound_{name}_ms"] = None if one is None else one.bound_ms
        record[f"best_{name}_ms"] = None if one is None else one.best_ms
    return record


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
    return _as_rows(execution, columns, circuits.source_port, circuits.destination_port)


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
    return _as_rows(execution, columns, port, port)


def _as_rows(
    execution: Execution, columns: dict[str, list[Any]], out_port: IntArray, in_port: IntArray
) -> Rows:
    """Return columns as rows, with ports where a server has several on a switch, so that switch and server do not name one."""
    if execution.cluster.ports_per_server > execution.cluster.switches:
        columns |= {"source_port": out_port.tolist(), "destination_port": in_port.tolist()}
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]


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


# -- read back -------------------------------------------------------------------------------------------


def from_record(
    record: Mapping[str, Any], graph: TaskGraph, cluster: Cluster, settings: Settings
) -> Result:
    """Return the result of a graph on a cluster that a record holds.

    The record has been read and found without fault by the checker
    (:mod:`topox_core.check`), which this package may not ask. What an engine proved cannot be
    checked so: the bound is the record's word.

    Raises
    ------
    InputError
        If the record was made with other choices or on another cluster, or lists other transfers
        than its choices make of the collectives; the field is named.
    """
    settings = _settings_of(record, cluster, settings)
    lowered = lower(graph, settings.lowering)
    place = {name: i for i, name in enumerate(lowered.ids) if name}
    start_ms, end_ms = _times(record["tasks"], lowered, place)
    execution = Execution(lowered, cluster, start_ms, end_ms, Circuits.none())
    chosen, on_slots = record.get("chosen", {}), settings.on_slots
    switching = chosen.get("switching", "planned")
    if switching == "fixed":
        layout, rates = _fixed(record, cluster)
        execution = replace(execution, layout=layout, rates=rates)
    else:
        circuits = _circuits_of(record["circuits"], cluster, place, settings.repeats)
        execution = replace(execution, circuits=circuits)
    makespan_ms, bound_ms = float(record["makespan_ms"]), float(record["bound_ms"])
    wall_s = _number(record, "wall_s") or 0.0
    return Result(
        status=record["status"],
        engine=_word(record, "engine", ENGINES),
        stopped_by=_word(record, "stopped_by", get_args(StoppedBy)),
        makespan_ms=makespan_ms,
        bound_ms=bound_ms,
        bound_by=str(record.get("bound_by", ""))[:_MAX_WORDS],
        unrounded_bound_ms=_number(record, "unrounded_bound_ms") or bound_ms,
        wall_s=wall_s,
        slot_ms=float(record["slot_ms"]),
        tick_ms=float(record["tick_ms"]),
        rounding=_number(record, "rounding") or 0.0,
        settings=settings,
        execution=execution,
        trace=(TracePoint(wall_s, makespan_ms, bound_ms, ANOTHER_SOLVE, ANOTHER_SOLVE),),
        slotted_ms=None if on_slots else _number(record, "slotted_ms"),
        bound_slotted_ms=None if on_slots else _number(record, "bound_slotted_ms"),
        planned_slot_ms=None if on_slots else _number(chosen, "slot_ms"),
        switching=switching,
        classes=tuple(
            ClassBound(changes, _best(record, name, changes), bound)
            for name, changes in (("switching", True), ("fixed", False))
            if (bound := _number(record, f"bound_{name}_ms")) is not None
        ),
        working_s=_number(record, "working_s"),
    )


def settings_of_record(record: Mapping[str, Any]) -> Settings:
    """Return the settings that a record says it was made with.

    Raises
    ------
    InputError
        If they are no settings.
    """
    made = record.get("settings")
    if not isinstance(made, dict):
        raise InputError("must be an object", field="settings")
    known = _UNSAID | {k: made[k] for k in asdict(Settings()) if k in made and k != "lowering"}
    lowered = {key: made[key] for key in asdict(Lowering()) if key in made}
    try:
        lowering = Lowering(**lowered | {"strides": tuple(made.get("strides", ()))})
        return Settings(**known | {"lowering": lowering, "free": tuple(made.get("free", ()))})
    except (TypeError, ValueError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("are of a wrong type", field="settings") from None


def _settings_of(record: Mapping[str, Any], cluster: Cluster, settings: Settings) -> Settings:
    """Return the settings with what the record chose of that which they leave free; the rest must be the same."""
    made, lowering = record["settings"], settings.lowering
    if "rings" in settings.free:
        strides = tuple(made.get("strides", ()))
        lowering = replace(lowering, rings=made.get("rings", lowering.rings), strides=strides)
    if "algorithm" in settings.free:
        chosen = replace(lowering, algorithm=made.get("algorithm", {}))
        fixed = {key.split(":")[0] for key, _ in lowering.algorithm}  # open are the other kinds
        there = tuple(one for one in chosen.algorithm if one[0].split(":")[0] in fixed)
        if there != lowering.algorithm:
            here = ",".join(map("=".join, lowering.algorithm))
            raise _made_with("algorithm", ",".join(map("=".join, there)) or AUTO, here)
        lowering = chosen
    settings = replace(settings, lowering=lowering)
    for key, here in settings.as_record().items():
        there = made.get(key, _UNSAID.get(key))
        if key not in _WHO and there != here:
            raise _made_with(key, there, here)
    own = made.get("cluster") or {}
    for key, here in asdict(cluster).items():
        if key != "name" and own.get(key, here) != here:
            raise _made_with(f"cluster.{key}", own[key], here)
    return settings


def _made_with(key: str, there: object, here: object) -> InputError:
    problem = f"was made with {shown(there)}, here it is {shown(here)}: set it alike and try again"
    return InputError(problem, item="settings", field=key)


def _times(
    rows: Rows, graph: TransferGraph, place: Mapping[str, int]
) -> tuple[FloatArray, FloatArray]:
    """Return start and end of every node; those that lowering added and no file names end with what they wait for."""
    start, end = np.full(len(graph), np.nan), np.full(len(graph), np.nan)
    for row in rows:
        i = place.get(row["id"], -1)
        if i >= 0:
            start[i], end[i] = row["start_ms"], row["end_ms"]
    missing = np.flatnonzero(np.isnan(end)).tolist()
    named = next((graph.ids[i] for i in missing if graph.ids[i]), None)
    refuse_if(
        (
            named is not None,
            "is missing: the collectives of this result became other transfers than its settings make of them",
        ),
        item=f"task {named}",
    )
    for i in missing:  # what opens a collective, and waits for nodes that have names
        waits = graph.pred_idx[graph.pred_ptr[i] : graph.pred_ptr[i + 1]]
        end[i] = end[waits].max(initial=0.0)
    # The row of a collective spans its transfers; its node is the barrier that closes it.
    return np.where(graph.kind == BARRIER, end, start), end


def _circuits_of(rows: Rows, cluster: Cluster, place: Mapping[str, int], repeats: bool) -> Circuits:
    """Return the circuits of a schedule that switches; a port that had another one before has changed it."""
    strange = next((row["task"] for row in rows if row["task"] not in place), None)
    refuse_if(
        (strange is not None, "carries no transfer of this graph"), item=f"circuit of {strange}"
    )
    # The only out-port there is stands in no file.
    rows = sorted(
        rows,
        key=lambda row: (
            row["start_ms"],
            row["switch"],
            row["source"],
            row.get("source_port") or 0,
        ),
    )
    whole = ("switch", "source", "destination", "source_port", "destination_port")
    times = ("setup_ms", "start_ms", "end_ms")
    columns: dict[str, Any] = {
        key: np.array([row.get(key) or 0 for row in rows], np.int32) for key in whole
    }
    columns |= {key: np.array([row[key] for row in rows], np.float64) for key in times}
    circuits = Circuits(
        **columns,
        node=np.array([place[row["task"]] for row in rows], np.int32),
        changed=np.zeros(len(rows), np.bool_),
    )
    ports = np.concatenate([circuits.source_port, circuits.destination_port])
    numbers = PortNumbers.of(
        (circuits.source, circuits.destination),
        circuits,
        (cluster.switches, int(ports.max(initial=0)) + 1),
        cluster.duplex == "half",
    )
    return replace(circuits, changed=numbers.changed(circuits.start_ms, repeats))


def _fixed(record: Mapping[str, Any], cluster: Cluster) -> tuple[Layout, PathRates]:
    """Return the layout of circuits that stay, and what each path gives to one transfer over time."""
    circuits = np.zeros((cluster.servers, cluster.servers), np.int32)
    for row in record["circuits"]:
        if max(row["source"], row["destination"]) >= cluster.servers:
            raise InputError("joins a server that the cluster has not", item="circuit")
        circuits[row["source"], row["destination"]] += 1
    rates: dict[tuple[int, ...], list[list[float]]] = {}
    for row in record["transfers"]:
        for path in row.get("paths", ()):
            given = path.get("rates", row.get("rates", ()))
            rates.setdefault(tuple(path["servers"]), []).extend(given)
    routes: dict[tuple[int, int], tuple[tuple[int, ...], ...]] = {}
    for servers in rates:
        pair = servers[0], servers[-1]
        routes[pair] = (*routes.get(pair, ()), servers)
    layout = Layout(circuits, routes)
    ends = zip(layout.links[0].tolist(), layout.links[1].tolist(), strict=True)
    link = {pair: i for i, pair in enumerate(ends)}
    hops = [(p, link[hop]) for p, servers in enumerate(rates) for hop in pairwise(servers)]
    steps = [(p, *step) for p, rows in enumerate(rates.values()) for step in _over_time(rows)]
    hop, step = np.array(hops).reshape(-1, 2).T, np.array(steps, np.float64).reshape(-1, 4).T
    return layout, PathRates(
        source=np.array([servers[0] for servers in rates], np.int32),
        destination=np.array([servers[-1] for servers in rates], np.int32),
        hop_path=hop[0].astype(np.int32),
        hop_link=hop[1].astype(np.int32),
        path=step[0].astype(np.int32),
        begin_ms=step[1],
        end_ms=step[2],
        bytes_per_ms=step[3] * 1e6 / 8,
    )


def _over_time(rows: list[list[float]]) -> list[list[float]]:
    """Return a path's rate in rows that do not overlap: all transfers that are under way on it at once get the same."""
    steps: list[list[float]] = []
    for begin, end, gbps in sorted(rows):
        since = max(begin, steps[-1][1]) if steps else begin
        if end <= since:
            continue
        if steps and steps[-1][1] == since and math.isclose(steps[-1][2], gbps, rel_tol=1e-12):
            steps[-1][1] = end
        else:
            steps.append([since, end, gbps])
    return steps


def _number(record: Mapping[str, Any], key: str) -> float | None:
    value = record.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _best(record: Mapping[str, Any], name: str, changes: bool) -> float | None:
    """Return the best of a class; of the class of the schedule itself it is the schedule."""
    own = record.get("chosen", {}).get("switching", "planned") != "fixed"
    return float(record["makespan_ms"]) if changes == own else _number(record, f"best_{name}_ms")


def _word(record: Mapping[str, Any], key: str, words: tuple[str, ...]) -> Any:
    value = record.get(key)
    check_one_of(value, words, field=key)
    return value
