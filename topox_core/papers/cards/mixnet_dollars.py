"""MixNet's work per dollar, beside ours: regional circuits for experts against fat-trees, with gating that changes."""

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
from topox_core.papers.card import CardRun, Rows, Settings
from topox_core.papers.topoopt_jobs import PLANNER
from topox_core.runs.run import never
from topox_core.workloads.samples import load_sample

JOB, PORTS, ITERATIONS = "moe", 8, 5
# By port speed in Gbit/s: the range that the abstract prints.
PRINTED = {100.0: (1.2, 1.5), 400.0: (1.9, 2.3)}
SKEWS = {0.0: "even experts", 1.0: "skew 1", 2.0: "skew 2"}


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


def rows(run: CardRun) -> Rows:
    for port_gbps, (low, high) in PRINTED.items():
        speed = f"{port_gbps:g} Gbit/s"
        for skew, words in SKEWS.items():
            runs = gated(run.settings, port_gbps, skew)
            own, item = runs[REGIONAL], f"{speed}, {words}"
            for rival in (FAT_TREE, OVERSUBSCRIBED):
                ratio = own.work_a_dollar_over(runs[rival])
                data = {"regional_ms": own.mean_ms, "rival_ms": runs[rival].mean_ms}
                yield run.row(rival, item, ratio, data=data, low=low, high=high, speed=speed)
            yield run.row("time", item, own.mean_ms / runs[FAT_TREE].mean_ms)
        for part, usd in (("packet", own.packet_usd), ("optical", own.optical_usd)):
            yield run.row("cost", f"{speed}, {part} part", usd / 1000)
