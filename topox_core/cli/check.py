"""``check``: the independent checker on a result file."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from topox_core.cli import options as given
from topox_core.cli.files import read, read_graph_and_cluster
from topox_core.cli.options import JSON, Option
from topox_core.cli.printing import note, show, table
from topox_core.io.json import record_of

if TYPE_CHECKING:
    from topox_core.check.report import CheckReport
    from topox_core.model.cluster import Cluster

SHOWN_VIOLATIONS = 20


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command to the command line."""
    command = given.add_command(
        commands,
        "check",
        run,
        "check a schedule against every constraint",
        "Check a schedule with code that the engines do not share, and list every violated "
        "constraint by name and equation. Choices not given are those of the result.",
        Option("graph GRAPH", str, "the task graph that was scheduled"),
        Option("cluster CLUSTER", str, "the cluster that it was scheduled on"),
        Option("schedule SCHEDULE", str, "the result: .schedule.json, also .gz"),
        JSON,
    )
    given.add_preset(command.add_argument_group("model, in place of the result's"))
    given.add_cluster_keys(command)


def run(options: argparse.Namespace) -> int:
    """Check the schedule and print the verdict; 1 if a constraint is violated."""
    from topox_core.check.checker import check
    from topox_core.check.schedule_file import read_schedule

    overrides = given.cluster_overrides(options)
    graph, cluster = read_graph_and_cluster(options.graph, options.cluster, overrides)
    record = read_schedule(read(options.schedule), options.schedule)
    report = check(
        graph,
        cluster,
        record,
        file=options.schedule,
        model=options.model,
        circuits=options.circuits,
        cluster_changes=overrides,
    )
    _tell_changes(cluster, record["settings"].get("cluster") or {}, set(overrides))
    show(options, as_record(report), lambda: _print(report))
    return 0 if report.ok else 1


def _tell_changes(cluster: Cluster, made_with: dict[str, Any], overridden: set[str]) -> None:
    """Say which keys of the cluster file did not count, because the result was made with others."""
    for key, value in made_with.items():
        if key not in overridden and getattr(cluster, key) != value:
            note(
                f"the result was made with {key} {value}, in place of the cluster file's {getattr(cluster, key)}"
            )


def as_record(report: CheckReport) -> dict[str, Any]:
    """Return the verdict as JSON has it: each constraint with its equation and the first of its violations."""
    constraints = [
        record_of(one, "name equation ok checked violated")
        | {"violations": [record_of(violation, "item message") for violation in one.violations]}
        for one in report.constraints
    ]
    return {"ok": report.ok, "violated": report.violated, "constraints": constraints}


def _print(report: CheckReport) -> None:
    rows = [
        (
            "holds" if one.ok else "VIOLATED",
            one.label,
            one.name,
            f"{one.checked:,} checked" + ("" if one.ok else f", {one.violated:,} violated"),
        )
        for one in report.constraints
    ]
    table(*rows, ("valid" if report.ok else "NOT VALID",))
    for line in report.lines(SHOWN_VIOLATIONS):
        print(f"  {line}")
