"""TopoOpt's diameter bound (section 4.3) and what a cut fibre costs its layout (section 7)."""

from topox_core.fabrics.options import FabricOptions
from topox_core.model.execution import Layout
from topox_core.papers.card import CardRun, Rows
from topox_core.papers.rows import LEVEL
from topox_core.papers.topoopt_jobs import fabric_ms, lowered, network
from topox_core.topology.failures import Failure, fail_layout, repair
from topox_core.topology.finder import find_layout
from topox_core.topology.ring_circuits import (
    LayoutResult,
    on_rings,
    select_strides,
    totient_strides,
)
from topox_core.topology.routing import RoutedNetwork
from topox_core.topology.traffic import all_reduce_demand, demand_of

SIZES = (16, 32, 64, 128, 256, 432)
DEGREES = (2, 3, 4, 8)
JOBS = {
    "dlrm-batch/2048/8": "DLRM, batch 2048",
    "dlrm-16": "DLRM, batch 256",
    "candle-16": "CANDLE Uno",
}
SERVERS, DEGREE, PORT_GBPS = 16, 4, 100.0


def rows(run: CardRun) -> Rows:
    for servers in SIZES:
        worst, at, hops = 0.0, 0, 0
        for degree in DEGREES:
            found = find_layout(all_reduce_demand(servers), degree, "published")
            diameter = RoutedNetwork(found.layout.circuits).hops.diameter
            ratio = diameter / (degree * servers ** (1 / degree))
            if ratio > worst:
                worst, at, hops = ratio, degree, diameter
        yield run.row(
            "bound",
            f"n = {servers}",
            worst,
            follows=worst <= 1 + LEVEL,
            data={"room": 1 / worst},
            at=at,
            strides=", ".join(map(str, select_strides(servers, at, totient_strides(servers)))),
            hops=hops,
        )
    for model, words in JOBS.items():
        yield from _failed(run, model, words)


def _failed(run: CardRun, model: str, words: str) -> Rows:
    """Yield what the first fibre of a ring costs until it is repaired, and after."""
    graph, cluster = lowered(model, SERVERS), network(SERVERS, DEGREE, PORT_GBPS)
    demand = demand_of(graph, SERVERS)
    whole = find_layout(demand, DEGREE, str(run.settings["variant"]))
    fibre = Failure.fibre(0, next(iter(whole.rings.values()))[0] % SERVERS)
    broken = fail_layout(whole.layout, fibre, whole.wiring)
    mended = repair(whole, fibre, demand)

    def ms(result: LayoutResult, layout: Layout) -> float:
        return fabric_ms("static", on_rings(graph, result), cluster, FabricOptions(layout=layout))

    before = ms(whole, whole.layout)
    data = {"whole_ms": before}
    cut, again = ms(whole, broken) / before, ms(mended.result, mended.result.layout) / before
    yield run.row("broken", words, cut, data=data)
    yield run.row("repaired", words, again, follows=again < cut, data=data)
    lent = sum("laid again" in line for line in mended.done)
    ports, done = whole.degree_model_parallel, " ".join(mended.done)
    yield run.row("lent", words, lent, follows=lent > 0, ports=ports, done=done)


def said(run: CardRun) -> dict[str, str]:
    return {"borrowers": ", ".join(row.item for row in run.of("lent") if row.ours) or "no job"}
