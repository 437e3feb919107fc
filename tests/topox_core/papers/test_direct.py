"""Cards that compute in this process: what a run gives, and that the document and the claims say so."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.card_tables import HEAD, section
from tests.topox_core.papers.answers import answer_of
from topox_core.papers.calls import CANCELLED
from topox_core.papers.card import Card, Choice
from topox_core.papers.catalogue import DIRECT
from topox_core.papers.claims import CLAIMS
from topox_core.papers.direct import at_least, direct, directed, printed, unprinted
from topox_core.runs.stopping import never

# Less than half a second each; those of one paper at least once.
QUICK = (
    *("topox-introduction", "topoopt-cost", "opus-window-lengths", "opus-switches", "opus-cost"),
    *("opus-provisioning", "opus-rails", "tdm-training-times", "tdm-traffic", "swot-inside"),
)
DOCUMENT = Path(__file__).parents[3] / "docs" / "published-results.md"


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (printed("s", "i", "", 100.0, 109.0, ""), "match"),
        (printed("s", "i", "", 100.0, 130.0, ""), "differs"),
        (at_least("s", "i", "", 75.0, 99.0, ""), "match"),
        (at_least("s", "i", "", 75.0, 60.0, ""), "trend"),
        (at_least("s", "i", "", 75.0, 30.0, ""), "differs"),
        (directed("s", "i", "", True, 1.0, ""), "trend"),
        (directed("s", "i", "", False, 1.0, ""), "differs"),
        (unprinted("s", "i", "", 1.0), "not printed"),
    ],
)
def test_the_kinds_of_rows_are_judged_as_they_say(row, verdict):
    assert row.verdict == verdict


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
        pytest.param(card, id=card.name, marks=[pytest.mark.long] * (card.name not in QUICK))
        for card in DIRECT
    ],
)
def test_document_and_claims_say_what_a_card_gives(card: Card):
    """If not: python -m benchmarks.card_tables --document docs/published-results.md."""
    answer = answer_of(card.name)
    assert answer.complete and len(answer.rows) == card.row_count
    assert all(row.reason and row.ours == row.ours for row in answer.rows)
    for series in card.series:  # one chart, one axis
        assert len({row.unit for row in answer.of(series)}) == 1
    assert section(card, answer) in DOCUMENT.read_text(encoding="utf-8")
    for claim in [one for one in CLAIMS if one.card == card.name]:
        assert claim.reading.value(answer) == pytest.approx(claim.reading.checked, rel=0.005)
        assert claim.verdict(answer) == claim.verdict(None)


def test_the_document_has_these_cards_and_no_other():
    text = DOCUMENT.read_text(encoding="utf-8")
    titles = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    assert text.startswith(HEAD) and titles == [card.title for card in DIRECT]


@pytest.mark.long
@pytest.mark.parametrize(
    ("card", "choice"),
    [
        pytest.param(card, choice, id=f"{card.name}-{choice.key}")
        for card in DIRECT
        for choice in card.choices
    ],
)
def test_another_position_of_every_switch_gives_rows(card: Card, choice: Choice):
    other = next(value for value, _ in choice.options if value != choice.default)
    answer = card.run({choice.key: other}, never, [].append)
    assert answer.complete and answer.rows and answer.finding
