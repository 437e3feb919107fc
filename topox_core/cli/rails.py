"""``rails``: photonic rails, from the number of windows to a simulated control plane, their delay and their cost."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from topox_core.cli import options as given
from topox_core.cli import rails_cost, rails_run
from topox_core.cli.files import read
from topox_core.cli.printing import as_json, figure, percent, table
from topox_core.errors import InputError

if TYPE_CHECKING:
    from topox_core.rails.delay import Source


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command and its subcommands to the command line."""
    command = commands.add_parser(
        "rails",
        allow_abbrev=False,
        help="photonic rails: windows, switching delay, control plane, cost",
        description="Photonic rails: what a job sends on a rail, the windows between, what switching in them costs.",
    )
    parts = command.add_subparsers(dest="part", metavar="PART", required=True)
    _add_count(parts)
    _add_delay(parts)
    _add_switches(parts)
    rails_run.add(parts)
    _add_advise(parts)
    rails_cost.add(parts)


def on_command_line(error: InputError, flags: dict[str, str]) -> InputError:
    """Return an error of a setting with the option that holds it; one of a file stays as it is."""
    if error.file not in ("", "settings", "rails", "command line"):
        return error
    return InputError(
        error.problem,
        file="command line",
        item=error.item,
        field=flags.get(error.field, error.field),
    )


def _add_count(parts: argparse._SubParsersAction[Any]) -> None:
    command = parts.add_parser(
        "count",
        allow_abbrev=False,
        help="windows of an iteration, by stage and by formula",
        description="Count the windows of one rank of every pipeline stage under FSDP, and by formula.",
    )
    command.add_argument(
        "--stages", type=given.whole, required=True, metavar="P", help="pipeline stages"
    )
    command.add_argument(
        "--microbatches",
        type=given.whole,
        required=True,
        metavar="M",
        help="micro-batches of an iteration",
    )
    command.add_argument(
        "--schedule",
        default="1f1b",
        metavar="1f1b|afab|interleaved",
        help="order of the passes (default 1f1b; afab: all forward, then all backward)",
    )
    command.add_argument(
        "--chunks",
        type=given.whole,
        default=2,
        metavar="V",
        help="model chunks of a stage when interleaved (default 2)",
    )
    given.add_json(command)
    command.set_defaults(run=_count)


def _count(options: argparse.Namespace) -> int:
    from topox_core.rails.counts import FORMULA_NOTE, windows_by_formula, windows_by_stage

    try:
        windows = windows_by_stage(
            options.stages, options.microbatches, options.schedule, options.chunks
        )
        formula = windows_by_formula(options.microbatches)
    except InputError as error:
        flags = {
            "stages": "--stages",
            "microbatches": "--microbatches",
            "chunks": "--chunks",
            "schedule": "--schedule",
        }
        raise on_command_line(error, flags) from None
    if options.json:
        as_json(
            {
                "stages": options.stages,
                "microbatches": options.microbatches,
                "schedule": options.schedule,
                "windows": windows,
                "formula": formula,
                "formula_note": FORMULA_NOTE,
            }
        )
    else:
        table(
            [
                ("stage", "windows"),
                *((str(stage), f"{count:,}") for stage, count in enumerate(windows)),
                ("formula", f"{formula:,}"),
            ]
        )
        print(f"formula: {FORMULA_NOTE}")
    return 0


