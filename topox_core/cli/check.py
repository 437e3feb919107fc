"""``check``: the independent checker on a result file."""

from __future__ import annotations

from topox_core.cli.command import Answer, Arguments, command
from topox_core.cli.files import read, read_graph_and_cluster
from topox_core.cli.options import (
    CLUSTER_KEYS,
    JSON,
    PRESET,
    Group,
    Option,
    cluster_overrides,
)
from topox_core.cli.printing import note, table
from topox_core.io.json import record_of

SHOWN_VIOLATIONS = 20


@command(
    "check",
    "check a schedule against every constraint",
    "Check a schedule with code that the engines do not share, and list every violated "
    "constraint by name and equation. Choices not given are those of the result.",
    Option("graph GRAPH", str, "the task graph that was scheduled"),
    Option("cluster CLUSTER", str, "the cluster that it was scheduled on"),
    Option("schedule SCHEDULE", str, "the result: .schedule.json, also .gz"),
    JSON,
    Group("model, in place of the result's", PRESET),
    CLUSTER_KEYS,
)
def run(options: Arguments) -> Answer:
    """Check the schedule and say what is violated; 1 if a constraint is."""
    from topox_core.check.checker import check
    from topox_core.check.schedule_file import read_schedule

    overrides = cluster_overrides(options)
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
    for key, value in (record["settings"].get("cluster") or {}).items():
        # Keys of the cluster file that do not count, because the result was made with others.
        if key not in overrides and getattr(cluster, key) != value:
            note(
                f"the result was made with {key} {value}, in place of the cluster file's {getattr(cluster, key)}"
            )
    constraints = [
        record_of(one, "name equation ok checked violated")
        | {"violations": [record_of(violation, "item message") for violation in one.violations]}
        for one in report.constraints
    ]
    rows = (
        (
            "holds" if one.ok else "VIOLATED",
            one.label,
            one.name,
            f"{one.checked:,} checked" + ("" if one.ok else f", {one.violated:,} violated"),
        )
        for one in report.constraints
    )
    return Answer(
        {"ok": report.ok, "violated": report.violated, "constraints": constraints},
        (
            table(*rows, ("valid" if report.ok else "NOT VALID",)),
            *(f"  {line}" for line in report.lines(SHOWN_VIOLATIONS)),
        ),
        0 if report.ok else 1,
    )
