"""What the papers claim, one claim a line: printed number, what came out here, verdict.

A claim reads its number from the answer of its card with every switch in its first position: of a
run here, or the one that comes with the release.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from topox_core.papers.card import Answer, Claim
from topox_core.papers.catalogue import CARDS
from topox_core.papers.kept_answers import shipped_answers
from topox_core.papers.rows import VERDICTS, Kind, apart_words

CLAIMS: tuple[Claim, ...] = tuple(claim for card in CARDS.values() for claim in card.claims)


def kind_of(claim: Claim) -> Kind:
    """Return what a claim is tried with: the kind of the rows that it reads."""
    return CARDS[claim.card].kind(claim.reading.series)[0]


def complete_answers(answers: Mapping[str, Answer | None]) -> dict[str, Answer]:
    """Return a complete answer by card: one of ``answers``, else the one that comes with the release."""
    own = {name: one for name, one in answers.items() if one is not None and one.complete}
    return {name: one.answer for name, one in shipped_answers().items()} | own


def answer_words(answers: Mapping[str, Answer]) -> str:
    """Return in three sentences how many claims hold, as HTML; ``answers`` has a complete one for each card.

    Only claims that a simulation tries are counted.
    """
    tried = [claim for claim in CLAIMS if claim.comparable and kind_of(claim) == "simulated"]
    verdicts = [claim.verdict(answers[claim.card]) for claim in tried]
    apart = apart_words(Counter(kind_of(claim) for claim in CLAIMS))
    rebuilt = sum(not claim.comparable for claim in CLAIMS)
    largest, answer = CLAIMS[0], answers[CLAIMS[0].card]
    assert largest.other is not None
    count = {word: verdicts.count(word) for word in VERDICTS}
    return (
        f"Of {len(tried)} published claims that a simulation tries <b>{count['match']} hold</b> within 10\u00a0%, "
        f"{count['trend']} roughly, and <b>{count['differs']} do not</b>. Not counted: {apart}, "
        f"{rebuilt} from abstracts alone. TOPO\u2011X’s speed-up of {largest.printed:.2f}× is "
        f"<b>{largest.reading.value(answer):.2f}×</b> with the all-reduce counted on both networks."
    )
