"""What a lecturer gets of a class: statistics without names, the projector, sheets of paper, and the commands."""

import json
import re
from itertools import product
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.conftest import long_after
from tests.labs_answered import LABS, at, changed
from tests.real_inputs import ROOT
from tests.topox_core.labs.test_answers import hand_in, rows_of
from tests.topox_core.labs.test_labs import BYTES
from topox_core.cli.main import main
from topox_core.errors import InputError
from topox_core.io.cluster_file import dump_cluster
from topox_core.io.task_graph_file import dump_graph_json
from topox_core.labs.classroom.statistics import (
    MAX_VOTES,
    START,
    each_vote,
    histogram,
    lab_statistics,
    question_statistics,
    read_called_out,
    slides,
)
from topox_core.labs.classroom.student import begin, lock
from topox_core.labs.generators.catalogue import generator
from topox_core.labs.generators.generator import seed_of
from topox_core.labs.keys import instance_of, key_of, validate
from topox_core.labs.lab_file import load_lab
from topox_core.labs.worksheet import answer_grid, check_digits, given_figure, worksheets

LAB = LABS["six-tasks"]
EACH = pytest.mark.parametrize("lab", LABS.values(), ids=lambda lab: lab.id)


def predicted(student: str, first: str, second: str = ""):
    answers = lock(LAB, begin(LAB, "NET-401", student, at(0), seed=1), "P1", 10, at(1))
    answers = lock(LAB, answers, "P2", first, at(1))
    return lock(LAB, answers, "P2", second, at(2)) if second else answers


def test_shares_before_and_after_the_discussion() -> None:
    votes = [("x", "x"), ("both", "x"), ("y", "y"), ("both", "x")]
    every = [predicted(f"s{k}", *both) for k, both in enumerate(votes)]
    one = next(one for one in lab_statistics(LAB, every) if one.question == "P2")
    assert (one.count, one.right, one.right_again) == (4, 0.25, 0.75)
    assert one.options == (("x", 1), ("y", 1), ("either", 0), ("both", 2))
    assert one.mistakes[0] == ("@lab.six-tasks.P2.feedback.both", 2)


@pytest.mark.parametrize(
    ("right", "said"), [(1, "explain first"), (2, "discuss for two minutes"), (3, "go on")]
)
def test_the_share_that_is_right_says_what_to_do(right: int, said: str) -> None:
    every = [predicted(f"s{k}", "x" if k < right else "both") for k in range(4)]
    assert said in next(one.advice() for one in lab_statistics(LAB, every) if one.question == "P2")


def test_numbers_of_several_seeds_are_times_the_truth() -> None:
    def values_of(seed: int | None) -> tuple[bool, tuple[float, ...]]:
        begun = [begin(LAB, "c", f"s{k}", at(0), seed) for k in range(7)]
        every = [lock(LAB, answers, "P1", 9 + k, at(1)) for k, answers in enumerate(begun)]
        return lab_statistics(LAB, every)[0].relative, lab_statistics(LAB, every)[0].values

    truths = [key_of(LAB, LAB.question("P1"), seed_of("c", f"s{k}")) for k in range(7)]
    shares = sorted((9 + k) / truth for k, truth in enumerate(truths))
    assert values_of(None) == (True, pytest.approx(shares))
    assert values_of(1)[0], "the class instance has another truth"
    assert values_of(0) == (False, tuple(range(9, 16)))


def test_a_histogram_counts_everybody_and_hides_a_handful() -> None:
    values = (*range(100), 10_000)
    assert sum(count for _, _, count in histogram(values)) == len(values)
    assert (histogram((1, 2, 3, 4)), len(histogram((5.0,) * 6))) == ((), 1)


# -- the projector ----------------------------------------------------------------------------------


