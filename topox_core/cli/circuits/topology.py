"""``topology``: circuits to fix before a job: TopologyFinder's, by a matrix of bytes, or searched for the task graph."""

import math
from collections.abc import Iterator
from typing import Any

from topox_core.cli.shared.command import Answer, Arguments, command, ctrl_c_stops
from topox_core.cli.shared.options import JSON, Option, given_of, of_options, options_of, whole
from topox_core.cli.shared.printing import figure, table
from topox_core.errors import refuse_if
from topox_core.fabrics.fixed.layout_search import layout_by_graph, layout_by_matrix
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.run import FabricRequest
from topox_core.io.content import read, record_of
from topox_core.io.task_graph_file import check_fits, load_graph
from topox_core.model.cluster import Cluster, one_port_a_switch
from topox_core.model.lowering.lowering import lower
from topox_core.schedule.settings import Settings
from topox_core.text.numbers import and_more
from topox_core.topology.finder import find_layout
from topox_core.topology.ring_circuits import LayoutResult
from topox_core.topology.traffic import all_reduce_demand, check_servers, traffic_of

SHOWN_LINKS = 16


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
    *options_of(
        FabricOptions,
        *("topology_variant", "layout_by", "layout_steps"),
        written={"topology_variant": "--variant"},
    ),
    *options_of(Settings, "seed"),
    *options_of(Cluster, "port_gbps", usual={"port_gbps": 100.0}),
    JSON,
)
def run(options: Arguments) -> Answer:
    """Find the circuits."""
    chosen = of_options(FabricOptions, options)
    if chosen.layout_by != FabricOptions.layout_by:
        return _searched(options, chosen)
    check_servers(options.servers)  # before a large graph is read
    demand = (
        all_reduce_demand(options.servers)
        if options.graph is None
        else traffic_of(load_graph(read(options.graph), options.graph), options.servers)
    )
    result = find_layout(demand, options.degree, chosen.topology_variant, seed=options.seed or 0)
    record = result.as_record()
    return Answer(record, _lines(result, record))


def _searched(options: Arguments, chosen: FabricOptions) -> Answer:
    """Find the circuits for a task graph by its bytes or by its iteration time."""
    request = _request(options, chosen)
    with ctrl_c_stops() as stop:
        answer = (
            layout_by_matrix(request)
            if chosen.layout_by == "matrix"
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
        "links": laid.layout.link_rows(),
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


def _request(options: Arguments, chosen: FabricOptions) -> FabricRequest:
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
    settings = Settings.of(engine="list", **given_of(options, ("seed",)))
    return FabricRequest(lower(task_graph), of, settings, chosen)


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
