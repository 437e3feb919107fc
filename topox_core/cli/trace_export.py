"""``trace export``, ``trace perfetto``: a task graph as Chakra execution traces, a schedule for ui.perfetto.dev."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from topox_core.cli.command import Answer, Arguments, command
from topox_core.cli.files import must_be_writable, read, read_graph_and_cluster, write
from topox_core.cli.options import FILES, GRAPH, JSON, Option, number, wrong_option
from topox_core.cli.printing import figure, table
from topox_core.errors import InputError, errors_in_file

if TYPE_CHECKING:
    from topox_core.model.execution import Execution


@command(
    "perfetto",
    "a schedule for ui.perfetto.dev",
    "Write a schedule as a Chrome trace: devices and ports, an arrow to each task from what it waited for, busy ports.",
    *FILES,
    Option("schedule SCHEDULE", str, "its result: .schedule.json"),
    Option(
        "--output FILE",
        str,
        "the trace: .trace.json, may be .gz",
        required=True,
        over=("graph", "cluster", "schedule"),
    ),
    Option(
        "--arrows",
        ("auto", "yes", "no"),
        "arrows and counters (default auto: below 50,000 slices)",
        "auto",
    ),
    JSON,
)
def perfetto(options: Arguments) -> Answer:
    """Write a schedule as a Chrome trace."""
    from topox_core.io.perfetto import perfetto_trace
    from topox_core.model.critical_path import critical_path

    execution, graph, exclusive = _executed(options)
    arrows = {"yes": True, "no": False}.get(options.arrows)
    path = critical_path(execution, exclusive)
    data = perfetto_trace(execution, graph.name, path, graph, arrows=arrows)
    write(options.output, data)
    events = json.loads(data)["traceEvents"]
    counts = {letter: sum(event["ph"] == letter for event in events) for letter in "XsC"}
    record = {
        "output": options.output,
        "makespan_ms": execution.makespan_ms,
        "slices": counts["X"],
        "arrows": counts["s"],
        "counter_changes": counts["C"],
        "bytes": len(data),
    }
    lines = table(
        ("makespan", figure(execution.makespan_ms, "ms")),
        ("slices", f"{counts['X']:,}"),
        ("arrows", f"{counts['s']:,}"),
        ("counter changes", f"{counts['C']:,}"),
        ("trace", options.output),
    )
    return Answer(record, [lines])


def _executed(options: Arguments) -> tuple[Execution, Any, bool]:
    """Return the execution of a result file once the checker has found it sound."""
    from topox_core.check.checker import check
    from topox_core.check.schedule_file import read_record
    from topox_core.schedule.result_from_file import from_record, settings_of_record

    record = read_record(read(options.schedule), options.schedule)
    made_with = (record.get("settings") or {}).get("cluster") or {}
    graph, cluster = read_graph_and_cluster(options.graph, options.cluster, made_with)
    if record.get("makespan_ms") is None:
        raise InputError("holds no schedule", file=options.schedule, field="makespan_ms")
    report = check(graph, cluster, record, file=options.schedule)
    if not report.ok:
        raise InputError(f"breaks the model: {report.lines(1)[0]}", file=options.schedule)
    with errors_in_file(options.schedule):
        settings = settings_of_record(record)
        result = from_record(record, graph, cluster, settings)
    if result.execution is None:
        raise InputError("holds no schedule", file=options.schedule)
    return result.execution, graph, settings.exclusive_devices


@command(
    "export",
    "a task graph as Chakra execution traces",
    "Write a task graph as Chakra execution traces, a file per server, and the groups file beside them.",
    GRAPH,
    Option("--format", ("chakra",), "of the traces (default chakra)"),
    Option("--output PREFIX", str, "write PREFIX.0.et ... and PREFIX.json", required=True),
    Option("--nic-gbps X", number, "bytes of transfers that are given by duration (default 400)"),
    Option(
        "--drop-dependencies",
        bool,
        "leave out dependencies of tasks that share no server (else: messages of one byte)",
    ),
    JSON,
)
def export(options: Arguments) -> Answer:
    """Write a task graph as Chakra execution traces."""
    from topox_core.io.task_graph_file import load_graph
    from topox_core.traces.chakra_out import PEER_NOTES, export_chakra

    groups = f"{options.output}.json"
    must_be_writable(groups, (options.graph,))
    graph = load_graph(read(options.graph), options.graph)
    speed = 400.0 if options.nic_gbps is None else options.nic_gbps
    if not 0 < speed < 1e9:
        raise wrong_option("--nic-gbps", f"must be above 0 and below 1e9 (got {speed:g})")
    made = export_chakra(graph, speed, drop_dependencies=options.drop_dependencies)
    for server, data in made.files.items():
        write(f"{options.output}.{server}.et", data)
    write(groups, made.groups)
    dropped = options.drop_dependencies
    record = {
        "files": len(made.files),
        "nodes": made.nodes,
        "tasks": len(graph.tasks),
        "between_servers": made.between_servers,
        "dropped": made.between_servers if dropped else 0,
        "notes": list(made.notes),
        "elsewhere": list(PEER_NOTES),
        "output": options.output,
    }
    lines = table(
        (
            "files",
            f"{len(made.files):,}",
            f"{options.output}.0.et and on, groups in {groups}",
        ),
        ("nodes", f"{made.nodes:,}", f"of {len(graph.tasks):,} tasks"),
        (
            "between servers",
            f"{made.between_servers:,}",
            f"dependencies {'left out' if dropped else 'written as messages of one byte'}",
        ),
    )
    return Answer(record, (lines, *(f"warning: {line}" for line in made.notes), *PEER_NOTES))
