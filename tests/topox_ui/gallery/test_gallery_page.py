"""Gallery: a card runs beside the page, can be cancelled, and its answer is told in words, a figure and a table."""

import threading
import time
from collections import Counter

import pytest
import streamlit as st

from tests.patience import wait_until
from tests.topox_ui.conftest import address, chart, control, metric, words
from topox_core.figures.palette import LIGHT
from topox_core.figures.papers import paired
from topox_core.papers.card import Answer, Card, Choice, Row
from topox_core.papers.catalogue import CARDS
from topox_core.papers.claims import CLAIMS
from topox_core.runs.stopping import never
from topox_core.training.measurements import CALIBRATION_FILE

GALLERY = "pages/9_Gallery.py"
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
    row("4", None, 7.0, "trend", series="b"),
)


def card(play) -> Card:
    return Card(
        "toy",
        "A toy <table>",
        "Toy (2026), Table I",
        "Three numbers & a fourth.",
        (FACTOR,),
        {"a": "First", "b": "Second"},
        4,
        play,
        logarithmic=True,
    )


@pytest.fixture
def toy(monkeypatch):
    """The gallery with one card, which waits at a gate after its first row."""
    gate = threading.Event()

    def play(settings, stop, on_row) -> Answer:
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


def finished(at):
    """Run the page until the card has ended, as its fragment does twice a second."""
    wait_until(lambda: not any(button.key == "cancel_card" for button in at.button), at.run)
    return at


def test_before_it_is_run_a_card_says_what_the_original_shows(visit, toy):
    at = visit(GALLERY, **TOY)
    assert not at.exception
    assert "Published results · Toy (2026), Table I" in words(at)
    assert "Three numbers &amp; a fourth." in words(at)
    assert "computed on this machine" in words(at)
    assert at.button(key="gallery_run").label == "Run it here"


def test_a_run_shows_progress_and_then_the_story(visit, toy):
    at = visit(GALLERY, **TOY)
    at.button(key="gallery_run").click().run()
    assert "number" in at.get("progress")[0].proto.text
    assert not any(button.key == "gallery_run" for button in at.button)
    toy.set()
    finished(at)
    assert not at.exception
    told = words(at)
    assert "Ours is &lt;odd&gt; by 1." in told
    assert "✓ 1 match, ≈ 1 trend, ✗ 1 differ of 3 judged" in told
    assert "because of 3" in told and "because of 1" not in told
    assert "A remark." in told
    assert metric(at, "Mean") == "2.5×"
    table = at.dataframe[0].value
    assert list(table["verdict"]) == ["✓ match", "≈ trend", "✗ differs"]
    assert list(table["deviation"]) == ["+5.0%", "+20.0%", "+200.0%"]
    again = at.button(key="gallery_run")
    assert again.label == "Run it again"
    again.click().run()
    assert "The same rows as before." in words(finished(at))


def test_the_other_series_is_one_click_away(visit, toy):
    toy.set()
    at = visit(GALLERY, **TOY)
    at.button(key="gallery_run").click().run()
    finished(at)
    at.get("button_group")[0].set_value("b").run()
    assert not at.exception
    assert list(at.dataframe[0].value["row"]) == ["4"]


def test_cancel_keeps_the_rows_that_are_there(visit, toy):
    at = visit(GALLERY, **TOY)
    at.button(key="gallery_run").click().run()
    at.button(key="cancel_card").click().run()
    finished(at)
    assert [warning.value for warning in at.warning] == ["Rows are missing: cancelled"]
    assert list(at.dataframe[0].value["row"]) == ["1"]
    assert at.button(key="gallery_run").label == "Run it again"


def test_another_position_of_a_switch_is_another_run_and_both_are_kept(visit, toy):
    toy.set()
    at = visit(GALLERY, **TOY)
    at.button(key="gallery_run").click().run()
    finished(at)
    control(at, "gallery_toy_factor").set_value(2).run()
    assert at.button(key="gallery_run").label == "Run it here"
    at.button(key="gallery_run").click().run()
    finished(at)
    assert "by 2." in words(at)
    control(at, "gallery_toy_factor").set_value(1).run()
    assert "by 1." in words(at)


def test_a_second_visitor_finds_what_the_first_has_run(visit, toy):
    toy.set()
    at = visit(GALLERY, **TOY)
    at.button(key="gallery_run").click().run()
    finished(at)
    assert "by 1." in words(visit(GALLERY, **TOY))


def test_a_card_with_a_defect_is_loud_once(visit, monkeypatch, toy):
    def broken(settings, stop, on_row):
        raise RuntimeError("out of ink")

    monkeypatch.setitem(CARDS, "toy", card(broken))
    at = visit(GALLERY, **TOY)
    at.button(key="gallery_run").click().run()
    finished(at)
    assert at.exception
    at.run()
    assert not at.exception
    assert at.button(key="gallery_run").label == "Run it here"


def test_every_card_opens_before_it_is_run(visit):
    at = visit(GALLERY)
    for name, shown in CARDS.items():
        control(at, "gallery_card").set_value(name).run()
        assert not at.exception
        assert shown.source in words(at)
        assert len(at.selectbox) == 1 + len(shown.choices)


