"""``collective``: one collective alone, on circuits that change between its steps while other ports send."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from topox_core.cli import options as given
from topox_core.cli.files import must_be_writable, write
from topox_core.cli.options import JSON, Option, number, positive, wrong_option
from topox_core.cli.printing import ctrl_c_stops, figure, show, table

if TYPE_CHECKING:
    from topox_core.fabrics.one_collective import OneCollective, StepsOnPorts

COLUMNS = ("way", "step", "port", "start_ms", "end_ms", "share")
WAYS = {
    "together": "every step on all ports together",
    "one_port": "every step on one port",
    "split": "split unevenly, set-ups behind other ports' sending",
}


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command to the command line."""
    given.add_command(
        commands,
        "collective",
        run,
        "switch inside one collective while other ports send",
        "Time one collective alone when circuits change between its steps: all ports together, one port a step, "
        "and messages split unevenly so that set-ups hide behind other ports; beside rings that never change.",
        Option("--kind NAME", str, "all_reduce (default), all_to_all, ...", "all_reduce"),
        Option(
            "--algorithm NAME",
            str,
            "steps that are permutations (default: halving_doubling, pairwise, ...)",
        ),
        Option("--members N", positive, "default 8", 8),
        Option("--ports N", positive, "of each member (default 2)", 2),
        Option("--size-bytes X", number, "of the tensor (default 1e8)", 1e8),
        Option("--port-gbps X", number, "of a port (default 100)", 100.0),
        Option("--latency-us X", number, "of a message (default 0)", 0.0),
        Option("--delay-ms X", number, "what a change of a circuit takes (default 1)", 1.0),
        Option(
            "--time-limit S",
            number,
            "seconds to prove the split (default 20; 0: search only)",
            20.0,
            dest="time_limit_s",
        ),
        Option("--output FILE", str, "write what each port sends when (.csv)"),
        JSON,
    )


def run(options: argparse.Namespace) -> int:
    """Time the ways and print them."""
    from topox_core.fabrics.one_collective import PERMUTATIONS, OneCollective
    from topox_core.fabrics.split_exact import shortest_split
    from topox_core.model.durations import transfer_ms

    if options.output:
        if not options.output.removesuffix(".gz").endswith(".csv"):
            raise wrong_option("--output", "must end in .csv")
        must_be_writable(options.output)
    for name in ("size_bytes", "port_gbps"):
        if not getattr(options, name) > 0:
            flag = f"--{name.replace('_', '-')}"
            raise wrong_option(flag, f"must be greater than 0 (got {getattr(options, name):g})")
    with given.settings_as_options(
        options, {"tensor_ms": "--size-bytes", "latency_ms": "--latency-us"}
    ):
        one = OneCollective(
            options.kind,
            options.algorithm or PERMUTATIONS.get(options.kind, ""),
            options.members,
            options.ports,
            transfer_ms(options.size_bytes, options.port_gbps),
            options.latency_us / 1000,
            options.delay_ms,
        )
    with ctrl_c_stops() as stop:
        split = (
            shortest_split(one, options.time_limit_s, stop)
            if options.time_limit_s > 0
            else one.split()
        )
    ways = {"together": one.together(), "one_port": one.one_port_a_step(), "split": split}
    if options.output:
        write(options.output, _as_table(one, ways))
    return show(options, _record(one, ways), lambda: _print(one, ways))


def _record(one: OneCollective, ways: dict[str, StepsOnPorts]) -> dict[str, Any]:
    times = {f"{name}_ms": way.makespan_ms for name, way in ways.items()}
    split = ways["split"]
    steps = [
        [float(share) / busy if busy else 0.0 for share in row]
        for row, busy in zip(split.share_ms.tolist(), one.steps.busy.tolist(), strict=True)
    ]
    more = {"rings_ms": one.rings_ms, "bound_ms": split.proved_ms or one.bound_ms, "shares": steps}
    return asdict(one) | times | more


def _print(one: OneCollective, ways: dict[str, StepsOnPorts]) -> None:
    rings, split = one.rings_ms, ways["split"]
    bound = split.proved_ms or one.bound_ms
    table(
        (
            "collective",
            f"{one.kind} by {one.algorithm}, {one.members} members, {one.ports} ports each",
        ),
        *((WAYS[name], figure(way.makespan_ms, "ms")) for name, way in ways.items()),
        ("no split is shorter than", figure(bound, "ms")),
        (
            "a ring on each port, no change",
            "this kind has none" if rings is None else figure(rings, "ms"),
        ),
    )


def _as_table(one: OneCollective, ways: dict[str, StepsOnPorts]) -> bytes:
    from topox_core.fabrics.one_collective import sent_rows
    from topox_core.io.tables import table_bytes

    rows = [{"way": name, **row} for name, way in ways.items() for row in sent_rows(one, way)]
    return table_bytes(COLUMNS, rows)
