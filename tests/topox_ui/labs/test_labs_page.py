"""The page Labs: every screen of every lab at its time and after it, locks that hold, replies, files in and out."""

import json
from urllib.parse import parse_qsl

import pytest
from streamlit.testing.v1 import AppTest

from tests.conftest import long_after
from tests.labs_answered import LABS as READY, answered, right
from tests.topox_ui.conftest import Visit, address, bring, buttons, press, turn_to, words
from tests.topox_ui.shell.test_foreign_text import elements
from topox_core.labs.classroom.answers import dump_answers, load_answers
from topox_core.labs.classroom.grading import grade, score
from topox_core.labs.classroom.student import revealed_at
from topox_core.labs.generators.generator import seed_of
from topox_core.labs.keys import key_of
from topox_core.labs.lab import Lab
from topox_ui.labs import state

LABS = "Labs"
SIX = READY["six-tasks"]
SCREENS = [(lab.id, k) for lab in READY.values() for k in range(1, len(lab.screens) + 1)]
SCREENS.sort(key=("six-tasks", 4).__ne__)
# Of a figure, as a class room's network allows (docs/labs.md).
MAX_BYTES = 60_000
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


def at_screen(visit: Visit, lab: Lab, screen: int, seed: int = 1, done: int = 0) -> AppTest:
    """Open a screen, counted from 1, with everything right on the first ``done`` screens."""
    given = answered(lab, seed, done)
    state._kept()[state.whose(given)] = given
    query = {"lab.id": lab.id, "lab.seed": str(seed), "lab.q": str(screen)}
    return visit(LABS, **query)


def field(at: AppTest, kind: str, name: str):
    """Return the control of a question, such as ``P1``, or of a part of it, such as ``W1_a``."""
    found = [one for one in at.get(kind) if f"_{name}" in (one.key or "")]
    assert len(found) == 1, [one.key for one in at.get(kind)]
    return found[0]


def sent(at: AppTest) -> str:
    """Return everything that goes to the browser, and the address."""
    parts = [str(one.proto) for root in (at.main, at.sidebar) for one in elements(root)]
    return "".join(parts) + json.dumps(address(at))


@pytest.mark.parametrize(("name", "screen"), long_after(1, SCREENS))
def test_a_screen_draws_at_its_time_and_after_it(visit, name: str, screen: int) -> None:
    lab = READY[name]
    for done in (screen - 1, len(lab.screens)):
        at = at_screen(visit, lab, screen, 1, done)
        assert f"screen {screen} of {len(lab.screens)}" in words(at)
        charts = at.get("plotly_chart")
        assert all(one.proto.alt and len(one.proto.spec) <= MAX_BYTES for one in charts)
        tables = [box for box in at.get("expander") if box.proto.label == "Table · download"]
        assert len(tables) == len(charts)
        assert charts or lab.screens[screen - 1].stage != "reveal"


def test_the_first_screen_has_eight_labs_and_asks_who_works(visit) -> None:
    at = visit(LABS)
    assert len([one for one in at.button if one.key.startswith("lab_open_")]) == len(READY)
    press(at, "lab_open_six-tasks")
    assert address(at)["lab.seed"] == "0" and "example numbers" in words(at), (
        "nobody is asked who reads"
    )
    press(at, "lab_leave")
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


def test_a_prediction_locks_and_no_way_back_unlocks_it(visit) -> None:
    at = at_screen(visit, SIX, 1, seed=31)
    assert "Answer P1, P2 first" in press(at, "lab_lock").error[0].value
    field(at, "text_input", "P1").set_value("ten").run()
    field(at, "radio", "P2").set_value("x").run()
    assert "P1: must be a number" in press(at, "lab_lock").error[0].value
    field(at, "text_input", "P1").set_value("9,4").run()
    press(at, "lab_lock")
    assert not at.error
    assert field(at, "text_input", "P1").disabled
    assert field(at, "text_input", "P1").value == "9", "rounded to the digits asked for"
    press(press(at, "lab_next"), "lab_back")
    assert field(at, "text_input", "P1").disabled
    second = visit(LABS, **{"lab.id": "six-tasks", "lab.seed": "31"})
    assert field(second, "text_input", "P1").disabled, "in another tab of this machine"
    field(second, "radio", "P2_again").set_value("either").run()
    press(second, "lab_lock_again_P2")
    votes = state._kept()[state.whose(answered(SIX, 31, 0))].prediction("P2")
    assert (votes.value, votes.second.value) == ("x", "either")


@pytest.mark.long
def test_where_other_machines_reach_the_server_a_tab_has_answers_of_its_own(
    visit, monkeypatch
) -> None:
    monkeypatch.setattr("topox_ui.labs.state.only_this_machine", lambda _: False)
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
    assert not at.get("plotly_chart") and "lab_next" not in buttons(at)
    press(at, "lab_to_open")
    assert address(at).get("lab.q", "1") == "1"


