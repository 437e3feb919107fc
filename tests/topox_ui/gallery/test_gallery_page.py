"""Gallery: a card runs beside the page, can be cancelled, and its answer is told in words, a figure and a table."""

import threading
import time
from collections.abc import Iterable
from dataclasses import replace

import pytest

from tests.patience import wait_until
from tests.topox_ui.conftest import (
    address,
    bring,
    buttons,
    choose,
    forget_answers,
    press,
    table,
    the_error,
    unbroken,
    words,
)
from topox_core.papers.card import Card, Choice
from topox_core.papers.catalogue import CARDS, CLAIMS, shipped_answers
from topox_core.papers.rows import Answer, Row, counts_of
from topox_core.training.measured.measurements import CALIBRATION_FILE

GALLERY = "Papers"
TOY = {"gallery.card": "toy"}
FACTOR = Choice("factor", "Factor", "Scales ours.", ((1, "one"), (2, "two")), 1)


def row(
    item: str,
    theirs: float | None,
    ours: float,
    verdict: str,
    series: str = "a",
    bound: float | None = None,
) -> Row:
    return Row(series, item, "16 servers", theirs, ours, verdict, f"because of {item}", "ms", bound)


ROWS = (
    row("1", 10.0, 10.5, "match", bound=9.0),
    row("2", 20.0, 24.0, "trend"),
    row("3", 30.0, 90.0, "differs"),
    replace(
        row("4", None, 7.0, "trend", series="b"), kind="identity", kind_reason="It is built so."
    ),
)


def card(play) -> Card:
    toy = type("Toy", (Card,), {"play": staticmethod(play)})
    return toy(
        "toy",
        "A toy <table>",
        "Toy (2026), Table I",
        "Three numbers & a fourth.",
        {"a": "First", "b": "Second"},
        4,
        choices=(FACTOR,),
    )


@pytest.fixture
def toy(monkeypatch):
    """The gallery with one card, which waits at a gate after its first row."""
    gate = threading.Event()

    def play(settings, stop, on_row, _executor) -> Answer:
        on_row(ROWS[0])
        while not gate.is_set() and not stop():
            time.sleep(0.01)
        kept = ROWS[:1] if stop() else ROWS
        return Answer(
            "toy",
            settings,
            kept,
            f"Ours is <odd> by {settings['factor']}.",
            (("Mean", "2.5×", "of 4"),),
            ("A remark.",),
            ("cancelled",) if stop() else (),
        )

    for name in list(CARDS):
        monkeypatch.delitem(CARDS, name)
    monkeypatch.setitem(CARDS, "toy", card(play))
    yield gate
    gate.set()


def run_here(visit, gate, at=None):
    """Run the card to its end, as its fragment does twice a second."""
    at = press(at or visit(GALLERY, **TOY), "gallery_run")
    gate.set()
    wait_until(lambda: "cancel_card" not in buttons(at), at.run)
    return at


def test_a_card_says_what_the_original_shows_runs_with_progress_and_tells_its_story(visit, toy):
    at = visit(GALLERY, **TOY)
    assert "Three numbers &amp; a fourth." in words(at)
    press(at, "gallery_run")
    assert "number" in at.get("progress")[0].proto.text and "gallery_run" not in buttons(at)
    toy.set()
    wait_until(lambda: "cancel_card" not in buttons(at), at.run)
    told = words(at)
    assert "Ours is &lt;odd&gt; by 1." in told and "A remark." in told
    assert "✓ 1 match, ≈ 1 trend, ✗ 1 differ of 3 judged" in told
    assert "because of 3" in told and "because of 1" not in told
    assert list(at.dataframe[0].value["deviation"]) == ["+5.0%", "+20.0%", "+200.0%"]
    unbroken(at.get("button_group")[0].set_value("b").run())
    assert list(at.dataframe[0].value["row"]) == ["4"]
    assert list(at.dataframe[0].value["verdict"]) == ["by construction: trend"]
    assert "It is built so." in words(at) and "not counted: 1 by construction" in words(at)
    assert at.button(key="gallery_run").label == "Run it again"
    assert "The same rows as before." in words(run_here(visit, toy, at))


def test_cancel_keeps_the_rows_that_are_there(visit, toy):
    at = press(press(visit(GALLERY, **TOY), "gallery_run"), "cancel_card")
    wait_until(lambda: "cancel_card" not in buttons(at), at.run)
    assert [warning.value for warning in at.warning] == ["Rows are missing: cancelled"]
    assert list(at.dataframe[0].value["row"]) == ["1"]
    assert at.button(key="gallery_run").label == "Run it again"


def test_another_position_of_a_switch_is_another_run_and_both_are_kept_for_every_visitor(
    visit, toy
):
    at = choose(run_here(visit, toy), gallery_toy_factor=2)
    assert at.button(key="gallery_run").label == "Run it here"
    assert "by 2." in words(run_here(visit, toy, at))
    assert "by 1." in words(choose(at, gallery_toy_factor=1))
    assert "by 1." in words(visit(GALLERY, **TOY))


