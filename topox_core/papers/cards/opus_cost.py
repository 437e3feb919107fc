"""Opus's figure 7: cost and power of photonic rails against packet-switched networks."""

from topox_core.economics.networks import Counting, bills, saving
from topox_core.economics.price_sets import PRICE_SETS
from topox_core.papers.card import CardRun, Rows
from topox_core.papers.rows import Row
from topox_core.rails.technologies import gpus, technology

SIZES = (1_024, 2_048, 4_096, 8_192)
RIVALS = {"rail_optimized": "Rail-optimised", "fat_tree": "Fat-tree", "rail_only": "Rail only"}
MAX = "largest saving"


def rows(run: CardRun) -> Rows:
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
                amounts = mine.amount(measure), priced[other].amount(measure)
                share = 100 * saving(*amounts)
                if other == rival:
                    saved[measure][size] = share
                data = dict(zip((f"rails_{measure}", f"other_{measure}"), amounts, strict=True))
                item = f"{size:,} GPUs"
                by_size.append(run.row(f"{measure}_by_size", item, share, data=data, rival=words))
    piezo = gpus(technology("piezo"), counting.gpus_per_server)
    for measure, by in saved.items():
        size = max(by, key=by.__getitem__)
        yield run.row(measure, MAX, by[size], size=size, piezo=piezo, rival=RIVALS[rival])
    yield from by_size
