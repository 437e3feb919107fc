"""``rails simulate``, ``rails graph``: one iteration of a job, run or as a task graph."""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from topox_core.cli import options as given
from topox_core.cli.files import cluster_beside, must_be_writable, write, write_graph
from topox_core.cli.options import (
    JSON,
    Group,
    Option,
    add_options,
    key_and_value,
    number,
    value_of,
    whole,
    wrong_option,
    yes_or_no,
)
from topox_core.cli.printing import as_json, figure, note, percent, show, table
from topox_core.cli.rails_windows import windows_file
from topox_core.errors import InputError, printable, unknown
from topox_core.io.json import record_of

if TYPE_CHECKING:
    from topox_core.rails.iteration import Rail, RailRun, Window
    from topox_core.training.job import Job


def add_preset(command: argparse.ArgumentParser) -> None:
    """Add the preset by its name, ``--list`` and ``--set``."""
    add_options(
        command,
        Option("preset PRESET", str, "a job, such as llama3-8b-perlmutter", nargs="?"),
        Option("--list", bool, "show the presets", dest="listing"),
    )
    add_changes(command)


def add_changes(command: argparse.ArgumentParser) -> None:
    """Add the option that changes keys of a preset."""
    Option(
        "--set KEY=VALUE",
        str,
        "change a key of the preset (gpus, tensor, pipeline, data, microbatches, shape, ...); "
        "may be repeated",
        [],
        dest="changes",
        repeated=True,
    ).add_to(command)


def preset_of(options: argparse.Namespace) -> Job:
    """Return the preset with what ``--set`` changes.

    Raises
    ------
    InputError
        If there is none of that name, a key is unknown, or the values do not go together.
    """
    from topox_core.rails.presets import KEYS, changed, preset

    if options.preset is None:
        raise wrong_option("PRESET", "is needed (--list shows them)")
    try:
        base = preset(options.preset)
    except InputError as error:
        raise wrong_option("PRESET", error.problem) from None
    changes: dict[str, Any] = {}
    for pair in options.changes:
        key, text = key_and_value(pair)
        if key not in KEYS:
            raise wrong_option("--set", f"{printable(key)}: {unknown(key, KEYS)}")
        none = (key, text) == ("iteration_ms", "none")
        changes[key] = None if none else value_of(text)
    if not changes:
        return base
    return changed(base, changes).changed(title=f"{base.heading}, changed")


def list_presets(as_record: bool) -> int:
    """Print the presets."""
    from topox_core.rails.presets import PRESETS, degrees_in_words

    rows = [(one.name, one.title, degrees_in_words(one), one.source) for one in PRESETS.values()]
    if as_record:
        names = ("name", "title", "words", "source")
        as_json({"presets": [dict(zip(names, row, strict=True)) for row in rows]})
    else:
        table(("preset", "job", "degrees"), *(row[:3] for row in rows))
    return 0


SHOWN = 12
# Options of settings that are called otherwise.
_FLAGS = {"reconfiguration_ms": "--delay-ms"}


def add(parts: argparse._SubParsersAction[Any]) -> None:
    """Add both commands to those of ``rails``."""
    _add_simulate(parts)
    _add_graph(parts)


def _add_simulate(parts: argparse._SubParsersAction[Any]) -> None:
    given.add_command(
        parts,
        "simulate",
        _simulate,
        "run a job's iteration on a rail with its control plane",
        "Simulate one iteration of a job on one photonic rail: profiled, then provisioned or on demand. The replicas "
        "of a stage are folded to one unless --fold no.",
        add_preset,
        Group(
            "rail",
            (
                Option(
                    "--delay-ms R", number, "reconfiguration delay (default 0, or the switch's)"
                ),
                Option("--link-up-ms X", number, "until a NIC sees light (default 0)", 0.0),
                Option(
                    "--provisioning on|off",
                    _on_off,
                    "ask for circuits ahead of the traffic (default on)",
                    True,
                ),
                Option(
                    "--switch KEY",
                    str,
                    "plzt, sip, rotornet, mems, piezo, lc or robotic: its delay and its ports",
                ),
                Option(
                    "--split",
                    bool,
                    "allow a rail that is wider than the switch, over several of them",
                ),
                Option("--electrical", bool, "a packet-switched rail: nothing is ever switched"),
                Option(
                    "--static-split",
                    bool,
                    "ports dealt to the parallelisms for good (constraint C3)",
                ),
                Option("--nic-ports N", whole, "ports of a NIC (default 2)"),
                Option("--latency-us X", number, "of one step of a collective (default 0)", 0.0),
            ),
        ),
        Option("--fold yes|no", yes_or_no, "default yes", True),
        Option(
            "--by-layer yes|no",
            yes_or_no,
            "a collective for each layer (default yes), or one a pass",
            True,
        ),
        Option(
            "--limit-percent X",
            number,
            "also find the slowest switch that keeps the overhead within X %%",
        ),
        Option("--output FILE", str, "write the undisturbed windows (.json or .csv)"),
        JSON,
    )


