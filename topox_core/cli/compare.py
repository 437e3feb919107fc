"""``compare``: one task graph under every fabric and controller, side by side."""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from topox_core.cli import options as given
from topox_core.cli.fabric_options import add_fabric_options, fabric_options
from topox_core.cli.files import FIGURE, check_figure, read_graph_and_cluster, write_figure
from topox_core.cli.library_options import add_keep, check_keep, keep
from topox_core.cli.options import JSON, Option
from topox_core.cli.printing import as_json, ctrl_c_stops, figure, note, percent, table
from topox_core.fabrics.registry import UNUSUAL, USUAL
from topox_core.io.json import record_of

if TYPE_CHECKING:
    from topox_core.fabrics.run import FabricRun
    from topox_core.library.record import RunRecord
    from topox_core.studies.kept_run import Kept


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command to the command line."""
    command = given.add_command(
        commands,
        "compare",
        run,
        "run a task graph under every fabric and controller",
        "Run one task graph under every fabric and controller; print who wins and why.",
        given.add_files,
        Option(
            "--fabrics LIST",
            str,
            f"names separated by commas (default: {','.join(USUAL)}; also {', '.join(UNUSUAL)})",
        ),
    )
    given.add_planner(
        command.add_argument_group("the scheduled fabric"),
        "list|auto|highs|printed",
        "who plans it (default list)",
    )
    JSON.add_to(command)
    FIGURE.add_to(command)
    add_keep(command)
    add_fabric_options(command)
    given.add_solve(command)


def run(options: argparse.Namespace) -> int:
    """Run the fabrics one after the other and print them; 1 if it was stopped before the last."""
    from topox_core.fabrics.compare import chosen, compare, fastest
    from topox_core.fabrics.comparison_words import sentence

    check_figure(options)
    check_keep(options)
    settings = given.settings(options)
    if options.engine is None:
        settings = replace(settings, engine="list")
    listed = ",".join(USUAL) if options.fabrics is None else options.fabrics
    names = chosen(name.strip() for name in listed.split(",") if name.strip())
    graph, cluster = read_graph_and_cluster(
        options.graph, options.cluster, given.cluster_overrides(options)
    )
    fabric = fabric_options(options, cluster)
    with ctrl_c_stops() as stop:
        runs = compare(graph, cluster, settings, names, fabric, stop, _note_run)
    if options.json:
        as_json(
            {
                "fabrics": {name: _record(one) for name, one in runs.items()},
                "fastest": list(fastest(runs)),
                "sentence": sentence(runs),
            }
        )
    else:
        _print(runs)
        print(sentence(runs))
    write_figure(options, runs)
    keep(options, cluster, settings, fabric, lambda kept: _records(runs, kept))
    return 0 if len(runs) == len(names) else 1


def _records(runs: dict[str, FabricRun], kept: Kept) -> list[RunRecord]:
    from topox_core.studies.kept_run import record_of_fabric_run

    return [record_of_fabric_run(run, kept) for run in runs.values()]


def _note_run(run: FabricRun) -> None:
    note(f"{run.fabric}: {figure(run.iteration_ms, 'ms')}")


def _record(run: FabricRun) -> dict[str, Any]:
    """Return what a script needs of a run."""
    from topox_core.schedule.result import gap

    record: dict[str, Any] = {
        **record_of(run, "iteration_ms first_ms bound_ms bound_by circuits_changed dark_ms"),
        "gap": gap(run.iteration_ms, run.bound_ms),
        **record_of(run.traffic, "bandwidth_tax mean_hops longest_hops"),
        "time": asdict(run.breakdown),
    }
    if run.result is not None:
        record |= record_of(run.result, "status stopped_by slot_ms")
    if run.chosen is not None:
        record["chosen"] = run.chosen.as_record()
    if run.message:
        record["message"] = run.message
    return record


def _print(runs: dict[str, FabricRun]) -> None:
    """Print one row a fabric; the four middle columns are the critical chain and add up to the iteration."""
    from topox_core.fabrics.comparison_words import first_iterations
    from topox_core.fabrics.packet import SLOWER_BY_PRICE
    from topox_core.text.choices import chosen_by_all

    head = "fabric iteration compute exposed dark waiting bound changes tax"
    rows: list[tuple[str, ...]] = [(*head.split(), "what binds")]
    for name, run in runs.items():
        time = run.breakdown
        parts = (time.compute_ms, time.exposed_ms, time.dark_ms, time.waiting_ms)
        share = [
            percent(round(part / run.iteration_ms, 6) if run.iteration_ms else 0.0)
            for part in parts
        ]
        rows.append(
            (
                name,
                figure(run.iteration_ms, "ms"),
                *share,
                figure(run.bound_ms, "ms"),
                f"{run.circuits_changed:,}",
                f"{run.traffic.bandwidth_tax:.3g}",
                run.bound_by,
            )
        )
    table(*rows)
    if sentence := first_iterations(runs):
        print(sentence)
    if sentence := chosen_by_all({name: run.chosen_words for name, run in runs.items()}):
        print(sentence)
    for run in runs.values():
        if run.message and (run.fabric == "scheduled" or SLOWER_BY_PRICE in run.message):
            print(run.message if run.fabric == "scheduled" else f"{run.fabric}: {run.message}.")
