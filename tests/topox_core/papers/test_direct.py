"""Cards that compute in this process: their frame, and what holds for every one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.card_tables import document
from tests.topox_core.papers.answers import answer_of
from topox_core.papers.calls import CANCELLED
from topox_core.papers.card import Card, Choice
from topox_core.papers.catalogue import DIRECT
from topox_core.papers.claims import CLAIMS
from topox_core.papers.direct import at_least, direct, directed, printed, unprinted
from topox_core.runs.stopping import never

# The quick run leaves out the cards that take longer than a second.
SLOW = [card.name for card in DIRECT if card.takes_s > 1.0]
NAMES = {card.name for card in DIRECT}
CHECKED = [claim for claim in CLAIMS if claim.card in NAMES]
DOCUMENT = Path(__file__).parents[3] / "docs" / "published-results.md"


def test_the_kinds_of_rows_are_judged_as_they_say():
    assert printed("s", "i", "", 100.0, 109.0, "").verdict == "match"
    assert printed("s", "i", "", 100.0, 130.0, "").verdict == "differs"
    assert at_least("s", "i", "", 75.0, 99.0, "").verdict == "match"
    assert at_least("s", "i", "", 75.0, 60.0, "").verdict == "trend"
    assert at_least("s", "i", "", 75.0, 30.0, "").verdict == "differs"
    assert directed("s", "i", "", True, 1.0, "").verdict == "trend"
    assert directed("s", "i", "", False, 1.0, "").verdict == "differs"
    assert unprinted("s", "i", "", 1.0).verdict == "not printed"


def test_a_stopped_card_keeps_its_rows_and_says_so():
    rows = [unprinted("s", str(i), "", float(i)) for i in range(5)]
    seen: list[object] = []
    play = direct("x", lambda settings: iter(rows), lambda rows: ("all", ()))
    answer = play({}, lambda: len(seen) >= 2, seen.append)
    assert (len(answer.rows), answer.lost, answer.complete) == (2, (CANCELLED,), False)
    assert play({}, never, seen.append).finding == "all"


@pytest.mark.parametrize(
    "card",
    [
        pytest.param(card, id=card.name, marks=[pytest.mark.long] * (card.name in SLOW))
        for card in DIRECT
    ],
)
def test_a_card_gives_its_rows_in_their_series_the_same_each_time(card: Card):
    answer = answer_of(card.name)
    assert answer.complete and answer.finding
    assert len(answer.rows) == card.row_count
    assert {row.series for row in answer.rows} == set(card.series)
    assert all(row.reason and row.ours == row.ours for row in answer.rows)
    for series in card.series:  # one chart, one axis
        assert len({row.unit for row in answer.of(series)}) == 1
    assert card.run(None, never, lambda row: None) == answer


@pytest.mark.parametrize(
    ("card", "choice"),
    [
        pytest.param(
            card,
            choice,
            id=f"{card.name}-{choice.key}",
            marks=[pytest.mark.long] * (card.name in SLOW),
        )
        for card in DIRECT
        for choice in card.choices
    ],
)
def test_another_position_of_every_switch_gives_rows(card: Card, choice: Choice):
    other = next(value for value, _ in choice.options if value != choice.default)
    answer = card.run({choice.key: other}, never, [].append)
    assert answer.complete and answer.rows and answer.finding


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(claim, id=claim.words, marks=[pytest.mark.long] * (claim.card in SLOW))
        for claim in CHECKED
    ],
)
def test_the_number_of_the_last_check_is_what_the_card_gives(claim):
    answer = answer_of(claim.card)
    assert claim.reading.value(answer) == pytest.approx(claim.reading.checked, rel=0.005)
    assert claim.verdict(answer) == claim.verdict(None)


@pytest.mark.long
def test_the_document_is_what_a_run_gives():
    """If it is not: python -m benchmarks.card_tables --document docs/published-results.md."""
    text = document(lambda card: answer_of(card.name))
    assert DOCUMENT.read_text(encoding="utf-8") == text
