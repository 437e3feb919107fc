"""``trace perfetto``: a schedule for ui.perfetto.dev, and the windows of such a file."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topox_core.cli import options as given
from topox_core.cli.files import must_be_writable, read_graph_and_cluster, write
from topox_core.cli.options import JSON, Option, add_options, wrong_option
from topox_core.cli.printing import as_json, figure, table
from topox_core.errors import InputError, errors_in_file
from topox_core.io.content import read

if TYPE_CHECKING:
    from topox_core.model.execution import Execution
    from topox_core.traces.source import Source


def add(parts: argparse._SubParsersAction[Any]) -> None:
    """Add the command to those of ``trace``."""
    command = given.add_command(
        parts,
        "perfetto",
        _perfetto,
        "a schedule for ui.perfetto.dev",
        "Write a schedule as a Chrome trace: devices and ports, an arrow to each task from what it waited for, busy ports.",
    )
    given.add_files(command)
    add_options(
        command,
        Option("schedule SCHEDULE", str, "its result: .schedule.json"),
        Option("--output FILE", str, "the trace: .trace.json, may be .gz", required=True),
        Option(
            "--arrows",
            ("auto", "yes", "no"),
            "arrows and counters (default auto: below 50,000 slices)",
            "auto",
        ),
        JSON,
    )


def _perfetto(options: argparse.Namespace) -> int:
    import json

    from topox_core.io.perfetto import perfetto_trace
    from topox_core.model.critical_path import critical_path

    files = (options.graph, options.cluster, options.schedule)
    must_be_writable(options.output, files)
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
    if options.json:
        as_json(record)
        return 0
    table(
        ("makespan", figure(execution.makespan_ms, "ms")),
        ("slices", f"{counts['X']:,}"),
        ("arrows", f"{counts['s']:,}"),
        ("counter changes", f"{counts['C']:,}"),
        ("trace", options.output),
    )
    return 0


def _executed(options: argparse.Namespace) -> tuple[Execution, Any, bool]:
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


def windows(options: argparse.Namespace, files: tuple[Source, ...]) -> int:
    """Print and write the windows of one of our traces."""
    from topox_core.cli.rails_windows import windows_file
    from topox_core.traces.perfetto_in import windows_of_trace

    if len(files) > 1:
        raise wrong_option("PATH", "must be one file, if it is a schedule's trace")
    found, makespan_ms = windows_of_trace(files[0])
    name = Path(options.output or files[0].name).name.partition(".")[0] or "windows"
    if options.output:
        if not found:
            raise InputError(
                "has no window: one kind of traffic has the network to itself", file=files[0].name
            )
        write(options.output, windows_file(name, makespan_ms, found, options.output))
    record = {
        "iteration_ms": makespan_ms,
        "windows": len(found),
        "list": [asdict(one) for one in found],
    }
    if options.json:
        as_json(record)
    else:
        table(("iteration", figure(makespan_ms, "ms")), ("windows", f"{len(found):,}"))
    return 0
