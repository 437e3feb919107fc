"""``trace export``: a task graph as Chakra execution traces."""

from __future__ import annotations

import argparse
from typing import Any

from topox_core.cli import options as given
from topox_core.cli.files import must_be_writable, write
from topox_core.cli.options import JSON, Option, add_options, number, wrong_option
from topox_core.cli.printing import as_json, table


def add(parts: argparse._SubParsersAction[Any]) -> None:
    """Add the command to those of ``trace``."""
    command = given.add_command(
        parts,
        "export",
        _export,
        "a task graph as Chakra execution traces",
        "Write a task graph as Chakra execution traces, a file a server, and the groups file beside them.",
    )
    add_options(
        command,
        Option("graph GRAPH", str, "task graph: .json, .csv or .fbuf, each also .gz"),
        Option("--format", ("chakra",), "of the traces (default chakra)"),
        Option("--output PREFIX", str, "write PREFIX.0.et ... and PREFIX.json", required=True),
        Option(
            "--nic-gbps X", number, "bytes of transfers that are given by duration (default 400)"
        ),
        Option(
            "--drop-dependencies",
            bool,
            "leave out dependencies of tasks that share no server (else: barriers of two)",
        ),
        JSON,
    )


def _export(options: argparse.Namespace) -> int:
    from topox_core.io.content import read
    from topox_core.io.task_graph_file import load_graph
    from topox_core.traces.chakra_out import export_chakra

    must_be_writable(f"{options.output}.json", (options.graph,))
    graph = load_graph(read(options.graph), options.graph)
    speed = 400.0 if options.nic_gbps is None else options.nic_gbps
    if not 0 < speed < 1e9:
        raise wrong_option("--nic-gbps", f"must be above 0 and below 1e9 (got {speed:g})")
    made = export_chakra(graph, speed, drop_dependencies=options.drop_dependencies)
    for server, data in made.files.items():
        write(f"{options.output}.{server}.et", data)
    write(f"{options.output}.json", made.groups)
    record = {
        "files": len(made.files),
        "nodes": made.nodes,
        "tasks": len(graph.tasks),
        "between_servers": made.between_servers,
        "dropped": made.between_servers if options.drop_dependencies else 0,
        "notes": list(made.notes),
        "output": options.output,
    }
    if options.json:
        as_json(record)
        return 0
    table(
        (
            "files",
            f"{len(made.files):,}",
            f"{options.output}.0.et and on, groups in {options.output}.json",
        ),
        ("nodes", f"{made.nodes:,}", f"of {len(graph.tasks):,} tasks"),
        (
            "between servers",
            f"{made.between_servers:,}",
            "dependencies left out"
            if options.drop_dependencies
            else "dependencies written as barriers of two",
        ),
    )
    for line in made.notes:
        print(f"warning: {line}")
    return 0
