"""Fixed circuits (TopoOpt): laid before the job, bytes forwarded by servers over several hops."""

from dataclasses import replace

import numpy as np

from topox_core.fabrics.fixed.layout_search import LayoutAnswer, layout_by_graph, layout_by_matrix
from topox_core.fabrics.fluid.links import run_on_links, static_layout, wired
from topox_core.fabrics.fluid.simulator import Pairs, Simulation
from topox_core.fabrics.run import FabricRequest, FabricRun, LoweringChoice
from topox_core.model.execution import Execution, Layout, PathRates
from topox_core.model.transfer_graph import FloatArray, IntArray, TransferGraph
from topox_core.runs.latest import Latest
from topox_core.runs.run import Stop

MAX_KEPT = 8
_kept = Latest[LayoutAnswer](MAX_KEPT)


def run_static(request: FabricRequest, stop: Stop) -> FabricRun:
    """Run an iteration on circuits that never change: ``options.layout``, or those of ``options.layout_by``.

    A given layout carries the graph as it is lowered. With a layout of its own making, the fabric
    also moves the ring collectives onto the rings it laid (all-reduce traffic is mutable, TopoOpt
    section 4), so that ``execution.graph`` may have other transfers than ``request.graph``; strides
    that the user chose stay as they are.

    A link carries its parallel circuits times the port speed, and the transfers that cross it share
    it max-min fairly. A server that forwards costs bandwidth on both links and no time; the latency
    is charged once a transfer. ``execution.circuits`` stays empty, because no circuit belongs to a
    single transfer.

    On a half-duplex cluster the two directions between a pair of servers share the larger of their
    two capacities (a circuit each way is one port at both ends, used one way at a time), and all
    that enters and leaves a server, forwarded bytes twice, shares d_S * B (eq. 8 of TOPO-X as
    fluid).

    Raises
    ------
    InputError
        If two talking servers have no route, a route uses a circuit that is not there, a server
        has more circuits than ports (the servers are named), or an option is out of range.
    Stopped
        If ``stop()`` turns true meanwhile.
    """
    layout, graph = laid_by(request, stop)
    return _run("static", replace(request, graph=graph), layout, layout.name, stop)


def run_static_graph(request: FabricRequest, stop: Stop) -> FabricRun:
    """Run an iteration on fixed circuits that the task graph chose, whatever ``options.layout_by`` says.

    After DELTA (arXiv 2603.28096), built from its abstract. Raises as :func:`run_static`.
    """
    answer = graph_layout(request, stop)
    laid = answer.best
    words = f"{laid.layout.name}, {answer.evaluations:,} layouts tried"
    if answer.every:
        words += ", all there are"
    words += f"; {answer.circuits} circuits, {answer.given_back} given back"
    run = _run("static_graph", replace(request, graph=laid.graph), laid.layout, words, stop)
    fixed, free = request.runs.get("static"), request.settings.free
    if fixed is not None and fixed.execution.graph.digest == laid.graph.digest:
        return replace(run, chosen=fixed.chosen)  # with the algorithms that fixed circuits chose
    return replace(run, chosen=LoweringChoice(request.settings.lowering, free)) if free else run


def laid_by(request: FabricRequest, stop: Stop) -> tuple[Layout, TransferGraph]:
    """Return ``options.layout`` with the graph as it is, else the circuits of ``options.layout_by`` and the graph on their rings.

    Raises as :func:`run_static`.
    """
    options = request.options
    if options.layout is not None:
        return options.layout, request.graph
    if options.layout_by == "topoopt":
        result, graph = static_layout(
            request.graph, request.cluster, options.topology_variant, request.settings.seed
        )
        return result.layout, graph
    answer = (
        layout_by_matrix(request)
        if options.layout_by == "matrix"
        else graph_layout(replace(request, runs={}), stop)
    )
    return answer.best.layout, answer.best.graph


def graph_layout(request: FabricRequest, stop: Stop) -> LayoutAnswer:
    """Return the circuits searched for a graph; the last few answers are kept, for they serve every delay.

    Raises
    ------
    InputError, Stopped
        As :func:`~topox_core.fabrics.fixed.layout_search.layout_by_graph`.
    """
    of, settings, options = request.cluster, request.settings, request.options
    start = request.runs.get("static")
    key = (
        (request.graph.digest, *(one.digest for one in request.others)),
        (of.servers, of.ports_per_server, of.port_gbps, of.latency_us, of.duplex),
        of.devices_per_server,
        (settings.exclusive_devices, settings.seed),
        (options.topology_variant, options.layout_steps),
        None if start is None else (start.execution.graph.digest, start.iteration_ms),
    )
    answer = _kept.get(key)
    if answer is None:
        answer = layout_by_graph(request, stop)
        _kept[key] = answer
    return answer


def _run(
    fabric: str, request: FabricRequest, layout: Layout, message: str, stop: Stop
) -> FabricRun:
    wiring = wired(layout, Pairs.of(request.graph, request.cluster), request.cluster)
    return run_on_links(fabric, request, wiring, stop, message, layout)


def with_rates(execution: Execution, exclusive_devices: bool) -> Execution:
    """Return a run on a static layout with the rate of every path from event to event, run once more where it has none.

    Raises
    ------
    ValueError
        If the execution has no layout.
    """
    graph, cluster, layout = execution.graph, execution.cluster, execution.layout
    if execution.rates is not None:
        return execution
    if layout is None:
        raise ValueError("only circuits that stay fixed have paths")
    pairs = Pairs.of(graph, cluster)
    network = wired(layout, pairs, cluster).network
    pair = np.repeat(np.arange(len(pairs)), np.diff(network.pair_ptr))
    path = np.repeat(np.arange(len(pair), dtype=np.int32), np.diff(network.path_ptr))
    # What circuits share on half-duplex ports is numbered after them.
    crossed = network.path_link < len(layout.links[0])
    simulation = Simulation(graph, cluster, pairs, network, exclusive_devices)
    rows: list[tuple[IntArray, FloatArray, float]] = []
    known, since = simulation.path_rates, np.zeros(len(pair))
    more = True
    while more:
        more = simulation.advance(1)
        rate, now = simulation.path_rates, simulation.now_ms
        ended = np.flatnonzero((rate != known) & (known > 0))
        begin_ms = since[ended]
        rows.append((ended.astype(np.int32), np.stack([begin_ms, known[ended]]), now))
        since[rate != known] = now
        known = rate
    values = np.concatenate([row[1] for row in rows], axis=1)
    until_ms = np.repeat([row[2] for row in rows], [len(row[0]) for row in rows])
    rates = PathRates(
        source=pairs.source[pair],
        destination=pairs.destination[pair],
        hop_path=path[crossed],
        hop_link=network.path_link[crossed],
        path=np.concatenate([row[0] for row in rows]),
        begin_ms=values[0],
        end_ms=until_ms,
        bytes_per_ms=values[1],
    )
    return replace(execution, rates=rates)