@EACH
def test_next_shows_every_question_then_its_tally_then_its_reveal(lab) -> None:
    every = [(one.place, one.show) for one in slides(lab)]
    assert every[0][0] == START and len(set(every)) == len(every)
    asked = [one for one in every if one[0] in {question.id for question in lab.questions}]
    assert asked == [
        (question.id, show)
        for question in lab.questions
        for show in ("ask", "tally", "reveal")
        if show != "tally" or question.stage != "explain"
    ]
    asks_nothing = [one.id for one in lab.screens if not one.questions]
    assert [place for place, _ in every if place in asks_nothing] == asks_nothing


@EACH
def test_a_plan_never_runs_backwards(lab) -> None:
    known = [one.until for one in slides(lab) if one.show == "ask" and one.until is not None]
    assert known == sorted(known) and known[-1] <= lab.minutes


def test_hands_are_counted_before_and_after_the_discussion() -> None:
    question = LAB.question("P2")  # seed 0: y goes first
    one = question_statistics(
        LAB, question, each_vote({"x": 6, "y": 4}), each_vote({"x": 2, "y": 8})
    )
    assert (one.count, one.right, one.right_again) == (10, 0.4, 0.8)
    assert one.options == (("x", 6), ("y", 4), ("either", 0), ("both", 0))


@pytest.mark.parametrize(
    ("text", "votes"),
    [
        ("9", {9: 1}),
        ("9, 10 x5, 12x3", {9: 1, 10: 5, 12: 3}),
        ("9 10×5; 9", {9: 2, 10: 5}),
        ("10,4 x2, 10.4", {10: 3}),  # decimal comma; rounded to the digits that are asked for
        ("", {}),
    ],
)
def test_numbers_called_out_are_read_with_how_many_said_them(text: str, votes: dict) -> None:
    question = LAB.question("P1")
    assert read_called_out(LAB, question, text) == votes
    assert question_statistics(LAB, question, each_vote(votes)).count == sum(votes.values())


@pytest.mark.parametrize("text", ["nine", "9 x", "9 x99999", f"9 x{MAX_VOTES + 1}", "nan", "9 xx2"])
def test_what_is_no_number_is_named(text: str) -> None:
    with pytest.raises(InputError):
        read_called_out(LAB, LAB.question("P1"), text)


# -- paper ------------------------------------------------------------------------------------------


@EACH
def test_a_sheet_has_two_pages_a_student_and_no_key(lab) -> None:
    html = worksheets(lab, [("Ann <b>", 1), ("", 2)])
    assert html.count("<section") == html.count("</section>") == 4
    assert "<script" not in html and "Ann &lt;b&gt;" in html
    assert html.count(check_digits(lab, 1)) == 2
    questions = sorted((one.id for one in lab.questions), key=lambda name: name[0] != "P")
    assert re.findall(r"<h3>(\w+) ", html)[: len(questions)] == questions
    keyed = worksheets(lab, [("Ann", 1), ("", 2)], with_key=True)
    assert keyed.count("<section") == 6
    if lab.id == "bandwidth-tax":  # a key like no other number
        assert ("1.228" in html, "1.228" in keyed) == (False, True)


@EACH
def test_every_figure_is_well_formed_and_within_its_frame(lab) -> None:
    asked = [screen for screen in lab.screens if screen.questions]
    for draw, screen, seed in product((given_figure, answer_grid), asked, (0, 1, 2, 58157343)):
        if svg := draw(lab, screen, seed):
            root = ElementTree.fromstring(svg)
            assert root.attrib["aria-label"]
            ends = root.attrib["viewBox"].split()[2:]
            for names, end in zip(
                (("x", "x1", "x2", "cx"), ("y", "y1", "y2", "cy")), ends, strict=True
            ):
                at = [
                    float(one.attrib[name]) for one in root for name in names if name in one.attrib
                ]
                assert all(0 <= place <= float(end) for place in at)


def test_axes_to_draw_on_are_the_same_for_every_seed() -> None:
    lab = LABS["crossover"]
    screen = next(one for one in lab.screens if one.questions)
    assert given_figure(lab, screen, 1) == given_figure(lab, screen, 2)


