"""``rails windows``: how long the windows are, of a list or of a task graph as a fabric runs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from topox_core.cli.command import Answer, Arguments, command
from topox_core.cli.files import read, read_graph_and_cluster, write
from topox_core.cli.options import (
    FABRICS,
    fabric_options,
    JSON,
    Option,
    errors_of_option,
    number,
    settings,
    wrong_option,
)
from topox_core.cli.printing import figure, percent, table
from topox_core.errors import InputError, errors_in_file
from topox_core.io.json import record_of
from topox_core.model.task_graph import TaskGraph

if TYPE_CHECKING:
    from topox_core.model.execution import Execution
    from topox_core.rails.iteration import Window

CLASS_KEYS = "name count mean_ms min_ms max_ms mean_bytes"
# The fabric of an execution, and how it is built.
ON_FABRIC = (
    Option(
        "--fabric NAME",
        str,
        "ideal, fat_tree, static, reactive, provisioned or scheduled (default)",
        "scheduled",
    ),
    FABRICS,
)


@command(
    "windows",
    "windows of a list, or of an execution on any fabric",
    "Say how long windows are: of a list (one file), or of a task graph as a fabric runs it (GRAPH CLUSTER).",
    Option("files FILE", str, "a list of windows, or a task graph and a cluster", nargs="+"),
    *ON_FABRIC,
    Option("--above-ms X", number, "threshold (default 1)", 1.0),
    Option("--output FILE", str, "write them (.json or .csv)", over=("files",)),
    JSON,
)
def run(options: Arguments) -> Answer:
    """Return how long windows are."""
    from topox_core.rails.window_lengths import by_class, lengths_ms, share_above

    if len(options.files) > 2:
        raise wrong_option(
            "FILE",
            f"must be a list of windows, or a task graph and a cluster (got {len(options.files)} files)",
        )
    name, iteration_ms, windows = _listed_or_executed(options)
    if not windows:
        raise InputError(
            "has no window: one kind of traffic has the rail to itself", file=options.files[0]
        )
    write(options.output, lambda: windows_file(name, iteration_ms, windows, options.output))
    lengths, classes = lengths_ms(windows), by_class(windows)
    share, overlaps = share_above(windows, options.above_ms), int((lengths < 0).sum())
    record = {
        "name": name,
        "iteration_ms": iteration_ms,
        "windows": len(windows),
        "above_ms": options.above_ms,
        "share_above": share,
        "overlaps": overlaps,
        "median_ms": float(sorted(lengths)[len(lengths) // 2]),
        "longest_ms": float(lengths.max()),
        "classes": [record_of(one, CLASS_KEYS) for one in classes],
        "list": [asdict(one) for one in windows],
    }
    rows = (
        (
            one.name,
            f"{one.count:,}",
            figure(one.mean_ms, "ms"),
            figure(one.min_ms, "ms"),
            figure(one.max_ms, "ms"),
        )
        for one in classes
    )
    lines = (
        table(
            ("windows", f"{len(windows):,} in {figure(iteration_ms, 'ms')}"),
            ("above", f"{percent(share)} are longer than {options.above_ms:g} ms"),
            ("overlaps", f"{overlaps:,}"),
            ("longest", figure(float(lengths.max()), "ms")),
        ),
        "",
        table(("traffic after the window", "windows", "mean", "shortest", "longest"), *rows),
    )
    return Answer(record, lines)


def _listed_or_executed(options: Arguments) -> tuple[str, float, tuple[Window, ...]]:
    if len(options.files) == 1:
        from topox_core.rails.window_file import load_windows

        listed = load_windows(read(options.files[0]), options.files[0])
        return listed.name, listed.iteration_ms, listed.windows
    from topox_core.rails.windows import windows_of_execution

    graph, execution = executed(options.files, options)
    with errors_in_file(options.files[0]):
        return graph.name, execution.makespan_ms, windows_of_execution(execution)


def executed(files: Sequence[str], options: Arguments) -> tuple[TaskGraph, Execution]:
    """Return a task graph and how the fabric of ``options`` runs it, as ``compare`` has it.

    Raises
    ------
    InputError
        If a file cannot be used, there is no such fabric, or its options do not go together.
    """
    from topox_core.fabrics.compare import chosen, compare

    with errors_of_option("--fabric"):
        (name,) = chosen([options.fabric])
    graph, cluster = read_graph_and_cluster(files[0], files[1], {})
    by_rules = settings(Arguments(), engine="list")
    runs = compare(graph, cluster, by_rules, (name,), fabric_options(options, cluster))
    return graph, runs[name].execution


def windows_file(name: str, iteration_ms: float, windows: tuple[Window, ...], path: str) -> bytes:
    """Return windows as the file whose format the path's name says: .csv, else JSON."""
    from topox_core.rails.window_file import dump_windows_csv, dump_windows_json

    if path.removesuffix(".gz").endswith(".csv"):
        return dump_windows_csv(windows)
    return dump_windows_json(name, iteration_ms, windows)
