"""TopoOpt's figure 10: what its circuits cost against patch panels, fat-trees and an ideal switch."""

from functools import partial
from statistics import fmean

from topox_core.economics.clusters import cluster_bill, cost_equivalent_gbps
from topox_core.economics.price_sets import PRICE_SETS
from topox_core.papers.card import CardRun, Rows
from topox_core.papers.rows import Row
from topox_core.papers.topoopt_jobs import network

SPEEDS_GBPS = (10.0, 25.0, 40.0, 100.0, 200.0)
MEAN = "average"


def rows(run: CardRun) -> Rows:
    servers, degree = int(run.settings["servers"]), int(run.settings["degree"])
    catalogue, built = PRICE_SETS[str(run.settings["prices"])], str(run.settings["built"])
    ratios: dict[str, list[float]] = {"ocs": [], "ideal": []}
    points: list[Row] = []
    for gbps in SPEEDS_GBPS:
        cluster = network(servers, degree, gbps)
        panel, ocs, ideal = (
            cluster_bill(one, cluster, catalogue).cost_usd
            for one in ("topoopt_patch_panel", "topoopt_ocs", "fat_tree")
        )
        mine = panel if built == "topoopt_patch_panel" else ocs
        made = partial(run.row, item=f"{gbps:g} Gbit/s", servers=servers, gbps=gbps)
        for series, value in (("ocs", ocs / panel), ("ideal", ideal / mine)):
            ratios[series].append(value)
            points.append(made(series, ours=value))
        share = cost_equivalent_gbps(cluster, catalogue, built) / (degree * gbps)
        points.append(made("overlap", ours=share, follows=share < 1))
    for series, values in ratios.items():
        yield run.row(series, MEAN, fmean(values), servers=servers)
    yield from points
