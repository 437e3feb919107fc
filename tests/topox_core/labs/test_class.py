"""What a lecturer gets of a class: statistics without names, sheets of paper, and the commands."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from tests.labs_answered import LABS, at
from tests.real_inputs import ROOT
from tests.topox_core.labs.test_answers import hand_in, rows_of
from topox_core.cli.main import main
from topox_core.labs.draws import seed_of
from topox_core.labs.keys import key_of
from topox_core.labs.lab_file import load_lab
from topox_core.labs.statistics import BINS, bin_words, histogram, lab_statistics
from topox_core.labs.student import begin, lock
from topox_core.labs.validation import validate
from topox_core.labs.worksheet import check_digits, worksheets

LAB = LABS["six-tasks"]


def predicted(student: str, first: object, value: float = 10, second: object = None):
    answers = lock(LAB, begin(LAB, "NET-401", student, at(0), seed=1), "P1", value, at(1))
    answers = lock(LAB, answers, "P2", first, at(1))
    return answers if second is None else lock(LAB, answers, "P2", second, at(2))


def test_shares_before_and_after_the_discussion() -> None:
    votes = [("x", "x"), ("both", "x"), ("y", "y"), ("both", "x")]
    every = [predicted(f"s{k}", a, second=b) for k, (a, b) in enumerate(votes)]
    one = next(one for one in lab_statistics(LAB, every) if one.question == "P2")
    assert (one.count, one.right, one.right_again) == (4, 0.25, 0.75)
    assert one.options == (("x", 1), ("y", 1), ("either", 0), ("both", 2))
    assert one.mistakes[0] == ("@lab.six-tasks.P2.feedback.both", 2)
    assert one.advice() == "25\u00a0% → 75\u00a0% right"


@pytest.mark.parametrize(
    ("right", "said"), [(1, "explain first"), (2, "discuss for two minutes"), (3, "go on")]
)
def test_the_share_that_is_right_says_what_to_do(right: int, said: str) -> None:
    every = [predicted(f"s{k}", "x" if k < right else "both") for k in range(4)]
    one = next(one for one in lab_statistics(LAB, every) if one.question == "P2")
    assert said in one.advice()


def test_numbers_of_several_seeds_are_times_the_truth() -> None:
    every = [lock(LAB, begin(LAB, "c", f"s{k}", at(0)), "P1", 9 + k, at(1)) for k in range(7)]
    one = lab_statistics(LAB, every)[0]
    truths = [key_of(LAB, LAB.question("P1"), seed_of("c", f"s{k}")) for k in range(7)]
    assert one.relative
    assert one.values == pytest.approx(sorted((9 + k) / t for k, t in enumerate(truths)))
    other = lab_statistics(LAB, [predicted("s1", "x", 9)])[0]
    assert other.relative, "the class instance has another truth"
    of_class = [
        lock(LAB, begin(LAB, "c", f"s{k}", at(0), seed=0), "P1", 9 + k, at(1)) for k in range(7)
    ]
    same = lab_statistics(LAB, of_class)[0]
    assert not same.relative and same.values == tuple(range(9, 16))


def test_a_histogram_counts_everybody_and_hides_a_handful() -> None:
    values = (*range(100), 10_000)
    bins = histogram(values)
    assert len(bins) == BINS and sum(one.count for one in bins) == len(values)
    assert bin_words(bins, 0).endswith("or less")
    assert bin_words(bins, BINS - 1).endswith("or more")
    assert histogram((1, 2, 3, 4)) == ()
    assert len(histogram((5.0,) * 6)) == 1


# -- paper ------------------------------------------------------------------------------------------


class Tags(HTMLParser):
    """Counts tags and sees that they close."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag, attrs) -> None:
        self.seen.append(tag)
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("lab", LABS.values(), ids=lambda lab: lab.id)
def test_a_sheet_has_two_pages_a_student_and_no_key(lab) -> None:
    html = worksheets(lab, [("Ann <b>", 1), ("", 2)])
    tags = Tags()
    tags.feed(html)
    assert tags.open == [] and tags.seen.count("section") == 4
    assert "script" not in tags.seen and "Ann &lt;b&gt;" in html
    assert html.count(check_digits(lab, 1)) == 2
    questions = [question.id for question in lab.questions]
    assert re.findall(r"<h3>(\w+) ", html)[: len(questions)] == [
        *(name for name in questions if name[0] == "P"),
        *(name for name in questions if name[0] != "P"),
    ]
    keyed = worksheets(lab, [("Ann", 1), ("", 2)], with_key=True)
    if lab.id == "bandwidth-tax":  # a key like no other number
        assert ("1.228" in html, "1.228" in keyed) == (False, True)
    assert keyed.count('<section class="page">') == 6
    assert keyed.startswith(worksheets(lab, [("Ann", 1), ("", 2)])[: html.index("<section") + 50])


# -- commands ---------------------------------------------------------------------------------------


