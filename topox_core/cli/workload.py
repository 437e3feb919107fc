"""``workload``: write a generated task graph, and beside it the cluster that suits it."""

from collections import Counter

from topox_core.cli.command import Answer, Arguments, cluster_beside, command, table, write_graph
from topox_core.cli.options import JSON, Option, changes_of, setting_option
from topox_core.io.json import record_of


def _list(options: Arguments) -> Answer:
    """Return every workload, or the one that is named with its parameters."""
    from topox_core.workloads.catalogue import WORKLOADS, workload_of

    named = options.name is not None
    workloads = [workload_of(options.name)] if named else list(WORKLOADS.values())
    found = [
        record_of(one, "name title meaning source")
        | {"parameters": [record_of(p, "key default unit meaning range") for p in one.parameters]}
        for one in workloads
    ]
    lines = [table(*((one.name, one.meaning) for one in workloads))]
    for one in workloads if named else ():
        rows = (
            (f"{p.key}={p.default}", p.unit, f"{p.meaning} ({p.range})") for p in one.parameters
        )
        lines += ["", table(*rows), "", f"Source: {one.source}"]
    return Answer({"workloads": found}, lines)


@command(
    "workload",
    "write a generated task graph and a cluster for it",
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
def run(options: Arguments) -> Answer:
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
    lines = table(
        ("workload", graph.name),
        ("tasks", f"{len(graph.tasks):,} on {graph.servers} servers: {words}"),
        ("graph", options.output),
        ("cluster", cluster_file),
    )
    return Answer(record, [lines])
