"""``rails delay``: iteration time at switching delays, of windows, a job, or an execution."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from topox_core.cli.command import Answer, Arguments, command
from topox_core.cli.files import read
from topox_core.cli.options import JSON, Option, number, wrong_option
from topox_core.cli.printing import figure, percent, table
from topox_core.cli.rails_simulate import CHANGES, preset_of
from topox_core.cli.rails_windows import ON_FABRIC, executed
from topox_core.errors import InputError, errors_in_file
from topox_core.io.json import record_of

if TYPE_CHECKING:
    from topox_core.rails.delay import DelayStudy, Source


@command(
    "delay",
    "iteration time at reconfiguration delays: of windows, a job, or an execution",
    "Iteration time at reconfiguration delays, on demand and provisioned. Of a list of windows in series: on demand "
    "every window pays all of the delay, provisioned what does not fit into the window. A job, or an execution "
    "of any fabric carried by one photonic rail, is simulated.",
    Option("--base-ms T", number, "iteration without switching (default: the file's)"),
    Option("--window-ms A", number, "a window; may be repeated", repeated=True),
    Option("--windows FILE", str, "a list of windows (.json, .csv) instead"),
    Option("--measured", bool, "the authors' measured list instead"),
    Option("--preset NAME", str, "a job instead (rails simulate --list shows them)"),
    CHANGES,
    Option("--execution GRAPH CLUSTER", str, "a task graph as a fabric runs it instead", nargs=2),
    *ON_FABRIC,
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
    flags={"windows": "--window-ms", "delays_ms": "--delay-ms", "PRESET": "--preset"},
)
def run(options: Arguments) -> Answer:
    """Return iteration times at delays."""
    from topox_core.rails.delay import slowest_switch, study

    source, windows = _source(options)
    result = study(source, options.delay_ms)
    record: dict[str, Any] = {
        "source": result.source,
        "base_ms": result.base_ms,
        "windows": windows,
        **record_of(result.rows[0], "delay_ms on_demand_ms provisioned_ms"),
        "rows": [asdict(row) for row in result.rows],
    }
    if options.limit_percent is not None:
        record["slowest_switch_ms"] = {
            name: slowest_switch(source, options.limit_percent, name == "provisioned")
            for name in ("on_demand", "provisioned")
        }
    return Answer(record, _lines(options, result, record))


def _lines(options: Arguments, result: DelayStudy, record: dict[str, Any]) -> Iterator[str]:
    rows = (
        (
            figure(row.delay_ms, "ms"),
            figure(row.on_demand_ms, "ms"),
            percent(result.overhead(row.on_demand_ms) / 100),
            figure(row.provisioned_ms, "ms"),
            percent(result.overhead(row.provisioned_ms) / 100),
        )
        for row in result.rows
    )
    yield table(("delay", "on demand", "over", "provisioned", "over"), *rows)
    for name, value in record.get("slowest_switch_ms", {}).items():
        words = "any switch" if value is None else figure(value, "ms")
        control = name.replace("_", " ")
        yield f"slowest switch within {options.limit_percent:g} %, {control}: {words}"


def _source(options: Arguments) -> tuple[Source, int | None]:
    """Return the source of a delay study, and its number of listed windows (None: simulated)."""
    from topox_core.rails.builder import build
    from topox_core.rails.delay import execution_source, iteration_source
    from topox_core.rails.iteration import Rail

    sources = ("window_ms", "windows", "measured", "preset", "execution")
    chosen = [f"--{name.replace('_', '-')}" for name in sources if getattr(options, name)]
    if len(chosen) > 1:
        raise wrong_option(chosen[1], f"cannot be given with {chosen[0]}")
    if options.changes and not options.preset:
        raise wrong_option("--set", "changes a preset: needs --preset")
    if not options.preset and not options.execution:
        return _listed(options)
    if options.base_ms is not None:
        raise wrong_option(
            "--base-ms", f"cannot be given with {chosen[0]}, which has a length of its own"
        )
    if options.preset:
        job = preset_of(options)
        rail = Rail(nic_gbps=job.machine.nic_gbps)
        return iteration_source(build(job, fold=True), rail), None
    graph, execution = executed(options.execution, options)
    with errors_in_file(options.execution[0]):
        return replace(execution_source(execution), name=graph.name), None


def _listed(options: Arguments) -> tuple[Source, int]:
    """Return the windows as what a delay study asks, from options, a file or the authors' list, and their number."""
    from topox_core.rails.delay import windows_source
    from topox_core.rails.measured import WINDOWS, WINDOWS_ITERATION_MS
    from topox_core.rails.window_file import load_windows

    base, lengths = options.base_ms, options.window_ms or []
    if options.windows:
        listed = load_windows(read(options.windows), options.windows)
        lanes = {(one.rank, one.rail) for one in listed.windows}
        if len(lanes) > 1:
            raise InputError(
                f"holds windows of {len(lanes)} ranks and rails; a delay study needs those of one, in series",
                file=options.windows,
            )
        lengths = [one.length_ms for one in listed.windows]
        base = listed.iteration_ms if base is None else base
    elif options.measured:
        lengths = [one.length_ms for one in WINDOWS]
        base = WINDOWS_ITERATION_MS if base is None else base
    if base is None:
        raise wrong_option("--base-ms", "is needed: how long the iteration lasts without switching")
    return windows_source(base, lengths), len(lengths)
