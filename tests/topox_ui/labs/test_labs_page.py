"""The page Labs: every screen of every lab at its time and after it, locks that hold, replies, files in and out."""

from __future__ import annotations

import json
from collections.abc import Callable
from urllib.parse import parse_qsl

import pytest
from streamlit.testing.v1 import AppTest

from tests.conftest import long_after
from tests.labs_answered import EXPLANATION, answered, right
from tests.labs_answered import LABS as READY
from tests.topox_ui.conftest import address, words
from tests.topox_ui.shell.test_foreign_text import elements
from topox_core.labs.answers_file import dump_answers, load_answers
from topox_core.labs.draws import seed_of
from topox_core.labs.grading import grade, score
from topox_core.labs.keys import key_of
from topox_core.labs.lab import Lab
from topox_ui.labs import kept
from topox_ui.shell.pages import page_of

LABS = "pages/16_Labs.py"
SIX = READY["six-tasks"]
SCREENS = [(lab.id, k) for lab in READY.values() for k in range(1, len(lab.screens) + 1)]
SCREENS.sort(key=("six-tasks", 4).__ne__)
# Of a figure, as a class room's network allows (docs/labs.md).
MOST_BYTES = 60_000
# A lab of a lecturer's own, with the types of question and the figures that no other has.
OWN = {
    "format": "topox-lab",
    "version": 1,
    "id": "my-own",
    "title": "Rings and a pipeline",
    "minutes": 10,
    "goals": ["See every *type* of question."],
    "instances": {
        "rings": {"generator": "pairs", "generator_version": 1, "seed": 1},
        "mine": {"files": {"graph": "sample:blackboard", "cluster": "sample:blackboard"}},
    },
    "screens": [
        {
            "id": "sort",
            "stage": "work",
            "instance": "rings",
            "show": ["tasks"],
            "text": "Put the strides into their order. The smallest comes first.",
            "questions": [
                {
                    "id": "W1",
                    "type": "order",
                    "points": 2,
                    "text": "Which order?",
                    "options": [{"id": one, "text": f"*{one}*"} for one in ("3", "1", "5", "7")],
                    "key": {"value": "strides"},
                }
            ],
        },
        {
            "id": "guess",
            "stage": "predict",
            "instance": "mine",
            "show": ["gantt"],
            "questions": [
                {
                    "id": "P1",
                    "type": "number",
                    "unit": "ms",
                    "points": 1,
                    "text": "How long is one iteration?",
                    "key": {"call": "schedule", "field": "makespan_ms"},
                }
            ],
        },
        {"id": "see", "stage": "reveal", "instance": "mine", "show": ["gantt"], "questions": []},
    ],
}
Visit = Callable[..., AppTest]


def at_screen(visit: Visit, lab: Lab, screen: int, seed: int = 1, done: int = 0) -> AppTest:
    """Open a screen, counted from 1, with everything right on the first ``done`` screens."""
    given = answered(lab, seed, done)
    kept._kept().put(kept.Whose.of(given), given)
    query = {"lab.id": lab.id, "lab.seed": str(seed), "lab.q": str(screen)}
    return visit(LABS, **query)


def field(at: AppTest, kind: str, name: str):
    """Return the control of a question, such as ``P1``, or of a part of it, such as ``W1_a``."""
    found = [one for one in at.get(kind) if f"_{name}" in (one.key or "")]
    assert len(found) == 1, [one.key for one in at.get(kind)]
    return found[0]


def press(at: AppTest, key: str) -> AppTest:
    at.button(key=key).click().run()
    assert not at.exception
    return at


def sent(at: AppTest) -> str:
    """Return everything that goes to the browser, and the address."""
    parts = [str(one.proto) for root in (at.main, at.sidebar) for one in elements(root)]
    return "".join(parts) + json.dumps(address(at))


