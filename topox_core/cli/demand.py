"""``demand``: one matrix of demands over parallel switches, beside its bound and two baselines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topox_core.cli.command import Answer, Arguments, command
from topox_core.cli.files import read, write
from topox_core.cli.options import JSON, Option, number, positive
from topox_core.cli.printing import ctrl_c_stops, figure, percent, table

if TYPE_CHECKING:
    from topox_core.demand.assignment import DemandPlan

OURS, BASELINES = "best", ("peeled", "shared")


@command(
    "demand",
    "serve one demand matrix with parallel switches",
    "Serve a matrix of demands with parallel optical switches, each one port of every server: "
    "which circuits stand on which switch, and for how long; beside a lower bound and two baselines.",
    Option("matrix FILE", str, "numbers in rows (.csv): ms on one port from an input to an output"),
    Option("--switches N", positive, "parallel switches (default 2)", 2),
    Option("--delay-ms X", number, "what the set-up of a configuration takes (default 1)", 1.0),
    Option("--first-free", bool, "the first configuration of each switch stands already"),
    Option(
        "--output FILE",
        str,
        "write the plan (.json or .csv)",
        over=("matrix",),
        endings=(".json", ".csv"),
    ),
    JSON,
    flags={},
)
def run(options: Arguments) -> Answer:
    """Plan it; 1 if the checker disagrees."""
    from topox_core.check.demand import check_demand_plan
    from topox_core.demand.demand_file import plan_file, plan_record, read_demand
    from topox_core.demand.planning import lower_bound, plan_demand

    demand = read_demand(read(options.matrix), options.matrix)
    with ctrl_c_stops() as stop:
        plans = {
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
    ours = plans[OURS]
    bound = lower_bound(demand, options.switches, options.delay_ms, options.first_free)
    record = plan_record(ours, bound)
    report = check_demand_plan(demand, record)
    write(options.output, lambda: plan_file(ours, bound, options.output))
    others = {name: plans[name].makespan_ms for name in BASELINES}
    gap = 1 - bound.ms / ours.makespan_ms if ours.makespan_ms else 0.0
    lines = table(
        ("matrix", f"{len(demand)} lines, {int((demand > 0).sum()):,} entries"),
        ("time", f"{figure(ours.makespan_ms, 'ms')}, {ours.configurations} configurations"),
        ("bound", f"{figure(bound.ms, 'ms')}, gap {percent(gap)}: {bound.text}"),
        *((f"baseline {'AB'[k]}", _against(plans[name], ours)) for k, name in enumerate(BASELINES)),
        ("checked", "every rule holds" if report.ok else "; ".join(report.lines(3))),
    )
    found = {"baselines_ms": others, "checked": report.ok, "violations": report.lines()}
    return Answer(record | found, [lines], 0 if report.ok else 1)


def _against(plan: DemandPlan, ours: DemandPlan) -> str:
    """Return a baseline's time, how much longer than ours it is, and what it does."""
    ratio = plan.makespan_ms / ours.makespan_ms if ours.makespan_ms else 1.0
    how = plan.method.partition(": ")[2]
    return f"{figure(plan.makespan_ms, 'ms')}, {ratio:.3g} times as long: {how}"
