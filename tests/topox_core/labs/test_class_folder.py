"""A class's folder, its leaderboards and answers gone on with: no lock lost, nothing believed that a file claims."""

import json
import random
from dataclasses import replace

import pytest

from tests.labs_answered import AT, LABS, answered, at, solved
from tests.refusal import refusal
from topox_core.cli.main import main
from topox_core.errors import InputError
from topox_core.fabrics.planning.scheduled import schedule
from topox_core.labs.classroom import class_folder
from topox_core.labs.classroom.answers import (
    Attempt,
    Worked,
    is_signed,
    load_answers,
    taken_up,
    together,
)
from topox_core.labs.classroom.class_folder import (
    KEY_FILE,
    ClassFolder,
    KeptFile,
    clean,
    read_secret,
    secret_for,
)
from topox_core.labs.classroom.folder import ENDING, grade_folder
from topox_core.labs.classroom.leaderboard import (
    BOARDS,
    Entry,
    hand_instance,
    load_entry,
    ranked,
    shared_jobs,
)
from topox_core.labs.classroom.student import (
    attempt,
    begin,
    closed,
    give_up,
    lock,
    may_compute,
    revealed,
    revealed_on,
    still_asked,
)
from topox_core.labs.generators.generator import seed_of
from topox_core.labs.lab import LESSON_SETTINGS
from topox_core.tdm.algorithms.catalogue import solve
from topox_core.tdm.model.jobs import TdmSettings

LAB = LABS["six-tasks"]


def begun(student: str, value: float = 9, minute: int = 0, seed: int | None = None):
    answers = begin(LAB, "NET-401", student, at(minute), seed)
    return lock(LAB, answers, "P1", value, at(minute + 1))


def test_answers_are_kept_by_seed_signed_and_graded_as_they_are(tmp_path, capsys) -> None:
    folder, answers = ClassFolder.opened(tmp_path), solved(LAB)
    kept = folder.keep(LAB, answers)
    assert kept == KeptFile(f"six-tasks/{seed_of('NET-401', 's1234567'):08d}{ENDING}")
    file = load_answers((tmp_path / kept.file).read_bytes(), "x")
    assert file.answers == answers and not file.edited and is_signed(file, folder.secret)
    graded = grade_folder(tmp_path / "six-tasks", LABS, secret=secret_for(tmp_path / "six-tasks"))
    assert [(one.worked, one.remarks) for one in graded.grades] == [(13, ())]
    command = ["lab", "grade", str(tmp_path / "six-tasks")]
    assert main(command) == 0
    (tmp_path / KEY_FILE).write_bytes(b"k" * 32)  # of another machine
    assert main(command) == 1 and "signature" in capsys.readouterr().out


def test_the_secret_is_made_once_and_for_the_owner_alone(tmp_path) -> None:
    first, again, other = (
        ClassFolder.opened(path).secret for path in (tmp_path, tmp_path, tmp_path / "other")
    )
    assert len(first) == 32 and first == again != other
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o077 == 0


def test_whoever_goes_on_writes_over_their_own_and_nobody_else_s(tmp_path) -> None:
    folder = ClassFolder.opened(tmp_path)
    first, later = folder.keep(LAB, begun("ada")), lock(LAB, begun("ada"), "P2", "x", at(5))
    assert folder.keep(LAB, later) == first
    assert folder.answers_to(LAB.id) == (later,)
    # Somebody types the same id, or ada begins anew in another browser: both are there.
    other = folder.keep(LAB, begun("ada", 11, minute=9))
    assert other.file == first.file.replace(ENDING, f"-2{ENDING}")
    assert load_answers((tmp_path / first.file).read_bytes(), "x").answers == later
    assert [one.finished for one in folder.answers_to(LAB.id)] == [at(10)]  # one a student


def test_a_full_folder_takes_nothing_new_and_says_so(tmp_path, monkeypatch) -> None:
    folder = ClassFolder.opened(tmp_path)
    monkeypatch.setattr(class_folder, "MAX_FILES", 2)
    one = begun("ada")
    assert folder.keep(LAB, one).file and folder.keep(LAB, begun("bob")).file
    assert folder.keep(LAB, begun("eve")).reason == "full"
    assert folder.keep(LAB, lock(LAB, one, "P2", "x", at(5))).file  # who is in goes on
    monkeypatch.setattr(class_folder, "MAX_FILES", 100)
    monkeypatch.setattr(class_folder, "MAX_BYTES", 10)
    assert folder.keep(LAB, begun("eve")).reason == "full"
    assert (
        len(list(tmp_path.rglob("*"))) == 3 + 2
    )  # secret, devices, lab, two files; no part of one


