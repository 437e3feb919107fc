"""``rails``: photonic rails; here the number of windows, the switches, the rules of thumb."""

from __future__ import annotations

from dataclasses import asdict

from topox_core.cli import rails_cost, rails_delay, rails_simulate, rails_windows
from topox_core.cli.command import Answer, Arguments, Commands, command
from topox_core.cli.options import JSON, Option, number, whole
from topox_core.cli.printing import figure, table
from topox_core.io.json import record_of


@command(
    "count",
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
    flags={},
)
def count(options: Arguments) -> Answer:
    """Return the windows of a rank of each stage."""
    from topox_core.rails.windows import FORMULA_NOTE, windows_by_formula, windows_by_stage

    windows = windows_by_stage(
        options.stages, options.microbatches, options.schedule, options.chunks
    )
    formula = windows_by_formula(options.microbatches)
    record = {
        **record_of(options, "stages microbatches schedule"),
        "windows": windows,
        "formula": formula,
        "formula_note": FORMULA_NOTE,
    }
    rows = ((str(stage), f"{count:,}") for stage, count in enumerate(windows))
    lines = table(("stage", "windows"), *rows, ("formula", f"{formula:,}"))
    return Answer(record, (lines, f"formula: {FORMULA_NOTE}"))


@command(
    "switches",
    "optical switches: their delay, ports, and the GPUs they join",
    "Table 3 of the paper: how fast each optical switch is, and how many GPUs one switch a rail can join.",
    JSON,
)
def switches(_: Arguments) -> Answer:
    """Return the optical switches."""
    from topox_core.rails.technologies import SCALE_UP, TECHNOLOGIES, gpus

    joined = {
        one.key: {name: gpus(one, size) for name, size in SCALE_UP.items()} for one in TECHNOLOGIES
    }
    rows = (
        (
            one.key,
            one.name,
            one.vendor,
            figure(one.reconfiguration_ms, "ms"),
            f"{one.radix:,}",
            *(f"{count:,}" for count in joined[one.key].values()),
        )
        for one in TECHNOLOGIES
    )
    head = ("key", "switch", "vendor", "delay", "ports", *(f"GPUs, {name}" for name in SCALE_UP))
    record = {"switches": [asdict(one) | {"gpus": joined[one.key]} for one in TECHNOLOGIES]}
    return Answer(record, [table(head, *rows)])


@command(
    "advise",
    "which parallelisms for a model and its GPUs",
    "Rules of thumb of the paper (Tables 1 and 2): which parallelisms suit a model and its GPUs, and what each "
    "communicates.",
    Option("--parameters X", number, "of the model, such as 70e9", required=True),
    Option("--gpus N", whole, "GPUs", required=True),
    JSON,
    flags={},
)
def advise(options: Arguments) -> Answer:
    """Return which parallelisms suit a model and its GPUs."""
    from topox_core.rails.advice import TABLE_2, advise

    advice = advise(options.parameters, options.gpus)
    record = {
        **record_of(advice, "model parameters gpus note"),
        "strategies": list(advice.practice.strategies) if advice.practice else [],
        "parallelisms": [asdict(row) for row in TABLE_2],
    }
    rows = (
        (row.title, row.memory, row.collective, row.frequency, "yes" if row.on_rail else "no")
        for row in TABLE_2
    )
    head = ("parallelism", "splits", "operation", "how often", "on the rail")
    return Answer(record, (advice.note, "", table(head, *rows)))


COMMANDS = Commands(
    "rails",
    "photonic rails: windows, reconfiguration delay, control plane, cost",
    "Photonic rails: what a job sends on a rail, the windows between, what switching in them costs.",
    (
        count,
        rails_delay.run,
        switches,
        rails_simulate.simulate,
        rails_simulate.graph,
        rails_windows.run,
        rails_simulate.rail_bytes,
        advise,
        rails_cost.run,
    ),
)
