"""TopoOpt's figure 10: what its circuits cost against patch panels, fat-trees and an ideal switch."""

from collections.abc import Iterator
from statistics import fmean

from topox_core.economics.clusters import cluster_bill, cost_equivalent_gbps
from topox_core.economics.price_sets import PRICE_SETS
from topox_core.papers.card import CardRun
from topox_core.papers.rows import Row, directed, printed, unprinted
from topox_core.papers.topoopt_jobs import network

SPEEDS_GBPS = (10.0, 25.0, 40.0, 100.0, 200.0)
MEAN = "average"


def rows(run: CardRun) -> Iterator[Row]:
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
        about = f"{servers:,} servers, {degree} × {gbps:g} Gbit/s"
        for series, value in (("ocs", ocs / panel), ("ideal", ideal / mine)):
            ratios[series].append(value)
            points.append(
                unprinted(
                    series,
                    f"{gbps:g} Gbit/s",
                    about,
                    value,
                    "A point of the drawn lines, whose values are not printed.",
                    unit="×",
                )
            )
        share = cost_equivalent_gbps(cluster, catalogue, built) / (degree * gbps)
        points.append(
            directed(
                "overlap",
                f"{gbps:g} Gbit/s",
                about,
                share < 1,
                share,
                "“The cost of TopoOpt overlaps with that of the Fat-tree”, whose NIC is slower than d × B: by these prices "
                f"the same money buys {share:.2f} of it.",
            )
        )
    about = f"{servers:,} servers, degree {degree}, {len(SPEEDS_GBPS)} speeds"
    for series, reason in (
        ("ocs", "The paper does not say over which sizes and speeds it averages."),
        (
            "ideal",
            "A full fat-tree for each port: five switch ports and six transceivers per link. How the paper counts its own is "
            "not printed.",
        ),
    ):
        theirs = run.card.printed[series]
        yield printed(series, MEAN, about, theirs, fmean(ratios[series]), reason, unit="×")
    yield from points


def said(run: CardRun) -> dict[str, int]:
    below = [row.ours < 1 for row in run.of("overlap")]
    return {"below": sum(below), "speeds": len(below)}
