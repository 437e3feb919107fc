"""What the documents say of cards that take long is what a run gives; each test names the command that renews it."""

from __future__ import annotations

import pytest

from benchmarks import table_iii_page, topoopt_page
from benchmarks.document_parts import part_of, stale, written
from tests.real_inputs import ROOT
from topox_core.papers.claims import CLAIMS

TEXT = "one\n<!-- a -->\nold\n<!-- end of a -->\ntwo\n"


def document() -> str:
    return (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")


def test_a_part_is_replaced_and_found_stale() -> None:
    assert part_of(TEXT, "a") == "old"
    renewed = written(TEXT, "a", "new\nlines")
    assert renewed == "one\n<!-- a -->\nnew\nlines\n<!-- end of a -->\ntwo\n"
    assert stale(renewed, {"a": "new\nlines"}) == [] and stale(TEXT, {"a": "new"}) == ["a"]
    with pytest.raises(SystemExit, match="no comment <!-- b -->"):
        part_of(TEXT, "b")


def test_every_part_has_its_place_and_content() -> None:
    for name in (*topoopt_page.NAMES, topoopt_page.OTHER):
        assert part_of(document(), name).strip(), name


@pytest.mark.long
@pytest.mark.parametrize("name", topoopt_page.NAMES)
def test_document_and_claims_say_what_a_card_of_topoopt_gives(name: str) -> None:
    """If not: python -m benchmarks.topoopt_page --document docs/gallery.md."""
    answer = topoopt_page.played(name, {})
    assert part_of(document(), name) == topoopt_page.card_part(name, lambda *_: answer)
    for claim in [one for one in CLAIMS if one.card == name]:
        assert claim.reading.value(answer) == pytest.approx(claim.reading.checked, abs=0.006)
        assert claim.verdict(answer) == claim.verdict(None)


@pytest.mark.long
def test_other_readings_of_topoopt_are_what_a_run_gives() -> None:
    """If they are not: python -m benchmarks.topoopt_page --document docs/gallery.md."""
    assert part_of(document(), topoopt_page.OTHER) == topoopt_page.other_part()


@pytest.mark.long
def test_the_tables_of_table_iii_are_what_a_run_gives() -> None:
    """If they are not: python -m benchmarks.table_iii_page --document docs/gallery.md --readings."""
    rows = table_iii_page.cards()
    parts = {
        "TopoOpt column": table_iii_page.topoopt_part(rows),
        "all-reduce off the network": table_iii_page.off_part(rows),
        "all-reduce on the network": table_iii_page.on_part(rows),
        "constraints of the plan": table_iii_page.constraints_part(),
        "readings of the plan": table_iii_page.readings_part(),
        "readings of the TopoOpt column": table_iii_page.topoopt_readings_part(),
    }
    assert stale(document(), {f"table III, {name}": part for name, part in parts.items()}) == []
