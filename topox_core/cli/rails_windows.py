"""``rails windows``: how long the windows are, of a list or of a task graph as a fabric runs it."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from topox_core.cli import options as given
from topox_core.cli.fabric_options import add_fabric_options, fabric_options
from topox_core.cli.files import must_be_writable, read, read_graph_and_cluster, write
from topox_core.cli.options import JSON, Option, add_options, number, wrong_option
from topox_core.cli.printing import as_json, figure, percent, table
from topox_core.errors import InputError, errors_in_file
from topox_core.io.json import record_of

if TYPE_CHECKING:
    from topox_core.model.execution import Execution
    from topox_core.model.task_graph import TaskGraph
    from topox_core.rails.iteration import Window

CLASS_KEYS = "name count mean_ms min_ms max_ms mean_bytes"


def add(parts: argparse._SubParsersAction[Any]) -> None:
    """Add the command to those of ``rails``."""
    command = given.add_command(
        parts,
        "windows",
        _windows,
        "windows of a list, or of an execution on any fabric",
        "Say how long windows are: of a list (one file), or of a task graph as a fabric runs it (GRAPH CLUSTER).",
    )
    files = "a list of windows, or a task graph and a cluster"
    Option("files FILE", str, files, nargs="+").add_to(command)
    add_fabric(command)
    add_options(
        command,
        Option("--above-ms X", number, "threshold (default 1)", 1.0),
        Option("--output FILE", str, "write them (.json or .csv)"),
        JSON,
    )


def add_fabric(command: argparse.ArgumentParser) -> None:
    """Add the options that name the fabric of an execution and say how it is built."""
    Option(
        "--fabric NAME",
        str,
        "ideal, fat_tree, static, reactive, provisioned or scheduled (default)",
        "scheduled",
    ).add_to(command)
    add_fabric_options(command)


def _windows(options: argparse.Namespace) -> int:
    from topox_core.rails.window_lengths import by_class, lengths_ms, share_above

    if len(options.files) > 2:
        raise wrong_option(
            "FILE",
            f"must be a list of windows, or a task graph and a cluster (got {len(options.files)} files)",
        )
    if options.output:
        must_be_writable(options.output, tuple(options.files))
    name, iteration_ms, windows = _listed_or_executed(options)
    if not windows:
        raise InputError(
            "has no window: one kind of traffic has the rail to itself", file=options.files[0]
        )
    lengths = lengths_ms(windows)
    if options.output:
        write(options.output, windows_file(name, iteration_ms, windows, options.output))
    record = {
        "name": name,
        "iteration_ms": iteration_ms,
        "windows": len(windows),
        "above_ms": options.above_ms,
        "share_above": share_above(windows, options.above_ms),
        "overlaps": int((lengths < 0).sum()),
        "median_ms": float(sorted(lengths)[len(lengths) // 2]),
        "longest_ms": float(lengths.max()),
        "classes": [record_of(one, CLASS_KEYS) for one in by_class(windows)],
    }
    if options.json:
        as_json(record | {"list": [asdict(one) for one in windows]})
        return 0
    table(
        ("windows", f"{len(windows):,} in {figure(iteration_ms, 'ms')}"),
        ("above", f"{percent(record['share_above'])} are longer than {options.above_ms:g} ms"),
        ("overlaps", f"{record['overlaps']:,}"),
        ("longest", figure(record["longest_ms"], "ms")),
    )
    print()
    table(
        ("traffic after the window", "windows", "mean", "shortest", "longest"),
        *(
            (
                one.name,
                f"{one.count:,}",
                figure(one.mean_ms, "ms"),
                figure(one.min_ms, "ms"),
                figure(one.max_ms, "ms"),
            )
            for one in by_class(windows)
        ),
    )
    return 0


def _listed_or_executed(options: argparse.Namespace) -> tuple[str, float, tuple[Window, ...]]:
    if len(options.files) == 1:
        from topox_core.rails.window_file import load_windows

        listed = load_windows(read(options.files[0]), options.files[0])
        return listed.name, listed.iteration_ms, listed.windows
    from topox_core.rails.windows import windows_of_execution

    graph, execution = executed(options.files[0], options.files[1], options)
    with errors_in_file(options.files[0]):
        return graph.name, execution.makespan_ms, windows_of_execution(execution)


def executed(
    graph_path: str, cluster_path: str, options: argparse.Namespace
) -> tuple[TaskGraph, Execution]:
    """Return a task graph and how the fabric of ``options`` runs it, as ``compare`` has it.

    Raises
    ------
    InputError
        If a file cannot be used, there is no such fabric, or its options do not go together.
    """
    from topox_core.fabrics.compare import chosen, compare

    try:
        (name,) = chosen([options.fabric])
    except InputError as error:
        raise wrong_option("--fabric", error.problem) from None
    graph, cluster = read_graph_and_cluster(graph_path, cluster_path, {})
    settings = given.settings(argparse.Namespace(engine="list"))
    runs = compare(graph, cluster, settings, (name,), fabric_options(options, cluster))
    return graph, runs[name].execution


def windows_file(name: str, iteration_ms: float, windows: tuple[Window, ...], path: str) -> bytes:
    """Return windows as the file whose format the path's name says: .csv, else JSON."""
    from topox_core.rails.window_file import dump_windows_csv, dump_windows_json

    if path.removesuffix(".gz").endswith(".csv"):
        return dump_windows_csv(windows)
    return dump_windows_json(name, iteration_ms, windows)
