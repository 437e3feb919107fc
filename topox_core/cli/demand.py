"""``demand``: one matrix of demands over parallel switches, beside its bound and two baselines."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from topox_core.cli import options as given
from topox_core.cli.files import must_be_writable, read, write
from topox_core.cli.options import JSON, Option, number, positive, wrong_option
from topox_core.cli.printing import as_json, ctrl_c_stops, figure, percent, table

if TYPE_CHECKING:
    from topox_core.demand.assignment import DemandPlan
    from topox_core.model.transfer_graph import FloatArray

OURS, BASELINES = "best", ("peeled", "shared")


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command to the command line."""
    given.add_command(
        commands,
        "demand",
        run,
        "serve one demand matrix with parallel switches",
        "Serve a matrix of demands with parallel optical switches, each one port of every server: "
        "which circuits stand on which switch, and for how long; beside a lower bound and two baselines.",
        Option(
            "matrix FILE", str, "numbers in rows (.csv): ms on one port from an input to an output"
        ),
        Option("--switches N", positive, "parallel switches (default 2)", 2),
        Option("--delay-ms X", number, "what the set-up of a configuration takes (default 1)", 1.0),
        Option("--first-free", bool, "the first configuration of each switch stands already"),
        Option("--output FILE", str, "write the plan (.json or .csv)"),
        JSON,
    )


def run(options: argparse.Namespace) -> int:
    """Plan and print; 1 if the checker disagrees."""
    from topox_core.check.demand import check_demand_plan
    from topox_core.demand.demand_file import plan_file, plan_record, read_demand
    from topox_core.demand.planning import lower_bound

    if options.output:
        if not options.output.removesuffix(".gz").endswith((".json", ".csv")):
            raise wrong_option("--output", "must end in .json or .csv")
        must_be_writable(options.output, (options.matrix,))
    demand = read_demand(read(options.matrix), options.matrix)
    plans = _plans(options, demand)
    ours = plans[OURS]
    bound = lower_bound(demand, options.switches, options.delay_ms, options.first_free)
    record = plan_record(ours, bound)
    report = check_demand_plan(demand, record)
    if options.output:
        write(options.output, plan_file(ours, bound, options.output))
    if options.json:
        others = {name: plans[name].makespan_ms for name in BASELINES}
        as_json(
            record | {"baselines_ms": others, "checked": report.ok, "violations": report.lines()}
        )
        return 0 if report.ok else 1
    gap = 1 - bound.ms / ours.makespan_ms if ours.makespan_ms else 0.0
    table(
        ("matrix", f"{len(demand)} lines, {int((demand > 0).sum()):,} entries"),
        ("time", f"{figure(ours.makespan_ms, 'ms')}, {ours.configurations} configurations"),
        ("bound", f"{figure(bound.ms, 'ms')}, gap {percent(gap)}: {bound.text}"),
        *((f"baseline {'AB'[k]}", _against(plans[name], ours)) for k, name in enumerate(BASELINES)),
        ("checked", "every rule holds" if report.ok else "; ".join(report.lines(3))),
    )
    return 0 if report.ok else 1


def _plans(options: argparse.Namespace, demand: FloatArray) -> dict[str, DemandPlan]:
    from topox_core.demand.planning import plan_demand

    with ctrl_c_stops() as stop, given.settings_as_options(options):
        return {
            name: plan_demand(
                demand,
                options.switches,
                options.delay_ms,
                first_free=options.first_free,
                method=name,
                stop=stop,
            )
            for name in (OURS, *BASELINES)
        }


def _against(plan: DemandPlan, ours: DemandPlan) -> str:
    """Return a baseline's time, how much longer than ours it is, and what it does."""
    ratio = plan.makespan_ms / ours.makespan_ms if ours.makespan_ms else 1.0
    how = plan.method.partition(": ")[2]
    return f"{figure(plan.makespan_ms, 'ms')}, {ratio:.3g} times as long: {how}"
