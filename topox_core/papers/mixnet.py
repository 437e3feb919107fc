"""MixNet's work a dollar, beside ours: regional circuits for experts against fat-trees, with gating that changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from topox_core.economics.price_sets import PRICE_SETS, SET_BY_SPEED
from topox_core.fabrics.gated_iterations import (
    FAT_TREE,
    OVERSUBSCRIBED,
    REGIONAL,
    GatedNetwork,
    gated_networks,
)
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.run import FabricRequest
from topox_core.model.lowering import lower
from topox_core.papers.abstract_only import AbstractOnly
from topox_core.papers.card import Card, Choice, Row, Settings
from topox_core.papers.claim import Reading
from topox_core.papers.direct import unprinted
from topox_core.papers.switches import seeds
from topox_core.papers.topoopt_jobs import PLANNER
from topox_core.runs.stopping import never
from topox_core.workloads.samples import load_sample

PAPER = AbstractOnly(
    "mixnet-dollars",
    "MixNet (arXiv 2501.03905)",
    "the job, its gating, the sharing of links, the greedy choice of circuits and the count of parts are ours",
)
JOB, PORTS, ITERATIONS = "moe", 8, 5
# By port speed in Gbit/s: the range that the abstract prints.
PRINTED = {100.0: (1.2, 1.5), 400.0: (1.9, 2.3)}
SKEWS = {0.0: "even experts", 1.0: "skew 1", 2.0: "skew 2"}
SERIES = {
    FAT_TREE: "Work a dollar over a fat-tree that blocks nobody",
    OVERSUBSCRIBED: "Work a dollar over a fat-tree with 4:1 above its racks",
    "time": "Iteration over that on the fat-tree that blocks nobody",
    "cost": "What both parts cost",
}
CHOICES = (
    Choice(
        "delay_ms",
        "Delay",
        "What a change of a circuit takes.",
        ((25.0, "25 ms"), (10.0, "10 ms"), (1.0, "1 ms")),
        25.0,
    ),
    Choice(
        "packet_ports",
        "Packet ports",
        "Of the eight ports of a server; the others are on the optical switch.",
        ((4, "4"), (2, "2"), (6, "6")),
        4,
    ),
    Choice(
        "when",
        "Circuits",
        "When they are asked for.",
        (("gate", "when the gate is known"), ("foreseen", "ahead of each exchange")),
        "gate",
    ),
    seeds("Of the gating."),
)


def gated(settings: Settings, port_gbps: float, skew: float) -> dict[str, GatedNetwork]:
    """Return what each network makes of a mixture of experts whose gating is drawn anew for every iteration."""
    graph, cluster = load_sample(JOB)
    cluster = cluster.changed(
        ports_per_server=PORTS,
        switches=PORTS,
        port_gbps=port_gbps,
        reconfiguration_ms=float(settings["delay_ms"]),
    )
    options = FabricOptions(
        regional_packet_ports=int(settings["packet_ports"]),
        regional_circuits=str(settings["when"]),
        gating="walk",
        gating_skew=skew,
        gating_iterations=ITERATIONS,
    )
    planner = replace(PLANNER, seed=int(settings["seed"]))
    order = FabricRequest(lower(graph, planner.lowering), cluster, planner, options)
    names = (FAT_TREE, OVERSUBSCRIBED, REGIONAL)
    return gated_networks(order, PRICE_SETS[SET_BY_SPEED], names, never)


def _rows(settings: Settings) -> Iterator[Row]:
    about = f"8 servers, {PORTS} ports, {ITERATIONS} iterations"
    for port_gbps, (low, high) in PRINTED.items():
        speed = f"{port_gbps:g} Gbit/s"
        said = f"{low:g} to {high:g} at {speed}, on four models; neither the packet network nor its parts are in it"
        for skew, words in SKEWS.items():
            runs = gated(settings, port_gbps, skew)
            own, item = runs[REGIONAL], f"{speed}, {words}"
            for rival in (FAT_TREE, OVERSUBSCRIBED):
                ratio = own.work_a_dollar_over(runs[rival])
                data = {"regional_ms": own.mean_ms, "rival_ms": runs[rival].mean_ms}
                yield PAPER.beside(rival, item, about, ratio, said, unit="×", data=data)
            over = own.mean_ms / runs[FAT_TREE].mean_ms
            yield PAPER.beside(
                "time", item, about, over, "“comparable performance”, without a number", unit="×"
            )
        for part, usd in (("packet", own.packet_usd), ("optical", own.optical_usd)):
            words = f"{speed}, {part} part"
            yield unprinted(
                "cost", words, about, usd / 1000, "NICs and transceivers included.", unit="k$"
            )


def _words(rows: Sequence[Row]) -> tuple[str, tuple[str, ...]]:
    slow, fast = (_ratios(rows, port_gbps) for port_gbps in PRINTED)
    return (
        f"Regional circuits do {min(slow):.3g} to {max(slow):.3g} times the work a dollar of a fat-tree that blocks nobody at "
        f"100 Gbit/s, and {min(fast):.3g} to {max(fast):.3g} times at 400 Gbit/s. The printed 1.2 to 1.5 and 1.9 to 2.3 cannot be "
        "compared with that.",
        (
            "Every iteration draws which experts are popular; each network runs the same iterations.",
            "Work a dollar is iterations a second over the price of the network: NICs, transceivers, packet and optical ports.",
            "Experts compute as long whatever the gating: only what they send follows it.",
        ),
    )


def _ratios(rows: Sequence[Row], port_gbps: float) -> list[float]:
    """Return the work a dollar over the fat-tree that blocks nobody at one port speed."""
    return [
        row.ours
        for row in rows
        if row.series == FAT_TREE and row.item.startswith(f"{port_gbps:g} Gbit/s")
    ]


def _most(port_gbps: float) -> Callable[[tuple[Row, ...]], float]:
    return lambda rows: max(_ratios(rows, port_gbps))


CARD = Card(
    name=PAPER.card,
    title="Regional circuits for experts",
    source=PAPER.source,
    shows="Regional optical switches beside a packet network, circuits that follow the experts’ traffic: 1.2 to 1.5 times the "
    "performance a dollar at 100 Gbit/s, 1.9 to 2.3 times at 400 Gbit/s.",
    choices=CHOICES,
    series=SERIES,
    row_count=len(PRINTED) * (3 * len(SKEWS) + 2),
    play=PAPER.play(_rows, _words),
    takes_s=2.0,
)
CLAIMS = tuple(
    PAPER.claim(
        f"Regional circuits do {low:g} to {high:g} times the work a dollar at {port_gbps:g} Gbit/s",
        high,
        Reading(FAT_TREE, _most(port_gbps), checked),
        "at most, over a fat-tree that blocks nobody",
    )
    for (port_gbps, (low, high)), checked in zip(PRINTED.items(), (0.851, 1.527), strict=True)
)
