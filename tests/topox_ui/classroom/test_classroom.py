"""A class on one machine: word, pages that are open, places, turns, answers in the folder; nothing of it without a class."""

import pytest
from starlette.exceptions import HTTPException
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from tests.labs_answered import LABS, at, solved
from tests.refusal import refusal
from tests.topox_ui.conftest import turn_to, unbroken, words
from topox_core.io.limits import MB
from topox_core.labs.classroom.answers import dump_answers, load_answers
from topox_core.labs.classroom.class_folder import KEY_FILE, ClassFolder
from topox_core.labs.classroom.student import begin, lock
from topox_core.labs.lab import texts_in
from topox_ui.classroom import held as classroom, serve
from topox_ui.classroom.held import (
    WRONG_OF_ONE,
    WRONG_WORDS,
    ClassProfile,
    SessionLimit,
    WrongWords,
    in_turn,
    profile_of,
)
from topox_ui.present import view
from topox_ui.runs.limits import ServerLimits
from topox_ui.shell import page

LAB = LABS["six-tasks"]
LEARN, GLOSSARY, PRESENT = "Learn", "Glossary", "Present"
WORD = "abcdef"


@pytest.fixture
def held(monkeypatch, tmp_path) -> ClassProfile:
    """A class is held on this machine."""
    one = ClassProfile("NET-401", WORD, ClassFolder.opened(tmp_path / "class"))
    for module in (classroom, view):
        monkeypatch.setattr(module, "class_profile", lambda: one)
    for module in ("classroom.held", "shell.menu"):  # without a browser nobody has an address
        monkeypatch.setattr(f"topox_ui.{module}.is_student", lambda: False)
    return one


@pytest.fixture
def student(held, monkeypatch) -> ClassProfile:
    """The visitor is somebody else than the lecturer."""
    monkeypatch.setattr(classroom, "is_student", lambda: True)
    monkeypatch.setattr("topox_ui.shell.menu.is_student", lambda: True)
    return held


def joined(page, word: str = "  ABCDEF "):
    page.text_input(key="class_word").set_value(word)
    return unbroken(page.button[0].click().run())


def test_nobody_comes_in_without_the_word(visit, student) -> None:
    page = visit(LEARN, **{"learn.step": "2"})
    assert "stored in a folder on this machine and nowhere else" in words(page)
    assert not page.get("plotly_chart") and "What is a slot" not in words(page)
    joined(page, "abcdeg")
    assert "That is not the word" in page.error[0].value
    assert "What is a slot" in words(joined(page))


def test_a_full_class_is_one_line(visit, student, monkeypatch) -> None:
    for module in (classroom, page):
        monkeypatch.setattr(module, "places", lambda: SessionLimit(most=0))
    assert "The class is full" in words(joined(visit(GLOSSARY)))


def test_only_learn_labs_and_glossary_are_open_to_students(visit, student) -> None:
    page = joined(visit(GLOSSARY))
    assert "words of the field" in words(page)
    links = {one.proto.label.strip("*") for one in page.sidebar.get("page_link")}
    assert {"Learn"} <= links <= set(classroom.OPEN_TO_STUDENTS)
    for title in ("Schedule", PRESENT):
        page.query_params["sample"] = "moe"
        assert "not part of the class" in words(turn_to(page, title))
        assert not page.get("plotly_chart") and WORD not in words(page)


def test_a_link_loads_nothing_before_its_page_is_open(visit, student, monkeypatch) -> None:
    for loads in ("load", "open_source"):
        monkeypatch.setattr(f"topox_ui.state.address.{loads}", None)
    joined(visit("Schedule", sample="moe"))


def test_the_61st_waits_until_somebody_leaves_or_sleeps() -> None:
    now = [0.0]
    places = SessionLimit(most=3, idle_s=1200, clock=lambda: now[0])
    assert [places.enter(name) for name in "abcd"] == [True, True, True, False]
    places.leave("b")
    assert places.enter("d") and not places.enter("e")
    now[0] = 1000
    assert places.enter("a")  # a does something, c and d do not
    now[0] = 1201
    assert places.enter("e")  # in place of both
    assert places.enter("c")  # who comes back finds a place while there is one
    assert not places.enter("d")


