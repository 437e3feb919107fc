"""``schedule``: solve, check and print one training iteration."""

from __future__ import annotations

import argparse
import json
from functools import partial
from typing import TYPE_CHECKING, Any

from topox_core.cli import options as given
from topox_core.cli.files import (
    FIGURE,
    check_figure,
    must_be_writable,
    read_graph_and_cluster,
    write,
    write_figure,
)
from topox_core.cli.library_options import add_keep, check_keep, keep
from topox_core.cli.options import JSON, Option, add_options
from topox_core.cli.printing import ctrl_c_stops, ended, figure, note, percent, show, table

if TYPE_CHECKING:
    from topox_core.library.record import RunRecord
    from topox_core.schedule.result import Result, TracePoint
    from topox_core.studies.kept_run import Kept

DETAILS = ("tasks", "transfers", "circuits")


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command to the command line."""
    command = given.add_command(
        commands,
        "schedule",
        run,
        "schedule a task graph on a cluster",
        "Schedule a task graph on a cluster; print makespan, bound and verdict.",
        given.add_files,
    )
    given.add_planner(
        command,
        "auto|list|highs|cpsat|printed",
        "auto (default) runs what there is side by side; list needs no exact solver; highs proves on slots only",
    )
    add_options(
        command,
        Option("--output FILE", str, "write the whole result, tasks and circuits included"),
        FIGURE,
        JSON,
    )
    add_keep(command)
    given.add_solve(command)


def run(options: argparse.Namespace) -> int:
    """Solve, have the result checked independently, print it; 1 without a valid schedule."""
    from topox_core.check.checker import check
    from topox_core.fabrics.options import FabricOptions
    from topox_core.fabrics.scheduled import schedule
    from topox_core.schedule.engines.waiting_workers import exact_engine, expect_request
    from topox_core.schedule.result_file import to_record
    from topox_core.warm_up import get_ready

    settings = given.settings(options)
    expect_request([exact_engine(settings.engine)])
    if options.output:
        must_be_writable(options.output, (options.graph, options.cluster))
    check_figure(options)
    check_keep(options)
    overrides = given.cluster_overrides(options)
    graph, cluster = read_graph_and_cluster(options.graph, options.cluster, overrides)
    if settings.engine != "list":
        get_ready()
    with ctrl_c_stops() as stop:
        result = schedule(graph, cluster, settings, stop, _print_point)
    record = to_record(result)
    # Only what was changed: the rest is the cluster file's to say, and the checker's to read there.
    record["settings"]["cluster"] = overrides
    if options.output:
        write(options.output, json.dumps(record, allow_nan=False).encode())
    summary = {key: value for key, value in record.items() if key not in DETAILS}
    if result.execution is not None:
        report = check(graph, cluster, record)
        summary["checked"] = report.ok
        if not report.ok:
            summary["violations"] = [str(violation) for violation in report.violations]
    show(options, summary, lambda: _print(summary, result))
    write_figure(options, result)
    if result.execution is not None:
        keep(options, cluster, settings, FabricOptions(), partial(_records, result))
    elif options.keep is not None:
        note("not kept: there is no schedule")
    return 0 if summary.get("checked", False) else 1


def _records(result: Result, kept: Kept) -> list[RunRecord]:
    from topox_core.studies.kept_run import record_of_solve

    return [record_of_solve(result, kept)]


def _print_point(line: TracePoint) -> None:
    makespan, bound = figure(line.incumbent_ms, "ms"), figure(line.bound_ms, "ms")
    note(f"{line.elapsed_s:7.1f} s  makespan {makespan}  bound {bound}  ({line.source})")


def _switching(summary: dict[str, Any]) -> str:
    """Return what switching brings, in words."""
    if summary["chosen"]["switching"] != "fixed":
        return "circuits change during the iteration"
    best_ms = summary["best_switching_ms"]
    if best_ms is None:
        return ""
    return f"switching does not pay here: the best plan that does takes {figure(best_ms, 'ms')}"


def _print(summary: dict[str, Any], result: Result) -> None:
    from topox_core.model.measures import measures
    from topox_core.text.choices import chosen_words

    execution = result.execution
    on_slots = summary["clock"] == "slots"
    clock = f"slot {figure(summary['slot_ms'], 'ms')}" + (
        f"; rounding raises the bound by {percent(summary['rounding'])}"
        if on_slots
        else ", for planning only: times are not rounded"
    )
    rows: list[tuple[str, ...]] = [
        ("makespan", figure(summary["makespan_ms"], "ms"), summary["status"]),
        ("bound", figure(summary["bound_ms"], "ms"), summary["bound_by"]),
        (
            "gap",
            percent(summary["gap"]),
            ended(*(summary[key] for key in ("stopped_by", "wall_s", "working_s"))),
        ),
        ("tick", figure(summary["tick_ms"], "ms"), clock),
    ]
    if summary["first_ms"] is not None:
        first = figure(summary["first_ms"], "ms")
        rows.insert(1, ("first iteration", first, "its first circuits stand when it begins"))
    if not on_slots:
        if summary["slotted_ms"] is not None:
            slotted = figure(summary["slotted_ms"], "ms")
            rows.insert(1, ("on slots", slotted, "the best plan on whole slots"))
        rows.append(("switching", summary["chosen"]["switching"], _switching(summary)))
    if execution is not None:
        found = measures(execution)
        changes = (
            f"{found.circuits_changed:,} changes, dark for {figure(found.dark_ms, 'ms')} in all"
        )
        rows.append(("circuits", f"{found.circuits_used:,}", changes))
    if choice := chosen_words(result.settings.lowering, result.settings.free):
        rows.append(("chosen", "", choice))
    if "checked" in summary:
        rows.append(
            (
                "checked",
                "yes" if summary["checked"] else "no",
                "every constraint holds"
                if summary["checked"]
                else "the checker found the violations below",
            )
        )
    table(*rows)
    for line in summary.get("violations", ()):
        print(f"  {line}")
    if summary.get("message"):
        print(summary["message"])
