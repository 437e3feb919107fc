"""``cluster``: what a description of a cluster says, ours or InfraGraph's, and either written as the other."""

from dataclasses import asdict

from topox_core.cli.command import Answer, Arguments, command, read, table, write
from topox_core.cli.options import JSON, Option
from topox_core.schema.fields import fields_of

# Endings of names of InfraGraph's files.
_INFRAGRAPH = (".yaml", ".yml")


@command(
    "cluster",
    "show a cluster, and write it for other tools",
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
def run(options: Arguments) -> Answer:
    """Show the cluster, and write it where that was asked for."""
    from topox_core.io.cluster_file import dump_cluster, read_cluster
    from topox_core.io.infragraph import dump_infragraph
    from topox_core.model.cluster import Cluster

    found = read_cluster(read(options.cluster), options.cluster)
    fields, values = fields_of(Cluster), asdict(found.cluster)
    rows = (
        (one.title, f"{value:g}" if isinstance(value, float) else str(value), one.unit)
        for one, value in ((fields[name], value) for name, value in values.items())
    )
    lines = [table(*rows), *(f"{options.cluster}: {line}" for line in found.notes)]
    if found.fat_tree:
        flags = " ".join(
            f"--{name.replace('_', '-')} {value:g}" for name, value in found.fat_tree.items()
        )
        lines.append(f"Its packet switches, for compare: {flags}")
    if options.output is not None:
        dump = dump_infragraph if options.output.endswith(_INFRAGRAPH) else dump_cluster
        write(options.output, dump(found.cluster))
    record = {"cluster": values, "fat_tree": dict(found.fat_tree), "notes": list(found.notes)}
    return Answer(record, lines)
