"""A student's way through a lab, answers as a file, and grades of a folder that holds all sorts of files."""

import csv
import io
import json
from dataclasses import replace

import jsonschema
import numpy as np
import pytest

from tests.conftest import some
from tests.labs_answered import EXPLANATION, LABS, answered, at, changed, right, solved
from tests.refusal import refusal
from topox_core.errors import InputError
from topox_core.file_schemas import json_schema
from topox_core.labs.classroom.answers import (
    Answers,
    Locked,
    dump_answers,
    is_signed,
    load_answers,
    taken_up,
)
from topox_core.labs.classroom.folder import (
    canvas_table,
    grade_folder,
    load_explanations,
    load_roster,
    moodle_table,
    plain_table,
)
from topox_core.labs.classroom.grading import grade, score
from topox_core.labs.classroom.marking import mark, points_of, read_answer
from topox_core.labs.classroom.student import (
    attempt,
    begin,
    explain,
    give_up,
    lock,
    reply_to,
    revealed,
    revealed_at,
    shown_screen,
)
from topox_core.labs.generators.catalogue import generator
from topox_core.labs.generators.generator import seed_of
from topox_core.labs.hand_schedule import check_by_hand
from topox_core.labs.keys import key_of
from topox_core.labs.lab import Lab

CROSSOVER, SIX_TASKS = LABS["crossover"], LABS["six-tasks"]


def written(lab: Lab, answers: Answers, **more) -> bytes:
    return dump_answers(answers, score(lab, answers), **more)


def read(lab: Lab, answers: Answers):
    return load_answers(written(lab, answers), "x.answers.json")


# -- through a lab ----------------------------------------------------------------------------------


@pytest.mark.parametrize("lab", LABS.values(), ids=lambda lab: lab.id)
def test_who_answers_all_right_has_all_points(lab: Lab) -> None:
    graded = grade(lab, read(lab, solved(lab)), "x", {("s1234567", "E1"): 4.0})
    assert (graded.total, graded.of, graded.remarks, graded.minutes) == (20, 20, (), 40)


@pytest.mark.parametrize("lab", LABS.values(), ids=lambda lab: lab.id)
def test_nothing_computed_is_shown_before_its_lock(lab: Lab) -> None:
    """Walk through the lab; before every lock ask for every screen, and for every key that is not due."""
    stages = [screen.stage for screen in lab.screens]
    answers = begin(lab, "NET-401", "s1234567", at(0))
    for question in (one for one in lab.questions if one.stage != "explain"):
        assert not revealed_at(lab, answers, question.id)
        assert "still to come" in refusal(revealed, lab, answers, question.id)
        reveal = [*stages, "reveal"].index("reveal", lab.screen_of(question.id))
        for place in range(
            reveal, len(stages)
        ):  # a screen behind a reveal waits as the reveal does
            shown = shown_screen(lab, answers, place)
            assert not shown.open and question.id in shown.waits_for
            assert stages[place] != "reveal" or (shown.text, shown.given) == ("", None)
        if question.stage == "predict":
            value = right(lab, question, answers.seed)
            answers = lock(lab, answers, question.id, value, at(1))
        else:
            answers = give_up(lab, answers, question.id, at(1))
    assert all(shown_screen(lab, answers, place).open for place in range(len(stages)))
    for question in (one for one in lab.questions if one.stage != "explain"):
        truth = revealed(lab, answers, question.id)
        assert truth.key == key_of(lab, question, answers.seed)


def test_a_locked_prediction_stays_and_a_vote_has_a_second_lock() -> None:
    answers = lock(SIX_TASKS, begin(SIX_TASKS, "c", "s", at(0)), "P1", "12,0", at(1))
    assert answers.prediction("P1").value == 12
    answers = lock(SIX_TASKS, lock(SIX_TASKS, answers, "P2", "both", at(2)), "P2", "x", at(3))
    assert answers.prediction("P2").second == Locked(at(3), "x")
    for question, value, said in (
        ("P1", 11, "is locked"),
        ("P2", "y", "is locked"),
        ("W2", 1, "belongs to a work screen"),
    ):
        assert said in refusal(lock, SIX_TASKS, answers, question, value, at(4))


