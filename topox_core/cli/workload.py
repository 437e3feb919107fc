"""``workload``: write a generated task graph, and beside it the cluster that suits it."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import TYPE_CHECKING, Any

from topox_core.cli import options as given
from topox_core.cli.files import cluster_beside, write_graph
from topox_core.cli.options import JSON, Option, wrong_option
from topox_core.cli.printing import as_json, show, table
from topox_core.errors import InputError
from topox_core.io.json import record_of

if TYPE_CHECKING:
    from topox_core.model.task_graph import TaskGraph
    from topox_core.workloads.catalogue import Workload


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command to the command line."""
    given.add_command(
        commands,
        "workload",
        run,
        "write a generated task graph and a cluster for it",
        "Write a generated task graph, and beside it (.cluster.json) a cluster that suits "
        "it. --list shows every workload; with a NAME, its parameters.",
        Option("name NAME", str, "a workload, such as dlrm", nargs="?"),
        Option(
            "--set KEY=VALUE",
            str,
            "change one parameter; may be given several times",
            [],
            dest="changes",
            repeated=True,
        ),
        Option("--output FILE", str, "the task graph: .json or .csv, each also .gz"),
        Option("--list", bool, "show what there is, write nothing", dest="listing"),
        JSON,
    )


def run(options: argparse.Namespace) -> int:
    """Write the files, or list what could be written."""
    from topox_core.workloads.catalogue import WORKLOADS, workload_of

    if options.listing:
        named = options.name is not None
        shown = [workload_of(options.name)] if named else list(WORKLOADS.values())
        _list(shown, options.json, with_parameters=named)
        return 0
    if options.name is None:
        raise wrong_option("NAME", "a workload must be named (--list shows them)")
    if options.output is None:
        raise wrong_option("--output", "must be given: the file to write")
    return _write(options)


def _write(options: argparse.Namespace) -> int:
    from topox_core.workloads.catalogue import generate

    cluster_file = cluster_beside(options.output)
    graph, cluster = generate(options.name, _changes(options.changes))
    write_graph(options.output, graph, cluster_file, cluster)
    record = {
        "workload": options.name,
        "name": graph.name,
        "tasks": len(graph.tasks),
        "servers": graph.servers,
        "kinds": _kinds(graph),
        "digest": graph.digest,
        "output": options.output,
        "cluster": cluster_file,
    }
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in _kinds(graph).items())
    rows = (
        ("workload", graph.name),
        ("tasks", f"{len(graph.tasks):,} on {graph.servers} servers: {kinds}"),
        ("graph", options.output),
        ("cluster", cluster_file),
    )
    return show(options, record, lambda: table(*rows))


def _changes(given_changes: list[str]) -> dict[str, str]:
    changes: dict[str, str] = {}
    for change in given_changes:
        key, value = given.key_and_value(change)
        if key in changes:
            raise InputError("is given twice", file="command line", item="--set", field=key)
        changes[key] = value
    return changes


def _kinds(graph: TaskGraph) -> dict[str, int]:
    return dict(Counter(task.kind for task in graph.tasks))


def _list(workloads: list[Workload], json: bool, with_parameters: bool) -> None:
    if json:
        as_json(
            {
                "workloads": [
                    record_of(one, "name title meaning source")
                    | {
                        "parameters": [
                            record_of(p, "key default unit meaning range") for p in one.parameters
                        ]
                    }
                    for one in workloads
                ]
            }
        )
        return
    table(*[(one.name, one.meaning) for one in workloads])
    if with_parameters:
        print()
        table(
            *[
                (f"{p.key}={p.default}", p.unit, f"{p.meaning} ({p.range})")
                for one in workloads
                for p in one.parameters
            ]
        )
        print(f"\nSource: {workloads[0].source}")