@pytest.mark.parametrize(("name", "screen"), long_after(1, SCREENS))
def test_a_screen_draws_at_its_time_and_after_it(visit, name: str, screen: int) -> None:
    lab = READY[name]
    for done in (screen - 1, len(lab.screens)):
        at = at_screen(visit, lab, screen, 1, done)
        assert not at.exception
        assert f"screen {screen} of {len(lab.screens)}" in words(at)
        charts = at.get("plotly_chart")
        assert all(chart.proto.alt for chart in charts)
        assert all(len(chart.proto.spec) <= MOST_BYTES for chart in charts)
        tables = [box for box in at.get("expander") if box.proto.label == "Table"]
        assert len(tables) == len(charts)
        assert charts or lab.screens[screen - 1].stage != "reveal"


def test_the_first_screen_has_eight_labs_and_asks_who_works(visit) -> None:
    at = visit(LABS)
    assert not at.exception
    assert len([one for one in at.button if one.key.startswith("lab_open_")]) == len(READY)
    press(at, "lab_open_six-tasks")
    assert "lab.id" not in address(at)
    assert "Give course and student id" in at.error[0].value
    field(at, "text_input", "who_course").set_value("NET<401>").run()
    field(at, "text_input", "who_student").set_value("s1234567").run()
    assert "must be 1 to 40 letters" in words(at)
    field(at, "text_input", "who_course").set_value("NET-401").run()
    assert "Your seed: 58157343" in words(at)
    press(at, "lab_open_six-tasks")
    assert address(at)["lab.seed"] == "58157343"
    assert "NET-401" not in json.dumps(address(at)), "a link carries no name"
    press(at, "lab_leave")
    field(at, "text_input", "who_seed").set_value("-3").run()
    assert "whole number from 0" in words(at)
    field(at, "text_input", "who_seed").set_value("7").run()
    press(at, "lab_open_crossover")
    assert address(at)["lab.seed"] == "7"


def test_a_prediction_locks_and_no_way_back_unlocks_it(visit) -> None:
    at = at_screen(visit, SIX, 1, seed=31)
    press(at, "lab_lock")
    assert "Answer P1, P2 first" in at.error[0].value
    field(at, "text_input", "P1").set_value("ten").run()
    field(at, "radio", "P2").set_value("x").run()
    press(at, "lab_lock")
    assert "P1: must be a number" in at.error[0].value
    field(at, "text_input", "P1").set_value("9,4").run()
    press(at, "lab_lock")
    assert not at.error
    assert field(at, "text_input", "P1").disabled
    assert field(at, "text_input", "P1").value == "9", "rounded to the digits asked for"
    assert words(at).count("Locked at") == 2
    press(at, "lab_next")
    press(at, "lab_back")
    assert field(at, "text_input", "P1").disabled
    second = visit(LABS, **{"lab.id": "six-tasks", "lab.seed": "31"})
    assert field(second, "text_input", "P1").disabled, "in another tab of this machine"
    field(second, "radio", "P2_again").set_value("either").run()
    press(second, "lab_lock_again_P2")
    assert "and once more at" in words(second)
    votes = kept._kept().of[kept.Whose.of(answered(SIX, 31, 0))].prediction("P2")
    assert (votes.value, votes.second[1]) == ("x", "either")


@pytest.mark.long
def test_where_other_machines_reach_the_server_a_tab_has_answers_of_its_own(
    visit, monkeypatch
) -> None:
    monkeypatch.setattr("topox_ui.labs.kept.only_this_machine", lambda _: False)
    at = visit(LABS, **{"lab.id": "six-tasks", "lab.seed": "32"})
    field(at, "text_input", "P1").set_value("9").run()
    field(at, "radio", "P2").set_value("x").run()
    press(at, "lab_lock")
    assert field(at, "text_input", "P1").disabled
    other = visit(LABS, **{"lab.id": "six-tasks", "lab.seed": "32"})
    assert not field(other, "text_input", "P1").disabled


def test_a_screen_waits_for_the_predictions_before_it(visit) -> None:
    at = visit(LABS, **{"lab.id": "six-tasks", "lab.seed": "33", "lab.q": "4"})
    assert "P1, P2, W1, W2" in words(at)
    assert not at.get("plotly_chart")
    assert not [one for one in at.button if one.key == "lab_next"], (
        "behind it all is closed as well"
    )
    press(at, "lab_to_open")
    assert address(at).get("lab.q", "1") == "1"


