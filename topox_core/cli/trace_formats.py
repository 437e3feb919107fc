"""Recorded runs of other formats than the profiler's: Chakra, text workloads, networks."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from topox_core.cli import options as given
from topox_core.cli.files import write
from topox_core.cli.options import wrong_option
from topox_core.cli.printing import as_json, figure, table
from topox_core.cli.trace_reading import progress
from topox_core.errors import InputError

if TYPE_CHECKING:
    from topox_core.traces.importing import Imported
    from topox_core.traces.settings import ImportSettings
    from topox_core.traces.source import Source


def read_other(
    options: argparse.Namespace,
    settings: ImportSettings,
    form: str,
    files: tuple[Source, ...],
    name: str,
) -> Imported:
    """Return what files of another format than the profiler's hold, as a task graph."""
    from topox_core.traces.formats import CHAKRA, TEXT
    from topox_core.traces.text_workload import import_text

    if form == CHAKRA:
        return _read_chakra(options, settings, files, name)
    if form != TEXT:
        raise InputError("is a schedule's trace: only its windows can be read", file=files[0].name)
    if len(files) > 1:
        raise wrong_option("PATH", "must be one file, if it is a text workload")
    keys = ("servers", "tick_ns")
    changes = {key: value for key in keys if (value := getattr(options, key)) is not None}
    with given.settings_as_options(options):
        return import_text(files[0], settings, **changes, name=name)


def _read_chakra(
    options: argparse.Namespace, settings: ImportSettings, files: tuple[Source, ...], name: str
) -> Imported:
    from topox_core.traces.chakra_in import Machine, import_chakra
    from topox_core.traces.chakra_nodes import read_groups
    from topox_core.traces.source import Source

    prefix = re.sub(r"(\.\d+)?\.et(\.gz)?$", "", files[0].name)
    path = options.groups or (f"{prefix}.json" if Path(f"{prefix}.json").is_file() else None)
    groups = read_groups(Source.of_path(Path(path))) if path else {}
    given_machine = {
        key: value
        for key in ("tflops", "memory_gb_per_s")
        if (value := getattr(options, key)) is not None
    }
    with given.settings_as_options(options):
        machine = Machine(**given_machine)
    return import_chakra(files, settings, groups, machine, progress, name)


def network(options: argparse.Namespace, files: tuple[Source, ...]) -> int:
    """Write the cluster of a network file, or only say what it is."""
    from dataclasses import asdict

    from topox_core.io.cluster_file import dump_cluster
    from topox_core.traces.network import read_network

    if len(files) > 1:
        raise wrong_option("PATH", "must be one file, if it is a network")
    target = getattr(options, "cluster", None)
    if options.part == "import" and target is None:
        raise wrong_option("--cluster", "must be given: a network becomes a cluster")
    with given.settings_as_options(options):
        found = read_network(files[0], options.optical, options.ports or 2)
    if target:
        write(target, dump_cluster(found.cluster))
    if options.json:
        as_json({"cluster": asdict(found.cluster), "notes": list(found.notes), "output": target})
        return 0
    cluster = found.cluster
    table(
        ("servers", f"{cluster.servers:,}", f"{cluster.devices_per_server:,} GPUs each"),
        (
            "ports",
            f"{cluster.ports_per_server} of {figure(cluster.port_gbps, 'Gbit/s')}",
            f"{figure(cluster.port_gbps * cluster.ports_per_server / 8, 'GB/s')} a server",
        ),
        ("latency", figure(cluster.latency_us, "us")),
    )
    for line in found.notes:
        print(f"note: {line}")
    return 0
