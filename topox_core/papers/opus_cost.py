"""Opus's figure 7: cost and power of photonic rails against packet-switched networks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topox_core.economics.networks import COUNTINGS, Counting, bills, saving
from topox_core.economics.price_sets import PRICE_SETS
from topox_core.papers.card import Card, Choice, Row, Settings
from topox_core.papers.claim import Claim, Reading
from topox_core.papers.direct import direct, printed, row_of, unprinted
from topox_core.rails.technologies import gpus, technology

NAME = "opus-cost"
SIZES = (1_024, 2_048, 4_096, 8_192)
PRINTED = {"cost": 70.5, "power": 95.84}  # section 4.2: "up to"
RIVALS = {"rail_optimized": "Rail-optimised", "fat_tree": "Fat-tree", "rail_only": "Rail only"}
MAX = "largest saving"
SERIES = {
    "cost": "Cost saved",
    "power": "Power saved",
    "cost_by_size": "Cost saved, by size",
    "power_by_size": "Power saved, by size",
}
CHOICES = (
    Choice(
        "counting",
        "Packet switches",
        "Counted by the artifact's formulas, which cut switches into fractions, or bought whole.",
        ((COUNTINGS[0], "by the formulas"), (COUNTINGS[1], "whole")),
        COUNTINGS[0],
    ),
    Choice(
        "prices",
        "Prices",
        "Whose price list.",
        tuple((name, one.name) for name, one in PRICE_SETS.items() if name != "opus-v3-gb200"),
        "opus-v1",
    ),
    Choice(
        "rival",
        "Saved against",
        "The network that the largest saving is taken against.",
        tuple(RIVALS.items()),
        "rail_optimized",
    ),
)


def _rows(settings: Settings) -> Iterator[Row]:
    catalogue = PRICE_SETS[str(settings["prices"])]
    counting = Counting(method=str(settings["counting"]))
    rival = str(settings["rival"])
    saved: dict[str, dict[int, float]] = {measure: {} for measure in PRINTED}
    by_size: list[Row] = []
    for size in SIZES:
        priced = bills(size, catalogue, counting, (*RIVALS, "photonic_rails"))
        mine = priced["photonic_rails"]
        for measure in PRINTED:
            for other, words in RIVALS.items():
                share = 100 * saving(mine.amount(measure), priced[other].amount(measure))
                if other == rival:
                    saved[measure][size] = share
                by_size.append(
                    unprinted(
                        f"{measure}_by_size",
                        f"{size:,} GPUs",
                        f"against {words}",
                        share,
                        "Bars of the figure; their values are not in the text.",
                        unit="%",
                        data={
                            f"rails_{measure}": mine.amount(measure),
                            f"other_{measure}": priced[other].amount(measure),
                        },
                    )
                )
    piezo = gpus(technology("piezo"), counting.gpus_per_server)
    for measure, theirs in PRINTED.items():
        size = max(saved[measure], key=lambda one: saved[measure][one])
        yield printed(
            measure,
            MAX,
            f"{size:,} GPUs, against {RIVALS[rival]}",
            theirs,
            saved[measure][size],
            f"The largest of {', '.join(f'{one:,}' for one in SIZES)} GPUs. One Piezo switch a rail joins no more than "
            f"{piezo:,} of them.",
            unit="%",
        )
    yield from by_size


def _words(rows: Sequence[Row]) -> tuple[str, tuple[str, ...]]:
    cost, power = (row_of(rows, measure, MAX) for measure in PRINTED)
    return (
        f"Counted by parts and prices, photonic rails save up to {cost.ours:.1f} % of the cost and {power.ours:.2f} % of the power "
        f"(printed: 70.5 % and 95.84 %).",
        (
            "The printed pair comes out at 4,096 GPUs only, where rounding of a fractional radix helps. That many H200 need "
            "1,024 ports of each rail's switch, more than any in Table 3.",
            "With whole 64-port switches, or against rails without a spine, the saving of cost is about half.",
        ),
    )


CARD = Card(
    name=NAME,
    title="Cost and power",
    source="Photonic Rails (arXiv 2507.08119), section 4.2, Figure 7",
    shows="Cost and power of the network of an H200 cluster at 400 Gbit/s: photonic rails save up to 70.5 % and 95.84 %.",
    choices=CHOICES,
    series=SERIES,
    row_count=2 + 2 * len(SIZES) * len(RIVALS),
    play=direct(NAME, _rows, _words),
    kinds=dict.fromkeys(SERIES, ("arithmetic", "Parts by formula, times the prices of a list.")),
)
CLAIMS = tuple(
    Claim(
        NAME,
        f"Photonic rails save up to {theirs:g} % of the {measure}",
        theirs,
        Reading(measure, lambda rows: rows[0].ours, checked),
        unit="\u00a0%",
    )
    for (measure, theirs), checked in zip(PRINTED.items(), (70.46, 95.84), strict=True)
)