def test_two_have_a_turn_at_once_and_who_waits_too_long_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("topox_ui.classroom.held.class_profile", object)
    monkeypatch.setattr("topox_ui.classroom.held.PATIENCE_S", 0.05)

    def third() -> None:
        refusal(in_turn, lambda: None)

    in_turn(lambda: in_turn(third))
    assert in_turn(lambda: "again") == "again"


def test_words_cannot_be_tried_out_and_who_tries_locks_nobody_else_out() -> None:
    now = [0.0]
    wrong = WrongWords(clock=lambda: now[0])
    for _ in range(WRONG_OF_ONE):
        assert not wrong.too_many("10.0.0.6", "eve")
        wrong.note("10.0.0.6", "eve")
    assert wrong.too_many("10.0.0.6", "eve")
    for other in range(WRONG_WORDS):  # a connection for each word
        wrong.note("10.0.0.6", f"eve {other}")
    assert wrong.too_many("10.0.0.6", "eve 0")
    assert not wrong.too_many("10.0.0.6", "ada")  # behind the same address, for the first time
    assert not wrong.too_many("10.0.0.7", "bob")
    now[0] = 61
    assert not wrong.too_many("10.0.0.6", "eve")


class _Files:
    """What a server holds of the files that browsers sent."""

    def __init__(self) -> None:
        self.file_storage: dict[str, dict[str, UploadedFileRec]] = {}

    def add_file(self, session_id: str, file: UploadedFileRec) -> None:
        self.file_storage.setdefault(session_id, {})[file.file_id] = file


def test_files_are_taken_past_the_door_alone_and_within_what_a_session_and_all_may_hold(
    monkeypatch,
):
    monkeypatch.setattr(classroom, "admitted", lambda: {"ada", "bob", "eve"})
    monkeypatch.setattr(classroom, "server_limits", lambda: ServerLimits(session_mb=10))
    monkeypatch.setattr(classroom, "MAX_FILE_BYTES", 100)
    monkeypatch.setattr(classroom, "MAX_OF_ALL_BYTES", 25 * MB)
    classroom.limit(files := _Files())

    def send(session: str, name: str, mb: int) -> int:
        try:
            files.add_file(session, UploadedFileRec(name, "f", "t", bytes(mb * MB)))
        except HTTPException as refused:
            return refused.status_code
        return 204

    assert send("nobody", "1", 0) == 403
    assert [send("ada", name, 6) for name in "12"] == [204, 413]
    assert [send(who, "1", 9) for who in ("bob", "eve")] == [204, 204]
    assert send("eve", "2", 2) == 413  # all together
    del files.file_storage["ada"]  # a session ends, and its files with it
    assert send("eve", "2", 1) == 204


def test_without_a_class_nothing_is_kept_and_everything_allowed(monkeypatch) -> None:
    monkeypatch.setattr(classroom, "class_profile", lambda: None)
    assert classroom.keep_answers(LAB, begin(LAB, "NET-401", "ada", at(0))) == ""
    assert classroom.in_turn(lambda: 7) == 7
    for _ in range(3):
        classroom.note_check("six-tasks")


def test_answers_are_kept_where_a_class_is_held(held) -> None:
    say = texts_in("en").say
    answers = lock(LAB, begin(LAB, "NET-401", "ada", at(0)), "P1", 9, at(1))
    assert classroom.keep_answers(LAB, answers) == say("classroom.kept")
    assert held.folder.answers_to("six-tasks") == (answers,)
    practice = begin(LAB, "NET-401", "ada", at(0), seed=1)
    assert classroom.keep_answers(LAB, practice) == say("classroom.practice")


