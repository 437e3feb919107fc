"""TopoOpt's figure 10: what its circuits cost against patch panels, fat-trees and an ideal switch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from topox_core.economics.clusters import cluster_bill, cost_equivalent_gbps
from topox_core.economics.price_sets import PRICE_SETS
from topox_core.papers.card import Card, Choice, Row, Settings
from topox_core.papers.claim import Claim, Reading
from topox_core.papers.direct import direct, directed, printed, row_of, unprinted
from topox_core.papers.topoopt_jobs import network

NAME = "topoopt-cost"
SPEEDS_GBPS = (10.0, 25.0, 40.0, 100.0, 200.0)
# Section 5 (figure 10), averages: optical switches over patch panels, ideal switch over TopoOpt.
PRINTED_OCS, PRINTED_IDEAL = 1.33, 3.2
MEAN = "average"
SERIES = {
    "ocs": "Optical switches over patch panels",
    "ideal": "Ideal switch over TopoOpt",
    "overlap": "Fat-tree of the same cost, share of d × B",
}
CHOICES = (
    Choice(
        "built",
        "TopoOpt is built of",
        "Its price, that the ideal switch's is divided by.",
        (("topoopt_patch_panel", "patch panels"), ("topoopt_ocs", "optical switches")),
        "topoopt_patch_panel",
    ),
    Choice("degree", "Ports a server", "d.", ((4, "4"), (8, "8")), 4),
    Choice("servers", "Servers", "n.", ((128, "128"), (1_024, "1,024")), 128),
    Choice(
        "prices",
        "Prices",
        "A list with a price for every speed, or one that is scaled.",
        (("mixnet", "MixNet, by speed"), ("opus-v1", "Opus, scaled")),
        "mixnet",
    ),
)


def _rows(settings: Settings) -> Iterator[Row]:
    servers, degree = int(settings["servers"]), int(settings["degree"])
    catalogue, built = PRICE_SETS[str(settings["prices"])], str(settings["built"])
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
    for series, theirs, reason in (
        ("ocs", PRINTED_OCS, "The paper does not say over which sizes and speeds it averages."),
        (
            "ideal",
            PRINTED_IDEAL,
            "A full fat-tree for each port: five switch ports and six transceivers a link. How the paper counts its own is "
            "not printed.",
        ),
    ):
        yield printed(series, MEAN, about, theirs, fmean(ratios[series]), reason, unit="×")
    yield from points


def _words(rows: Sequence[Row]) -> tuple[str, tuple[str, ...]]:
    ocs, ideal = (row_of(rows, series, MEAN).ours for series in ("ocs", "ideal"))
    below = [row for row in rows if row.series == "overlap" and row.ours < 1]
    return (
        f"Over {len(SPEEDS_GBPS)} speeds optical switches cost {ocs:.2f}× what patch panels do (printed: 1.33×), and an ideal "
        f"switch {ideal:.2f}× what TopoOpt does (printed: 3.2×).",
        (
            f"At {len(below)} of {len(SPEEDS_GBPS)} speeds a fat-tree of the same cost has less than the circuits' bandwidth; "
            "at the others an optical port costs more than the packet ports that it saves.",
        ),
    )


CARD = Card(
    name=NAME,
    title="Cost of circuits",
    source="TopoOpt (NSDI 2023), section 5, Figure 10",
    shows="Cost of the interconnect by its kind: optical switches are 1.33 times as dear as patch panels and an ideal switch "
    "3.2 times as dear as TopoOpt, on average.",
    choices=CHOICES,
    series=SERIES,
    row_count=2 + 3 * len(SPEEDS_GBPS),
    play=direct(NAME, _rows, _words),
)
CLAIMS = (
    Claim(
        NAME,
        "Optical switches cost 1.33× what patch panels cost, on average",
        PRINTED_OCS,
        Reading("ocs", lambda rows: row_of(rows, "ocs", MEAN).ours, 1.462),
    ),
    Claim(
        NAME,
        "An ideal switch costs 3.2× what TopoOpt costs, on average",
        PRINTED_IDEAL,
        Reading("ideal", lambda rows: row_of(rows, "ideal", MEAN).ours, 2.304),
    ),
)