def test_a_grid_is_longer_than_any_answer() -> None:
    """It reaches to where everything is done one after another."""
    screen = LAB.screens[LAB.screen_of("W1")]
    for seed in range(20):
        board = instance_of(LAB, screen, seed)
        numbers = map(int, re.findall(r">(\d+)</text>", answer_grid(LAB, screen, seed)))
        assert board.optimum_ms() < board.sum_ms < max(numbers) + 5


# -- commands ---------------------------------------------------------------------------------------


def ran(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> tuple[str, str]:
    assert main(["lab", *arguments]) == status
    return capsys.readouterr()


def test_list_show_seed_and_key(capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(ran(capsys, "list", "--json")[0])["labs"]
    assert [row["id"] for row in rows] == [*LABS]
    seed = ran(capsys, "seed", "--course", "NET-401", "--student", "s1234567")[0]
    assert seed == "58157343\n"
    out, err = ran(capsys, "key", "what-binds", "--seed", "1", "--json")
    keys = json.loads(out)["seeds"][0]
    assert keys["keys"]["W2"] == 19 and keys["mistakes"]["W2"][0]["value"] == 17
    assert err.strip() == "This is the key. Do not show it before the lock."


@pytest.mark.parametrize("lab", LABS)
def test_show_says_what_pages_say_before_a_lock(lab: str, capsys) -> None:
    screens = json.loads(ran(capsys, "show", lab, "--seed", "2", "--json")[0])["screens"]
    assert {one["text"] for one in screens if one["stage"] == "reveal"} == {""}


def test_a_folder_is_graded_counted_and_tabled(tmp_path, capsys) -> None:
    for student in ("ada", "bob"):
        hand_in(tmp_path, LABS["crossover"], student)
    table, points, grading = tmp_path / "g.csv", tmp_path / "e.csv", ("grade", str(tmp_path))
    ran(capsys, *grading, "--csv", str(table))
    assert [row["total"] for row in rows_of(table.read_bytes())] == ["16", "16"]
    points.write_text("student,question,points\nada,E1,4\n")
    explained = ("--explanations", str(points), "--lms", "moodle", "--csv", str(table))
    out, _ = ran(capsys, *grading, *explained, "--json")
    assert [one["total"] for one in json.loads(out)["grades"]] == [20, 16]
    assert rows_of(table.read_bytes())[0]["ID number"] == "ada"
    for lms, said in (
        ("canvas", "--roster"),
        ("excel", "--lms: must be one of plain, moodle, canvas"),
    ):
        assert said in ran(capsys, *grading, "--lms", lms, status=2)[1]
    (tmp_path / "x.answers.json").write_text("{}")
    assert "not graded: x.answers.json" in ran(capsys, *grading, status=1)[0]
    out, err = ran(capsys, "stats", str(tmp_path), "--lab", "crossover")
    assert "P1" in out and "not counted: x.answers.json" in err and "ada" not in out


def test_sheets_and_keys_of_a_course_are_files(tmp_path, capsys) -> None:
    students, sheet, keys = (tmp_path / name for name in ("s.csv", "sheet.html", "keys.json"))
    students.write_text("id,name\ns1234567,Ann\ns1234568,Bob\n")
    course = ("--course", "NET-401", "--students", str(students))
    ran(capsys, "worksheet", "windows", *course, "--output", str(sheet))
    assert sheet.read_text().count("<section") == 4 and "58157343" in sheet.read_text()
    ran(capsys, "key", "windows", *course, "--output", str(keys))
    assert [one["seed"] for one in json.loads(keys.read_text())["seeds"]] == [58157343, 13495181]
    for text, said in (
        ("s1234567\ns1234568\n", "row 1: must name the columns, such as student (got 's1234567')"),
        ("id;name\ns1234567;Ann\n", "row 1: must separate columns by commas (got 'id;name')"),
    ):  # else the first student would have no sheet, or all would have a wrong seed
        students.write_text(text)
        assert said in ran(capsys, "key", "windows", *course, status=2)[1]
    for options, said in ((course[2:], "--course"), (("--seeds", "a"), "must be numbers")):
        asked = ("worksheet", "windows", *options, "--output", str(sheet))
        assert said in ran(capsys, *asked, status=2)[1]


def test_validate_tries_a_lab_of_one_s_own(tmp_path, capsys) -> None:
    out, _ = ran(capsys, "validate", "crossover")
    assert "51 seeds tried" in out and "error" not in out
    own = tmp_path / "own.lab.json"
    for path, text, status, said in (
        ("screens.0.text", "It takes {one} ms.", 1, "{one} is the answer of question W1"),
        ("screens.0.questions.0.key.value", "lode", 2, "question W1, key, field value"),
    ):
        own.write_bytes(changed(BYTES, path, text))
        assert said in "".join(ran(capsys, "validate", str(own), status=status))


def test_the_lab_of_the_documents_is_one() -> None:
    text = (ROOT / "docs" / "labs.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    own = load_lab(example.encode(), "second-port.lab.json")
    assert validate(own, range(5)).ok


# What every lab runs with (docs/labs.md), as options of the commands.
LESSON = [
    "--clock",
    "slots",
    "--switching",
    "planned",
    "--tick-ms",
    "slot",
    "--rings",
    "1",
    "--algorithm",
    "default",
    *("--iteration", "first"),
]
EACH_KEY = pytest.mark.parametrize("seed", long_after(1, range(4)))


@pytest.fixture
def compared(ask: Any, tmp_path: Path) -> Any:
    """Compare fabrics on a task graph and its cluster, as files."""

    def runs(graph: Any, cluster: Any, *more: object) -> Any:
        files = tmp_path / "g.taskgraph.json", tmp_path / "c.cluster.json"
        files[0].write_bytes(dump_graph_json(graph))
        files[1].write_bytes(dump_cluster(cluster))
        return ask("compare", *files, *LESSON, "--fabrics", *more)["fabrics"]

    return runs


def keys(ask: Any, lab: str, seed: int) -> Any:
    return ask("lab", "key", lab, "--seed", seed)["seeds"][0]["keys"]


@EACH_KEY
def test_the_delays_of_lab_5(ask: Any, compared: Any, seed: int) -> None:
    one, found = generator("turns").make(seed), keys(ask, "crossover", seed)
    free, slow = (
        compared(one.graph(), one.cluster(delay_ms=delay_ms), "static,reactive,provisioned")
        for delay_ms in (0.0, 10.0)
    )
    times = [run["iteration_ms"] for run in (*free.values(), slow["static"], slow["provisioned"])]
    assert times == [found[question] for question in ("W2", "W1", "W1", "W2", "W4")]


@EACH_KEY
def test_the_windows_of_lab_6(ask: Any, seed: int) -> None:
    one, found = generator("windows").make(seed), keys(ask, "windows", seed)
    size = ("--stages", one.stages, "--microbatches", one.microbatches)
    counted = ask("rails", "count", *size)["windows"]
    assert [counted[-1], counted[0], counted[1]] == [found["P1"], found["W1"], found["W2"]]
    assert ask("rails", "count", *size, "--schedule", "afab")["windows"][0] == found["W3"]
    each = [word for ms in one.lengths_ms for word in ("--window-ms", ms)]
    base = ("--base-ms", one.base_ms, "--limit-percent", one.limit_percent)
    costs = ask("rails", "delay", *base, *each, "--delay-ms", 25)
    assert costs["rows"][0]["provisioned_ms"] - one.base_ms == pytest.approx(found["W5"])
    assert costs["slowest_switch_ms"]["provisioned"] == pytest.approx(found["W6"])