def test_a_link_in_the_folder_is_neither_read_nor_written_through(tmp_path) -> None:
    folder = ClassFolder.opened(tmp_path / "class")
    (outside := tmp_path / "outside.json").write_text("untouched")
    (folder.path / LAB.id).mkdir()
    link = folder.path / LAB.id / f"{seed_of('NET-401', 'ada'):08d}{ENDING}"
    link.symlink_to(outside)
    kept = folder.keep(LAB, begun("ada"))
    assert kept.file.endswith(f"-2{ENDING}") and outside.read_text() == "untouched"
    assert len(folder.answers_to(LAB.id)) == 1


def test_cleaning_deletes_answers_and_secret_and_nothing_else(tmp_path) -> None:
    folder = ClassFolder.opened(tmp_path / "class")
    folder.keep(LAB, begun("ada"))
    (folder.path / "mine.lab.json").write_text("{}")
    assert clean(folder.path) == (1, ["mine.lab.json"])
    assert sorted(one.name for one in folder.path.iterdir()) == ["mine.lab.json"]
    assert "is missing" in refusal(clean, folder.path), "no class folder: nothing in it is ours"
    with pytest.raises(InputError, match="32 bytes"):
        (tmp_path / KEY_FILE).write_bytes(b"short")
        read_secret(tmp_path)


def test_statistics_are_written_as_a_table_and_as_a_page(tmp_path, capsys) -> None:
    folder = ClassFolder.opened(tmp_path / "class")
    folder.keep(LAB, solved(LAB, "ada"))
    folder.keep(LAB, lock(LAB, begin(LAB, "NET-401", "ada", at(50)), "P1", 3, at(51)))
    table, page = tmp_path / "s.csv", tmp_path / "s.html"
    files = ["--csv", str(table), "--html", str(page)]
    assert main(["lab", "stats", str(folder.path / LAB.id), "--lab", LAB.id, *files]) == 0
    assert "\nP1,1,0.0" in table.read_text()  # one student: what was finished last
    assert "<script" not in page.read_text() and "ada" not in page.read_text()


def test_one_hostile_student_among_thirty_costs_no_honest_answer(tmp_path) -> None:
    folder, honest = ClassFolder.opened(tmp_path), {}
    for number in range(30):
        name = f"s{number}"
        honest[name] = begun(name, number)
        assert folder.keep(LAB, honest[name], f"device {number}").reason == ""
    # Finished answers that were made elsewhere, under a name of its own and another's.
    for name in ("s7", "eve"):
        forged = folder.keep(LAB, solved(LAB, name), "eve's", brought=True)
        assert forged.reason == "brought"
        assert not is_signed(
            load_answers((tmp_path / forged.file).read_bytes(), "x"), folder.secret
        )
    # Other people's ids, over and over; ids made up; more than a device may keep apart.
    again = [folder.keep(LAB, begun("s7", 1, minute=n + 1), "eve's").reason for n in range(12)]
    assert again[:8] == ["held"] * 8 and set(again[8:]) == {"restarts"}
    made_up = [folder.keep(LAB, begun(f"nobody {n}"), "eve's").reason for n in range(25)]
    assert made_up[:2] == ["", ""] and set(made_up[2:]) == {"ids", "full"}
    assert len(folder.apart()) <= class_folder.MAX_APART_OF_A_DEVICE
    counted = {one.student: one for one in folder.answers_to(LAB.id)}
    assert {name: counted[name] for name in honest} == honest and len(counted) == 32
    # Who is honest goes on, also after the server was started anew.
    later = lock(LAB, honest["s7"], "P2", "x", at(5))
    assert ClassFolder.opened(tmp_path).keep(LAB, later, "device 7").reason == ""
    assert later in folder.answers_to(LAB.id)
    apart = grade_folder(
        tmp_path / LAB.id / "apart", LABS, secret=secret_for(tmp_path / LAB.id / "apart")
    )
    assert {one.student for one in apart.grades} >= {"s7", "eve"} and apart.doubtful


def test_a_roster_says_whose_answers_count_and_the_lecturer_releases_an_id(tmp_path) -> None:
    folder = ClassFolder.opened(tmp_path)
    (tmp_path / "roster.txt").write_text("ada\n  BOB \n")
    assert folder.keep(LAB, begun("Bob"), "b").reason == ""
    assert folder.keep(LAB, begun("eve"), "e").reason == "roster"
    assert folder.keep(LAB, begun("bob", minute=3), "new laptop").reason == "held"
    folder.release("bob")
    assert folder.keep(LAB, begun("bob", minute=4), "new laptop").reason == ""
    assert clean(tmp_path)[1] == ["roster.txt"]