def test_attempts_cost_a_share_and_end_with_the_key() -> None:
    lab = LABS["what-binds"]
    answers = begin(lab, "NET-401", "s1234567", at(0), seed=1)
    assert reply_to(lab, answers, "W2") is None
    answers, first = attempt(lab, answers, "W2", 17, at(1))
    assert first.say == "The last receiver still has to compute."
    assert (first.right, first.attempts_left, first.key) == (False, 2, None)
    assert reply_to(lab, answers, "W2") == first
    assert reply_to(lab, give_up(lab, answers, "W2", at(2)), "W2").key == 19
    answers, second = attempt(lab, answers, "W2", 18, at(2))
    assert second.say.startswith("Before the port") and second.key is None
    again, right = attempt(lab, answers, "W2", 19, at(3))
    assert (right.right, right.points, right.key) == (True, 1.2, 19)
    assert reply_to(lab, again, "W2") == right
    _, wrong = attempt(lab, answers, "W2", 20, at(3))
    assert (wrong.attempts_left, wrong.key) == (0, 19)
    assert "is closed" in refusal(attempt, lab, again, "W2", 19, at(4))


def test_a_number_may_come_with_the_unit_that_is_asked_for() -> None:
    lab = LABS["what-binds"]
    for typed in ("19 ms", "19ms", " 19 MS", "19,0 ms", "19"):
        assert read_answer(lab, lab.question("W2"), typed, 1) == 19
    assert "must be a number" in refusal(read_answer, lab, lab.question("W2"), "19 s", 1)


STARTS = {"a": 0, "x": 1, "y": 3, "b": 3, "c": 7, "z": 8}  # of the best plan of seed 1


@pytest.mark.parametrize(
    ("change", "equation", "said"),
    [
        ({"y": 1, "c": 5}, "8", "One port, one circuit at a time."),
        ({"b": 2}, "5", "Half of the data is no use"),
        ({"y": 3.5, "c": 8}, "4", "ticks of the slot clock"),
        ({"a": -1}, "3", "time begins at 0"),
        ({"c": None}, "3", "Every task needs one start"),
    ],
)
def test_each_mistake_in_a_schedule_names_its_equation_first(change, equation, said) -> None:
    starts = {task: at for task, at in (STARTS | change).items() if at is not None}
    _, reply = attempt(SIX_TASKS, answered(SIX_TASKS, 1, 1), "W1", starts, at(2))
    broken = reply.verdict.broken
    assert broken.equation == equation and f"(eq. {equation})" in str(broken)
    assert said in reply.say and reply.points == 0


def test_a_delay_that_was_ignored_is_told_as_one() -> None:
    one = generator("board").make(1)
    graph, cluster = one.graph(), one.cluster(delay_ms=2.0)
    broken = check_by_hand(graph, cluster, STARTS).broken
    assert broken.equation == "physical" and "set-up" in str(broken)
    assert check_by_hand(graph, cluster, STARTS | {"y": 5, "c": 9}).broken is None


def test_a_shorter_schedule_never_gets_fewer_points_and_a_later_attempt_never_more() -> None:
    question = SIX_TASKS.question("W3")
    starts = right(SIX_TASKS, question, 1)
    later = [{**starts, "u2": starts["u2"] + late} for late in range(8)]
    points = [mark(SIX_TASKS, question, given, 1).share * question.points for given in later]
    assert points == sorted(points, reverse=True) and points[0] == 6
    assert all(point * 2 == int(point * 2) for point in points)
    for one in (one for lab in LABS.values() for one in lab.questions if one.stage == "work"):
        shares = [points_of(one, 1.0, number) for number in range(4)]
        assert shares == sorted(shares, reverse=True)


def test_a_grouping_is_worth_what_it_reaches() -> None:
    lab = LABS["time-division"]
    for letters, points in {"ABBA": 6, "BAAB": 6, "ABAB": 4, "AAAA": 2, "AABB": 2}.items():
        given = dict(zip(("amber", "blue", "coral", "denim"), letters, strict=True))
        assert mark(lab, lab.question("W3"), given, 2).share == pytest.approx(points / 6)


def test_of_a_set_what_is_missing_is_as_wrong_as_what_is_too_much() -> None:
    lab = LABS["bandwidth-tax"]
    strides = ["1", "3", "5", "7"]
    given = (strides, strides[:3], [*strides, "2"], strides[:2], [*strides[:3], "2"])
    shares = [mark(lab, lab.question("W1"), one, 2).share for one in given]
    assert shares == [1, 0.5, 0.5, 0, 0]


