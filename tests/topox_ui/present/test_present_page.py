"""The lecturer's page: slides by buttons and by link, a class counted by hand and by files, statistics, leaderboards."""

import json

import pytest

from tests.conftest import long_after
from tests.labs_answered import LABS, at, solved
from tests.topox_core.labs.test_answers import written
from tests.topox_core.labs.test_class_folder import file_of, planned
from tests.topox_ui.conftest import address, chart, choose, press, unbroken, words
from topox_core.labs.classroom.statistics import lab_statistics, slides, statistics_csv
from topox_core.labs.classroom.student import begin, lock
from topox_core.labs.keys import key_of, written as in_words

PRESENT = "Present"
LAB = LABS["six-tasks"]


def on(visit, lab: str, place: str, show: str = "ask"):
    return visit(PRESENT, **{"present.lab": lab, "present.q": place, "present.show": show})


def voted(student: str, first: str, second: str | None = None, seed: int = 0):
    answers = lock(LAB, begin(LAB, "NET-401", student, at(0), seed), "P1", 10, at(1))
    answers = lock(LAB, answers, "P2", first, at(1))
    return answers if second is None else lock(LAB, answers, "P2", second, at(3))


def files(*every):
    return [
        (f"{k}.answers.json", written(LAB, one), "application/json") for k, one in enumerate(every)
    ]


def drawn(page, key: str) -> str:
    return json.dumps(chart(page, key), ensure_ascii=False)


def test_the_page_lists_the_labs_begins_one_and_says_what_is_not_there(visit) -> None:
    page = visit(PRESENT, **{"present.lab": "nowhere"})
    assert "There is no lab nowhere here." in page.warning[0].value
    assert {f"begin_{lab}" for lab in LABS} <= {one.key for one in page.button}
    assert address(press(page, "begin_crossover")) == {"present.lab": "crossover"}
    assert address(press(page, "leave_lab")) == {}
    assert "1 of 26" in words(on(visit, "six-tasks", "P9"))


def test_next_goes_from_a_question_to_its_tally_then_to_its_reveal(visit) -> None:
    page = on(visit, "six-tasks", "P2")
    key = "Right for the class instance: y"

    assert "Which one goes first" in words(page) and key not in words(page)
    for button, place, show in (
        ("step_next", "P2", "tally"),
        ("clicker_next", "P2", "reveal"),
        ("step_next", "W1", "ask"),
        ("clicker_previous", "P2", "reveal"),
        ("step_tally", "P2", "tally"),
        ("step_question", "P2", "ask"),
        ("step_reveal", "P2", "reveal"),
    ):
        now = address(press(page, button))
        assert (now["present.q"], now.get("present.show", "ask")) == (place, show)
        assert (key in words(page)) == (show == "reveal")


@pytest.mark.parametrize("lab", long_after(1, list(LABS.values())), ids=lambda lab: lab.id)
def test_no_slide_says_a_key_before_its_reveal(visit, lab) -> None:
    """Of labs with unusual keys: more than three digits that nobody writes by chance."""
    due: set[str] = set()
    page = visit(PRESENT, **{"present.lab": lab.id})
    for slide in slides(lab):
        if slide.show == "reveal":
            due.add(slide.place)
        hidden = {}
        for question in lab.questions:
            if question.key is None or question.id in due or question.type != "number":
                continue
            text = in_words(key_of(lab, question, 0), question.digits)
            if len(text.replace(".", "").strip("0")) >= 4:
                hidden[question.id] = text
        if hidden and slide.show != "reveal":
            page.query_params.update({"present.q": slide.place, "present.show": slide.show})
            said = words(unbroken(page.run()))
            assert [name for name, text in hidden.items() if f" {text}" in said] == [], slide


def test_no_option_is_marked_as_right_for_students_with_other_numbers(visit) -> None:
    vote = LAB.question("P2")
    seed = next(n for n in range(1, 99) if key_of(LAB, vote, n) != key_of(LAB, vote, 0))
    page = on(visit, "six-tasks", "P2", "reveal")
    choose(page, present_source="files")
    mine = voted("s1", key_of(LAB, vote, seed), seed=seed)
    unbroken(page.file_uploader(key="up_answers").set_value(files(mine)).run())
    said = words(page)
    assert f"Right for the class instance: {key_of(LAB, vote, 0)}" in said
    assert "100 % right" in said and "1 answer, each marked on its own numbers" in said
    assert "✓" not in drawn(page, "class_answers")


