"""What the papers claim, one claim a line: printed number, what came out here, verdict.

A claim reads its number from the answer of its card with every switch in its first position. Until
the card has been run, the number of the last check stands there, which ``docs/gallery.md`` tells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from statistics import fmean

from topox_core.papers.card import VERDICTS, Answer, Kind, Row, apart_words
from topox_core.papers.catalogue import CARDS, DIRECT_CLAIMS
from topox_core.papers.claim import Claim, Reading
from topox_core.papers.dedicated import CARD as DEDICATED
from topox_core.papers.dedicated import PRINTED_MAX
from topox_core.papers.dlrm_batches import (
    ALL_TO_ALL,
    ITEMS,
    PRINTED_FAT_TREE,
    PRINTED_IDEAL,
    PRINTED_SHARE,
    PRINTED_TAX,
    TAX,
)
from topox_core.papers.reconfiguration import CARD as RECONFIGURATION
from topox_core.papers.shared_cluster import CARD as SHARED
from topox_core.papers.shared_cluster import PRINTED, RIVALS
from topox_core.papers.table_iii import CARD as TABLE_III
from topox_core.papers.table_iii_runs import TABLE

_SPEED_UPS = [row.topoopt_ms / row.topox_ms for row in TABLE]


def _item(name: str) -> Callable[[tuple[Row, ...]], float]:
    return lambda rows: next(row.ours for row in rows if row.item == name)


def _most(rows: tuple[Row, ...]) -> float:
    return max(row.ours for row in rows)


def _speed_ups(of: Callable[[Iterable[float]], float]) -> Callable[[tuple[Row, ...]], float]:
    return lambda rows: of([row.data["speed_up"] for row in rows])


def _mean_of(name: str, checked: float, spread: float) -> Reading:
    def deviation(rows: tuple[Row, ...]) -> float:
        return next(row.data["standard_deviation"] for row in rows if row.item == name)

    return Reading("average", _item(name), checked, Reading("average", deviation, spread))


_ON_ONE = "with it on TopoOpt’s network only, as the printed times imply"
_ON_BOTH = "Recomputed with the all-reduce on both networks"
CLAIMS = (
    Claim(
        TABLE_III.name,
        "Changing circuits are up to 6.08× faster than TopoOpt’s",
        max(_SPEED_UPS),
        Reading("on", _speed_ups(max), 1.04),
        other=Reading("off", _speed_ups(max), 6.24),
        other_words=_ON_ONE,
        condition=_ON_BOTH,
    ),
    Claim(
        TABLE_III.name,
        "They are 2.22× faster on average",
        fmean(_SPEED_UPS),
        Reading("on", _speed_ups(fmean), 1.00),
        other=Reading("off", _speed_ups(fmean), 2.38),
        other_words=_ON_ONE,
        condition=_ON_BOTH,
    ),
    Claim(
        TABLE_III.name,
        "TopoOpt’s iteration time, mean of 14 networks",
        fmean(row.topoopt_ms for row in TABLE),
        Reading("topoopt", lambda rows: fmean(row.ours for row in rows), 85.29),
        "\u00a0ms",
    ),
    Claim(
        TAX.name,
        "Bandwidth tax of DLRM at batch 64, degree 4",
        PRINTED_TAX[64, 4],
        Reading("d4", _item(ITEMS[64]), 1.086),
        unit="",
        base=1.0,
    ),
    Claim(
        TAX.name,
        "Bandwidth tax of DLRM at batch 64, degree 8",
        PRINTED_TAX[64, 8],
        Reading("d8", _item(ITEMS[64]), 1.05),
        unit="",
        base=1.0,
    ),
    Claim(
        TAX.name,
        "All-to-all bytes over all-reduce bytes at batch 2048",
        PRINTED_SHARE,
        Reading("share", _item(ITEMS[2048]), 0.79),
    ),
    Claim(
        ALL_TO_ALL.name,
        "TopoOpt is as fast as an ideal switch at batch 128",
        PRINTED_IDEAL[128, 4],
        Reading("ideal_d4", _item(ITEMS[128]), 1.16),
    ),
    Claim(
        ALL_TO_ALL.name,
        "A fat-tree of the same cost is slower at batch 128",
        PRINTED_FAT_TREE[128, 4],
        Reading("fat_tree_d4", _item(ITEMS[128]), 2.11),
    ),
    Claim(
        ALL_TO_ALL.name,
        "At batch 2048 that fat-tree is faster: its time over TopoOpt’s",
        PRINTED_FAT_TREE[2048, 4],
        Reading("fat_tree_d4", _item(ITEMS[2048]), 0.80),
    ),
    Claim(
        RECONFIGURATION.name,
        "Circuits re-evaluated every 50 ms take longer than fixed ones at 10 ms delay",
        None,
        Reading("forwarding", lambda rows: rows[-1].ours, 1.37),
    ),
    Claim(
        RECONFIGURATION.name,
        "A switch of a microsecond matches fixed circuits, re-evaluated every 50 ms",
        1.0,
        Reading("forwarding", _item("1 µs"), 1.27),
    ),
    Claim(
        DEDICATED.name,
        "One job: a fat-tree of the same cost is up to 3.4× slower",
        PRINTED_MAX,
        Reading("fat_tree", _most, 2.42),
    ),
    Claim(
        SHARED.name,
        "Shared cluster: a fat-tree of the same cost is slower on average",
        PRINTED["average", "fat_tree"],
        _mean_of(RIVALS["fat_tree"], 1.74, 0.09),
    ),
    Claim(
        SHARED.name,
        "Shared cluster: an oversubscribed fat-tree is slower on average",
        PRINTED["average", "oversubscribed"],
        _mean_of(RIVALS["oversubscribed"], 1.05, 0.07),
    ),
    *DIRECT_CLAIMS,
)


def kind_of(claim: Claim) -> Kind:
    """Return what a claim is tried with: the kind of the rows that it reads."""
    return CARDS[claim.card].kind(claim.reading.series)[0]


def answer_words(answers: Mapping[str, Answer | None]) -> str:
    """Return in three sentences how many claims hold, as HTML; ``answers`` has an answer by card, if there is one.

    Only claims that a simulation tries are counted.
    """
    tried = [claim for claim in CLAIMS if claim.comparable and kind_of(claim) == "simulated"]
    verdicts = [claim.verdict(answers.get(claim.card)) for claim in tried]
    apart = apart_words(Counter(kind_of(claim) for claim in CLAIMS))
    rebuilt = sum(not claim.comparable for claim in CLAIMS)
    largest, answer = CLAIMS[0], answers.get(TABLE_III.name)
    assert largest.other is not None
    count = {word: verdicts.count(word) for word in VERDICTS}
    return (
        f"Of {len(tried)} published claims that a simulation tries <b>{count['match']} hold</b> within 10\u00a0%, "
        f"{count['trend']} roughly, and <b>{count['differs']} do not</b>. Not counted: {apart}, "
        f"{rebuilt} from abstracts alone. TOPO\u2011X’s speed-up of {largest.printed:.2f}× is "
        f"<b>{largest.reading.value(answer):.2f}×</b> with the all-reduce counted on both networks."
    )