def test_a_matrix_is_worth_its_cells_or_its_marks() -> None:
    lab = LABS["bandwidth-tax"]
    hops, marks = lab.question("W4"), lab.question("W3")
    truth = [list(row) for row in key_of(lab, hops, 2)]
    truth[0][0] += 1
    assert mark(lab, hops, truth, 2).share == pytest.approx(0.9)
    greedy = np.zeros((6, 6), int)
    greedy[[0, 1, 2, 3], [1, 0, 3, 2]] = 1
    assert mark(lab, marks, greedy.tolist(), 0).share == 0.5
    greedy[[0, 4], [4, 0]] = 1
    assert mark(lab, marks, greedy.tolist(), 0).share == 0
    for bad in ([[0]], [[2] * 6] * 6, [[1] + [0] * 5] * 6, "x"):
        with pytest.raises(InputError):
            read_answer(lab, marks, bad, 0)


# -- files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lab", LABS.values(), ids=lambda lab: lab.id)
def test_answers_come_back_as_they_were(lab: Lab) -> None:
    answers = solved(lab)
    last = next(one.id for one in reversed(lab.questions) if one.stage == "work")
    given_up = {last: replace(answers.worked(last), given_up=at(30))}
    answers = replace(answers, given={**answers.given, **given_up})
    file = read(lab, answers)
    assert file.answers == answers and not file.edited
    assert taken_up(lab, file.answers, "mine.answers.json") == answers
    jsonschema.validate(json.loads(written(lab, answers, secret=b"here")), json_schema("answers"))


def test_every_edit_is_found_and_an_edited_file_is_graded_by_its_attempts() -> None:
    answers, _ = attempt(CROSSOVER, begin(CROSSOVER, "NET-401", "s1234567", at(0)), "W1", 1, at(1))
    for path, value in (
        ("student", "somebody"),
        ("answers.W1.attempts.0.points", 2),
        ("score.worked", 16),
        ("finished", at(2)),
    ):
        file = load_answers(changed(written(CROSSOVER, answers), path, value), "x")
        graded = grade(CROSSOVER, file, "x")
        assert file.edited and "edited" in graded.remarks and graded.worked == 0


def test_no_byte_of_a_file_is_changed_unseen() -> None:
    data = written(CROSSOVER, solved(CROSSOVER))
    answers = load_answers(data, "x").answers
    for k in some(sorted(range(len(data)), key=lambda k: k * 7_919 % len(data)), quick=150):
        try:
            file = load_answers(data[:k] + bytes([data[k] ^ 1]) + data[k + 1 :], "x")
            assert file.edited or file.answers == answers, k
        except InputError as error:
            assert "\n" not in str(error)


def test_a_signature_holds_only_for_its_machine() -> None:
    file = load_answers(written(CROSSOVER, solved(CROSSOVER), secret=b"here"), "x")
    assert is_signed(file, b"here") and not is_signed(file, b"there")
    assert grade(CROSSOVER, file, "x", secret=b"there").remarks == ("signature",)
    assert grade(CROSSOVER, read(CROSSOVER, solved(CROSSOVER)), "x", secret=b"here").doubtful


def test_what_is_odd_is_said_and_takes_no_points() -> None:
    lab = LABS["windows"]
    answers = solved(lab)
    for odd, remark in (
        (replace(answers, digest="0" * 16), "other lab text"),
        (replace(answers, versions={"windows": 2}), "older generator"),
        (replace(answers, finished=at(1)), "clock"),
        (replace(answers, course="NET-402"), "other seed"),
        (replace(answers, given={**answers.given, "W99": answers.given["W1"]}), "no question W99"),
    ):
        graded = grade(lab, read(lab, odd), "x")
        assert (graded.remarks, graded.total) == ((remark,), 16)


def test_more_attempts_than_there_are_do_not_count() -> None:
    answers = begin(CROSSOVER, "NET-401", "s1234567", at(0))
    answers, _ = attempt(CROSSOVER, answers, "W1", 1, at(1))
    wrong = answers.worked("W1").attempts[0]
    right = replace(
        wrong, value=key_of(CROSSOVER, CROSSOVER.question("W1"), answers.seed), points=2
    )
    many = replace(answers.worked("W1"), attempts=(wrong, wrong, wrong, right))
    shown = replace(many, attempts=(replace(right, at=at(3)),), given_up=at(2))
    for work, remark in (
        (many, "W1: 4 attempts, 3 count"),
        (shown, "W1: an attempt after the key was shown"),
    ):
        odd = replace(answers, given={"W1": work}, finished=at(3))
        graded = grade(CROSSOVER, read(CROSSOVER, odd), "x")
        assert graded.worked == 0 and remark in graded.remarks


# -- a folder ---------------------------------------------------------------------------------------


