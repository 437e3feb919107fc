"""What the commands of ``trace`` share: which files, how they are read, and refusals that end with 1."""

import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from topox_core.cli.shared.command import Answer, Arguments, Run
from topox_core.cli.shared.files import write
from topox_core.cli.shared.options import (
    Option,
    given_of,
    number,
    numbered,
    of_options,
    options_of,
    positive,
    reader,
    whole,
)
from topox_core.cli.shared.printing import figure, note, percent, table
from topox_core.errors import refuse_if
from topox_core.io.cluster_file import dump_cluster
from topox_core.io.resource_limits import limited_reading
from topox_core.schema.fields import fields_of
from topox_core.traces.chakra.astra_sim import import_text, read_network
from topox_core.traces.chakra.reading import Machine
from topox_core.traces.importing import Imported
from topox_core.traces.source import (
    CHAKRA,
    TEXT,
    ImportSettings,
    Refused,
    Source,
    format_of_all,
    sources_of,
)

PATHS = Option(
    "paths PATH", str, "a file of a rank, or a folder of them (not those below it)", nargs="+"
)


FORMATS = ("auto", "kineto", "chakra", "text", "network")


_LABEL = "NAME=LABEL such as mesh_dp=dp"


# How a recorded run is read.
READING = (
    *options_of(
        ImportSettings,
        *("step", "ranks", "gpus_per_server", "host_gaps", "symmetry", "world", "assume_gbps"),
        "communication",
        written={
            "step": (
                "--step N|median|last",
                lambda text: text if text in ("median", "last") else whole(text),
            ),
            "ranks": ("--ranks 0-7", numbered),
            "communication": ("--communication REGEX", str),
        },
    ),
    Option(
        "--parallelism NAME=dp",
        reader(lambda text: text.rpartition("=")[::2], _LABEL, lambda pair: pair[0], _LABEL),
        fields_of(ImportSettings)["parallelism"].description,
        [],
        dest="labels",
        repeated=True,
        field="parallelism",
    ),
    Option(
        "--host-trace PATH",
        str,
        "PyTorch execution traces beside the files, for sizes; may be repeated",
        [],
        dest="host_traces",
        repeated=True,
    ),
)
# What only some formats need.
FORMATTING = (
    Option("--format", FORMATS, "of the files (default auto: by content)"),
    Option("--groups FILE", str, "members of Chakra groups (default PREFIX.json, if there)"),
    *options_of(Machine),
    Option("--servers N", positive, "that a text workload is expanded to (default 8)"),
    Option("--tick-ns X", number, "unit of a text workload's times (default 1)"),
    Option(
        "--optical D",
        positive,
        "dimension of a network that becomes switches (default: the last)",
    ),
    Option("--ports N", positive, "optical ports of a server of a network (default 2)"),
    *options_of(ImportSettings, "max_tasks", "nic_gbps"),
)


def refusable(run: Callable[[Arguments], Answer]) -> Run:
    """Return a command on a recorded run: limited in memory and time, ended with 1 where a sound trace cannot carry it."""

    def refused_or_run(options: Arguments) -> Answer | int:

        files = sources_of([*options.paths, *options.host_traces])
        name = files[0].name if len(files) == 1 else "recorded run"
        try:
            with limited_reading(name, sum(Path(one.name).stat().st_size for one in files)):
                return run(options)
        except Refused as refused:
            note(f"topox: error: {refused}")
            return 1

    return refused_or_run


def settings_of(options: Arguments) -> ImportSettings:
    """Return how a run is read, as the options say."""
    return of_options(ImportSettings, options, parallelism=dict(options.labels))


def progress(words: str, share: float) -> None:
    """Say on standard error what is being read."""
    note(f"reading {words} ({percent(share)})" if share else f"reading {words}")


def files_of(options: Arguments) -> tuple[str, tuple[Source, ...]]:
    """Return the format of the files that a command names, and those of it."""
    files = sources_of(options.paths)
    form = options.format or "auto"
    return format_of_all(files) if form == "auto" else (form, files)


def only(files: tuple[Source, ...], what: str) -> Source:
    """Return the file of what is one file; raises InputError where there are several."""
    refuse_if(
        (len(files) > 1, f"must be one file, if it is {what}"), file="command line", field="PATH"
    )
    return files[0]


def read_other(
    options: Arguments,
    settings: ImportSettings,
    form: str,
    files: tuple[Source, ...],
    name: str,
) -> Imported:
    """Return what files of another format than the profiler's hold, as a task graph."""
    if form == CHAKRA:
        return _read_chakra(options, settings, files, name)
    refuse_if(
        (form != TEXT, "is a schedule's trace: only its windows can be read"), file=files[0].name
    )
    changes = given_of(options, ("servers", "tick_ns"))
    return import_text(only(files, "a text workload"), settings, **changes, name=name)


def _read_chakra(
    options: Arguments, settings: ImportSettings, files: tuple[Source, ...], name: str
) -> Imported:
    from topox_core.traces.chakra.nodes import read_groups
    from topox_core.traces.chakra.reading import import_chakra

    prefix = re.sub(r"(\.\d+)?\.et(\.gz)?$", "", files[0].name)
    path = options.groups or (f"{prefix}.json" if Path(f"{prefix}.json").is_file() else None)
    groups = read_groups(Source.of_path(Path(path))) if path else {}
    return import_chakra(files, settings, groups, of_options(Machine, options), progress, name)


def network(options: Arguments, files: tuple[Source, ...]) -> Answer:
    """Return the cluster of a network file, and write it where a file is named for it."""
    file, target = only(files, "a network"), getattr(options, "cluster", None)
    lost = options.part == "import" and target is None
    refuse_if(
        (lost, "must be given: a network becomes a cluster"), file="command line", field="--cluster"
    )
    cluster, notes = read_network(file, options.optical, options.ports or 2)
    write(target, lambda: dump_cluster(cluster))
    lines = table(
        ("servers", f"{cluster.servers:,}", f"{cluster.devices_per_server:,} GPUs each"),
        (
            "ports",
            f"{cluster.ports_per_server} of {figure(cluster.port_gbps, 'Gbit/s')}",
            f"{figure(cluster.port_gbps * cluster.ports_per_server / 8, 'GB/s')} per server",
        ),
        ("latency", figure(cluster.latency_us, "us")),
    )
    return Answer(
        {"cluster": asdict(cluster), "notes": list(notes), "output": target},
        (lines, *(f"note: {line}" for line in notes)),
    )
