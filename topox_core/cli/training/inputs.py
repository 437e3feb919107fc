"""Files that others read: ``cluster``, ours or InfraGraph's; ``workload``, a generated graph; ``schema`` of any of them."""

import json
from collections import Counter
from dataclasses import asdict
from typing import Any

from topox_core.cli.shared.command import Answer, Arguments, command
from topox_core.cli.shared.files import cluster_beside, write, write_graph
from topox_core.cli.shared.options import JSON, Option, changes_of, setting_option
from topox_core.cli.shared.printing import table
from topox_core.errors import check_known
from topox_core.io.content import read, record_of
from topox_core.schema.fields import Field, expected, fields_of, text_of

# Endings of names of InfraGraph's files.
_INFRAGRAPH = (".yaml", ".yml")


@command(
    "Show the cluster that a file describes: a cluster file, or one of InfraGraph (MLCommons), YAML or JSON. "
    "With --output it is written as either.",
    Option("cluster CLUSTER", str, "a cluster file, or one of InfraGraph"),
    Option(
        "--output FILE",
        str,
        "write it: .json as a cluster file, .yaml or .yml as InfraGraph's",
        over=("cluster",),
    ),
    JSON,
)
def cluster(options: Arguments) -> Answer:
    """Show the cluster, and write it where that was asked for."""
    from topox_core.io.cluster_file import dump_cluster, read_cluster
    from topox_core.io.foreign.infragraph import dump_infragraph
    from topox_core.model.cluster import Cluster

    found = read_cluster(read(options.cluster), options.cluster)
    fields, values = fields_of(Cluster), asdict(found.cluster)
    rows = (
        (one.title, f"{value:g}" if isinstance(value, float) else str(value), one.unit)
        for one, value in ((fields[name], value) for name, value in values.items())
    )
    flags = " ".join(
        f"--{name.replace('_', '-')} {value:g}" for name, value in found.fat_tree.items()
    )
    lines = (
        table(*rows),
        *(f"{options.cluster}: {line}" for line in found.notes),
        f"Its packet switches, for compare: {flags}" if flags else None,
    )
    if options.output is not None:
        dump = dump_infragraph if options.output.endswith(_INFRAGRAPH) else dump_cluster
        write(options.output, dump(found.cluster))
    return Answer(
        {"cluster": values, "fat_tree": dict(found.fat_tree), "notes": list(found.notes)}, lines
    )


def _as_record(field: Field) -> dict[str, Any]:
    words = {"key": field.name, "meaning": field.description, "range": expected(field.hint)}
    return {**words, **record_of(field, "default unit")}


def _list(options: Arguments) -> Answer:
    """Return every workload, or the one that is named with its parameters."""
    from topox_core.workloads.catalogue import WORKLOADS, workload_of

    named = options.name is not None
    workloads = [workload_of(options.name)] if named else list(WORKLOADS.values())
    found = [
        record_of(one, "name title meaning source")
        | {"parameters": [_as_record(field) for field in one.parameters]}
        for one in workloads
    ]
    lines = [table(*((one.name, one.meaning) for one in workloads))]
    for one in workloads if named else ():
        rows = (
            (f"{p.name}={text_of(p.default)}", p.unit, f"{p.description} ({expected(p.hint)})")
            for p in one.parameters
        )
        lines += ["", table(*rows), "", f"Source: {one.source}"]
    return Answer({"workloads": found}, lines)


@command(
    "Write a generated task graph, and beside it (.cluster.json) a cluster that suits "
    "it. --list shows every workload; with a NAME, its parameters.",
    Option(
        "name NAME",
        str,
        "a workload, such as dlrm",
        nargs="?",
        needed="a workload must be named (--list shows them)",
    ),
    setting_option("--set KEY=VALUE", "change one parameter"),
    Option(
        "--output FILE",
        str,
        "the task graph: .json or .csv, each also .gz",
        needed="must be given: the file to write",
        over=(),
    ),
    Option("--list", bool, "show what there is, write nothing", dest="listing"),
    JSON,
    listing=_list,
)
def workload(options: Arguments) -> Answer:
    """Write the files."""
    from topox_core.workloads.catalogue import generate

    cluster_file = cluster_beside(options.output)
    graph, cluster = generate(options.name, changes_of(options.changes))
    write_graph(options.output, graph, cluster_file, cluster)
    kinds = dict(Counter(task.kind for task in graph.tasks))
    record = {
        "workload": options.name,
        "name": graph.name,
        "tasks": len(graph.tasks),
        "servers": graph.servers,
        "kinds": kinds,
        "digest": graph.digest,
        "output": options.output,
        "cluster": cluster_file,
    }
    words = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
    return Answer(
        record,
        table(
            ("workload", graph.name),
            ("tasks", f"{len(graph.tasks):,} on {graph.servers} servers: {words}"),
            ("graph", options.output),
            ("cluster", cluster_file),
        ),
    )


@command(
    "Print the JSON Schema of a kind of file: every key with its type, range and meaning.",
    Option("name NAME", str, "a kind of file; without it all kinds are listed", nargs="?"),
    JSON,
)
def schema(options: Arguments) -> Answer:
    """Return it, or the kinds of files."""
    from topox_core.file_schemas import DOCUMENTS, json_schema

    head = ("name", "files", "format")
    if options.name is None:
        rows = [(name, f"*{one.ending}", one.format) for name, one in DOCUMENTS.items()]
        return Answer(
            {"schemas": [dict(zip(head, row, strict=True)) for row in rows]}, table(head, *rows)
        )
    check_known(options.name, DOCUMENTS, "kind of file", file="command line", field="NAME")
    return Answer(lines=json.dumps(json_schema(options.name), allow_nan=False))
