"""``demand``: one matrix of demands over parallel switches; ``collective``: one collective, switched inside itself."""

from dataclasses import asdict

from topox_core.check.demand import check_demand_plan
from topox_core.cli.shared.command import Answer, Arguments, command, ctrl_c_stops
from topox_core.cli.shared.files import write, write_result
from topox_core.cli.shared.options import (
    JSON,
    Option,
    above_zero,
    number,
    of_options,
    options_of,
    positive,
)
from topox_core.cli.shared.printing import figure, percent, table
from topox_core.demand.decomposition import DemandPlan
from topox_core.demand.planning import (
    lower_bound,
    plan_demand,
    plan_record,
    plan_table,
    read_demand,
)
from topox_core.fabrics.controllers.one_collective import (
    PERMUTATIONS,
    WAYS,
    OneCollective,
    sent_rows,
    shortest_split,
)
from topox_core.io.content import read
from topox_core.io.tables import table_bytes
from topox_core.model.transfer_graph import transfer_ms
from topox_core.schedule.results.result import gap

# Of the command ``collective``.
_USUAL = {"kind": "all_reduce", "members": 8, "ports": 2, "delay_ms": 1.0}
OURS, BASELINES = "best", ("peeled", "shared")
COLUMNS = ("way", "step", "port", "start_ms", "end_ms", "share")


@command(
    "Serve a matrix of demands with parallel optical switches, each one port of every server: "
    "which circuits each switch holds, and for how long; with a lower bound and two baselines.",
    Option("matrix FILE", str, "numbers in rows (.csv): ms on one port from an input to an output"),
    Option("--switches N", positive, "parallel switches (default 2)", 2),
    Option("--delay-ms X", number, "what the set-up of a configuration takes (default 1)", 1.0),
    Option("--first-free", bool, "the first configuration of each switch is set up already"),
    Option(
        "--output FILE",
        str,
        "write the plan (.json or .csv)",
        over=("matrix",),
        endings=(".json", ".csv"),
    ),
    JSON,
)
def run(options: Arguments) -> Answer:
    """Plan it; 1 if the checker disagrees."""
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
    found = {"checked": report.ok, "violations": report.lines()}
    if options.output and options.output.removesuffix(".gz").endswith(".csv"):
        write(options.output, plan_table(ours))
    else:
        write_result(options, options.output, record, found)
    others = {name: plans[name].makespan_ms for name in BASELINES}
    return Answer(
        record | {"baselines_ms": others} | found,
        table(
            ("matrix", f"{len(demand)} lines, {int((demand > 0).sum()):,} entries"),
            ("time", f"{figure(ours.makespan_ms, 'ms')}, {ours.configurations} configurations"),
            (
                "bound",
                f"{figure(bound.ms, 'ms')}, gap {percent(gap(ours.makespan_ms, bound.ms))}: {bound.text}",
            ),
            *(
                (f"baseline {'AB'[k]}", _against(plans[name], ours))
                for k, name in enumerate(BASELINES)
            ),
            ("checked", "every rule holds" if report.ok else "; ".join(report.lines(3))),
        ),
        0 if report.ok else 1,
    )


def _against(plan: DemandPlan, ours: DemandPlan) -> str:
    """Return a baseline's time, how much longer than ours it is, and what it does."""
    ratio = plan.makespan_ms / ours.makespan_ms if ours.makespan_ms else 1.0
    how = plan.method.partition(": ")[2]
    return f"{figure(plan.makespan_ms, 'ms')}, {ratio:.3g} times as long: {how}"


@command(
    "Time one collective alone when circuits change between its steps: all ports together, one port per step, "
    "and messages split unevenly so that set-ups hide behind other ports; beside rings that never change.",
    *options_of(OneCollective, "kind", "algorithm", "members", "ports", "delay_ms", usual=_USUAL),
    Option("--size-bytes X", above_zero, "of the tensor (default 1e8)", 1e8),
    Option("--port-gbps X", above_zero, "of a port (default 100)", 100.0),
    Option("--latency-us X", number, "of a message (default 0)", 0.0),
    Option(
        "--time-limit S",
        number,
        "seconds to prove the split (default 20; 0: search only)",
        20.0,
        dest="time_limit_s",
    ),
    Option(
        "--output FILE",
        str,
        "write what each port sends when (.csv)",
        over=(),
        endings=(".csv",),
    ),
    JSON,
    flags={"tensor_ms": "--size-bytes", "latency_ms": "--latency-us"},
)
def collective(options: Arguments) -> Answer:
    """Time the ways to send it."""
    one = of_options(
        OneCollective,
        options,
        algorithm=options.algorithm or PERMUTATIONS.get(options.kind, ""),
        tensor_ms=transfer_ms(options.size_bytes, options.port_gbps),
        latency_ms=options.latency_us / 1000,
    )
    with ctrl_c_stops() as stop:
        split = (
            shortest_split(one, options.time_limit_s, stop)
            if options.time_limit_s > 0
            else one.split()
        )
    ways = {"together": one.together(), "one_port": one.one_port_a_step(), "split": split}
    sent = ({"way": name, **row} for name, way in ways.items() for row in sent_rows(one, way))
    write(options.output, lambda: table_bytes(COLUMNS, list(sent)))
    bound_ms = split.proved_ms or one.bound_ms
    times = {f"{name}_ms": way.makespan_ms for name, way in ways.items()}
    lines = table(
        (
            "collective",
            f"{one.kind} by {one.algorithm}, {one.members} members, {one.ports} ports each",
        ),
        *((WAYS[name], figure(way.makespan_ms, "ms")) for name, way in ways.items()),
        ("no split is shorter than", figure(bound_ms, "ms")),
        (
            "a ring on each port, no change",
            "this kind has none" if one.rings_ms is None else figure(one.rings_ms, "ms"),
        ),
    )
    more = {"rings_ms": one.rings_ms, "bound_ms": bound_ms, "shares": one.shares(split)}
    return Answer(asdict(one) | times | more, lines)
