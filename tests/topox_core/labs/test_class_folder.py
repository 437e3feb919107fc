"""The folder of a class: whole files by seed, signed; nobody's answers over another's; limits; nothing but ours deleted."""

import pytest

from tests.labs_answered import LABS, at, solved
from topox_core.cli.main import main
from topox_core.errors import InputError
from topox_core.labs import class_folder
from topox_core.labs.answers_file import is_signed, load_answers
from topox_core.labs.class_folder import (
    KEY_FILE,
    ClassFolder,
    KeptFile,
    clean,
    read_secret,
    secret_for,
)
from topox_core.labs.folder import ENDING, grade_folder
from topox_core.labs.generators.generator import seed_of
from topox_core.labs.student import begin, lock

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
    with pytest.raises(InputError, match="is missing"):
        clean(folder.path)  # no class folder any more: nothing in it is ours
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
