"""What a run of a card gives, and that documents and claims say so; each test names the command that renews them."""

import re
from statistics import fmean

import pytest

from benchmarks import table_iii_page, topoopt_page
from benchmarks.card_tables import DIRECT, HEAD, section
from benchmarks.document_parts import part_of, stale, written
from tests.real_inputs import ROOT
from tests.topox_core.papers.answers import answer_of, run
from topox_core.economics.price_sets import PRICE_SETS
from topox_core.papers.card import CANCELLED, UNFINISHED, Answer, Card, Choice
from topox_core.papers.catalogue import CARDS, PAPERS, answer_words, card_named, complete_answers
from topox_core.papers.kept_answers import shipped_answers
from topox_core.papers.rows import same_rows
from topox_core.papers.table_iii_runs import TABLE

# Less than half a second each; those of one paper at least once.
QUICK = (
    *("topox-introduction", "topoopt-cost", "opus-window-lengths", "opus-switches", "opus-cost"),
    *("opus-provisioning", "opus-rails", "tdm-training-times", "tdm-traffic", "swot-inside"),
)
DOCUMENT = (ROOT / "docs" / "published-results.md").read_text(encoding="utf-8")
GALLERY = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")


def test_a_stopped_card_keeps_its_rows_and_says_so():
    card, seen = card_named("opus-cost"), []
    answer = card.run(None, lambda: len(seen) >= 2, seen.append)
    assert (len(answer.rows), answer.lost, answer.complete) == (2, (CANCELLED,), False)
    assert (answer.finding, answer.remarks) == (UNFINISHED, ())


def test_a_card_offers_price_sets_that_there_are_and_claims_what_its_table_prints():
    offered = {value for value, _ in card_named("opus-cost").choices[1].options}
    assert offered == set(PRICE_SETS) - {"opus-v3-gb200"}
    largest, mean, time = card_named("topox-table3").claims
    speed_ups = [row.topoopt_ms / row.topox_ms for row in TABLE]
    assert largest.printed == pytest.approx(max(speed_ups), abs=0.005)
    assert mean.printed == pytest.approx(fmean(speed_ups), abs=0.005)
    assert time.printed == pytest.approx(fmean(row.topoopt_ms for row in TABLE), abs=0.005)
    assert card_named("topox-delay").claims[0].printed == TABLE[4].topox_ms


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
    places = {f"{row.series}/{row.item}" for row in answer.rows} | {
        row.series for row in answer.rows
    }
    assert set(card.kinds) <= places
    for series in card.series:  # one chart, one axis
        assert len({row.unit for row in answer.of(series)}) == 1
    assert section(card, answer) in DOCUMENT
    assert shipped_is(answer)


def shipped_is(answer: Answer) -> bool:
    """Whether the release comes with this answer; if not: python tools/make_answers.py cards."""
    shipped = shipped_answers()[answer.card].answer
    assert same_rows(shipped.rows, answer.rows)
    return (shipped.finding, shipped.settings) == (answer.finding, answer.settings)


def test_every_card_comes_with_an_answer() -> None:
    assert list(shipped_answers()) == list(CARDS)
    for name, kept in shipped_answers().items():
        assert kept.answer.complete and len(kept.answer.rows) == CARDS[name].row_count


def test_the_readme_leads_to_the_sources_that_the_gallery_names() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named = [PAPERS[name] for name in ("TOPO-X", "TopoOpt", "Opus")]
    assert all(f"]({address})" in readme for _, address in named)
    assert {card.paper for card in CARDS.values()} == set(PAPERS)


def test_the_document_has_these_cards_and_no_other():
    titles = re.findall(r"^## (.*)$", DOCUMENT, re.MULTILINE)
    assert DOCUMENT.startswith(HEAD) and titles == [card.title for card in DIRECT]


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
    answer = run(card.name, **{choice.key: other})
    assert answer.complete and answer.rows and answer.finding


# --- cards that take long

TEXT = "one\n<!-- a -->\nold\n<!-- end of a -->\ntwo\n"


def test_the_document_opens_with_the_count_of_claims_by_kind() -> None:
    counted = (
        re.sub("<.*?>", "", answer_words(complete_answers({})))
        .partition(" TOPO")[0]
        .replace("\u00a0", " ")
    )
    assert " ".join(GALLERY.split("```")[0].split()).count(counted) == 1


def test_a_part_is_replaced_and_found_stale() -> None:
    assert part_of(TEXT, "a") == "old"
    renewed = written(TEXT, "a", "new\nlines")
    assert renewed == "one\n<!-- a -->\nnew\nlines\n<!-- end of a -->\ntwo\n"
    assert stale(renewed, {"a": "new\nlines"}) == [] and stale(TEXT, {"a": "new"}) == ["a"]
    with pytest.raises(SystemExit, match="no comment <!-- b -->"):
        part_of(TEXT, "b")


def test_every_part_has_its_place_and_content() -> None:
    for name in (*topoopt_page.NAMES, topoopt_page.OTHER):
        assert part_of(GALLERY, name).strip(), name


@pytest.mark.long
@pytest.mark.parametrize("name", topoopt_page.NAMES)
def test_document_and_claims_say_what_a_card_of_topoopt_gives(name: str) -> None:
    """If not: python -m benchmarks.topoopt_page --document docs/gallery.md."""
    answer = run(name)
    assert part_of(GALLERY, name) == topoopt_page.card_part(name, lambda *_: answer)
    assert shipped_is(answer)


@pytest.mark.long
def test_other_readings_of_topoopt_are_what_a_run_gives() -> None:
    """If they are not: python -m benchmarks.topoopt_page --document docs/gallery.md."""
    text = topoopt_page.other_part(lambda name, switches: run(name, **switches))
    assert part_of(GALLERY, topoopt_page.OTHER) == text


@pytest.mark.long
def test_the_tables_of_table_iii_are_what_a_run_gives() -> None:
    """If they are not: python -m benchmarks.table_iii_page --document docs/gallery.md --readings."""
    rows = {
        clock: {(int(row.item), row.series): row for row in run("topox-table3", **switches).rows}
        for clock, switches in table_iii_page.CLOCKS.items()
    }
    parts = {
        "TopoOpt column": table_iii_page.topoopt_part(rows),
        "all-reduce off the network": table_iii_page.off_part(rows),
        "all-reduce on the network": table_iii_page.on_part(rows),
        "constraints of the plan": table_iii_page.constraints_part(),
        "readings of the plan": table_iii_page.readings_part(),
        "readings of the TopoOpt column": table_iii_page.topoopt_readings_part(),
    }
    assert stale(GALLERY, {f"table III, {name}": part for name, part in parts.items()}) == []
