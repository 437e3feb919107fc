"""TopoOpt's figure 10, sections 4.3 and 7, and a lecture on it: what circuits cost, how far they reach, how fast they must change."""

import math
from bisect import bisect_left
from collections.abc import Callable
from functools import cache, partial
from statistics import fmean

from topox_core.economics.clusters import cluster_bill, cost_equivalent_gbps, same_cost_nic_gbps
from topox_core.economics.price_sets import PRICE_SETS, SET_BY_SPEED
from topox_core.fabrics.comparison.compare import EQUAL
from topox_core.fabrics.options import FabricOptions
from topox_core.model.execution import Layout
from topox_core.papers.card import CardRun, Rows
from topox_core.papers.rows import LEVEL, Row, judged
from topox_core.papers.topoopt_jobs import bandwidth_tax, fabric_ms, iteration_ms, lowered, network
from topox_core.rails.technologies import LECTURE, TECHNOLOGIES, technology
from topox_core.text.numbers import percent
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

SPEEDS_GBPS = (10.0, 25.0, 40.0, 100.0, 200.0)
MEAN = "average"


def topoopt_cost(run: CardRun) -> Rows:
    """TopoOpt's figure 10: what its circuits cost against patch panels, fat-trees and an ideal switch."""
    servers, degree = int(run.settings["servers"]), int(run.settings["degree"])
    catalogue, built = PRICE_SETS[str(run.settings["prices"])], str(run.settings["built"])
    points: list[Row] = []
    for gbps in SPEEDS_GBPS:
        cluster = network(servers, degree, gbps)
        panel, ocs, ideal = (
            cluster_bill(one, cluster, catalogue).cost_usd
            for one in ("topoopt_patch_panel", "topoopt_ocs", "fat_tree")
        )
        mine = panel if built == "topoopt_patch_panel" else ocs
        made = partial(run.row, item=f"{gbps:g} Gbit/s", servers=servers, gbps=gbps)
        points += [made("ocs", ours=ocs / panel), made("ideal", ours=ideal / mine)]
        share = cost_equivalent_gbps(cluster, catalogue, built) / (degree * gbps)
        points.append(made("overlap", ours=share, follows=share < 1))
    for series in ("ocs", "ideal"):
        mean = fmean(row.ours for row in points if row.series == series)
        yield run.row(series, MEAN, mean, servers=servers)
    yield from points


SIZES = (16, 32, 64, 128, 256, 432)
DEGREES = (2, 3, 4, 8)
CUT_JOBS = {
    "dlrm-batch/2048/8": "DLRM, batch 2048",
    "dlrm-16": "DLRM, batch 256",
    "candle-16": "CANDLE Uno",
}
SERVERS, DEGREE, PORT_GBPS = 16, 4, 100.0


def topoopt_layouts(run: CardRun) -> Rows:
    """TopoOpt's diameter bound (section 4.3) and what a cut fibre costs its layout (section 7)."""
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
    for model, words in CUT_JOBS.items():
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


LECTURE_JOBS = {
    "dlrm-16": "DLRM, batch 256",
    "dlrm-batch/64/8": "DLRM, batch 64",
    "dlrm-batch/2048/8": "DLRM, batch 2048",
    "candle-16": "CANDLE Uno",
}
# Three delays a decade, 1 us to 1,000 s.
GRID_MS = tuple(10 ** (k / 3) for k in range(-9, 19))
MINUTE_MS = 60_000.0
NEVER_MS = 0.0


@cache
def changing_ms(model: str, gbps: float, controller: str, delay_ms: float) -> float:
    """Return the iteration with circuits that change inside it, its all-reduces on one ring or one a port, whichever is shorter."""
    cluster, options = network(SERVERS, DEGREE, gbps, delay_ms), FabricOptions()
    return min(iteration_ms(model, cluster, controller, options, one) for one in (1, DEGREE))