def _on_off(text: str) -> bool:
    if text.lower() not in ("on", "off"):
        raise argparse.ArgumentTypeError(f"must be on or off (got {text!r})")
    return text.lower() == "on"


def _rail(options: argparse.Namespace, job: Job) -> tuple[Rail, int]:
    """Return the rail, and how many switches it takes (0 where none was named)."""
    from topox_core.rails.iteration import Rail
    from topox_core.rails.technologies import fits, technology

    delay, switches = options.delay_ms, 0
    if options.switch is not None:
        try:
            one = technology(options.switch)
            switches = fits(one, job.servers, split=options.split)
        except InputError as error:
            raise wrong_option("--switch", error.problem) from None
        delay = one.reconfiguration_ms if delay is None else delay
    ports = options.nic_ports if options.nic_ports is not None else 4 if options.static_split else 2
    return Rail(
        job.machine.nic_gbps,
        ports,
        options.latency_us,
        not options.electrical,
        delay or 0.0,
        options.link_up_ms,
        options.provisioning,
        options.static_split,
    ), switches


def _simulate(options: argparse.Namespace) -> int:
    from topox_core.rails.builder import build
    from topox_core.rails.control.simulate import simulate
    from topox_core.rails.delay import check_limit, iteration_source, slowest_switch
    from topox_core.rails.timing import check_rail

    if options.listing:
        return list_presets(options.json)
    if options.output:
        must_be_writable(options.output)
    job = preset_of(options)
    rail, switches = _rail(options, job)
    with given.settings_as_options(options, _FLAGS):
        # What cannot be is refused before a large iteration is built.
        check_rail(rail)
        if options.limit_percent is not None:
            check_limit(options.limit_percent)
        iteration = build(job, fold=options.fold, by_layer=options.by_layer)
        run = simulate(iteration, rail)
        windows = run.windows
        if rail.dark_ms:
            undisturbed = replace(rail, provisioned=True, static_split=False)
            undisturbed = replace(undisturbed, reconfiguration_ms=0.0, link_up_ms=0.0)
            windows = simulate(iteration, undisturbed).windows
        limit = None
        if options.limit_percent is not None:
            limit = slowest_switch(
                iteration_source(iteration, rail), options.limit_percent, rail.provisioned
            )
    note(f"{job.heading}: {len(iteration):,} nodes on {iteration.ranks:,} ranks")
    if options.output:
        write(
            options.output, windows_file(job.heading, run.undisturbed_ms, windows, options.output)
        )
    record = _record(job, run, windows, switches)
    if options.limit_percent is not None:
        record["slowest_switch_ms"] = limit
    return show(
        options,
        record | {"windows": [asdict(one) for one in windows]},
        lambda: _print(job, run, windows, record),
    )


def _record(job: Job, run: RailRun, windows: tuple[Window, ...], switches: int) -> dict[str, Any]:
    from topox_core.rails.window_lengths import share_above

    return {
        "preset": job.name,
        "gpus": job.plan.gpus,
        **record_of(run, "iteration_ms undisturbed_ms stall_ms reconfigurations"),
        "overhead": run.stall_ms / run.undisturbed_ms if run.undisturbed_ms else 0.0,
        "messages": run.messages_sent,
        "delay_ms": run.rail.reconfiguration_ms,
        **record_of(run.rail, "link_up_ms provisioned"),
        "windows_counted": len(windows),
        "share_above_1_ms": share_above(windows, 1.0) if windows else None,
        "share_above_delay": share_above(windows, run.rail.dark_ms) if windows else None,
        **({"switches_per_rail": switches} if switches else {}),
    }