def test_while_neighbours_are_to_discuss_the_spread_stays_hidden(visit) -> None:
    page = on(visit, "six-tasks", "P2", "tally")
    choose(page, present_source="hands")
    for option in "xy":
        page.number_input(key=f"hands_six-tasks_P2_1_{option}-0").set_value(5).run()
    assert "50 % right: discuss for two minutes, then lock again" in words(page)
    assert not page.get("plotly_chart")
    assert press(page, "show_spread").get("plotly_chart")


def test_files_of_a_class_are_counted_and_no_name_is_on_any_slide(visit) -> None:
    page = on(visit, "six-tasks", "P2", "tally")
    every = [voted(f"Ada{k} Lovelace", "x" if k < 4 else "y", "y") for k in range(6)]
    contents = [*files(*every), ("z.answers.json", b"[", "application/json")]
    unbroken(page.file_uploader(key="up_answers").set_value(contents).run())
    assert "33 % → 100 % right" in words(page)
    for _ in range(2):
        assert "Lovelace" not in words(page)
        press(page, "step_next")


def test_statistics_are_those_of_the_command_and_name_nobody(visit, downloads) -> None:
    page = visit(PRESENT, **{"present.see": "statistics"})
    every = [solved(LAB, f"student{k}") for k in range(6)]
    unbroken(page.file_uploader(key="up_statistics").set_value(files(*every)).run())
    assert downloads["Table (CSV)"]() == statistics_csv(LAB, lab_statistics(LAB, every))
    html = downloads["Page for print (HTML)"]().decode()
    assert "<script" not in html and "student1" not in html and "100\u00a0% right" in html
    page.selectbox(key="statistics_question").set_value("P2").run()
    assert "✓" not in drawn(page, "class_spread"), "x or y, by seed"
    page.selectbox(key="statistics_question").set_value("W4").run()
    assert "✓" in drawn(page, "class_spread")


def test_a_leaderboard_ranks_what_the_checker_finds(visit, downloads) -> None:
    page = visit(PRESENT, **{"present.see": "leaderboards"})
    empty = json.loads(downloads["An empty entry to fill in (JSON)"]())
    assert empty["starts_ms"].keys() == planned().keys()
    late = {name: start + 2 for name, start in planned().items()}
    names = (("b", planned()), ("=cmd", late), ("c", dict.fromkeys(late, 0)))
    contents = [
        (f"{k}.entry.json", file_of("six-tasks", value, alias, makespan_ms=1), "application/json")
        for k, (alias, value) in enumerate(names)
    ]
    unbroken(
        page.file_uploader(key="up_entries")
        .set_value([*contents, ("x.entry.json", b"{}", "application/json")])
        .run()
    )
    assert "3 entries" in words(page) and "x.entry.json" in words(page)
    ranks, refused = (one.value for one in page.dataframe)
    assert list(ranks["alias"]) == ["b", "'=cmd"] and list(ranks["time (ms)"]) == ["56", "58"]
    assert "eq." in refused["checked"][0]


def test_on_a_server_that_others_reach_the_keys_are_behind_the_lecturer_s_word(
    visit, owner_sets
) -> None:
    slide = {"present.lab": "six-tasks", "present.q": "P2", "present.show": "reveal"}
    key = "Right for the class instance: y"
    owner_sets(HOSTS="topox.example.org")
    page = visit(PRESENT, **slide)
    assert "TOPOX_LECTURER_WORD" in words(page) and key not in words(page) and not page.text_input
    owner_sets(LECTURER_WORD="chalk")
    page = visit(PRESENT, **slide)
    for typed, refused in (("board", ["That is not the word."]), (" Chalk ", [])):
        page.text_input(key="lecturer_word").set_value(typed)
        unbroken(page.button[0].click().run())
        assert [one.value for one in page.error] == refused
        assert (key in words(page)) == (not refused)
    owner_sets(HOSTS="")
    assert key in words(visit(PRESENT, **slide))