def rival_ms(model: str, gbps: float, fabric: str) -> float:
    """Return the iteration on fixed circuits, or on a fat-tree of the same cost."""
    cluster = network(SERVERS, DEGREE, gbps)
    options = FabricOptions(equivalent_gbps=same_cost_nic_gbps(cluster))
    return iteration_ms(model, cluster, fabric, options)


def break_even_ms(time_ms: Callable[[float], float], limit_ms: float) -> float:
    """Return the longest delay of the grid that keeps the time within a limit, ``NEVER_MS`` if none does.

    The time is taken as rising with the delay; where it is not, the answer is a delay that keeps
    the limit beside one that does not.
    """
    longest = limit_ms * (1 + EQUAL)
    kept = bisect_left(GRID_MS, True, key=lambda delay_ms: time_ms(delay_ms) > longest)
    return (NEVER_MS, *GRID_MS)[kept]


def lecture_technologies(run: CardRun) -> Rows:
    """Table of optical switching of the lecture, and its comparison with packets: how fast a switch must be, for which job."""
    yield from _latencies(run)
    gbps, controller = float(run.settings["port_gbps"]), str(run.settings["controller"])
    about = f"{SERVERS} servers, {DEGREE} × {gbps:g} Gbit/s"
    yield from _kinds(run, gbps, about)
    for model, words in LECTURE_JOBS.items():
        time_ms = partial(changing_ms, model, gbps, controller)
        for series, fabric in (("packets", "fat_tree"), ("fixed", "static")):
            rival = rival_ms(model, gbps, fabric)
            most = break_even_ms(time_ms, rival)
            yield run.row(series, words, most, data={"rival_ms": rival}, network=about)
        if model == "dlrm-16":
            fixed = rival_ms(model, gbps, "static")
            for one in (*LECTURE, technology("rotornet"), technology("sip"), technology("plzt")):
                delay_ms = one.reconfiguration_ms
                over = time_ms(delay_ms) / fixed
                yield run.row("technology", one.name, over, vendor=one.vendor, delay_ms=delay_ms)


def _latencies(run: CardRun) -> Rows:
    mems, panel = technology("mems"), technology("robotic")
    panel_ms = panel.reconfiguration_ms
    yield run.row("latency", mems.name, mems.reconfiguration_ms, vendor=mems.vendor)
    slow = panel_ms >= MINUTE_MS
    yield run.row("latency", "Patch panel", panel_ms, follows=slow, vendor=panel.vendor)
    for one in TECHNOLOGIES[:2]:
        delay_ms = one.reconfiguration_ms
        yield run.row("latency", one.name, delay_ms, follows=delay_ms < 1, vendor=one.vendor)
    orders = math.log10(panel_ms / run.card.printed[f"latency/{mems.name}"])
    yield run.row("orders", "Patch panel over MEMS", orders)


def _kinds(run: CardRun, gbps: float, about: str) -> Rows:
    """Yield the lecture's comparison of packet and circuit switching, counted on 16 servers."""
    cluster, prices = network(SERVERS, DEGREE, gbps), PRICE_SETS[SET_BY_SPEED]
    packets, circuits = (cluster_bill(one, cluster, prices) for one in ("fat_tree", "topoopt_ocs"))
    more = packets.count("transceiver") / circuits.count("transceiver")
    hops = bandwidth_tax("dlrm-16", SERVERS, DEGREE, "published")[0]
    dearer = packets.cost_usd / circuits.cost_usd
    for item, ours, follows in (
        ("transceivers", more, more > 1 + LEVEL),
        ("circuits a byte passes", hops, judged(1.0, hops) != "differs"),
        ("cost", dearer, dearer > 1 + LEVEL),
    ):
        yield run.row("kinds", item, ours, follows=follows, network=about)


def lecture_technologies_said(_run: CardRun) -> dict[str, str]:
    return {"equal": percent(EQUAL)}
