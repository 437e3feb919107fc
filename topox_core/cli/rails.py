"""``rails``: photonic rails; here the number of windows, the switches, the rules of thumb."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from topox_core.cli import options as given
from topox_core.cli import rails_cost, rails_delay, rails_simulate, rails_windows
from topox_core.cli.options import JSON, Option, number, whole
from topox_core.cli.printing import as_json, figure, show, table
from topox_core.io.json import record_of


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command and its subcommands to the command line."""
    command = commands.add_parser(
        "rails",
        allow_abbrev=False,
        help="photonic rails: windows, reconfiguration delay, control plane, cost",
        description="Photonic rails: what a job sends on a rail, the windows between, what switching in them costs.",
    )
    parts = command.add_subparsers(dest="part", metavar="PART", required=True)
    _add_count(parts)
    rails_delay.add_delay(parts)
    _add_switches(parts)
    rails_simulate.add(parts)
    rails_windows.add(parts)
    rails_simulate.add_bytes(parts)
    _add_advise(parts)
    rails_cost.add(parts)


def _add_count(parts: argparse._SubParsersAction[Any]) -> None:
    given.add_command(
        parts,
        "count",
        _count,
        "windows of an iteration, by stage and by formula",
        "Count the windows of one rank of every pipeline stage under FSDP, and by formula.",
        Option("--stages P", whole, "pipeline stages", required=True),
        Option("--microbatches M", whole, "micro-batches of an iteration", required=True),
        Option(
            "--schedule 1f1b|afab|interleaved",
            str,
            "order of the passes (default 1f1b; afab: all forward, then all backward)",
            "1f1b",
        ),
        Option("--chunks V", whole, "model chunks of a stage when interleaved (default 2)", 2),
        JSON,
    )


def _count(options: argparse.Namespace) -> int:
    from topox_core.rails.windows import FORMULA_NOTE, windows_by_formula, windows_by_stage

    with given.settings_as_options(options):
        windows = windows_by_stage(
            options.stages, options.microbatches, options.schedule, options.chunks
        )
        formula = windows_by_formula(options.microbatches)
    if options.json:
        as_json(
            {
                **record_of(options, "stages microbatches schedule"),
                "windows": windows,
                "formula": formula,
                "formula_note": FORMULA_NOTE,
            }
        )
    else:
        table(
            ("stage", "windows"),
            *((str(stage), f"{count:,}") for stage, count in enumerate(windows)),
            ("formula", f"{formula:,}"),
        )
        print(f"formula: {FORMULA_NOTE}")
    return 0


def _add_switches(parts: argparse._SubParsersAction[Any]) -> None:
    given.add_command(
        parts,
        "switches",
        _switches,
        "optical switches: their delay, ports, and the GPUs they join",
        "Table 3 of the paper: how fast each optical switch is, and how many GPUs one switch a rail can join.",
        JSON,
    )


def _switches(options: argparse.Namespace) -> int:
    from topox_core.rails.technologies import SCALE_UP, TECHNOLOGIES, gpus

    return show(
        options,
        {
            "switches": [
                asdict(one) | {"gpus": {name: gpus(one, size) for name, size in SCALE_UP.items()}}
                for one in TECHNOLOGIES
            ]
        },
        lambda: table(
            ("key", "switch", "vendor", "delay", "ports", *(f"GPUs, {name}" for name in SCALE_UP)),
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
        ),
    )


def _add_advise(parts: argparse._SubParsersAction[Any]) -> None:
    given.add_command(
        parts,
        "advise",
        _advise,
        "which parallelisms for a model and its GPUs",
        "Rules of thumb of the paper (Tables 1 and 2): which parallelisms suit a model and its GPUs, and what each "
        "communicates.",
        Option("--parameters X", number, "of the model, such as 70e9", required=True),
        Option("--gpus N", whole, "GPUs", required=True),
        JSON,
    )


def _advise(options: argparse.Namespace) -> int:
    from topox_core.rails.advice import TABLE_2, advise

    with given.settings_as_options(options):
        advice = advise(options.parameters, options.gpus)
    if options.json:
        as_json(
            {
                **record_of(advice, "model parameters gpus note"),
                "strategies": list(advice.practice.strategies) if advice.practice else [],
                "parallelisms": [asdict(row) for row in TABLE_2],
            }
        )
    else:
        print(advice.note)
        print()
        table(
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
        )
    return 0