def hand_in(folder, lab: Lab, student: str, answers: Answers | None = None, name: str = "") -> None:
    answers = answers or solved(lab, student)
    file = folder / f"{name or student.replace('/', '_')}.answers.json"
    file.write_bytes(written(lab, answers))


def rows_of(content: bytes) -> list[dict[str, str]]:
    assert content.startswith(b"\xef\xbb\xbf") and b"\r\n" in content
    return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))


def test_one_bad_file_never_touches_another_student_s_row(tmp_path) -> None:
    for student in ("ada", "bob"):
        hand_in(tmp_path, CROSSOVER, student)
    of_eve = written(CROSSOVER, solved(CROSSOVER, "eve"))
    for name, content in {
        "broken.answers.json": b"{",
        "big.answers.json": b"[" * 5_000_000,
        "brackets.answers.json": b"[" * 200_000,
        "other.answers.json": changed(of_eve, "lab", "lab-of-others"),
        "newer.answers.json": changed(of_eve, "version", 2),
        "notes.txt": b"not mine",
    }.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder.answers.json").mkdir()
    (tmp_path / "link.answers.json").symlink_to(tmp_path / "ada.answers.json")
    graded = grade_folder(tmp_path, LABS)
    assert [(one.student, one.total) for one in graded.grades] == [("ada", 16), ("bob", 16)]
    problems = {one.file.split(".")[0]: one.problem for one in graded.unreadable}
    assert set(problems) == {"big", "brackets", "broken", "folder", "link", "newer", "other"}
    assert "larger than the 256 kB" in problems["big"]
    assert problems["link"] == "is a link, which is not followed"
    assert "unknown lab" in problems["other"] and "newer" in problems["newer"]
    assert all("\n" not in one for one in problems.values())
    rows = rows_of(plain_table(graded, LABS)[0])
    assert [row["total"] for row in rows[:2]] == ["16", "16"] and len(rows) == 9
    assert rows[-1]["remarks"].startswith("unreadable: other.answers.json")


def test_a_file_that_takes_too_long_is_a_row_and_holds_nobody_up() -> None:
    ticks, file = iter(range(100)), read(CROSSOVER, solved(CROSSOVER))
    assert grade(CROSSOVER, file, "x", clock=lambda: 0.5 * next(ticks)).total == 16
    with pytest.raises(InputError, match=r"question .*takes longer to grade than the 5 s"):
        grade(CROSSOVER, file, "x", clock=lambda: 3.0 * next(ticks))


def test_of_two_files_of_a_student_the_later_one_counts(tmp_path) -> None:
    early, _ = attempt(CROSSOVER, begin(CROSSOVER, "NET-401", "S1234567 ", at(0)), "W1", 1, at(1))
    hand_in(tmp_path, CROSSOVER, "s1234567", name="z-early", answers=early)
    hand_in(tmp_path, CROSSOVER, "s1234567", name="a-late")
    (graded,) = grade_folder(tmp_path, LABS).grades
    assert (graded.file, graded.total) == ("a-late.answers.json", 16)
    assert graded.remarks == ("z-early.answers.json is earlier and does not count",)


def test_equal_long_texts_are_said_for_both(tmp_path) -> None:
    for student in ("ada", "bob"):
        answers = explain(CROSSOVER, solved(CROSSOVER, student), "E1", EXPLANATION, at(41))
        hand_in(tmp_path, CROSSOVER, student, answers)
    hand_in(tmp_path, CROSSOVER, "eve")
    remarks = {one.student: one.remarks for one in grade_folder(tmp_path, LABS).grades}
    assert remarks == {"ada": ("same text as bob",), "bob": ("same text as ada",), "eve": ()}


NAMES = ("O'Hara, Ann", '=cmd|"/C calc"!A0', "+49 170", "名字 学生", "@sum(1)", "-2+3")


def test_names_with_commas_quotes_and_formulas_stay_cells(tmp_path) -> None:
    for number, name in enumerate(NAMES):
        answers = replace(solved(CROSSOVER, "s"), student=name, seed=seed_of("NET-401", name))
        hand_in(tmp_path, CROSSOVER, name, answers, name=str(number))
    graded = grade_folder(tmp_path, LABS)
    for table, _ in (plain_table(graded, LABS), moodle_table(graded, CROSSOVER)):
        cells = [next(iter(row.values())) for row in rows_of(table)]
        assert {cell.removeprefix("'") for cell in cells} == set(NAMES)
        assert all(cell[0] not in "=@" for cell in cells)
        assert "'-2+3" in cells and "O'Hara, Ann" in cells


