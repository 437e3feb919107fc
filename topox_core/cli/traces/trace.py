"""``trace``: recorded runs of other tools in, graphs and schedules back as traces."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from topox_core.cli.shared.command import Answer, Arguments, Commands, command
from topox_core.cli.shared.files import (
    must_be_writable,
    read_graph_and_cluster,
    write,
    write_graph,
    write_result,
    write_windows,
)
from topox_core.cli.shared.options import FILES, GRAPH, JSON, Option, options_of, reader
from topox_core.cli.shared.printing import columns, figure, percent, table
from topox_core.cli.traces.reading import (
    FORMATTING,
    PATHS,
    READING,
    files_of,
    network,
    only,
    progress,
    read_other,
    refusable,
    settings_of,
)
from topox_core.errors import InputError, errors_in_file, needed, refuse_if
from topox_core.io.content import read
from topox_core.io.task_graph_file import load_graph
from topox_core.model.execution import Execution
from topox_core.traces.importing import import_kineto, inspect_run
from topox_core.traces.recorded.recorded_run import read_run, step_of
from topox_core.traces.recorded.windows import windows_of_step, windows_of_trace
from topox_core.traces.source import (
    KINETO,
    NETWORK,
    PERFETTO,
    ImportSettings,
    format_of_all,
    sources_of,
)


@command(
    "List what the profiler's files of a run hold, step by step. It writes no task graph; sizes may be unknown.",
    PATHS,
    *READING,
    *FORMATTING,
    JSON,
)
@refusable
def inspect(options: Arguments) -> Answer:
    """Return what a recorded run holds."""
    settings = settings_of(options)
    form, files = files_of(options)
    if form == NETWORK:
        return network(options, files)
    if form != KINETO:
        report = read_other(options, settings, form, files, "inspected").report
        return Answer(report, _report_lines(report, ""))
    run = read_run(files, settings, sources_of(options.host_traces), progress)
    record = inspect_run(run, settings)
    return Answer(record, _inspected_lines(record))


def _inspected_lines(record: dict[str, Any]) -> Iterator[str]:
    yield columns(
        record["files"],
        {
            "rank": "rank",
            "events": lambda one: f"{one['events']:,}",
            "kernels": lambda one: f"{one['kernels']:,}",
            "calls": lambda one: f"{one['communications']:,}",
            "file": "file",
        },
    )
    yield ""
    yield columns(
        record["steps"],
        {
            "step": "step",
            "recorded": lambda one: figure(one["recorded_ms"], "ms"),
            "host's step": lambda one: figure(one["host_step_ms"], "ms"),
            "free network": lambda one: figure(one["free_network_ms"], "ms"),
            "GPU busy": lambda one: percent(one["gpu_busy"]),
            "calls": lambda one: f"{one['calls']:,}",
            "bytes": lambda one: (
                f"{one['size_bytes']:,.0f}"
                if one["sizes_known"] == one["calls"]
                else f"known for {one['sizes_known']:,}"
            ),
        },
    )
    yield ""
    yield from _findings(record)


def _findings(record: dict[str, Any]) -> Iterator[str]:
    """Return ranks, calls and bytes of each group, checks, the worst first, and warnings."""
    yield columns(
        record["groups"],
        {
            "group": "group",
            "ranks": "ranks",
            "calls": lambda one: f"{one['calls']:,}",
            "bytes": lambda one: f"{one['size_bytes']:,.0f}",
            "label": lambda one: one["parallelism"] or None,
        },
    )
    yield ""
    yield table(*((one["status"], one["name"], one["words"]) for one in record["checks"]))
    yield from (f"warning: {line}" for line in record["warnings"])


@command(
    "Write one iteration of a recorded run as a task graph, with a report of its checks.",
    PATHS,
    *READING,
    *FORMATTING,
    Option("--output FILE", str, "the task graph: .json or .csv, each also .gz", over=("paths",)),
    Option("--cluster FILE", str, "write a cluster that fits it", over=("paths",)),
    Option("--report FILE", str, "write the report (JSON)", over=("paths",)),
    *options_of(ImportSettings, "uneven"),
    JSON,
)
@refusable
def import_run(options: Arguments) -> Answer:
    """Write an iteration of a recorded run as a task graph; 1 if a check failed."""
    settings = settings_of(options)
    form, files = files_of(options)
    if form == NETWORK:
        return network(options, files)
    refuse_if(
        (options.output is None, "must be given: the file to write"),
        file="command line",
        field="--output",
    )
    name = Path(options.output).name.partition(".")[0] or "recorded run"
    if form == KINETO:
        imported = import_kineto(files, settings, sources_of(options.host_traces), progress, name)
    else:
        imported = read_other(options, settings, form, files, name)
    report = imported.report
    write_graph(options.output, imported.graph, options.cluster, imported.cluster)
    write_result(options, options.report, report, indent=1)
    failed = any(one["status"] == "failed" for one in report["checks"])
    return Answer(
        report | {"output": options.output},
        _report_lines(report, options.output),
        1 if failed else 0,
    )


def _report_lines(report: dict[str, Any], output: str) -> Iterator[str]:
    replays = report["replay_ms"]
    fast = next(key for key in replays if key.endswith("_gbps"))
    of_ranks = f"{len(report['ranks'])} of {report['world']} ranks"
    first = (
        ("recorded", figure(report["recorded_ms"], "ms"), f"step {report['step']} of {of_ranks}")
        if "recorded_ms" in report
        else ("nodes", f"{report['nodes']:,}", of_ranks)
    )
    yield table(
        first,
        (
            "free network",
            figure(replays["free_network"], "ms"),
            "no network can be faster",
        ),
        (
            fast.replace("_gbps", " Gbit/s"),
            figure(replays[fast], "ms"),
            "per server, no contention",
        ),
        (
            "tasks",
            f"{report['tasks']:,}",
            f"{report['segments']:,} segments, {report['calls']:,} calls",
        ),
        *([("graph", output)] if output else []),
    )
    yield ""
    yield from _findings(report)


@command(
    "Write the windows of a recorded run: from the end of one kind of traffic to when all ranks are there for the next.",
    PATHS,
    *READING,
    Option("--output FILE", str, "write them (.csv or .json)", over=("paths",)),
    JSON,
)
@refusable
def windows(options: Arguments) -> Answer:
    """Return the windows of a recorded run, or of one of our traces."""
    settings = settings_of(options)
    form, files = format_of_all(sources_of(options.paths))
    record: dict[str, Any] = {}
    gaps = []
    if form == PERFETTO:
        found, iteration_ms = windows_of_trace(only(files, "a schedule's trace"))
    else:
        run = read_run(files, settings, sources_of(options.host_traces), progress)
        of_step = windows_of_step(step_of(run, settings), settings.parallelism)
        found, iteration_ms = of_step.windows, of_step.iteration_ms
        naive = sorted(one.length_ms for one in of_step.naive)
        record = {
            "step": of_step.step if of_step.step >= 0 else None,
            "by_rank": of_step.by_rank,
            "naive": len(naive),
            "naive_ms": naive[:1000],
            "warnings": list(run.warnings),
        }
        waits = "here the waiting of each rank counts as traffic"
        gaps.append(("gaps between kernels", f"{_counted(naive)}: {waits}"))
    if options.output:
        refuse_if(
            (not found, "has no window: the network carries only one kind of traffic"),
            file=options.paths[0],
        )
        name = Path(options.output).name.partition(".")[0] or "windows"
        write_windows(options.output, name, iteration_ms, found)
    record |= {
        "iteration_ms": iteration_ms,
        "windows": len(found),
        "list": [asdict(one) for one in found],
    }
    counted = _counted(sorted(one.length_ms for one in found))
    return Answer(
        record,
        (
            table(("iteration", figure(iteration_ms, "ms")), ("windows", counted), *gaps),
            "",
            columns(
                found[:50],
                {
                    "before": "before",
                    "after": "after",
                    "rank": "rank",
                    "begins": lambda one: figure(one.begin_ms, "ms"),
                    "lasts": lambda one: figure(one.length_ms, "ms"),
                },
            ),
            *(f"warning: {line}" for line in record.get("warnings", ())),
        ),
    )


def _counted(lengths_ms: Sequence[float]) -> str:
    """Return how many lengths there are, and from where to where they are."""
    span = (
        f", {figure(lengths_ms[0], 'ms')} to {figure(lengths_ms[-1], 'ms')}" if lengths_ms else ""
    )
    return f"{len(lengths_ms):,}{span}"


@command(
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
    from topox_core.io.foreign.perfetto import perfetto_trace
    from topox_core.model.critical_path import critical_path

    execution, graph, exclusive = _executed(options)
    arrows = {"yes": True, "no": False}.get(options.arrows)
    path = critical_path(execution, exclusive)
    data = perfetto_trace(execution, graph.name, path, graph, arrows=arrows)
    write(options.output, data)
    events = json.loads(data)["traceEvents"]
    counts = {letter: sum(event["ph"] == letter for event in events) for letter in "XsC"}
    return Answer(
        {
            "output": options.output,
            "makespan_ms": execution.makespan_ms,
            "slices": counts["X"],
            "arrows": counts["s"],
            "counter_changes": counts["C"],
            "bytes": len(data),
        },
        table(
            ("makespan", figure(execution.makespan_ms, "ms")),
            ("slices", f"{counts['X']:,}"),
            ("arrows", f"{counts['s']:,}"),
            ("counter changes", f"{counts['C']:,}"),
            ("trace", options.output),
        ),
    )


def _executed(options: Arguments) -> tuple[Execution, Any, bool]:
    """Return the execution of a result file once the checker has found it sound."""
    from topox_core.check.checker import check
    from topox_core.check.schedule_file import read_schedule
    from topox_core.schedule.results.result_file import from_record, settings_of_record

    record = read_schedule(read(options.schedule), options.schedule)
    made_with = (record.get("settings") or {}).get("cluster") or {}
    graph, cluster = read_graph_and_cluster(options.graph, options.cluster, made_with)
    refuse_if(
        (record.get("makespan_ms") is None, "holds no schedule"),
        file=options.schedule,
        field="makespan_ms",
    )
    report = check(graph, cluster, record, file=options.schedule)
    if not report.ok:
        raise InputError(f"breaks the model: {report.lines(1)[0]}", file=options.schedule)
    with errors_in_file(options.schedule):
        settings = settings_of_record(record)
        result = from_record(record, graph, cluster, settings)
    execution = needed(result.execution, "holds no schedule", file=options.schedule)
    return execution, graph, settings.exclusive_devices


@command(
    "Write a task graph as Chakra execution traces, a file per server, and the groups file beside them.",
    GRAPH,
    Option("--format", ("chakra",), "of the traces (default chakra)"),
    Option("--output PREFIX", str, "write PREFIX.0.et ... and PREFIX.json", required=True),
    Option(
        "--nic-gbps X",
        reader(float, "a number", lambda gbps: 0 < gbps < 1e9, "above 0 and below 1e9"),
        "bytes of transfers that are given by duration (default 400)",
        400.0,
    ),
    Option(
        "--drop-dependencies",
        bool,
        "leave out dependencies of tasks that share no server (else: messages of one byte)",
    ),
    JSON,
)
def export(options: Arguments) -> Answer:
    """Write a task graph as Chakra execution traces."""
    from topox_core.traces.chakra.writing import PEER_NOTES, ChakraFiles

    groups = f"{options.output}.json"
    must_be_writable(groups, (options.graph,))
    graph = load_graph(read(options.graph), options.graph)
    made = ChakraFiles(graph, options.nic_gbps, drop_dependencies=options.drop_dependencies)
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


COMMANDS = Commands(
    "Recorded runs: what is in them, one iteration as a task graph, and graphs and schedules as traces.",
    {
        "inspect": (inspect, "list what a recorded run holds"),
        "import": (import_run, "one iteration of a recorded run as a task graph"),
        "windows": (
            windows,
            "idle time of the network between two kinds of traffic, as it was recorded",
        ),
        "export": (export, "a task graph as Chakra execution traces"),
        "perfetto": (perfetto, "a schedule for ui.perfetto.dev"),
    },
)