def test_the_page_opens_with_every_claim_and_a_row_leads_to_its_card(visit):
    at = visit(GALLERY)
    assert not at.exception
    rows = [button for button in at.button if button.key.startswith("claim_")]
    assert [button.label for button in rows] == [claim.words for claim in CLAIMS]
    told = words(at)
    assert f"Of {sum(claim.comparable for claim in CLAIMS)} published claims" in told
    assert "✗ does not hold" in told and "✓ holds within" in told
    rows[0].click().run()
    assert address(at)["gallery.card"] == CLAIMS[0].card
    at.button(key="all_cards").click().run()
    assert "gallery.card" not in address(at)


@pytest.mark.long
def test_the_wall_has_every_card_with_the_counts_of_its_last_run(visit, monkeypatch):
    quick = ("topoopt-cost", "opus-cost", "tdm-traffic")
    for name in set(CARDS) - {*quick, "topox-table3"}:
        monkeypatch.delitem(CARDS, name)
    monkeypatch.setattr("topox_ui.gallery.last_runs.AUTOMATIC", True)
    at = visit(GALLERY)
    wait_until(lambda: not any(one.key == "cancel_every_card" for one in at.button), at.run)
    assert not at.exception
    told = words(at)
    counts = Counter(
        one.verdict
        for name in quick
        for one in CARDS[name].run(None, never, lambda _row: None).rows
    )
    judged = sum(count for verdict, count in counts.items() if verdict != "not printed")
    assert f"Of {judged} published numbers and statements {counts['match']} match" in told
    assert "(1 of 4 cards not run yet)" in told
    assert told.count("Not run here yet; it takes about") == 1
    # Another visitor finds them, another server process in the run library.
    st.cache_resource.clear()
    later = visit(GALLERY)
    assert words(later).count("Not run here yet") == 1
    control(later, "gallery_paper").set_value("Opus").run()
    assert [one.key for one in later.button if one.key.startswith("open_")] == ["open_opus-cost"]
    assert address(later)["gallery.paper"] == "Opus"
    later.button(key="open_opus-cost").click().run()
    assert address(later)["gallery.card"] == "opus-cost"
    assert not later.exception


def test_measured_iterations_stand_beside_their_predictions_and_a_file_adds_its_rows(visit):
    at = visit(GALLERY)
    at.button(key="to_measured").click().run()
    assert not at.exception and address(at)["gallery.card"] == "measured"
    headline = words(at)
    assert "3.0 % on average on 8 rows" in headline and "6.0 % on 55" in headline
    assert "fitted to the 55 hollow rows" in headline
    lines = next(one.value for one in at.dataframe if "rank correlation" in one.value)
    assert list(lines["rows"][lines["model"] == "all"]) == [55, 8]
    far = next(one.value for one in at.dataframe if "note" in one.value and len(one.value) < 20)
    assert len(far) == 12 and "contradicts row 33" in " ".join(far["note"])
    beyond = next(one.value for one in at.dataframe if "published (s)" in one.value)
    assert list(beyond["error"]) == ["+19.5%", "+1.1%", "+47.8%", "+4.9%", "-15.9%"]
    # As if half of the rows had not been fitted to: they come as a set of their own.
    data = CALIBRATION_FILE.read_text("utf-8").splitlines()
    at.file_uploader(key="up_measured").upload("mine.csv", "\n".join(data[:11]).encode()).run()
    assert not at.exception and "on average on 10 rows of mine.csv" in words(at)
    lines = next(one.value for one in at.dataframe if "rank correlation" in one.value)
    assert list(lines["rows"][lines["model"] == "all"]) == [55, 10, 8]
    at.file_uploader(key="up_measured").upload("bad.csv", b"rows\n1\n").run()
    assert not at.exception and "bad.csv" in at.error[0].value
    assert "on average on 10 rows of mine.csv" in words(at)


def test_the_figure_pairs_theirs_with_ours_and_writes_the_verdict():
    figure = paired(ROWS[:3], LIGHT, logarithmic=True)
    by_name = {trace.name: trace for trace in figure.data if trace.name}
    assert list(by_name["theirs (printed)"].x) == [10, 20, 30]
    assert list(by_name["ours (computed)"].x) == [10.5, 24, 90]
    assert list(by_name["lower bound"].x) == [9]
    texts = [note.text.replace("\u00a0", " ") for note in figure.layout.annotations]
    assert texts == ["<b>✓</b> match +5 %", "<b>≈</b> trend +20 %", "<b>✗</b> differs +200 %"]
    assert "logarithmic" in figure.layout.xaxis.title.text
    low, high = figure.layout.xaxis.range
    assert 10**low < 9 < 90 < 10**high


def test_rows_without_a_printed_number_have_no_hollow_dot():
    figure = paired(ROWS[3:], LIGHT)
    by_name = {trace.name: trace for trace in figure.data if trace.name}
    assert list(by_name["theirs (printed)"].x) == []
    assert figure.layout.xaxis.range[0] == 0
    assert figure.layout.annotations[0].text.endswith("trend")


def test_the_chart_is_on_the_page(visit, toy):
    toy.set()
    at = visit(GALLERY, **TOY)
    at.button(key="gallery_run").click().run()
    finished(at)
    assert "16 servers" in str(chart(at, "gallery_toy"))


def test_a_chart_names_a_row_by_as_much_as_fits_beside_it():
    long = Row("a", "item", "about something that takes many more letters", 1.0, 1.0, "match", "")
    longer = Row("a", "an item of far more letters than there is room", "", 1.0, 1.0, "match", "")
    names = paired((ROWS[0], long, longer), LIGHT).layout.yaxis.ticktext
    assert names[0].endswith("16 servers")
    assert names[1] == "item"
    assert len(names[2]) == 34 and names[2].endswith("…")