def _print(job: Job, run: RailRun, windows: tuple[Window, ...], record: dict[str, Any]) -> None:
    from topox_core.rails.presets import degrees_in_words
    from topox_core.rails.technologies import SPLIT_NOTE

    control = "provisioned" if run.rail.provisioned else "on demand"
    rows: list[tuple[str, ...]] = [
        ("job", f"{job.heading}; {degrees_in_words(job)}"),
        ("iteration", figure(run.iteration_ms, "ms")),
        ("without switching", figure(run.undisturbed_ms, "ms")),
        (
            "stall",
            f"{figure(run.stall_ms, 'ms')}, {percent(record['overhead'])} ({control}, "
            f"{run.rail.dark_ms:g} ms a change)",
        ),
        ("reconfigurations", f"{run.reconfigurations:,}"),
        ("messages", f"{run.messages_sent:,}"),
        ("windows", f"{len(windows):,}, {percent(record['share_above_1_ms'])} above 1 ms"),
    ]
    if record.get("switches_per_rail", 1) > 1:
        rows.append(("switches of a rail", f"{record['switches_per_rail']:,}; {SPLIT_NOTE}"))
    if "slowest_switch_ms" in record:
        slowest = record["slowest_switch_ms"]
        rows.append(("slowest switch", "any" if slowest is None else figure(slowest, "ms")))
    table(*rows)
    if windows:
        print()
        _print_windows(windows)


def _print_windows(windows: tuple[Window, ...]) -> None:
    table(
        ("rank", "before", "after", "begins", "length", "bytes after it"),
        *(
            (
                f"{one.rank}",
                one.before,
                f"{one.after} {one.operation}".strip(),
                figure(one.begin_ms, "ms"),
                figure(one.length_ms, "ms"),
                f"{one.size_bytes:,.0f}",
            )
            for one in windows[:SHOWN]
        ),
    )
    if len(windows) > SHOWN:
        print(f"and {len(windows) - SHOWN:,} more (--json lists all)")


def _add_graph(parts: argparse._SubParsersAction[Any]) -> None:
    given.add_command(
        parts,
        "graph",
        _graph,
        "write a job's iteration on one rail as a task graph",
        "Write a job's iteration on one rail as a task graph for every fabric, and the cluster that suits it.",
        add_preset,
        Option(
            "--by-layer yes|no",
            yes_or_no,
            "a collective for each layer, or one a pass (default no)",
            False,
        ),
        Option("--output FILE", str, "where to: the cluster goes beside it"),
        JSON,
    )


def _graph(options: argparse.Namespace) -> int:
    from topox_core.rails.task_graph import as_task_graph

    if options.listing:
        return list_presets(options.json)
    if options.output is None:
        raise wrong_option("--output", "is needed: where the task graph is written")
    beside = cluster_beside(options.output)
    graph, cluster = as_task_graph(preset_of(options), by_layer=options.by_layer)
    write_graph(options.output, graph, beside, cluster)
    return show(
        options,
        {
            "graph": options.output,
            "cluster": beside,
            "tasks": len(graph.tasks),
            "servers": cluster.servers,
        },
        lambda: print(
            f"{options.output}: {len(graph.tasks):,} tasks; {beside}: {cluster.servers} servers"
        ),
    )


CLASS_KEYS = "parallelism operation when calls size_bytes counted_bytes wire_bytes times"


def add_bytes(parts: argparse._SubParsersAction[Any]) -> None:
    """Add the command to those of ``rails``."""
    given.add_command(
        parts,
        "bytes",
        _bytes,
        "bytes that a rank of each stage moves over its rail, class by class",
        "Say what a rank of every pipeline stage moves over its rail in an iteration, by parallelism and operation, by formula.",
        add_preset,
        Option("--stage N", whole, "only this stage, from 0"),
        JSON,
    )


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
                    str(stage): [record_of(one, CLASS_KEYS) for one in of_stage]
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