def ran(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> tuple[str, str]:
    assert main(["lab", *arguments]) == status
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return captured.out, captured.err


def test_list_show_seed_and_key(capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(ran(capsys, "list", "--json")[0])["labs"]
    assert [row["id"] for row in rows] == [*LABS]
    out, _ = ran(capsys, "seed", "--course", "NET-401", "--student", "s1234567")
    assert out == "58157343\n"
    out, err = ran(capsys, "key", "what-binds", "--seed", "1", "--json")
    keys = json.loads(out)["seeds"][0]
    assert keys["keys"]["W2"] == 19 and keys["mistakes"]["W2"][0]["value"] == 17
    assert err.strip() == "This is the key. Do not show it before the lock."
    text, _ = ran(capsys, "show", "bandwidth-tax", "--seed", "2")
    assert "W5 (3)" in text and "1.228" not in text


@pytest.mark.parametrize("lab", LABS)
def test_show_says_what_pages_say_before_a_lock(lab: str, capsys) -> None:
    record = json.loads(ran(capsys, "show", lab, "--seed", "2", "--json")[0])
    assert {one["text"] for one in record["screens"] if one["stage"] == "reveal"} == {""}


def test_a_folder_is_graded_counted_and_tabled(tmp_path, capsys) -> None:
    lab = LABS["crossover"]
    folder = tmp_path / "in"
    folder.mkdir()
    for student in ("ada", "bob"):
        hand_in(folder, lab, student)
    table = tmp_path / "grades.csv"
    out, _ = ran(capsys, "grade", str(folder), "--csv", str(table))
    assert "ada" in out
    assert [row["total"] for row in rows_of(table.read_bytes())] == ["16", "16"]
    points = tmp_path / "e.csv"
    points.write_text("student,question,points\nada,E1,4\n")
    explained = ("--explanations", str(points), "--lms", "moodle", "--csv", str(table))
    out, _ = ran(capsys, "grade", str(folder), *explained, "--json")
    assert [one["total"] for one in json.loads(out)["grades"]] == [20, 16]
    assert rows_of(table.read_bytes())[0]["ID number"] == "ada"
    for lms, said in (("canvas", "--roster"), ("excel", "must be one of plain, moodle, canvas")):
        assert said in ran(capsys, "grade", str(folder), "--lms", lms, status=2)[1]
    (folder / "x.answers.json").write_text("{}")
    out, _ = ran(capsys, "grade", str(folder), status=1)
    assert "not graded: x.answers.json" in out
    out, err = ran(capsys, "stats", str(folder), "--lab", "crossover")
    assert "P1" in out and "not counted: x.answers.json" in err and "ada" not in out


def test_sheets_and_keys_of_a_course_are_files(tmp_path, capsys) -> None:
    students = tmp_path / "students.csv"
    students.write_text("id,name\ns1234567,Ann\ns1234568,Bob\n")
    sheet, keys = tmp_path / "sheet.html", tmp_path / "keys.json"
    course = ("--course", "NET-401", "--students", str(students))
    ran(capsys, "worksheet", "windows", *course, "--output", str(sheet))
    assert sheet.read_text().count('<section class="page">') == 4
    assert "58157343" in sheet.read_text()
    ran(capsys, "key", "windows", *course, "--output", str(keys))
    assert [one["seed"] for one in json.loads(keys.read_text())["seeds"]] == [58157343, 13495181]
    for text, said in (
        ("s1234567\ns1234568\n", "row 1: must name the columns, such as student (got 's1234567')"),
        ("id;name\ns1234567;Ann\n", "row 1: must separate columns by commas (got 'id;name')"),
    ):  # else the first student would have no sheet, or all would have a wrong seed
        students.write_text(text)
        _, err = ran(capsys, "key", "windows", *course, status=2)
        assert said in err
    _, err = ran(capsys, "key", "windows", "--students", str(students), status=2)
    assert "--course" in err
    _, err = ran(capsys, "worksheet", "windows", "--seeds", "a", "--output", str(sheet), status=2)
    assert "whole numbers" in err


def test_validate_tries_a_lab_of_one_s_own(tmp_path, capsys) -> None:
    out, _ = ran(capsys, "validate", "crossover")
    assert "51 seeds tried" in out and "error" not in out
    from tests.topox_core.labs.test_labs import changed

    own = tmp_path / "own.lab.json"
    own.write_bytes(changed("screens.0.text", "It takes {one} ms."))
    out, _ = ran(capsys, "validate", str(own), status=1)
    assert "{one} is the answer of question W1" in out
    own.write_bytes(changed("screens.0.questions.0.key.value", "lode"))
    _, err = ran(capsys, "validate", str(own), status=2)
    assert "question W1, key, field value" in err


def test_the_lab_of_the_documents_is_one() -> None:
    text = (ROOT / "docs" / "labs.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    own = load_lab(example.encode(), "second-port.lab.json")
    assert validate(own, range(5)).ok
    assert own.points == 8
