"""``compare``: one task graph under every fabric and controller, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from topox_core.cli.command import Answer, Arguments, command
from topox_core.cli.files import FIGURE, check_figure, read_graph_and_cluster, write_figure
from topox_core.cli.library_options import KEEP, check_keep, keep
from topox_core.cli.options import (
    FABRICS,
    fabric_options,
    FILES,
    JSON,
    SOLVE,
    Group,
    Option,
    cluster_overrides,
    planner,
    settings,
)
from topox_core.cli.printing import ctrl_c_stops, figure, note, percent, table
from topox_core.fabrics.registry import UNUSUAL, USUAL
from topox_core.io.json import record_of

if TYPE_CHECKING:
    from topox_core.fabrics.run import FabricRun


@command(
    "compare",
    "run a task graph under every fabric and controller",
    "Run one task graph under every fabric and controller; print who wins and why.",
    *FILES,
    Option(
        "--fabrics LIST",
        str,
        f"names separated by commas (default: {','.join(USUAL)}; also {', '.join(UNUSUAL)})",
    ),
    Group(
        "the scheduled fabric", planner("list|auto|highs|printed", "who plans it (default list)")
    ),
    JSON,
    FIGURE,
    *KEEP,
    FABRICS,
    *SOLVE,
)
def run(options: Arguments) -> int:
    """Run the fabrics one after the other and print them; 1 if it was stopped before the last."""
    from topox_core.fabrics.compare import chosen, compare, fastest
    from topox_core.fabrics.comparison_words import sentence

    check_figure(options)
    check_keep(options)
    asked = settings(options, engine="list")
    listed = ",".join(USUAL) if options.fabrics is None else options.fabrics
    names = chosen(name.strip() for name in listed.split(",") if name.strip())
    graph, cluster = read_graph_and_cluster(
        options.graph, options.cluster, cluster_overrides(options)
    )
    fabric = fabric_options(options, cluster)
    with ctrl_c_stops() as stop:
        runs = compare(
            graph,
            cluster,
            asked,
            names,
            fabric,
            stop,
            lambda run: note(f"{run.fabric}: {figure(run.iteration_ms, 'ms')}"),
        )
    words = sentence(runs)
    record = {
        "fabrics": {name: _record(one) for name, one in runs.items()},
        "fastest": list(fastest(runs)),
        "sentence": words,
    }
    # What was found is printed even if it cannot be drawn or kept.
    Answer(record, _lines(runs, words)).show(options)
    write_figure(options, runs)
    keep(options, cluster, asked, fabric, runs)
    return 0 if len(runs) == len(names) else 1


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


def _lines(runs: dict[str, FabricRun], sentence: str) -> Iterator[str]:
    """Return one row a fabric; the four middle columns are the critical chain and add up to the iteration."""
    from topox_core.fabrics.comparison_words import first_iterations
    from topox_core.fabrics.packet import SLOWER_BY_PRICE
    from topox_core.text.choices import chosen_by_all

    head = "fabric iteration compute exposed dark waiting bound changes tax"
    yield table((*head.split(), "what binds"), *(_row(*one) for one in runs.items()))
    yield from filter(
        None,
        (
            first_iterations(runs),
            chosen_by_all({name: run.chosen_words for name, run in runs.items()}),
        ),
    )
    for run in runs.values():
        if run.message and (run.fabric == "scheduled" or SLOWER_BY_PRICE in run.message):
            yield run.message if run.fabric == "scheduled" else f"{run.fabric}: {run.message}."
    yield sentence


def _row(name: str, run: FabricRun) -> tuple[str, ...]:
    time = run.breakdown
    parts = (time.compute_ms, time.exposed_ms, time.dark_ms, time.waiting_ms)
    whole = run.iteration_ms
    return (
        name,
        figure(whole, "ms"),
        *(percent(round(part / whole, 6) if whole else 0.0) for part in parts),
        figure(run.bound_ms, "ms"),
        f"{run.circuits_changed:,}",
        f"{run.traffic.bandwidth_tax:.3g}",
        run.bound_by,
    )
