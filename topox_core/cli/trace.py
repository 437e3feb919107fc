"""``trace``: recorded runs of other tools in, graphs and schedules back as traces."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topox_core.cli import options as given
from topox_core.cli.files import must_be_writable, write
from topox_core.cli.options import JSON, Option, add_options, number, positive, whole, wrong_option
from topox_core.cli.printing import as_json, figure, note, percent, table

if TYPE_CHECKING:
    from topox_core.traces.importing import Imported
    from topox_core.traces.settings import ImportSettings
    from topox_core.traces.source import Source

PATHS = Option(
    "paths PATH", str, "a file of a rank, or a folder of them (not those below it)", nargs="+"
)
FORMATS = ("auto", "kineto", "chakra", "text", "perfetto")


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


def _add_inspect(parts: argparse._SubParsersAction[Any]) -> None:
    command = given.add_command(
        parts,
        "inspect",
        refusable(_inspect),
        "what a recorded run holds; builds nothing",
        "Say what the profiler's files of a run hold, step by step: nothing is built, sizes may be unknown.",
    )
    PATHS.add_to(command)
    _add_reading(command)
    JSON.add_to(command)


def _add_import(parts: argparse._SubParsersAction[Any]) -> None:
    command = given.add_command(
        parts,
        "import",
        refusable(_import),
        "one iteration of a recorded run as a task graph",
        "Write one iteration of a recorded run as a task graph, with a report of what it rests on.",
    )
    PATHS.add_to(command)
    _add_reading(command)
    add_options(
        command,
        Option("--output FILE", str, "the task graph: .json or .csv, each also .gz"),
        Option("--cluster FILE", str, "write a cluster that fits it"),
        Option("--report FILE", str, "write the report (JSON)"),
        Option("--max-tasks N", positive, "bundle calls until there are no more (default 20000)"),
        Option("--nic-gbps X", number, "speed of a server for cluster and replay (default 400)"),
        Option(
            "--uneven",
            ("pairs", "one"),
            "an exchange of uneven parts: a transfer a pair (default), or one call",
        ),
        JSON,
    )


def _add_reading(command: argparse.ArgumentParser) -> None:
    """Add how a recorded run is read."""
    add_options(
        command,
        Option("--step N|median|last", _step, "which ProfilerStep (default median)"),
        Option("--ranks 0-7", _ranks, "use these ranks only"),
        Option(
            "--gpus-per-server N", positive, "neighbouring ranks that share a server (default 1)"
        ),
        Option(
            "--host-gaps",
            ("keep", "drop"),
            "keep (default): a segment lasts as on the clock; drop: only its kernels' time",
        ),
        Option("--symmetry no|yes", given.yes_or_no, "one rank stands for all (default no)"),
        Option("--world N", positive, "ranks of the job, if the files do not tell"),
        Option(
            "--host-trace PATH",
            str,
            "PyTorch execution traces beside the files, for sizes; may be repeated",
            [],
            dest="host_traces",
            repeated=True,
        ),
        Option("--assume-gbps X", number, "take sizes that nothing tells from durations"),
        Option(
            "--parallelism NAME=dp",
            _label,
            "label of a group by its name or description; may be repeated",
            [],
            dest="labels",
            repeated=True,
        ),
        Option("--communication REGEX", str, "further kernels that communicate"),
    )


def refusable(
    run: Callable[[argparse.Namespace], int],
) -> Callable[[argparse.Namespace], int]:
    """Return a command that ends with 1, not 2, where a sound trace cannot carry what is asked."""

    def command(options: argparse.Namespace) -> int:
        from topox_core.traces.refused import Refused

        try:
            return run(options)
        except Refused as refused:
            print(f"topox: error: {refused}", file=sys.stderr)
            return 1

    return command


def _step(text: str) -> int | str:
    return text if text in ("median", "last") else whole(text)


def _ranks(text: str) -> tuple[int, ...]:
    ranks: list[int] = []
    for part in text.split(","):
        low, dash, high = part.partition("-")
        first, last = whole(low), whole(high) if dash else whole(low)
        if not 0 <= first <= last < 1_000_000:
            raise argparse.ArgumentTypeError(f"must be ranks such as 0-7 or 0,2,4 (got {text!r})")
        ranks += range(first, last + 1)
    return tuple(dict.fromkeys(ranks))


def _label(text: str) -> tuple[str, str]:
    name, sign, label = text.rpartition("=")
    if not sign or not name:
        raise argparse.ArgumentTypeError(f"must be NAME=LABEL such as mesh_dp=dp (got {text!r})")
    return name, label


def settings_of(options: argparse.Namespace) -> ImportSettings:
    """Return how a run is read, as the options say."""
    from topox_core.traces.settings import ImportSettings

    keys = (
        *("step", "ranks", "gpus_per_server", "host_gaps", "symmetry", "world", "assume_gbps"),
        *("max_tasks", "communication", "nic_gbps", "uneven"),
    )
    changes = {key: value for key in keys if (value := getattr(options, key, None)) is not None}
    with given.settings_as_options(options):
        return ImportSettings(**changes, parallelism=dict(options.labels))


def sources(paths: list[str]) -> tuple[Source, ...]:
    """Return the files that paths name."""
    from topox_core.traces.source import sources_of

    return sources_of(paths)


def progress(words: str, share: float) -> None:
    """Say on standard error what is being read."""
    note(f"reading {words} ({percent(share)})" if share else f"reading {words}")


def _inspect(options: argparse.Namespace) -> int:
    from topox_core.traces.importing import inspect_run
    from topox_core.traces.recorded_run import read_run

    settings = settings_of(options)
    files = sources(options.paths)
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
    if options.output is None:
        raise wrong_option("--output", "must be given: the file to write")
    for path in (options.output, options.cluster, options.report):
        if path:
            must_be_writable(path, tuple(options.paths))
    imported = _read(options)
    _write(options, imported)
    report = imported.report
    if options.json:
        as_json(report | {"output": options.output})
    else:
        _print(report, options.output)
    failed = [one for one in report["checks"] if one["status"] == "failed"]
    return 1 if failed else 0


def _read(options: argparse.Namespace) -> Imported:
    from topox_core.traces.importing import import_kineto

    settings = settings_of(options)
    name = Path(options.output).name.partition(".")[0] or "recorded run"
    return import_kineto(
        sources(options.paths), settings, sources(options.host_traces), progress, name
    )


def _write(options: argparse.Namespace, imported: Imported) -> None:
    import json

    from topox_core.io.cluster_file import dump_cluster
    from topox_core.io.task_graph_file import dump_graph_csv, dump_graph_json

    table_form = options.output.removesuffix(".gz").endswith(".csv")
    dump = dump_graph_csv if table_form else dump_graph_json
    write(options.output, dump(imported.graph))
    if options.cluster:
        write(options.cluster, dump_cluster(imported.cluster))
    if options.report:
        write(options.report, (json.dumps(imported.report, indent=1) + "\n").encode())


def _print(report: dict[str, Any], output: str) -> None:
    replays = report["replay_ms"]
    fast = next(key for key in replays if key.endswith("_gbps"))
    table(
        (
            "recorded",
            figure(report["recorded_ms"], "ms"),
            f"step {report['step']} of {len(report['ranks'])} of {report['world']} ranks",
        ),
        (
            "free network",
            figure(replays["free_network"], "ms"),
            "the least any network could reach",
        ),
        (
            fast.replace("_gbps", " Gbit/s"),
            figure(replays[fast], "ms"),
            "a server, without contention",
        ),
        (
            "tasks",
            f"{report['tasks']:,}",
            f"{report['segments']:,} segments, {report['calls']:,} calls",
        ),
        ("graph", output),
    )
    print()
    print_groups(report["groups"])
    print_findings(report["checks"], report["warnings"])
