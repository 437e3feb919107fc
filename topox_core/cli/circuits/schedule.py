"""``schedule``: solve, check and print one training iteration; ``check``: a result; ``rcpsp``: a PSPLIB file, solved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from topox_core.check.checker import check
from topox_core.check.schedule_file import read_schedule
from topox_core.cli.shared.command import Answer, Arguments, Lines, command, ctrl_c_stops
from topox_core.cli.shared.files import (
    FIGURE,
    check_figure,
    failed_assertions,
    read_graph_and_cluster,
    write_figure,
    write_result,
)
from topox_core.cli.shared.library import KEEP, check_keep, keep
from topox_core.cli.shared.options import FILES, JSON, Group, Option
from topox_core.cli.shared.printing import ended, figure, note, percent, table
from topox_core.cli.shared.settings import (
    CLUSTER_KEYS,
    LIMITS,
    PRESET,
    SOLVE,
    cluster_overrides,
    planner,
    settings,
)
from topox_core.fabrics.options import FabricOptions
from topox_core.io.assertions import FAILED
from topox_core.io.content import read, record_of
from topox_core.model.execution import measures
from topox_core.schedule.engines.waiting_workers import expect_request
from topox_core.text.choices import chosen_words

if TYPE_CHECKING:
    from topox_core.schedule.results.result import Result, TracePoint

DETAILS = ("tasks", "transfers", "circuits")
SHOWN_VIOLATIONS = 20
# Of a PSPLIB file.
ENGINES = ("auto", "list", "highs", "cpsat")


@command(
    "Schedule a task graph on a cluster; print makespan, bound and verdict.",
    *FILES,
    *planner(
        "auto|list|highs|cpsat|printed",
        "auto (default) runs what there is side by side; list needs no exact solver; highs proves on slots only",
    ),
    Option(
        "--output FILE",
        str,
        "write the whole result, tasks and circuits included",
        over=("graph", "cluster"),
    ),
    FIGURE,
    JSON,
    *KEEP,
    *SOLVE,
)
def run(options: Arguments) -> int:
    """Solve, have the result checked independently, print it; 1 without a valid schedule, 3 if its job asserts another."""
    from topox_core.fabrics.planning.scheduled import schedule
    from topox_core.schedule.results.result_file import to_record
    from topox_core.warm_up import get_ready

    asked = settings(options)
    expect_request(asked.engine)
    check_figure(options)
    check_keep(options)
    overrides = cluster_overrides(options)
    graph, cluster = read_graph_and_cluster(options.graph, options.cluster, overrides)
    if asked.engine != "list":
        get_ready()
    with ctrl_c_stops() as stop:
        result = schedule(graph, cluster, asked, stop, _note_point)
    record = to_record(result)
    # Only what was changed: the rest is the cluster file's to say, and the checker's to read there.
    record["settings"]["cluster"] = overrides
    verdict: dict[str, Any] = {}
    try:
        if result.execution is not None:
            report = check(graph, cluster, record)
            verdict["checked"] = report.ok
            if not report.ok:
                verdict["violations"] = [str(violation) for violation in report.violations]
    finally:  # nor does who interrupts the checker lose a long solve
        write_result(options, options.output, record, verdict)
    summary = {key: value for key, value in record.items() if key not in DETAILS} | verdict
    # What was found is printed even if it cannot be drawn or kept.
    Answer(summary, _lines(summary, result)).show(options)
    write_figure(options, result)
    if result.execution is not None:
        keep(options, cluster, asked, FabricOptions(), result)
    elif options.keep is not None:
        note("not kept: there is no schedule")
    if not summary.get("checked", False):
        return 1
    values = {"iteration_ms": result.makespan_ms, **summary}
    return FAILED if failed_assertions(options.graph, values) else 0


def _note_point(line: TracePoint, unit: str = "ms") -> None:
    makespan, bound = figure(line.incumbent_ms, unit), figure(line.bound_ms, unit)
    note(f"{line.elapsed_s:7.1f} s  makespan {makespan}  bound {bound}  ({line.source})")


def _lines(summary: dict[str, Any], result: Result) -> Lines:
    on_slots, best_ms = summary["clock"] == "slots", summary["best_switching_ms"]
    ms = {key: figure(one, "ms") for key, one in summary.items() if key.endswith("_ms")}
    how = ended(*(summary[key] for key in ("stopped_by", "wall_s", "working_s")))
    rounding = (
        f"; rounding raises the bound by {percent(summary['rounding'])}"
        if on_slots
        else ", for planning only: times are not rounded"
    )
    switching = summary["chosen"]["switching"]
    pays = (
        best_ms is not None and f"the best plan found that switches takes {ms['best_switching_ms']}"
    )
    changes = "circuits change during the iteration" if switching != "fixed" else pays or ""
    found = None if result.execution is None else measures(result.execution)
    choice = chosen_words(result.settings.lowering, result.settings.free)
    words = ("no", "the checker found the violations below"), ("yes", "every constraint holds")
    slotted = not on_slots and summary["slotted_ms"] is not None
    first = "its first circuits are set up before it begins"
    yield table(
        ("makespan", ms["makespan_ms"], summary["status"]),
        slotted and ("on slots", ms["slotted_ms"], "the best plan on whole slots"),
        summary["first_ms"] is not None and ("first iteration", ms["first_ms"], first),
        ("bound", ms["bound_ms"], summary["bound_by"]),
        ("gap", percent(summary["gap"]), how),
        ("tick", ms["tick_ms"], f"slot {ms['slot_ms']}{rounding}"),
        not on_slots and ("switching", switching, changes),
        found is not None
        and (
            "circuits",
            f"{found.circuits_used:,}",
            f"{found.circuits_changed:,} changes, dark for {figure(found.dark_ms, 'ms')} in all",
        ),
        choice and ("chosen", "", choice),
        "checked" in summary and ("checked", *words[summary["checked"]]),
    )
    yield from (f"  {line}" for line in summary.get("violations", ()))
    yield summary.get("message") or None


@command(
    "Check a schedule with code that the engines do not share, and list every violated "
    "constraint by name and equation. Choices not given are those of the result.",
    Option("graph GRAPH", str, "the task graph that was scheduled"),
    Option("cluster CLUSTER", str, "the cluster that it was scheduled on"),
    Option("schedule SCHEDULE", str, "the result: .schedule.json, also .gz"),
    JSON,
    Group("model, in place of the result's", PRESET),
    CLUSTER_KEYS,
)
def check_result(options: Arguments) -> Answer:
    """Check the schedule and say what is violated; 1 if a constraint is."""
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


@command(
    "Solve a single-mode PSPLIB file (.sm); print makespan, bound, status.",
    Option("file FILE.sm", str, "single-mode PSPLIB instance"),
    Option("--engine", ENGINES, "default auto", "auto"),
    JSON,
    LIMITS,
)
def rcpsp(options: Arguments) -> Answer:
    """Solve the instance; 1 without a schedule."""
    from topox_core.schedule.rcpsp.psplib import read_psplib
    from topox_core.schedule.solve import solve_problem
    from topox_core.warm_up import get_ready

    asked = settings(options)
    expect_request(asked.engine)
    problem = read_psplib(read(options.file), options.file)
    if asked.engine != "list":
        get_ready()
    with ctrl_c_stops() as stop:
        result = solve_problem(problem, asked, stop, lambda one: _note_point(one, "periods"))
    makespan = None if result.makespan_ms is None else round(result.makespan_ms)
    record = {
        "file": options.file,
        "jobs": problem.n,
        "engine": options.engine,
        "status": result.status,
        "makespan": makespan,
        "bound": round(result.bound_ms),
        "gap": result.gap,
        "bound_by": result.bound_by,
        "stopped_by": result.stopped_by,
        "wall_s": round(result.wall_s, 3),
        "message": result.message,
    }
    lines = table(
        ("makespan", figure(makespan, "periods"), result.status),
        ("bound", figure(round(result.bound_ms), "periods"), result.bound_by),
        ("gap", percent(result.gap), ended(result.stopped_by, round(result.wall_s, 3))),
    )
    return Answer(record, filter(None, (lines, result.message)), 1 if makespan is None else 0)