HAND, SHARED = BOARDS["six-tasks"], BOARDS["time-division"]


def planned() -> dict[str, float]:
    """Start times of the list schedule of the class instance."""
    graph, cluster = hand_instance()
    execution = schedule(graph, cluster, LESSON_SETTINGS).execution
    starts = dict(zip(execution.graph.ids, map(float, execution.start_ms), strict=True))
    return {task.id: starts[task.id] for task in graph.tasks}


def grouping(name: str) -> dict[str, str]:
    groups = solve(shared_jobs(), TdmSettings(algorithm=name)).group
    return {job.id: "AB"[group] for job, group in zip(shared_jobs().jobs, groups, strict=True)}


def file_of(board: str, value: object, alias: str = "ada", **more: object) -> bytes:
    entry = {"format": "topox-entry", "version": 1, "board": board, "alias": alias}
    return json.dumps({**entry, BOARDS[board].field: value, **more}).encode()


def test_the_boards_are_those_that_were_solved_when_the_lab_was_made() -> None:
    """An exact engine proved that nobody can be below 56 ms on the first."""
    assert HAND.best_known() == 56
    in_one = dict.fromkeys([job.id for job in shared_jobs().jobs], "A")
    times = [SHARED.checked(in_one), SHARED.checked(grouping("hill-climbing")), SHARED.best_known()]
    assert times == pytest.approx([254.9, 171.8, 126.3], abs=0.05)


def test_a_claimed_makespan_is_not_looked_at() -> None:
    starts = planned()
    late = {name: start + 4 for name, start in starts.items()}
    files = (
        file_of("six-tasks", late, "boaster", makespan_ms=1),
        file_of("six-tasks", starts, "modest", makespan_ms=999),
    )
    lines = ranked(HAND, [load_entry(file, "a.entry.json") for file in files])
    found = [(one.rank, one.alias, one.time, one.gap) for one in lines]
    assert found == [(1, "modest", 56, 0), (2, "boaster", 60, pytest.approx(4 / 56))]


def test_what_is_not_feasible_has_no_rank_and_its_first_broken_equation() -> None:
    starts = planned()
    first, last = (pick(starts, key=starts.__getitem__) for pick in (min, max))
    wrong = ({**starts, last: 0.0}, {**starts, first: 0.5}, dict(list(starts.items())[1:]))
    entries = [Entry("six-tasks", str(number), one) for number, one in enumerate((starts, *wrong))]
    lines = ranked(HAND, entries)
    assert [one.rank for one in lines] == [1, 0, 0, 0]
    assert all("eq." in one.problem for one in lines[1:])


def test_equal_times_share_a_rank_and_of_an_alias_the_best_counts() -> None:
    best, all_a = grouping("hill-climbing"), dict.fromkeys(grouping("hill-climbing"), "A")
    mirror = {name: {"A": "B", "B": "A"}[group] for name, group in best.items()}
    entries = [
        Entry("time-division", "x", all_a),
        Entry("time-division", "x", best),
        Entry("time-division", "y", mirror),
        Entry("time-division", "z", all_a),
        Entry("six-tasks", "elsewhere", {}),
    ]
    random.Random(1).shuffle(entries)
    lines = ranked(SHARED, entries)
    assert [(one.rank, one.alias) for one in lines] == [(1, "x"), (1, "y"), (3, "z")]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"j0-8B": "C"}, "must be A or B"),
        ({"nobody": "A"}, "unknown job"),
        ({"j0-8B": "A"}, "has no group"),
    ],
)
def test_a_grouping_names_every_job_and_no_other(value: dict, said: str) -> None:
    (line,) = ranked(SHARED, [Entry("time-division", "x", value)])
    assert line.rank == 0 and said in line.problem


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{", "JSON"),
        (file_of("six-tasks", {}), "field starts_ms"),
        (file_of("six-tasks", {"a": 1}, alias=""), "field alias"),
        (file_of("six-tasks", {"a": 1}, alias="x" * 21), "field alias"),
        (file_of("six-tasks", {"a": 1}, name="Ada Lovelace"), "unknown key"),
        (
            file_of("six-tasks", {"a": 1}).replace(b"six-tasks", b"seven-tasks"),
            "unknown leaderboard",
        ),
        (file_of("six-tasks", {"a": 1}).replace(b"topox-entry", b"topox-lab"), "format"),
    ],
)
def test_a_file_that_is_no_entry_gets_one_line(data: bytes, said: str) -> None:
    assert said in refusal(load_entry, data, "x.entry.json")


