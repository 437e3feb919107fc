"""``trace``: recorded runs of other tools in, graphs and schedules back as traces."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topox_core.cli import trace_export
from topox_core.cli.command import Answer, Arguments, Commands, command
from topox_core.cli.files import write, write_graph
from topox_core.cli.options import JSON, Option, wrong_option
from topox_core.cli.printing import figure, percent, table
from topox_core.cli.rails_windows import windows_file
from topox_core.cli.trace_reading import (
    FORMATTING,
    PATHS,
    READING,
    files_of,
    network,
    progress,
    read_other,
    refusable,
    settings_of,
)
from topox_core.errors import InputError

if TYPE_CHECKING:
    from topox_core.rails.iteration import Window
    from topox_core.traces.source import Source


@command(
    "inspect",
    "what a recorded run holds; builds nothing",
    "Say what the profiler's files of a run hold, step by step: nothing is built, sizes may be unknown.",
    PATHS,
    *READING,
    *FORMATTING,
    JSON,
)
@refusable
def inspect(options: Arguments) -> Answer:
    """Return what a recorded run holds."""
    from topox_core.traces.importing import inspect_run
    from topox_core.traces.recorded_run import read_run
    from topox_core.traces.source import KINETO, NETWORK, sources_of

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
    of_files = (
        (
            str(one["rank"]),
            f"{one['events']:,}",
            f"{one['kernels']:,}",
            f"{one['communications']:,}",
            one["file"],
        )
        for one in record["files"]
    )
    of_steps = (
        (
            "-" if one["step"] is None else str(one["step"]),
            figure(one["recorded_ms"], "ms"),
            figure(one["host_step_ms"], "ms"),
            figure(one["free_network_ms"], "ms"),
            percent(one["gpu_busy"]),
            f"{one['calls']:,}",
            f"{one['size_bytes']:,.0f}"
            if one["sizes_known"] == one["calls"]
            else f"known of {one['sizes_known']:,}",
        )
        for one in record["steps"]
    )
    head = ("step", "recorded", "host's step", "free network", "GPU busy", "calls", "bytes")
    yield table(("rank", "events", "kernels", "calls", "file"), *of_files)
    yield from ("", table(head, *of_steps), "")
    yield from _findings(record)


def _findings(record: dict[str, Any]) -> Iterator[str]:
    """Return ranks, calls and bytes of each group, checks, the worst first, and warnings."""
    groups = (
        (
            one["group"],
            one["ranks"],
            f"{one['calls']:,}",
            f"{one['size_bytes']:,.0f}",
            one["parallelism"] or "-",
        )
        for one in record["groups"]
    )
    yield from (table(("group", "ranks", "calls", "bytes", "label"), *groups), "")
    yield table(*((one["status"], one["name"], one["words"]) for one in record["checks"]))
    yield from (f"warning: {line}" for line in record["warnings"])


@command(
    "import",
    "one iteration of a recorded run as a task graph",
    "Write one iteration of a recorded run as a task graph, with a report of what it rests on.",
    PATHS,
    *READING,
    *FORMATTING,
    Option("--output FILE", str, "the task graph: .json or .csv, each also .gz", over=("paths",)),
    Option("--cluster FILE", str, "write a cluster that fits it", over=("paths",)),
    Option("--report FILE", str, "write the report (JSON)", over=("paths",)),
    Option(
        "--uneven",
        ("pairs", "one"),
        "an exchange of uneven parts: a transfer a pair (default), or one call",
    ),
    JSON,
)
@refusable
def import_run(options: Arguments) -> Answer:
    """Write an iteration of a recorded run as a task graph; 1 if a check failed."""
    from topox_core.traces.importing import import_kineto
    from topox_core.traces.source import KINETO, NETWORK, sources_of

    settings = settings_of(options)
    form, files = files_of(options)
    if form == NETWORK:
        return network(options, files)
    if options.output is None:
        raise wrong_option("--output", "must be given: the file to write")
    name = Path(options.output).name.partition(".")[0] or "recorded run"
    if form == KINETO:
        hosts = sources_of(options.host_traces)
        imported = import_kineto(files, settings, hosts, progress, name)
    else:
        imported = read_other(options, settings, form, files, name)
    report = imported.report
    write_graph(options.output, imported.graph, options.cluster, imported.cluster)
    write(options.report, lambda: (json.dumps(report, indent=1) + "\n").encode())
    failed = any(one["status"] == "failed" for one in report["checks"])
    record = report | {"output": options.output}
    return Answer(record, _report_lines(report, options.output), 1 if failed else 0)


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
            "the least any network could reach",
        ),
        (fast.replace("_gbps", " Gbit/s"), figure(replays[fast], "ms"), "a server, no contention"),
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
    "windows",
    "idle time of the network between two kinds of traffic, as it was recorded",
    "Write the windows of a recorded run: from the end of one kind of traffic to when all ranks are there for the next.",
    PATHS,
    *READING,
    Option("--output FILE", str, "write them (.csv or .json)", over=("paths",)),
    JSON,
)
@refusable
def windows(options: Arguments) -> Answer:
    """Return the windows of a recorded run."""
    from topox_core.traces.recorded_run import read_run, step_of
    from topox_core.traces.source import PERFETTO, format_of_all, sources_of
    from topox_core.traces.windows import windows_of_step

    settings = settings_of(options)
    form, files = format_of_all(sources_of(options.paths))
    if form == PERFETTO:
        return _windows_of_trace(options, files)
    run = read_run(files, settings, sources_of(options.host_traces), progress)
    found = windows_of_step(step_of(run, settings), settings.parallelism)
    _write_windows(options, options.paths[0], found.iteration_ms, found.windows)
    naive = sorted(one.length_ms for one in found.naive)
    record = {
        "step": found.step if found.step >= 0 else None,
        "iteration_ms": found.iteration_ms,
        "windows": len(found.windows),
        "by_rank": found.by_rank,
        "naive": len(naive),
        "naive_ms": naive[:1000],
        "list": [asdict(one) for one in found.windows],
        "warnings": list(run.warnings),
    }
    rows = (
        (
            one.before,
            one.after,
            str(one.rank),
            figure(one.begin_ms, "ms"),
            figure(one.length_ms, "ms"),
        )
        for one in found.windows[:50]
    )
    counted = _counted(sorted(one.length_ms for one in found.windows))
    gaps = f"{_counted(naive)}: each rank's waiting counts as traffic there"
    lines = (
        table(
            ("iteration", figure(found.iteration_ms, "ms")),
            ("windows", counted),
            ("gaps between kernels", gaps),
        ),
        "",
        table(("before", "after", "rank", "begins", "lasts"), *rows),
        *(f"warning: {line}" for line in run.warnings),
    )
    return Answer(record, lines)


def _counted(lengths_ms: Sequence[float]) -> str:
    """Return how many lengths there are, and from where to where they are."""
    span = (
        f", {figure(lengths_ms[0], 'ms')} to {figure(lengths_ms[-1], 'ms')}" if lengths_ms else ""
    )
    return f"{len(lengths_ms):,}{span}"


def _windows_of_trace(options: Arguments, files: tuple[Source, ...]) -> Answer:
    """Return the windows of one of our traces."""
    from topox_core.traces.windows import windows_of_trace

    if len(files) > 1:
        raise wrong_option("PATH", "must be one file, if it is a schedule's trace")
    found, makespan_ms = windows_of_trace(files[0])
    _write_windows(options, files[0].name, makespan_ms, found)
    record = {
        "iteration_ms": makespan_ms,
        "windows": len(found),
        "list": [asdict(one) for one in found],
    }
    lines = table(("iteration", figure(makespan_ms, "ms")), ("windows", f"{len(found):,}"))
    return Answer(record, [lines])


def _write_windows(
    options: Arguments, source: str, iteration_ms: float, windows: tuple[Window, ...]
) -> None:
    """Write windows where a file is named for them.

    Raises
    ------
    InputError
        If there is none to be written.
    """
    if options.output:
        if not windows:
            raise InputError(
                "has no window: one kind of traffic has the network to itself", file=source
            )
        name = Path(options.output).name.partition(".")[0] or "windows"
        write(options.output, windows_file(name, iteration_ms, windows, options.output))


COMMANDS = Commands(
    "trace",
    "a recorded run: what is in it, as a task graph, and back",
    "Recorded runs: what is in them, one iteration as a task graph, and graphs and schedules as traces.",
    (inspect, import_run, windows, trace_export.export, trace_export.perfetto),
)
