"""``topology``: TopologyFinder's circuits for some servers or a task graph's traffic."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from topox_core.cli import options as given
from topox_core.cli.files import read
from topox_core.cli.options import JSON, Option, add_options, whole
from topox_core.cli.printing import as_json, figure, table
from topox_core.errors import InputError
from topox_core.io.record import record_of
from topox_core.text.sentences import and_more

if TYPE_CHECKING:
    from topox_core.topology.result import LayoutResult
    from topox_core.topology.traffic import Demand

SHOWN_LINKS = 16


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command to the command line."""
    command = given.add_command(
        commands,
        "topology",
        run,
        "find circuits to fix before a job",
        "Lay out circuits that stay for the whole job (TopologyFinder): for the traffic of "
        "a task graph, or without one for an all-reduce over all servers.",
    )
    add_options(
        command,
        Option("--servers N", whole, "number of servers", required=True),
        Option(
            "--degree D",
            whole,
            "ports of a server; circuits between the same two servers add up, so D may exceed N - 1",
            required=True,
        ),
        Option("--graph GRAPH", str, "task graph whose traffic the circuits are for"),
        Option(
            "--variant published|released",
            str,
            "the algorithm of the paper (default), or of the code released with it, whose degree is even",
            "published",
        ),
        Option("--seed N", whole, "seed of the released variant's routing (default 0)", 0),
        JSON,
    )


def run(options: argparse.Namespace) -> int:
    """Find the circuits and print them."""
    from topox_core.topology.finder import find_layout

    try:
        demand = _demand(options)
        result = find_layout(demand, options.degree, options.variant, seed=options.seed)
    except InputError as error:
        flag = {"servers": "--servers", "degree": "--degree", "variant": "--variant"}.get(
            error.field
        )
        if error.file == "topology" and flag:
            raise InputError(error.problem, file="command line", field=flag) from None
        raise
    record = _record(result, demand)
    if options.json:
        as_json(record)
    else:
        _print(result, record)
    return 0


def _demand(options: argparse.Namespace) -> Demand:
    from topox_core.topology.traffic import all_reduce_demand, check_servers, traffic_of

    check_servers(options.servers)  # before a large graph is read
    if options.graph is None:
        return all_reduce_demand(options.servers)
    from topox_core.io.task_graph_file import load_graph

    return traffic_of(load_graph(read(options.graph), options.graph), options.servers)


def _record(result: LayoutResult, demand: Demand) -> dict[str, Any]:
    source, destination, parallel = (ends.tolist() for ends in result.layout.links)
    hops = result.hops
    return {
        "servers": demand.servers,
        **record_of(result, "degree variant degree_all_reduce degree_model_parallel"),
        "rings": {str(size): list(strides) for size, strides in result.strides.items()},
        "links": [
            {"source": a, "destination": b, "circuits": k}
            for a, b, k in zip(source, destination, parallel, strict=True)
        ],
        "diameter": hops.diameter,
        "mean_hops": hops.mean,
        "unreachable_pairs": hops.unreachable,
        "steps": [record_of(step, "kind text") for step in result.steps],
    }


def _print(result: LayoutResult, record: dict[str, Any]) -> None:
    links = [
        f"{one['source']}>{one['destination']}"
        + (f" x{one['circuits']}" if one["circuits"] > 1 else "")
        for one in record["links"]
    ]
    more = and_more(len(links), SHOWN_LINKS)
    more += " (--json lists all)" if more else ""
    both_ways = " both ways" if result.variant == "released" else ""
    rings = [
        (
            f"rings of {size}",
            f"stride{'s' if len(strides) > 1 else ''} {', '.join(map(str, strides))}{both_ways}",
        )
        for size, strides in record["rings"].items()
    ]
    cut = (
        [("unreachable", f"{record['unreachable_pairs']:,} pairs of servers, none of which talk")]
        if record["unreachable_pairs"]
        else []
    )
    table(
        ("layout", result.layout.name),
        (
            "ports",
            f"{result.degree_all_reduce} for rings, {result.degree_model_parallel} for matchings",
        ),
        *rings,
        ("links", f"{len(links):,}: {' '.join(links[:SHOWN_LINKS])}{more}" if links else "none"),
        ("diameter", figure(record["diameter"], "hops")),
        ("mean hops", f"{record['mean_hops']:.3f}"),
        *cut,
    )
    print()
    for number, step in enumerate(result.steps, 1):
        print(f"{number:>2}. {step.text}")
