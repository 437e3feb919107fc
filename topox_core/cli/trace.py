"""``trace``: recorded runs of other tools in, graphs and schedules back as traces."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topox_core.cli import options as given
from topox_core.cli import trace_export
from topox_core.cli.files import must_be_writable, write, write_graph
from topox_core.cli.options import JSON, Option, wrong_option
from topox_core.cli.printing import as_json, figure, percent, show, table
from topox_core.cli.trace_reading import (
    PATHS,
    add_formats,
    add_reading,
    files_of,
    network,
    progress,
    read_other,
    refusable,
    settings_of,
    sources,
)
from topox_core.errors import InputError

if TYPE_CHECKING:
    from topox_core.traces.importing import Imported


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command and its parts to the command line."""
    command = commands.add_parser(
        "trace",
        allow_abbrev=False,
        help="a recorded run: what is in it, as a task graph, and back",
        description="Recorded runs: what is in them, one iteration as a task graph, and graphs and schedules as traces.",
    )
    parts = command.add_subparsers(dest="part", metavar="PART", required=True)
    _add_inspect(parts)
    _add_import(parts)
    _add_windows(parts)
    trace_export.add_export(parts)
    trace_export.add_perfetto(parts)


def _add_inspect(parts: argparse._SubParsersAction[Any]) -> None:
    given.add_command(
        parts,
        "inspect",
        refusable(_inspect),
        "what a recorded run holds; builds nothing",
        "Say what the profiler's files of a run hold, step by step: nothing is built, sizes may be unknown.",
        PATHS,
        add_reading,
        add_formats,
        JSON,
    )


def _add_import(parts: argparse._SubParsersAction[Any]) -> None:
    given.add_command(
        parts,
        "import",
        refusable(_import),
        "one iteration of a recorded run as a task graph",
        "Write one iteration of a recorded run as a task graph, with a report of what it rests on.",
        PATHS,
        add_reading,
        add_formats,
        Option("--output FILE", str, "the task graph: .json or .csv, each also .gz"),
        Option("--cluster FILE", str, "write a cluster that fits it"),
        Option("--report FILE", str, "write the report (JSON)"),
        Option(
            "--uneven",
            ("pairs", "one"),
            "an exchange of uneven parts: a transfer a pair (default), or one call",
        ),
        JSON,
    )


def _add_windows(parts: argparse._SubParsersAction[Any]) -> None:
    given.add_command(
        parts,
        "windows",
        refusable(_windows),
        "idle time of the network between two kinds of traffic, as it was recorded",
        "Write the windows of a recorded run: from the end of one kind of traffic to when all ranks are there for the next.",
        PATHS,
        add_reading,
        Option("--output FILE", str, "write them (.csv or .json)"),
        JSON,
    )


def _inspect(options: argparse.Namespace) -> int:
    from topox_core.traces.importing import inspect_run
    from topox_core.traces.recorded_run import read_run
    from topox_core.traces.source import KINETO, NETWORK

    settings = settings_of(options)
    form, files = files_of(options)
    if form != KINETO:
        if form == NETWORK:
            return network(options, files)
        report = read_other(options, settings, form, files, "inspected").report
        return show(options, report, lambda: _print(report, ""))
    record = inspect_run(
        read_run(files, settings, sources(options.host_traces), progress), settings
    )
    if options.json:
        as_json(record)
        return 0
    table(
        ("rank", "events", "kernels", "calls", "file"),
        *(
            (
                str(one["rank"]),
                f"{one['events']:,}",
                f"{one['kernels']:,}",
                f"{one['communications']:,}",
                one["file"],
            )
            for one in record["files"]
        ),
    )
    print()
    table(
        ("step", "recorded", "host's step", "free network", "GPU busy", "calls", "bytes"),
        *(
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
        ),
    )
    print()
    print_groups(record["groups"])
    print_findings(record["checks"], record["warnings"])
    return 0


def print_groups(groups: list[dict[str, Any]]) -> None:
    """Print ranks, calls and bytes of each group."""
    table(
        ("group", "ranks", "calls", "bytes", "label"),
        *(
            (
                one["group"],
                one["ranks"],
                f"{one['calls']:,}",
                f"{one['size_bytes']:,.0f}",
                one["parallelism"] or "-",
            )
            for one in groups
        ),
    )
    print()


def print_findings(checks: list[dict[str, Any]], warnings: list[str]) -> None:
    """Print checks, the worst first, and warnings."""
    table(*((one["status"], one["name"], one["words"]) for one in checks))
    for line in warnings:
        print(f"warning: {line}")