def test_the_command_ranks_a_folder(tmp_path, capsys) -> None:
    (tmp_path / "a.entry.json").write_bytes(file_of("six-tasks", planned(), "=1+1"))
    out = tmp_path / "board.csv"
    command = ["lab", "board", str(tmp_path), "--lab", "six-tasks", "--csv", str(out)]
    assert main(command) == 0
    assert "\n1,'=1+1,56.0,0.0,yes" in out.read_text()  # no formula
    capsys.readouterr()
    (tmp_path / "b.entry.json").write_text("[]")
    assert main([*command, "--json"]) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)["entries"][0]["time"] == 56 and "b.entry.json" in captured.err
    assert main(["lab", "board", str(tmp_path), "--lab", "windows"]) == 2


SIX = LABS["six-tasks"]
LATER = "2026-10-05T09:30:00Z"


def test_points_that_a_file_claims_are_not_believed() -> None:
    claimed = replace(answered(SIX, 1, 1), given={"W2": Worked((Attempt(AT, 3, points=1.0),), "")})
    read = taken_up(SIX, claimed, "edited.json")
    assert read.worked("W2").attempts[0].points == 0
    assert [closed(one, SIX.question("W2")) for one in (claimed, read)] == [True, False]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"lab": "crossover"}, "lab: must be 'six-tasks'"),
        ({"digest": "0" * 16}, "another version"),
        ({"versions": {"board": 2, "patience": 1}}, "another version"),
        ({"given": {"Z9": Worked()}}, "question Z9: is no question"),
        ({"given": {"P1": Worked()}}, "question P1: must be the answer of a predict screen"),
        ({"given": {"W2": Worked((Attempt(AT, "many", 0.0),))}}, "question W2"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_in_one_line(change, words: str) -> None:
    line = refusal(taken_up, SIX, replace(answered(SIX, 1, 1), **change), "x.json")
    assert words in line and line.startswith("x.json")


def test_of_two_tabs_the_earlier_lock_and_all_attempts_hold() -> None:
    start = begin(SIX, "c", "s", AT, 1)
    first = lock(SIX, start, "P1", 9, AT)
    second = lock(SIX, lock(SIX, start, "P1", 12, LATER), "P2", "x", LATER)
    for both in (together(first, second), together(second, first)):
        held = both.prediction("P1").value, both.prediction("P2").value, both.finished
        assert held == (9, "x", LATER)
    tried = attempt(SIX, lock(SIX, first, "P2", "y", AT), "W2", 3, AT)[0]
    twice = attempt(SIX, tried, "W2", 4, LATER)[0]
    assert len(together(tried, twice).worked("W2").attempts) == 2
    ended = give_up(SIX, tried, "W2", LATER)
    assert together(ended, twice).worked("W2").given_up == LATER


@pytest.mark.parametrize("lab", LABS.values(), ids=list(LABS))
def test_no_figure_may_compute_before_a_reveal_and_none_shows_what_is_still_asked(lab) -> None:
    """A prediction that is locked is still asked for, until all is answered that its reveal waits for."""
    stages, nothing = [screen.stage for screen in lab.screens], begin(lab, "c", "s", AT, 1)
    assert not any(may_compute(lab, nothing, k) for k, one in enumerate(stages) if one == "reveal")
    for passed in range(len(lab.screens) + 1):
        given = answered(lab, 1, passed)
        for place, screen in enumerate(lab.screens):
            reveal = stages.index("reveal", place) if "reveal" in stages[place:] else len(stages)
            rest = [q for one in lab.screens[passed:reveal] for q in one.questions]
            keys = {q.key for q in screen.questions if isinstance(q.key, str)}
            if any(q.stage != "explain" for q in rest):
                assert keys <= still_asked(lab, given, screen.instance)
    assert not any(still_asked(lab, given, screen.instance) for screen in lab.screens)


@pytest.mark.parametrize("lab", LABS.values(), ids=list(LABS))
def test_every_question_with_a_reveal_after_it_is_told_at_exactly_one(lab) -> None:
    done = answered(lab, 1, len(lab.screens))
    told = [name for at in range(len(lab.screens)) for name in revealed_on(lab, done, at)]
    last = max(at for at, screen in enumerate(lab.screens) if screen.stage == "reveal")
    assert told == [q.id for screen in lab.screens[:last] for q in screen.questions]
    assert all(revealed(lab, done, name).right for name in told)