@pytest.mark.long
def test_wrong_answers_get_their_sentence_and_the_key_comes_last(visit) -> None:
    at = at_screen(visit, READY["what-binds"], 1, seed=1)
    press(at, "lab_check")
    assert "Answer W1, W2 first" in at.error[0].value
    for wrong in ("17", "17", "1", "2"):  # the same once more is no attempt
        assert "The answer: 19" not in sent(at)
        field(at, "text_input", "W2").set_value(wrong).run()
        press(at, "lab_check")
    assert "The answer: 19 ms" in words(at) and field(at, "text_input", "W2").disabled


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "screen", "question"),
    [("bandwidth-tax", 1, "W1"), ("time-division", 6, "W3")],
    ids=["several", "grouping"],
)
def test_a_field_of_several_parts_hands_in_what_was_chosen(visit, name, screen, question) -> None:
    lab = READY[name]
    at = at_screen(visit, lab, screen, seed=2, done=screen - 1)
    value = right(lab, lab.question(question), 2)
    for part in value:
        if isinstance(value, dict):
            field(at, "button_group", f"{question}_{part}").set_value(value[part]).run()
        else:
            field(at, "checkbox", f"{question}_{part}-").check().run()
    press(at, "lab_check")
    now = state._kept()[state.whose(answered(lab, 2, 0))]
    assert now.worked(question).attempts[-1].points == lab.question(question).points


@pytest.mark.long
@pytest.mark.parametrize("lab", READY.values(), ids=list(READY))
def test_no_screen_sends_an_unusual_key_before_its_reveal(visit, lab: Lab) -> None:
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
    bring(at, "lab_file_answers", "s1.answers.json", upload)
    assert "16 of 16 points so far; up to 4 more" in words(at)
    assert "lab_anew" not in buttons(at), "only practice begins again"
    data = downloads["Save my answers"]()
    graded = grade(SIX, load_answers(data, "s1.answers.json"), "s1.answers.json")
    assert (graded.remarks, graded.predictions, graded.worked) == ((), 4 - 1, 13)
    assert json.loads(data)["score"]["worked"] == graded.worked


def test_a_file_or_a_link_that_cannot_be_used_is_one_line(visit) -> None:
    at = visit(LABS, **{"lab.id": "nobody-has-it"})
    assert "nobody-has-it" in at.error[0].value
    for box, data, said in (
        ("answers", b"{", "x.json"),
        ("answers", b'{"format": "topox-lab", "version": 1}', "x.json"),
        ("lab", b"[" * 5_000, "x.json"),
        ("lab", json.dumps({**OWN, "id": "six-tasks"}).encode(), "six-tasks"),  # a lab that ships
    ):
        lines = [one.value for one in bring(at, f"lab_file_{box}", "x.json", data).error]
        assert any("x.json" in line and said in line for line in lines), box
        assert not any("\n" in line for line in lines)
    assert OWN["title"] not in words(at)


def test_after_its_reveal_an_instance_opens_on_the_schedule_page(visit) -> None:
    at = at_screen(visit, SIX, 4, seed=1, done=3)
    assert "Six tasks by hand is loaded" in press(at, "lab_see").info[0].value


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "page"), [("windows", "Rails"), ("time-division", "Sharing"), ("price-tag", "Network")]
)
def test_after_its_last_key_a_lab_leads_to_the_page_that_goes_on(
    visit, name: str, page: str
) -> None:
    lab, seed, last = READY[name], 3, len(READY[name].screens)

    def links(at: AppTest) -> list:
        return [one.proto for one in at.main.get("page_link") if one.proto.label.startswith("Look")]

    before = at_screen(visit, lab, last - 1, seed, done=last - 3)
    assert links(before) == [], "its page would say what is still asked"
    (link,) = links(at_screen(visit, lab, last, seed, done=last))
    query = dict(parse_qsl(link.query_string))
    there = visit(page, **query)
    assert not there.warning and not there.error
    if name == "price-tag":
        saving = float(key_of(lab, lab.question("P1"), seed))
        assert f"{saving:.3g} %" in words(there)


# -- a lab of a lecturer's own, and a class --------------------------------------------------------


def test_a_lecturer_s_file_is_a_lab_like_the_others(visit) -> None:
    at = bring(visit(LABS), "lab_file_lab", "my-own.lab.json", json.dumps(OWN).encode())
    assert "Rings and a pipeline is loaded" in words(at)
    field(at, "text_input", "who_seed").set_value("9").run()
    press(press(at, "lab_open_my-own"), "lab_check")
    assert "Not right" in words(at), "the order as it was given"
    press(press(at, "lab_my-own_9_W1_1_up"), "lab_check")
    assert "Right: 1.4 points" in words(at)
    press(at, "lab_next")
    assert not at.get("plotly_chart"), "nothing is computed before the lock"
    field(at, "text_input", "P1").set_value("12").run()
    press(press(at, "lab_lock"), "lab_next")
    assert len(at.get("plotly_chart")) == 1 and "You said 12 ms" in words(at)
    turn_to(at, "Learn")
    turn_to(at, LABS)
    assert address(at)["lab.id"] == "my-own"
    assert not at.error, "a loaded lab is there until the tab is left"