@pytest.mark.long
def test_wrong_answers_get_their_sentence_and_the_key_comes_last(visit) -> None:
    lab = READY["what-binds"]
    at = at_screen(visit, lab, 1, seed=1)
    press(at, "lab_check")
    assert "Answer W1, W2 first" in at.error[0].value
    typed = field(at, "text_input", "W2")
    typed.set_value("17").run()
    press(at, "lab_check")
    assert "The last receiver still has to compute" in words(at)
    assert "2 attempts left" in words(at)
    assert "The answer: 19" not in sent(at)
    press(at, "lab_check")
    assert "nothing new to check" in words(at)
    assert "2 attempts left" in words(at)
    for wrong in ("1", "2"):
        field(at, "text_input", "W2").set_value(wrong).run()
        press(at, "lab_check")
    assert "The answer: 19 ms" in words(at)
    assert field(at, "text_input", "W2").disabled


@pytest.mark.long
def test_the_checker_names_the_equation_of_a_schedule_by_hand(visit) -> None:
    at = at_screen(visit, SIX, 2, seed=1, done=1)
    best = right(SIX, SIX.question("W1"), 1)
    for task, start in {**best, "y": best["x"]}.items():
        field(at, "number_input", f"W1_{task}_").set_value(start).run()
    press(at, "lab_check")
    assert "One port, one circuit at a time" in words(at)
    assert "sends on no more circuits than it has ports, and receives on no more (eq. 8)" in words(
        at
    )
    assert "Your schedule takes" not in words(at), "of what cannot be carried out"
    at.button(key="lab_six-tasks_1_W1_y_later-0").click().run()
    field(at, "number_input", "W1_y_").set_value(best["y"]).run()
    press(at, "lab_check")
    assert "Right: 5 points. Your schedule takes 9 ms." in words(at)
    press(at, "lab_next")
    field(at, "text_input", "W2").set_value(str(right(SIX, SIX.question("W2"), 1))).run()
    press(at, "lab_check")
    press(at, "lab_next")
    assert "x first takes 9 ms, y first takes 13 ms" in words(at)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "screen", "question", "button"),
    [
        ("what-binds", 2, "P1", "lab_lock"),
        ("bandwidth-tax", 1, "W1", "lab_check"),
        ("time-division", 6, "W3", "lab_check"),
        ("six-tasks", 9, "E1", "lab_save"),
    ],
    ids=["choice", "several", "grouping", "text"],
)
def test_every_other_field_hands_in_what_was_chosen(
    visit, name: str, screen: int, question: str, button: str
) -> None:
    lab = READY[name]
    at = at_screen(visit, lab, screen, seed=2, done=screen - 1)
    value = right(lab, lab.question(question), 2)
    if question == "P1":
        field(at, "radio", question).set_value(value).run()
    elif question == "W1":
        for option in value:
            field(at, "checkbox", f"{question}_{option}-").check().run()
    elif question == "W3":
        for job, group in value.items():
            field(at, "button_group", f"{question}_{job}").set_value(group).run()
    else:
        field(at, "text_area", question).set_value("too short").run()
        press(at, button)
        assert at.error[0].value.startswith("E1: must be 40 to 600 characters")
        field(at, "text_area", question).set_value(value).run()
    press(at, button)
    now = kept._kept().of[kept.Whose.of(answered(lab, 2, 0))]
    if question == "P1":
        assert now.prediction(question).value == value
    elif question == "E1":
        assert now.explained(question) == EXPLANATION
        assert at.get("download_button")[0].proto.type == "primary", "only the file is left to save"
    else:
        assert now.worked(question).attempts[-1].points == lab.question(question).points


@pytest.mark.long
@pytest.mark.parametrize("lab", READY.values(), ids=list(READY))
def test_no_screen_sends_an_unusual_key_before_its_reveal(visit, lab: Lab) -> None:
    from topox_core.labs.student import revealed_at

    for number in range(1, len(lab.screens) + 1):
        given = answered(lab, 2, number - 1)
        at = at_screen(visit, lab, number, seed=2, done=number - 1)
        seen = words(at) + "".join(chart.proto.spec for chart in at.get("plotly_chart"))
        for question in lab.questions:
            key = None if question.key is None else key_of(lab, question, 2)
            if not isinstance(key, float) or revealed_at(lab, given, question.id):
                continue
            text = f"{key:.{max(question.digits, 2)}f}"
            if len(text.replace(".", "").strip("0")) >= 4:
                assert text not in seen, (number, question.id, text)