def _import(options: argparse.Namespace) -> int:
    from topox_core.traces.importing import import_kineto
    from topox_core.traces.source import KINETO, NETWORK

    for path in (options.output, options.cluster, options.report):
        if path:
            must_be_writable(path, tuple(options.paths))
    settings = settings_of(options)
    form, files = files_of(options)
    if form == NETWORK:
        return network(options, files)
    if options.output is None:
        raise wrong_option("--output", "must be given: the file to write")
    name = Path(options.output).name.partition(".")[0] or "recorded run"
    if form == KINETO:
        hosts = sources(options.host_traces)
        imported = import_kineto(files, settings, hosts, progress, name)
    else:
        imported = read_other(options, settings, form, files, name)
    _write(options, imported)
    report = imported.report
    show(options, report | {"output": options.output}, lambda: _print(report, options.output))
    failed = [one for one in report["checks"] if one["status"] == "failed"]
    return 1 if failed else 0


def _write(options: argparse.Namespace, imported: Imported) -> None:
    import json

    write_graph(options.output, imported.graph, options.cluster, imported.cluster)
    if options.report:
        write(options.report, (json.dumps(imported.report, indent=1) + "\n").encode())


def _print(report: dict[str, Any], output: str) -> None:
    replays = report["replay_ms"]
    fast = next(key for key in replays if key.endswith("_gbps"))
    rows: list[tuple[str, ...]] = [
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
    ]
    if output:
        rows.append(("graph", output))
    of_ranks = f"{len(report['ranks'])} of {report['world']} ranks"
    if "recorded_ms" in report:
        words = f"step {report['step']} of {of_ranks}"
        rows.insert(0, ("recorded", figure(report["recorded_ms"], "ms"), words))
    else:
        rows.insert(0, ("nodes", f"{report['nodes']:,}", of_ranks))
    table(*rows)
    print()
    print_groups(report["groups"])
    print_findings(report["checks"], report["warnings"])


def _windows(options: argparse.Namespace) -> int:
    from dataclasses import asdict

    from topox_core.cli.rails_windows import windows_file
    from topox_core.traces.recorded_run import read_run, step_of
    from topox_core.traces.source import PERFETTO, format_of_all
    from topox_core.traces.windows import windows_of_step

    if options.output:
        must_be_writable(options.output, tuple(options.paths))
    settings = settings_of(options)
    files = sources(options.paths)
    form, files = format_of_all(files)
    if form == PERFETTO:
        return trace_export.windows(options, files)
    run = read_run(files, settings, sources(options.host_traces), progress)
    found = windows_of_step(step_of(run, settings), settings.parallelism)
    name = Path(options.output or options.paths[0]).name.partition(".")[0] or "windows"
    if options.output:
        if not found.windows:
            raise InputError(
                "has no window: one kind of traffic has the network to itself",
                file=options.paths[0],
            )
        write(options.output, windows_file(name, found.iteration_ms, found.windows, options.output))
    lengths = sorted(one.length_ms for one in found.windows)
    naive = sorted(one.length_ms for one in found.naive)
    record = {
        "step": found.step if found.step >= 0 else None,
        "iteration_ms": found.iteration_ms,
        "windows": len(found.windows),
        "by_rank": found.by_rank,
        "naive": len(found.naive),
        "naive_ms": naive[:1000],
        "list": [asdict(one) for one in found.windows],
        "warnings": list(run.warnings),
    }
    if options.json:
        as_json(record)
        return 0
    between = "" if not lengths else f", {figure(lengths[0], 'ms')} to {figure(lengths[-1], 'ms')}"
    gaps = "" if not naive else f", {figure(naive[0], 'ms')} to {figure(naive[-1], 'ms')}"
    table(
        ("iteration", figure(found.iteration_ms, "ms")),
        ("windows", f"{len(lengths):,}{between}"),
        (
            "gaps between kernels",
            f"{len(naive):,}{gaps}: each rank's waiting counts as traffic there",
        ),
    )
    print()
    table(
        ("before", "after", "rank", "begins", "lasts"),
        *(
            (
                one.before,
                one.after,
                str(one.rank),
                figure(one.begin_ms, "ms"),
                figure(one.length_ms, "ms"),
            )
            for one in found.windows[:50]
        ),
    )
    for line in run.warnings:
        print(f"warning: {line}")
    return 0
