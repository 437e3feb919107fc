"""``rails bytes``: what a rank of each stage moves over its rail, class by class (Fig. 4b)."""

from __future__ import annotations

import argparse
from typing import Any

from topox_core.cli import options as given
from topox_core.cli.options import JSON, Option, whole, wrong_option
from topox_core.cli.printing import as_json, table
from topox_core.cli.rails_presets import add_preset, list_presets, preset_of
from topox_core.io.json import record_of

KEYS = "parallelism operation when calls size_bytes counted_bytes wire_bytes times"


def add(parts: argparse._SubParsersAction[Any]) -> None:
    """Add the command to those of ``rails``."""
    command = given.add_command(
        parts,
        "bytes",
        _bytes,
        "bytes that a rank of each stage moves over its rail, class by class",
        "Say what a rank of every pipeline stage moves over its rail in an iteration, by parallelism and operation, by formula.",
    )
    add_preset(command)
    Option("--stage N", whole, "only this stage, from 0").add_to(command)
    JSON.add_to(command)


def _bytes(options: argparse.Namespace) -> int:
    from topox_core.rails.byte_classes import byte_classes

    if options.listing:
        return list_presets(options.json)
    preset = preset_of(options)
    if options.stage is not None and not 0 <= options.stage < preset.plan.pipeline:
        raise wrong_option(
            "--stage", f"must be from 0 to {preset.plan.pipeline - 1} (got {options.stage})"
        )
    stages = range(preset.plan.pipeline) if options.stage is None else (options.stage,)
    classes = {stage: byte_classes(preset, stage) for stage in stages}
    if options.json:
        as_json(
            {
                "preset": preset.name,
                "stages": {
                    str(stage): [record_of(one, KEYS) for one in of_stage]
                    for stage, of_stage in classes.items()
                },
            }
        )
        return 0
    rows = [
        (
            "stage",
            "parallelism",
            "operation",
            "when",
            "passes",
            "calls",
            "MiB a pass",
            "MiB sent in all",
        )
    ]
    for stage, of_stage in classes.items():
        rows += [
            (
                str(stage),
                one.parallelism,
                one.operation,
                one.when,
                f"{one.times:,}",
                f"{one.calls:,}",
                f"{one.counted_bytes / 2**20:,.6g}",
                f"{one.wire_bytes * one.times / 2**20:,.6g}",
            )
            for one in of_stage
        ]
    table(*rows)
    return 0