def test_the_file_that_is_saved_grades_as_the_page_says(visit, downloads) -> None:
    given = answered(SIX, seed_of("NET-401", "s1"), len(SIX.screens), "NET-401", "s1")
    at = visit(LABS)
    upload = dump_answers(given, score(SIX, given))
    at.file_uploader(key="lab_file_answers").upload("s1.answers.json", upload).run()
    assert not at.exception
    assert "16 of 16 points so far; up to 4 more" in words(at)
    assert "lab_anew" not in [one.key for one in at.button], "only practice begins again"
    data = downloads["Save my answers"]()
    graded = grade(SIX, load_answers(data, "s1.answers.json"), "s1.answers.json")
    assert (graded.remarks, graded.predictions, graded.worked) == ((), 4 - 1, 13)
    assert json.loads(data)["score"]["worked"] == graded.worked


def test_a_file_or_a_link_that_cannot_be_used_is_one_line(visit) -> None:
    at = visit(LABS, **{"lab.id": "nobody-has-it"})
    assert not at.exception
    assert "nobody-has-it" in at.error[0].value
    for box, data, said in (
        ("answers", b"{", "x.json"),
        ("answers", b'{"format": "topox-lab", "version": 1}', "x.json"),
        ("lab", b"[" * 5_000, "x.json"),
        ("lab", json.dumps({**OWN, "id": "six-tasks"}).encode(), "six-tasks"),  # a lab that ships
    ):
        at.file_uploader(key=f"lab_file_{box}").upload("x.json", data).run()
        assert not at.exception
        lines = [one.value for one in at.error]
        assert any("x.json" in line and said in line for line in lines), box
        assert not any("\n" in line for line in lines)
    assert OWN["title"] not in words(at)


@pytest.mark.long
def test_a_practice_begins_again(visit) -> None:
    at = at_screen(visit, SIX, 1, seed=35, done=1)
    press(at, "lab_anew")
    again = visit(LABS, **{"lab.id": "six-tasks", "lab.seed": "35"})
    assert not field(again, "text_input", "P1").disabled


def test_after_its_reveal_an_instance_opens_on_the_schedule_page(visit) -> None:
    at = at_screen(visit, SIX, 4, seed=1, done=3)
    at.button(key="lab_see").click().run()
    assert not at.exception
    assert "Six tasks by hand is loaded" in at.info[0].value


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "page"), [("windows", "Rails"), ("time-division", "Jobs"), ("price-tag", "Cost")]
)
def test_after_its_last_key_a_lab_leads_to_the_page_that_goes_on(
    visit, name: str, page: str
) -> None:
    lab, seed = READY[name], 3
    last = len(lab.screens)

    def links(at: AppTest) -> list:
        return [one.proto for one in at.main.get("page_link") if one.proto.label.startswith("Look")]

    before = at_screen(visit, lab, last - 1, seed, done=last - 3)
    assert links(before) == [], "its page would say what is still asked"
    (link,) = links(at_screen(visit, lab, last, seed, done=last))
    query = dict(parse_qsl(link.query_string))
    there = visit(page_of(page).path, **query)
    assert not there.exception and not there.warning and not there.error
    assert query.items() <= address(there).items() | query.items()
    if name == "price-tag":
        saving = float(key_of(lab, lab.question("P1"), seed))
        assert f"{saving:.3g} %" in words(there)


@pytest.mark.long
def test_who_practises_is_not_sent_into_a_discussion(visit) -> None:
    alone = at_screen(visit, SIX, 1, seed=36, done=1)
    assert next(box.proto.label for box in alone.get("expander")).endswith("before you go on")
    seed = seed_of("NET-401", "s36")
    given = answered(SIX, seed, 1, "NET-401", "s36")
    at = visit(LABS)
    data = dump_answers(given, {})
    at.file_uploader(key="lab_file_answers").upload("a.answers.json", data).run()
    assert next(box.proto.label for box in at.get("expander")).endswith("has discussed it")