def test_moodle_gets_grade_and_feedback_side_by_side(tmp_path) -> None:
    wrong, _ = attempt(CROSSOVER, begin(CROSSOVER, "NET-401", "s2", at(0)), "W1", 1, at(1))
    for student, answers in (("s1", None), ("s2", wrong), ("s9", None)):
        hand_in(tmp_path, CROSSOVER, student, answers)
    roster = load_roster(
        b"ID number,Email address,Phone\r\nS1,Ann@Uni.example,1\r\ns2,bob@uni.example,2\r\n", "r"
    )
    table, notes = moodle_table(grade_folder(tmp_path, LABS), CROSSOVER, roster)
    rows = rows_of(table)
    assert [*rows[0]] == [
        "ID number",
        "Email address",
        "topox: The reconfiguration delay (max 20)",
        "topox: The reconfiguration delay feedback",
    ]
    assert [list(row.values())[:3] for row in rows] == [
        ["S1", "Ann@Uni.example", "16"],
        ["s2", "bob@uni.example", "0"],
        ["s9", "", "16"],
    ]
    assert "W1: 0/2 All computing plus all sending" in [*rows[1].values()][3]
    assert notes == ("s9 is not in the roster",)


CANVAS = (
    "Student,ID,SIS User ID,SIS Login ID,Section,Quiz (12),Final Score\r\n"
    "    Points Possible,,,,,10,(read only)\r\n"
    '"Lovelace, Ada",7,1815,ADA,"A, morning",9.5,88\r\n'
    "=Bob,8,1900,bob,A,,\r\n"
)


def test_canvas_gets_one_column_and_keeps_the_students_of_its_own(tmp_path) -> None:
    for student in ("ada", "zoe"):
        hand_in(tmp_path, CROSSOVER, student)
    table, notes = canvas_table(
        grade_folder(tmp_path, LABS), CROSSOVER, load_roster(CANVAS.encode(), "r")
    )
    rows = rows_of(table)
    column = "TOPO-X: The reconfiguration delay"
    assert [*rows[0]] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", column]
    assert [row[column] for row in rows] == ["20", "16", ""]
    copied = (line.rsplit(",", 2)[0] for line in CANVAS.splitlines()[1:])  # without the other marks
    for line, before in zip(table.decode().splitlines()[1:], copied, strict=True):
        assert line.rpartition(",")[0] == before
    assert [note.split()[0] for note in notes] == ["column", "zoe"]
    assert "export the course's gradebook" in refusal(
        canvas_table, grade_folder(tmp_path, LABS), CROSSOVER, load_roster(b"Name\r\nx\r\n", "r")
    )


def test_explanations_get_points_from_a_person() -> None:
    for given, expected in (("3.5", (3.5, 19.5, ())), ("5", (None, 16, ("E1: 5 points of 4",)))):
        table = f"student,question,points\ns1234567,E1,{given}\n"
        points = load_explanations(table.encode(), "e.csv")
        graded = grade(CROSSOVER, read(CROSSOVER, solved(CROSSOVER)), "x", points)
        assert (graded.explanation, graded.total, graded.remarks) == expected
    for bad, said in (
        (b"student,points\na,1\n", "question: is missing"),
        (b"student,question,points\na,E1,x\n", "row 2"),
    ):
        assert said in refusal(load_explanations, bad, "e.csv")


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("format", "topox-lab", "must be 'topox-answers'"),
        ("seed", 10**9, "from 0 to 99,999,999"),
        ("student", ["x"], "field student"),
        ("started", "yesterday", "must be a time such as"),
        ("answers", [], "must be an object"),
        (
            "answers.W1",
            {"attempts": [{"at": at(1)}]},
            "question W1, field attempts[0].value: is missing",
        ),
        ("answers.W1", {"attempts": "x"}, "field attempts: must be a list in brackets"),
        ("answers.W1", {"points": 5}, "unknown key"),
        ("answers.P1", {"locked": "now", "value": 1}, "question P1, field locked"),
        ("answers.E1", {"at": at(1), "value": "x" * 4_001}, "at most 4,000 characters"),
    ],
)
def test_a_broken_answers_file_gets_one_line(path: str, value: object, said: str) -> None:
    line = refusal(
        load_answers, changed(written(CROSSOVER, solved(CROSSOVER)), path, value), "x.answers.json"
    )
    assert said in line and line.startswith("x.answers.json")


def test_no_name_of_a_student_becomes_a_path() -> None:
    for name in ("../x", "a/b", "", "x" * 41, "a\nb"):
        assert "student" in refusal(begin, CROSSOVER, "NET-401", name, at(0))
