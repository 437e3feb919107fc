"""A result read back from its file (docs/files.md): the schedule that somebody else's solve found, as if found here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from itertools import pairwise
from typing import Any, get_args

import numpy as np

from topox_core.errors import InputError, shown
from topox_core.io.ranges import check_one_of
from topox_core.model.cluster import Cluster
from topox_core.model.execution import Circuits, Execution, Layout, PathRates
from topox_core.model.lowering import lower
from topox_core.model.lowering_choices import Lowering
from topox_core.model.task_graph import TaskGraph
from topox_core.model.transfer_graph import BARRIER, FloatArray, IntArray, TransferGraph
from topox_core.schedule.circuits.held_ports import PortNumbers
from topox_core.schedule.engines.engine import StoppedBy
from topox_core.schedule.result import ClassBound, Result, TracePoint
from topox_core.schedule.settings import ENGINES, Settings
from topox_core.schedule.source import ANOTHER_SOLVE

# Who solved and for how long is no part of the question.
_WHO = ("engine", "time_limit_s", "gap", "seed", "threads")
_UNSAID = {"iteration": "first"}  # what held before results said it
_MAX_WORDS = 300
Rows = list[dict[str, Any]]


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
        circuits = _circuits(record["circuits"], cluster, place, settings.repeats)
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
    made = record["settings"]
    if settings.free:
        keys = asdict(settings.lowering)
        choices = {key: made[key] for key in keys if key in made} | {
            "strides": tuple(made.get("strides", ())),
            "all_reduce_on_network": settings.lowering.all_reduce_on_network,
        }
        settings = replace(settings, lowering=Lowering(**choices))
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
    if named is not None:
        raise InputError(
            "is missing: the collectives of this result became other transfers than its settings make of them",
            item=f"task {named}",
        )
    for i in missing:  # what opens a collective, and waits for nodes that have names
        waits = graph.pred_idx[graph.pred_ptr[i] : graph.pred_ptr[i + 1]]
        end[i] = end[waits].max(initial=0.0)
    # The row of a collective spans its transfers; its node is the barrier that closes it.
    return np.where(graph.kind == BARRIER, end, start), end


def _circuits(rows: Rows, cluster: Cluster, place: Mapping[str, int], repeats: bool) -> Circuits:
    """Return the circuits of a schedule that switches; a port that had another one before has changed it."""
    strange = next((row["task"] for row in rows if row["task"] not in place), None)
    if strange is not None:
        raise InputError("carries no transfer of this graph", item=f"circuit of {strange}")
    rows = sorted(rows, key=lambda row: (row["start_ms"], row["switch"], row["source"], _port(row)))
    circuits = Circuits(
        switch=_whole(rows, "switch"),
        source=_whole(rows, "source"),
        destination=_whole(rows, "destination"),
        source_port=_whole(rows, "source_port"),
        destination_port=_whole(rows, "destination_port"),
        setup_ms=_times_of(rows, "setup_ms"),
        start_ms=_times_of(rows, "start_ms"),
        end_ms=_times_of(rows, "end_ms"),
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


def _port(row: Mapping[str, Any]) -> int:
    """Return the out-port of a circuit; the only one there is stands in no file."""
    return row.get("source_port") or 0


def _whole(rows: Rows, key: str) -> IntArray:
    return np.array([row.get(key) or 0 for row in rows], np.int32)


def _times_of(rows: Rows, key: str) -> FloatArray:
    return np.array([row[key] for row in rows], np.float64)


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
