"""``topology``: circuits to fix before a job: TopologyFinder's, by a matrix of bytes, or searched for the task graph."""

import math
from collections.abc import Iterator
from typing import Any

from topox_core.cli.command import Answer, Arguments, command, ctrl_c_stops, figure, read, table
from topox_core.cli.options import JSON, Option, number, settings_as_options, whole
from topox_core.errors import refuse_if
from topox_core.fabrics.fixed.layout_search import layout_by_graph, layout_by_matrix
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.run import FabricRequest
from topox_core.io.content import record_of
from topox_core.io.task_graph_file import check_fits, load_graph
from topox_core.model.cluster import one_port_a_switch
from topox_core.model.execution import Layout
from topox_core.model.lowering.lowering import lower
from topox_core.schedule.settings import Settings
from topox_core.text.numbers import and_more
from topox_core.topology.finder import find_layout
from topox_core.topology.ring_circuits import LayoutResult
from topox_core.topology.traffic import all_reduce_demand, check_servers, traffic_of

SHOWN_LINKS = 16
LAID_BY = ("topoopt", "matrix", "graph")


@command(
    "Lay out circuits that stay for the whole job: for the traffic of a task graph, or without one for an "
    "all-reduce over all servers (TopologyFinder); or searched for the iteration time of a task graph.",
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
    Option(
        "--seed N",
        whole,
        "seed of the released variant's routing and of a search (default 0)",
        0,
    ),
    Option(
        "--layout-by",
        LAID_BY,
        "TopologyFinder's circuits (default), those that the matrix of bytes asks for, or those searched for the "
        "task graph; the last two need --graph",
        LAID_BY[0],
    ),
    Option(
        "--layout-steps N",
        whole,
        "layouts that a search tries (default: what a first answer has time for)",
        0,
    ),
    Option(
        "--port-gbps X",
        number,
        "speed of a port, of --layout-by matrix and graph (default 100)",
        100.0,
    ),
    JSON,
)
def run(options: Arguments) -> Answer:
    """Find the circuits."""
    if options.layout_by != LAID_BY[0]:
        return _searched(options)
    with settings_as_options(options):
        check_servers(options.servers)  # before a large graph is read
        demand = (
            all_reduce_demand(options.servers)
            if options.graph is None
            else traffic_of(load_graph(read(options.graph), options.graph), options.servers)
        )
        result = find_layout(demand, options.degree, options.variant, seed=options.seed)
    hops = result.hops
    record = {
        "servers": demand.servers,
        **record_of(result, "degree variant degree_all_reduce degree_model_parallel"),
        "rings": {str(size): list(strides) for size, strides in result.strides.items()},
        "links": _links(result.layout),
        "diameter": hops.diameter,
        "mean_hops": hops.mean,
        "unreachable_pairs": hops.unreachable,
        "steps": [record_of(step, "kind text") for step in result.steps],
    }
    return Answer(record, _lines(result, record))


def _searched(options: Arguments) -> Answer:
    """Find the circuits for a task graph by its bytes or by its iteration time."""
    request = _request(options)
    with ctrl_c_stops() as stop:
        answer = (
            layout_by_matrix(request)
            if options.layout_by == "matrix"
            else layout_by_graph(request, stop)
        )
    laid = answer.best
    starts_ms = {name: time_ms for name, time_ms in answer.starts if time_ms < math.inf}
    record = {
        **record_of(options, "servers degree layout_by"),
        "iteration_ms": laid.time_ms,
        "starts_ms": starts_ms,
        "layouts_tried": answer.evaluations,
        "every_layout": answer.every,
        **record_of(answer, "circuits given_back"),
        "links": _links(laid.layout),
    }
    return Answer(
        record,
        table(
            ("layout", laid.layout.name),
            ("iteration", figure(laid.time_ms, "ms")),
            *((f"start: {name}", figure(time_ms, "ms")) for name, time_ms in starts_ms.items()),
            (
                "tried",
                f"{answer.evaluations:,} layouts" + (", all there are" if answer.every else ""),
            ),
            (
                "circuits",
                f"{answer.circuits} of {options.servers * options.degree}, {answer.given_back} given back at no loss of time",
            ),
            ("links", _listed(record["links"])),
        ),
    )


def _request(options: Arguments) -> FabricRequest:
    """Return the task graph on a cluster of the servers, ports and speed given."""
    refuse_if(
        (options.graph is None, f"{options.layout_by} needs a task graph: give --graph"),
        file="command line",
        field="--layout-by",
    )
    check_servers(options.servers)
    task_graph = load_graph(read(options.graph), options.graph)
    devices = 1 + max((task.device or 0 for task in task_graph.tasks), default=0)
    of = one_port_a_switch(
        options.servers, options.degree, options.port_gbps, devices_per_server=devices
    )
    check_fits(task_graph, of)
    settings = Settings.of(engine="list", seed=options.seed)
    tried = FabricOptions(layout_steps=options.layout_steps)
    return FabricRequest(lower(task_graph), of, settings, tried)


def _links(layout: Layout) -> list[dict[str, int]]:
    """Return the circuits from each server to each other."""
    return [
        {"source": source, "destination": destination, "circuits": circuits}
        for source, destination, circuits in zip(
            *(ends.tolist() for ends in layout.links), strict=True
        )
    ]


def _listed(links: list[dict[str, int]]) -> str:
    """Return the first links in words, and how many there are."""
    words = [
        f"{one['source']}>{one['destination']}"
        + (f" x{one['circuits']}" if one["circuits"] > 1 else "")
        for one in links
    ]
    more = and_more(len(words), SHOWN_LINKS)
    more += " (--json lists all)" if more else ""
    return f"{len(words):,}: {' '.join(words[:SHOWN_LINKS])}{more}" if words else "none"


def _lines(result: LayoutResult, record: dict[str, Any]) -> Iterator[str]:
    both_ways = " both ways" if result.variant == "released" else ""
    unreachable = record["unreachable_pairs"]
    cut = ("unreachable", f"{unreachable:,} pairs of servers, none of which talk")
    yield table(
        ("layout", result.layout.name),
        (
            "ports",
            f"{result.degree_all_reduce} for rings, {result.degree_model_parallel} for matchings",
        ),
        *(
            (
                f"rings of {size}",
                f"stride{'s' if len(strides) > 1 else ''} {', '.join(map(str, strides))}{both_ways}",
            )
            for size, strides in record["rings"].items()
        ),
        ("links", _listed(record["links"])),
        ("diameter", figure(record["diameter"], "hops")),
        ("mean hops", f"{record['mean_hops']:.3f}"),
        *([cut] if unreachable else []),
    )
    yield ""
    yield from (f"{place:>2}. {step.text}" for place, step in enumerate(result.steps, 1))
