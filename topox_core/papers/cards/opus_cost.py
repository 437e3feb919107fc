"""Opus's figure 7: cost and power of photonic rails against packet-switched networks."""

from collections.abc import Iterator

from topox_core.economics.networks import Counting, bills, saving
from topox_core.economics.price_sets import PRICE_SETS
from topox_core.papers.card import CardRun
from topox_core.papers.rows import Row, printed, unprinted
from topox_core.rails.technologies import gpus, technology

SIZES = (1_024, 2_048, 4_096, 8_192)
RIVALS = {"rail_optimized": "Rail-optimised", "fat_tree": "Fat-tree", "rail_only": "Rail only"}
MAX = "largest saving"


def rows(run: CardRun) -> Iterator[Row]:
    catalogue = PRICE_SETS[str(run.settings["prices"])]
    counting = Counting(method=str(run.settings["counting"]))
    rival = str(run.settings["rival"])
    saved: dict[str, dict[int, float]] = {measure: {} for measure in run.card.printed}
    by_size: list[Row] = []
    for size in SIZES:
        priced = bills(size, catalogue, counting, (*RIVALS, "photonic_rails"))
        mine = priced["photonic_rails"]
        for measure in run.card.printed:
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
    for measure, theirs in run.card.printed.items():
        size = max(saved[measure], key=lambda one: saved[measure][one])
        yield printed(
            measure,
            MAX,
            f"{size:,} GPUs, against {RIVALS[rival]}",
            theirs,
            saved[measure][size],
            f"The largest of {', '.join(f'{one:,}' for one in SIZES)} GPUs. One Piezo switch per rail joins no more than "
            f"{piezo:,} of them.",
            unit="%",
        )
    yield from by_size
