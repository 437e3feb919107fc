"""A lab of a lecturer's own on the page: every type of question, figures of its files, a class that keeps what is answered."""

from __future__ import annotations

import json

import pytest

from tests.labs_answered import answered
from tests.topox_ui.conftest import address, words
from tests.topox_ui.labs.test_labs_page import LABS, OWN, SIX, field, press
from topox_core.labs.answers_file import load_answers
from topox_core.labs.class_folder import ClassFolder
from topox_core.labs.draws import seed_of
from topox_ui.classroom.profile import ClassProfile
from topox_ui.labs import kept


def test_a_lecturer_s_file_is_a_lab_like_the_others(visit) -> None:
    at = visit(LABS)
    data = json.dumps(OWN).encode()
    at.file_uploader(key="lab_file_lab").upload("my-own.lab.json", data).run()
    assert not at.exception
    assert "Rings and a pipeline is loaded" in words(at)
    field(at, "text_input", "who_seed").set_value("9").run()
    press(at, "lab_open_my-own")
    press(at, "lab_check")
    assert "Not right" in words(at), "the order as it was given"
    at.button(key="lab_my-own_9_W1_1_up-0").click().run()
    press(at, "lab_check")
    assert "Right: 1.4 points" in words(at)
    press(at, "lab_next")
    assert not at.get("plotly_chart"), "nothing is computed before the lock"
    field(at, "text_input", "P1").set_value("12").run()
    press(at, "lab_lock")
    press(at, "lab_next")
    assert len(at.get("plotly_chart")) == 1
    assert "You said 12 ms" in words(at)
    at.switch_page("pages/10_Learn.py").run()
    at.switch_page(LABS).run()
    assert address(at)["lab.id"] == "my-own"
    assert not at.error, "a loaded lab is there until the tab is left"


@pytest.mark.long
def test_in_a_class_answers_go_to_its_folder_and_practice_does_not(
    visit, monkeypatch, tmp_path
) -> None:
    folder = ClassFolder.opened(tmp_path / "class")
    profile = ClassProfile("NET-401", "word", folder)
    for place in ("kept", "first_screen"):
        monkeypatch.setattr(f"topox_ui.labs.{place}.class_profile", lambda: profile)
    monkeypatch.setattr("topox_ui.classroom.answering.class_profile", lambda: profile)
    at = visit(LABS)
    assert [one.key for one in at.file_uploader] == ["lab_file_answers"]
    assert field(at, "text_input", "who_course").disabled
    field(at, "text_input", "who_student").set_value("s77").run()
    press(at, "lab_open_six-tasks")
    field(at, "text_input", "P1").set_value("9").run()
    field(at, "radio", "P2").set_value("x").run()
    press(at, "lab_lock")
    seed = seed_of("NET-401", "s77")
    file = tmp_path / "class/six-tasks" / f"{seed:08d}.answers.json"
    read = load_answers(file.read_bytes(), file.name)
    assert read.answers.prediction("P1").value == 9
    assert read.signature
    at = visit(LABS, **{"lab.id": "six-tasks", "lab.seed": "78"})
    field(at, "text_input", "P1").set_value("9").run()
    field(at, "radio", "P2").set_value("x").run()
    press(at, "lab_lock")
    assert [one.name for one in (tmp_path / "class/six-tasks").iterdir()] == [file.name]


def test_too_many_checks_in_a_class_are_one_line_and_no_attempt(
    visit, monkeypatch, tmp_path
) -> None:
    profile = ClassProfile("NET-401", "word", ClassFolder.opened(tmp_path / "class"))
    monkeypatch.setattr("topox_ui.classroom.answering.class_profile", lambda: profile)
    monkeypatch.setattr("topox_ui.classroom.answering.MOST_CHECKS", 0)
    given = answered(SIX, 79, 1)
    kept._kept().put(kept.Whose.of(given), given)
    at = visit(LABS, **{"lab.id": "six-tasks", "lab.seed": "79", "lab.q": "3"})
    field(at, "text_input", "W2").set_value("9").run()
    press(at, "lab_check")
    assert len(at.error) == 1
    assert not kept._kept().of[kept.Whose.of(given)].worked("W2").attempts