def _add_delay(parts: argparse._SubParsersAction[Any]) -> None:
    command = parts.add_parser(
        "delay",
        allow_abbrev=False,
        help="iteration time at switching delays: of windows, a job, or an execution",
        description="Iteration time at switching delays, on demand and provisioned. Of a list of windows in series: on demand "
        "every window pays all of the delay, provisioned what does not fit into the window. A job, or an execution "
        "of any fabric carried by one photonic rail, is simulated.",
    )
    command.add_argument(
        "--base-ms",
        type=given.number,
        metavar="T",
        help="iteration without switching (default: the file's)",
    )
    command.add_argument(
        "--window-ms",
        type=given.number,
        action="append",
        metavar="A",
        help="a window; may be repeated",
    )
    command.add_argument(
        "--windows", metavar="FILE", help="a list of windows (.json, .csv) instead"
    )
    command.add_argument(
        "--measured", action="store_true", help="the authors' measured list instead"
    )
    command.add_argument(
        "--preset", metavar="NAME", help="a job instead (rails simulate --list shows them)"
    )
    rails_run.add_changes(command)
    command.add_argument(
        "--execution",
        nargs=2,
        metavar=("GRAPH", "CLUSTER"),
        help="a task graph as a fabric runs it instead",
    )
    rails_run.add_fabric(command)
    command.add_argument(
        "--delay-ms",
        type=given.number,
        action="append",
        required=True,
        metavar="R",
        help="switching delay; may be repeated",
    )
    command.add_argument(
        "--limit-percent",
        type=given.number,
        metavar="X",
        help="also find the slowest switch that keeps the overhead within X %%",
    )
    given.add_json(command)
    command.set_defaults(run=_delay)


def _delay(options: argparse.Namespace) -> int:
    from topox_core.rails.delay import slowest_switch, study

    flags = {
        "base_ms": "--base-ms",
        "windows": "--window-ms",
        "delay_ms": "--delay-ms",
        "delays_ms": "--delay-ms",
        "limit_percent": "--limit-percent",
        "PRESET": "--preset",
    }
    try:
        source, windows = _source(options)
        found = study(source, options.delay_ms)
        slowest = None
        if options.limit_percent is not None:
            slowest = {
                name: slowest_switch(source, options.limit_percent, name == "provisioned")
                for name in ("on_demand", "provisioned")
            }
    except InputError as error:
        raise on_command_line(error, flags) from None
    first = found.rows[0]
    if options.json:
        record: dict[str, Any] = {
            "source": found.source,
            "base_ms": found.base_ms,
            "windows": windows,
            "delay_ms": first.delay_ms,
            "on_demand_ms": first.on_demand_ms,
            "provisioned_ms": first.provisioned_ms,
            "rows": [asdict(row) for row in found.rows],
        }
        if slowest is not None:
            record["slowest_switch_ms"] = slowest
        as_json(record)
        return 0
    table(
        [
            ("delay", "on demand", "over", "provisioned", "over"),
            *(
                (
                    figure(row.delay_ms, "ms"),
                    figure(row.on_demand_ms, "ms"),
                    percent(found.overhead(row.on_demand_ms) / 100),
                    figure(row.provisioned_ms, "ms"),
                    percent(found.overhead(row.provisioned_ms) / 100),
                )
                for row in found.rows
            ),
        ]
    )
    if slowest is not None:
        for name, value in slowest.items():
            words = "any switch" if value is None else figure(value, "ms")
            print(
                f"slowest switch within {options.limit_percent:g} %, {name.replace('_', ' ')}: {words}"
            )
    return 0


def _source(options: argparse.Namespace) -> tuple[Source, int | None]:
    """Return what a delay study asks, and how many windows are listed for it (None: it is simulated)."""
    chosen = [
        name
        for name, value in (
            ("--window-ms", options.window_ms),
            ("--windows", options.windows),
            ("--measured", options.measured),
            ("--preset", options.preset),
            ("--execution", options.execution),
        )
        if value
    ]
    if len(chosen) > 1:
        raise InputError(f"cannot be given with {chosen[0]}", file="command line", field=chosen[1])
    if options.changes and not options.preset:
        raise InputError("changes a preset: needs --preset", file="command line", field="--set")
    if not options.preset and not options.execution:
        source, lengths = _listed(options)
        return source, len(lengths)
    if options.base_ms is not None:
        raise InputError(
            f"cannot be given with {chosen[0]}, which has a length of its own",
            file="command line",
            field="--base-ms",
        )
    return _simulated(options), None


def _simulated(options: argparse.Namespace) -> Source:
    from topox_core.rails.builder import build
    from topox_core.rails.delay import execution_source, iteration_source
    from topox_core.rails.iteration import Rail

    if options.preset:
        job = rails_run.preset_of(options)
        return iteration_source(build(job, fold=True), Rail(nic_gbps=job.nic_gbps))
    graph, cluster = options.execution
    execution = rails_run.executed(graph, cluster, options.fabric)
    try:
        return execution_source(execution)
    except InputError as error:
        raise error.in_file(graph) from None