def test_answers_from_a_file_are_kept_apart_unless_this_class_signed_them(held) -> None:
    say = texts_in("en").say
    answers = lock(LAB, begin(LAB, "NET-401", "ada", at(0)), "P1", 9, at(1))
    classroom.keep_answers(LAB, answers)
    (mine,) = held.folder.path.glob("*/*.answers.json")
    classroom.brought_along(LAB, load_answers(mine.read_bytes(), mine.name))
    assert classroom.keep_answers(LAB, answers) == say("classroom.kept")
    forged = solved(LAB, "bob")
    classroom.brought_along(LAB, load_answers(dump_answers(forged, {}), "x"))
    assert classroom.keep_answers(LAB, forged) == say("classroom.brought")
    assert held.folder.answers_to(LAB.id) == (answers,) and held.folder.apart() == (forged,)
    assert classroom.keep_answers(LAB, answers) == say("classroom.kept"), (
        "a file of others is not hers"
    )
    practice = begin(LAB, "NET-401", "bob", at(0), seed=1)
    assert classroom.keep_answers(LAB, practice) == say("classroom.practice")
    assert classroom.keep_answers(LAB, forged) == say("classroom.brought"), (
        "whatever was begun since"
    )


def test_the_lecturer_sees_what_is_kept_apart_and_lets_a_device_in(visit, held) -> None:
    answers = lock(LAB, begin(LAB, "NET-401", "bob", at(0)), "P1", 9, at(1))
    held.folder.keep(LAB, answers, "mine")
    assert held.folder.keep(LAB, answers, "another").reason == "held"
    page = visit(PRESENT)
    assert "Kept apart, counted for nothing: bob" in words(page)
    unbroken(page.button(key="release_0").click().run())
    assert held.folder.keep(LAB, answers, "another").reason == ""


def test_a_check_is_allowed_once_a_second_and_200_times(held, monkeypatch) -> None:
    kept: dict[str, tuple[int, float]] = {}
    monkeypatch.setattr(classroom._CHECKS, "get_or", lambda _: kept)
    classroom.note_check("six-tasks")
    assert "Once a second" in refusal(classroom.note_check, "six-tasks")
    classroom.note_check("crossover")
    kept["six-tasks"] = (classroom.MAX_CHECKS, 0.0)
    assert "200 times" in refusal(classroom.note_check, "six-tasks")


def test_the_environment_of_a_class_is_that_of_serve_with_few_places(tmp_path) -> None:
    given = {"TOPOX_PORT": "8600", "TOPOX_SESSION_MB": "30"}
    made = serve.environment_of("NET-401", tmp_path / "class", given)
    assert (made["TOPOX_SOLVER_PLACES"], made["TOPOX_SESSION_MB"]) == ("1", "30")
    assert made["TOPOX_ADDRESS"] == "0.0.0.0" and made["TOPOX_CLASS_SHOWN_AT"].endswith(":8600")
    one = profile_of(made)
    assert one is not None and one.course == "NET-401" and one.folder.secret
    assert profile_of({}) is None


@pytest.mark.parametrize(
    ("course", "said"),
    [("", "TOPOX_CLASS_COURSE"), ("a/b", "must be 1 to 40"), ("x" * 41, "must be")],
)
def test_a_class_without_a_course_is_refused_in_a_line(course, said, tmp_path, capsys) -> None:
    with pytest.raises(SystemExit, match="2"):
        serve.main(["--course", course, "--folder", str(tmp_path / "class")])
    line = capsys.readouterr().err
    assert said in line and line.count("\n") == 1


def test_a_no_changes_nothing(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr("builtins.input", lambda _: "n")
    with pytest.raises(SystemExit, match="1"):
        serve.main(["--course", "NET-401", "--folder", str(tmp_path / "class")])
    assert "Nothing was done" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        serve.main(["--clean", "--folder", str(tmp_path / "class")])
    assert (tmp_path / "class" / KEY_FILE).exists()


def test_cleaning_asks_and_deletes_a_class_folder_alone(tmp_path, capsys, monkeypatch) -> None:
    folder, precious = tmp_path / "class", tmp_path / "precious" / "thesis.txt"
    ClassFolder.opened(folder).keep(LAB, begin(LAB, "NET-401", "ada", at(0)))
    monkeypatch.setattr("builtins.input", lambda _: "yes")
    serve.main(["--clean", "--folder", str(folder)])
    assert not folder.exists() and "1 files are deleted" in capsys.readouterr().out
    precious.parent.mkdir()
    precious.write_text("x")
    with pytest.raises(SystemExit, match="2"):
        serve.main(["--clean", "--folder", str(precious.parent)])
    assert precious.exists()
