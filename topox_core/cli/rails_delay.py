"""``rails delay``: iteration time at switching delays, of windows, a job, or an execution."""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from topox_core.cli import options as given
from topox_core.cli.files import read
from topox_core.cli.options import JSON, Option, add_options, number, wrong_option
from topox_core.cli.printing import as_json, figure, percent, table
from topox_core.cli.rails_simulate import add_changes, preset_of
from topox_core.cli.rails_windows import add_fabric, executed
from topox_core.errors import InputError, errors_in_file
from topox_core.io.json import record_of

if TYPE_CHECKING:
    from topox_core.rails.delay import Source

# Options of settings that are called otherwise.
_FLAGS = {"windows": "--window-ms", "delays_ms": "--delay-ms", "PRESET": "--preset"}


def add_delay(parts: argparse._SubParsersAction[Any]) -> None:
    """Add the command to those of ``rails``."""
    command = given.add_command(
        parts,
        "delay",
        _delay,
        "iteration time at reconfiguration delays: of windows, a job, or an execution",
        "Iteration time at reconfiguration delays, on demand and provisioned. Of a list of windows in series: on demand "
        "every window pays all of the delay, provisioned what does not fit into the window. A job, or an execution "
        "of any fabric carried by one photonic rail, is simulated.",
        Option("--base-ms T", number, "iteration without switching (default: the file's)"),
        Option("--window-ms A", number, "a window; may be repeated", repeated=True),
        Option("--windows FILE", str, "a list of windows (.json, .csv) instead"),
        Option("--measured", bool, "the authors' measured list instead"),
        Option("--preset NAME", str, "a job instead (rails simulate --list shows them)"),
        add_changes,
    )
    command.add_argument(
        "--execution",
        nargs=2,
        metavar=("GRAPH", "CLUSTER"),
        help="a task graph as a fabric runs it instead",
    )
    add_fabric(command)
    add_options(
        command,
        Option(
            "--delay-ms R",
            number,
            "reconfiguration delay; may be repeated",
            required=True,
            repeated=True,
        ),
        Option(
            "--limit-percent X",
            number,
            "also find the slowest switch that keeps the overhead within X %%",
        ),
        JSON,
    )


def _delay(options: argparse.Namespace) -> int:
    from topox_core.rails.delay import slowest_switch, study

    with given.settings_as_options(options, _FLAGS):
        source, windows = _source(options)
        result = study(source, options.delay_ms)
        slowest = None
        if options.limit_percent is not None:
            slowest = {
                name: slowest_switch(source, options.limit_percent, name == "provisioned")
                for name in ("on_demand", "provisioned")
            }
    first = result.rows[0]
    if options.json:
        record: dict[str, Any] = {
            "source": result.source,
            "base_ms": result.base_ms,
            "windows": windows,
            **record_of(first, "delay_ms on_demand_ms provisioned_ms"),
            "rows": [asdict(row) for row in result.rows],
        }
        if slowest is not None:
            record["slowest_switch_ms"] = slowest
        as_json(record)
        return 0
    table(
        ("delay", "on demand", "over", "provisioned", "over"),
        *(
            (
                figure(row.delay_ms, "ms"),
                figure(row.on_demand_ms, "ms"),
                percent(result.overhead(row.on_demand_ms) / 100),
                figure(row.provisioned_ms, "ms"),
                percent(result.overhead(row.provisioned_ms) / 100),
            )
            for row in result.rows
        ),
    )
    if slowest is not None:
        for name, value in slowest.items():
            words = "any switch" if value is None else figure(value, "ms")
            print(
                f"slowest switch within {options.limit_percent:g} %, {name.replace('_', ' ')}: {words}"
            )
    return 0


def _source(options: argparse.Namespace) -> tuple[Source, int | None]:
    """Return the source of a delay study, and its number of listed windows (None: simulated)."""
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
        raise wrong_option(chosen[1], f"cannot be given with {chosen[0]}")
    if options.changes and not options.preset:
        raise wrong_option("--set", "changes a preset: needs --preset")
    if not options.preset and not options.execution:
        source, lengths = _listed(options)
        return source, len(lengths)
    if options.base_ms is not None:
        raise wrong_option(
            "--base-ms", f"cannot be given with {chosen[0]}, which has a length of its own"
        )
    return _simulated(options), None


def _simulated(options: argparse.Namespace) -> Source:
    from topox_core.rails.builder import build
    from topox_core.rails.delay import execution_source, iteration_source
    from topox_core.rails.iteration import Rail

    if options.preset:
        job = preset_of(options)
        return iteration_source(build(job, fold=True), Rail(nic_gbps=job.machine.nic_gbps))
    graph_path, cluster_path = options.execution
    graph, execution = executed(graph_path, cluster_path, options)
    with errors_in_file(graph_path):
        return replace(execution_source(execution), name=graph.name)


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
        raise wrong_option("--base-ms", "is needed: how long the iteration lasts without switching")
    return windows_source(base, lengths), lengths