def _listed(options: argparse.Namespace) -> tuple[Source, list[float]]:
    """Return the windows as what a delay study asks, from options, a file or the authors' list."""
    from topox_core.rails.delay import windows_source
    from topox_core.rails.measured import WINDOWS, WINDOWS_ITERATION_MS
    from topox_core.rails.window_file import load_windows

    base = options.base_ms
    if options.windows:
        listed = load_windows(read(options.windows), options.windows)
        lanes = sorted({(one.rank, one.rail) for one in listed.windows})
        if len(lanes) > 1:
            raise InputError(
                f"holds windows of {len(lanes)} ranks and rails; a delay study needs those of one, in series",
                file=options.windows,
            )
        lengths, base = (
            [one.length_ms for one in listed.windows],
            listed.iteration_ms if base is None else base,
        )
    elif options.measured:
        lengths, base = (
            [one.length_ms for one in WINDOWS],
            WINDOWS_ITERATION_MS if base is None else base,
        )
    else:
        lengths = options.window_ms or []
    if base is None:
        raise InputError(
            "is needed: how long the iteration lasts without switching",
            file="command line",
            field="--base-ms",
        )
    return windows_source(base, lengths), lengths


def _add_switches(parts: argparse._SubParsersAction[Any]) -> None:
    command = parts.add_parser(
        "switches",
        allow_abbrev=False,
        help="optical switches: their delay, ports, and the GPUs they join",
        description="Table 3 of the paper: how fast each optical switch is, and how many GPUs one switch a rail can join.",
    )
    given.add_json(command)
    command.set_defaults(run=_switches)


def _switches(options: argparse.Namespace) -> int:
    from topox_core.rails.technologies import SCALE_UP, TECHNOLOGIES, gpus

    if options.json:
        as_json(
            {
                "switches": [
                    asdict(one)
                    | {"gpus": {name: gpus(one, size) for name, size in SCALE_UP.items()}}
                    for one in TECHNOLOGIES
                ]
            }
        )
    else:
        table(
            [
                (
                    "key",
                    "switch",
                    "vendor",
                    "delay",
                    "ports",
                    *(f"GPUs, {name}" for name in SCALE_UP),
                ),
                *(
                    (
                        one.key,
                        one.name,
                        one.vendor,
                        figure(one.reconfiguration_ms, "ms"),
                        f"{one.radix:,}",
                        *(f"{gpus(one, size):,}" for size in SCALE_UP.values()),
                    )
                    for one in TECHNOLOGIES
                ),
            ]
        )
    return 0


def _add_advise(parts: argparse._SubParsersAction[Any]) -> None:
    command = parts.add_parser(
        "advise",
        allow_abbrev=False,
        help="which parallelisms for a model and its GPUs",
        description="Rules of thumb of the paper (Tables 1 and 2): which parallelisms suit a model and its GPUs, and what each "
        "communicates.",
    )
    command.add_argument(
        "--parameters",
        type=given.number,
        required=True,
        metavar="X",
        help="of the model, such as 70e9",
    )
    command.add_argument("--gpus", type=given.whole, required=True, metavar="N", help="GPUs")
    given.add_json(command)
    command.set_defaults(run=_advise)


def _advise(options: argparse.Namespace) -> int:
    from topox_core.rails.advice import TABLE_2, advise

    try:
        found = advise(options.parameters, options.gpus)
    except InputError as error:
        raise on_command_line(error, {"parameters": "--parameters", "gpus": "--gpus"}) from None
    if options.json:
        as_json(
            {
                "model": found.model,
                "parameters": found.parameters,
                "gpus": found.gpus,
                "note": found.note,
                "strategies": list(found.practice.strategies) if found.practice else [],
                "parallelisms": [asdict(row) for row in TABLE_2],
            }
        )
    else:
        print(found.note)
        print()
        table(
            [
                ("parallelism", "splits", "operation", "how often", "on the rail"),
                *(
                    (
                        row.title,
                        row.memory,
                        row.collective,
                        row.frequency,
                        "yes" if row.on_rail else "no",
                    )
                    for row in TABLE_2
                ),
            ]
        )
    return 0