def test_a_card_with_a_defect_is_loud_once(visit, monkeypatch, toy):
    def broken(settings, stop, on_row):
        raise RuntimeError("out of ink")

    monkeypatch.setitem(CARDS, "toy", card(broken))
    at = visit(GALLERY, **TOY)
    at.button(key="gallery_run").click().run()
    wait_until(lambda: at.exception, at.run)
    assert unbroken(at.run()).button(key="gallery_run").label == "Run it here"


def test_the_page_opens_with_every_claim_and_a_row_leads_to_its_card(visit):
    at = visit(GALLERY)
    rows = [button for button in at.button if button.key.startswith("claim_")]
    assert [button.label for button in rows] == [claim.words for claim in CLAIMS]
    press(at, rows[0].key)
    assert address(at)["gallery.card"] == CLAIMS[0].card
    assert "gallery.card" not in address(press(at, "all_cards"))


def told(rows: Iterable[Row]) -> str:
    """What the headline says of these rows."""
    of = [
        counts_of(row for row in every if (row.theirs is None) == without)
        for every in [list(rows)]
        for without in (False, True)
    ]
    numbers, statements = of
    assert not statements["match"]
    judged = [sum(one[verdict] for verdict in ("match", "trend", "differs")) for one in of]
    return (
        f"Of {judged[0]} published numbers, simulated again here, {numbers['match']} match within 10 % or exceed a printed "
        f"“more than”, {numbers['trend']} are within 25 % and {numbers['differs']} differ. Of {judged[1]} statements and "
        f"lines without a number {statements['trend']} go the same way here and {statements['differs']} do not"
    )


def test_the_wall_opens_with_the_answers_of_the_release(visit):
    at = visit(GALLERY)
    known = shipped_answers().values()
    assert told(row for one in known for row in one.answer.rows) in words(at)
    assert "None yet: answers were computed for this release" in words(at)
    counts = counts_of(row for one in known for row in one.answer.rows)
    assert f"{counts['identity']} are true by construction" in words(at)
    assert "identity" not in words(at) and "falls back" not in words(at)
    card = next(iter(CARDS.values()))
    assert all(one.axes[0] and one.axes[1] for one in CARDS.values())
    assert f"Vertical: {card.axes[0]}. Horizontal: {card.axes[1]}." in words(at)
    assert "nothing is simulated" not in words(at), "17 of them repeat a simulated number"
    rebuilt = sum(not claim.comparable for claim in CLAIMS)
    assert words(at).count("– not judged") == rebuilt > 0
    assert "Not run here yet" not in words(at) and "cancel_every_card" not in buttons(at)
    # The source is called as its cards call it; what no verdict is given on says how near it is.
    [choice] = [one for one in at.get("button_group") if one.label == "Which cards"]
    assert "Photonic Rails 8" in choice.options
    assert "2 without verdict, at most 0.0545 % apart" in words(at).replace("\u00a0", " ")
    press(at, "open_opus-cost")
    assert "Computed for this release." in words(at) and at.dataframe
    assert "What the results rest on" in words(at), "they do not differ"
    assert at.button(key="gallery_run").label == "Run it here"


@pytest.mark.long
def test_a_run_of_all_cards_takes_the_place_of_the_release_s_answers(visit, monkeypatch):
    quick = ("topoopt-cost", "opus-cost", "tdm-traffic")
    for name in set(CARDS) - {*quick}:
        monkeypatch.delitem(CARDS, name)
    monkeypatch.setattr("topox_ui.gallery.view.claims_table", lambda: None)
    changed = {
        name: replace(one, answer=replace(one.answer, rows=()))
        for name, one in shipped_answers().items()
    }
    for module in ("topox_core.papers.catalogue", "topox_ui.gallery.card"):
        monkeypatch.setattr(f"{module}.shipped_answers", lambda: changed)
    release = told(row for name in quick for row in shipped_answers()[name].answer.rows)
    at = visit(GALLERY)
    signs = words(at).count("✓")  # of the totals, and of what they mean
    assert release in words(at)
    press(at, "run_every_card")
    wait_until(lambda: "cancel_every_card" not in buttons(at), at.run)
    # Cards show their own run; the headline counts the rows of the release, whatever was run.
    assert release in words(unbroken(at)) and words(at).count("✓") > signs
    # Another visitor finds them, another server process in the run library.
    forget_answers()
    assert "3 of 3 cards" in words(visit(GALLERY))


def test_measured_iterations_stand_beside_their_predictions_and_a_file_adds_its_rows(visit):
    at = press(visit(GALLERY), "to_measured")
    assert "3.0 % on average on 8 rows" in words(at) and "6.0 % on 55 rows" in words(at)
    # As if half of the rows had not been fitted to: they come as a set of their own.
    data = CALIBRATION_FILE.read_text("utf-8").splitlines()
    bring(at, "up_measured", "mine.csv", "\n".join(data[:11]).encode())
    lines = table(at, "rank correlation")
    assert list(lines["rows"][lines["model"] == "all"]) == [55, 10, 8]
    bring(at, "up_measured", "bad.csv", b"rows\n1\n")
    assert "bad.csv" in the_error(at)
    assert "on average on 10 rows of mine.csv" in words(at)
