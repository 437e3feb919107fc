"""The lecture's table of optical switching and its comparison with packets: how fast a switch must be, for which job."""

import math
from collections.abc import Callable
from functools import cache, partial

from topox_core.economics.clusters import cluster_bill, same_cost_nic_gbps
from topox_core.economics.price_sets import PRICE_SETS, SET_BY_SPEED
from topox_core.fabrics.compare import EQUAL
from topox_core.fabrics.options import FabricOptions
from topox_core.papers.card import CardRun, Rows
from topox_core.papers.rows import LEVEL, judged
from topox_core.papers.topoopt_jobs import bandwidth_tax, iteration_ms, network
from topox_core.rails.technologies import LECTURE, TECHNOLOGIES, technology
from topox_core.text.numbers import percent

SERVERS, DEGREE = 16, 4
JOBS = {
    "dlrm-16": "DLRM, batch 256",
    "dlrm-batch/64/8": "DLRM, batch 64",
    "dlrm-batch/2048/8": "DLRM, batch 2048",
    "candle-16": "CANDLE Uno",
}
# Three delays a decade, 1 us to 1,000 s.
GRID_MS = tuple(10 ** (k / 3) for k in range(-9, 19))
MINUTE_MS = 60_000.0
NEVER_MS = 0.0
# What is said where the delays that were tried end.
ENDS = {
    NEVER_MS: " No delay is short enough.",
    GRID_MS[-1]: " Its circuits never change, so every delay is short enough.",
}


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
    low, high = -1, len(GRID_MS)
    while high - low > 1:
        middle = (low + high) // 2
        if time_ms(GRID_MS[middle]) <= limit_ms * (1 + EQUAL):
            low = middle
        else:
            high = middle
    return GRID_MS[low] if low >= 0 else NEVER_MS


def rows(run: CardRun) -> Rows:
    yield from _latencies(run)
    gbps, controller = float(run.settings["port_gbps"]), str(run.settings["controller"])
    about = f"{SERVERS} servers, {DEGREE} × {gbps:g} Gbit/s"
    yield from _kinds(run, gbps, about)
    for model, words in JOBS.items():
        time_ms = partial(changing_ms, model, gbps, controller)
        for series, fabric in (("packets", "fat_tree"), ("fixed", "static")):
            rival = rival_ms(model, gbps, fabric)
            most = break_even_ms(time_ms, rival)
            data, ends = {"rival_ms": rival}, ENDS.get(most, "")
            yield run.row(series, words, most, data=data, ends=ends, network=about)
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


def said(run: CardRun) -> dict[str, str]:
    kept_up = {
        series: ", ".join(
            f"{row.item} {'none' if not row.ours else 'any' if row.ours == GRID_MS[-1] else f'{row.ours:.2g} ms'}"
            for row in run.of(series)
        )
        for series in ("packets", "fixed")
    }
    return kept_up | {"equal": percent(EQUAL)}
