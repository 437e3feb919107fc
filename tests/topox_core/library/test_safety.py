"""Nothing that was kept is lost by whatever writes, dies, moves, damages or comes from elsewhere; what is bad is one line."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from itertools import islice
from pathlib import Path

import pytest

from tests.conftest import some
from tests.patience import PATIENCE_S
from tests.real_inputs import ROOT
from tests.refusal import refusal
from tests.topox_core.library.records import filled, inputs_of, key, record
from topox_core.errors import InputError
from topox_core.library import opening
from topox_core.library.rows import RunFilter
from topox_core.library.run_library import RunLibrary
from topox_core.library.tables import runs_csv

WRITER = """
import sys
from pathlib import Path
from tests.topox_core.library.records import record, packed
from topox_core.library.run_library import RunLibrary
path, name, count = sys.argv[1:]
library = RunLibrary.open(Path(path))
for number in range(int(count)):
    library.add([record((name, number), result=packed("x" * 500))])
    print(number, flush=True)
"""


def writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), name, str(count)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_processes_that_begin_and_write_one_library_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "new" / "runs.sqlite"
    writers = [writer(path, name, 100) for name in "abc"]
    assert [one.communicate()[1] for one in writers] == ["", "", ""]
    with RunLibrary.open(path) as library:
        assert (library.count(), library.notices) == (300, ())
    assert [one.name for one in path.parent.iterdir()] == ["runs.sqlite"]


def test_a_writer_that_is_killed_loses_nothing_that_it_had_kept(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    with RunLibrary.open(path) as reader:
        process = writer(path, "a", 100_000)
        told = max(int(line) for line in islice(process.stdout, 100))
        assert reader.count() > told
        process.send_signal(signal.SIGKILL)
        told = max([told, *(int(line) for line in process.stdout if line.endswith("\n"))])
        process.wait()
    with RunLibrary.open(path) as library:
        assert library.notices == ()
        assert library.count() in (told + 1, told + 2)
        assert library.known([key(("a", told))])


# damage


def overwrite(path: Path, at: int, content: bytes) -> None:
    with path.open("r+b") as stream:
        stream.seek(at)
        stream.write(content)


def overwrite_the_middle(path: Path) -> None:
    overwrite(path, path.stat().st_size // 2, random.Random(0).randbytes(8192))


def set_aside(folder: Path) -> list[Path]:
    return [one for one in folder.glob("*.damaged-*") if not one.name.endswith(("-wal", "-shm"))]


HARMS: dict[str, Callable[[Path], None]] = {
    "cut in half": lambda path: os.truncate(path, path.stat().st_size // 2),
    "cut to the first page": lambda path: os.truncate(path, 4096),
    "overwritten in the middle": overwrite_the_middle,
    "zeros at its head": lambda path: overwrite(path, 0, bytes(100)),
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_library_is_set_aside_whole_and_said_so(tmp_path: Path, harm: str) -> None:
    path = filled(tmp_path / "runs.sqlite", 200)
    HARMS[harm](path)
    damaged = path.read_bytes()
    with pytest.raises(InputError, match=r"is damaged \(.*\)"):
        RunLibrary.open(path, read_only=True)
    assert path.read_bytes() == damaged
    Path(f"{path}-wal").write_bytes(b"the log")
    with RunLibrary.open(path) as library:
        (said,), (aside,) = library.notices, set_aside(tmp_path)
        assert said.count("\n") == 0 and aside.name in said
        assert [aside.read_bytes(), Path(f"{aside}-wal").read_bytes()] == [damaged, b"the log"]
        assert library.count() == 0
        library.add([record()])
    with RunLibrary.open(path) as library:
        assert (library.count(), library.notices) == (1, ())


def test_threads_that_find_damage_at_once_set_it_aside_once_and_lose_nothing(
    tmp_path: Path,
) -> None:
    path = filled(tmp_path / "runs.sqlite", 200)
    overwrite_the_middle(path)

    def work(number: int) -> None:
        library = RunLibrary.open(path)
        for step in range(10):
            library.add([record((number, step))])

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(work, range(6)))
    with RunLibrary.open(path) as library:
        assert (library.count(), len(set_aside(tmp_path))) == (60, 1)


def test_a_program_that_had_a_damaged_library_open_goes_on_with_the_new_one(
    tmp_path: Path,
) -> None:
    path = filled(tmp_path / "runs.sqlite", 1500)
    with RunLibrary.open(path) as library:
        overwrite_the_middle(path)
        HARMS["cut in half"](path)
        assert "runs.sqlite: is damaged" in refusal(list, library.each())
        writer(path, "b", 5).communicate()  # another program opens it, sets it aside, writes
        with suppress(InputError):  # which says that it was moved
            library.add([record(("late", 1))])
        library.add([record(("late", 2))])
        assert library.known([key(("late", 2))])
    with RunLibrary.open(path) as library:
        assert library.notices == ()
        assert len(library.known([key(("b", number)) for number in range(5)])) == 5


def database(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute(statement)


TRIGGER = "CREATE TRIGGER more AFTER INSERT ON runs BEGIN DELETE FROM runs; END"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path.write_bytes(b"fabric,iteration\n"), ""),
        (lambda path: path.write_bytes(bytes(5000)), ""),
        (lambda path: path.write_bytes(b"SQLite format 4" + bytes(5000)), ""),
        (lambda path: database(path, "CREATE TABLE runs (id)"), ", but another SQLite file"),
        (
            lambda path: database(filled(path, 1), TRIGGER),
            ": its tables are not those of version 1",
        ),
    ],
    ids=["a table", "zeros", "almost SQLite", "another program's", "with a trigger"],
)
def test_a_file_that_is_not_ours_stays_as_it_is(
    tmp_path: Path, make: Callable[[Path], object], words: str
) -> None:
    path = tmp_path / "table.csv"
    make(path)
    content = path.read_bytes()
    with pytest.raises(InputError, match=rf"table\.csv: is no run library{words}"):
        RunLibrary.open(path)
    assert path.read_bytes() == content
    assert [one.name for one in tmp_path.iterdir()] == ["table.csv"]


def test_an_empty_file_becomes_a_library_unless_it_is_only_to_be_read(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    path.touch()
    for place, how, words in (
        (tmp_path / "none.sqlite", {"create": False}, "there is no such file"),
        (path, {"read_only": True}, "runs.sqlite: is empty"),
        (tmp_path, {}, "it is no file"),
        (path / "runs.sqlite", {}, "cannot be used: "),
    ):
        assert words in refusal(RunLibrary.open, place, **how)
    filled(path, 1)
    with RunLibrary.open(path, read_only=True) as library:
        assert library.count() == 1
        assert "can only be read: opened for reading" in refusal(library.delete, [1])


# versions


def test_a_library_of_another_version_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    path = filled(tmp_path / "runs.sqlite", 3)
    for version, words in (
        (2, "was made by a newer version (2, this one knows 1) and cannot be read"),
        (0, "is no run library: its tables are not those of version 1"),
    ):
        database(path, f"PRAGMA user_version = {version}")
        content = path.read_bytes()
        assert words in refusal(RunLibrary.open, path)
        assert path.read_bytes() == content
    assert [one.name for one in tmp_path.iterdir()] == ["runs.sqlite"]


# places


def test_on_a_network_folder_no_log_is_kept_beside_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, mounts = (tmp_path / "home").resolve(), tmp_path / "mounts"
    folder.mkdir()
    mounts.write_text(f"disk / ext4 rw 0 0\nserver:/x {folder} nfs4 rw 0 0\n")
    assert not opening.on_network(tmp_path / "runs.sqlite", mounts)
    monkeypatch.setattr(opening, "on_network", partial(opening.on_network, mounts=mounts))
    with RunLibrary.open(filled(folder / "runs.sqlite", 3)) as library:
        library.add([record("more")])
        assert [one.name for one in folder.iterdir()] == ["runs.sqlite"]
        assert library.count() == 4


def test_a_writer_waits_for_another_and_says_so_where_it_waits_in_vain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = filled(tmp_path / "runs.sqlite", 1)
    with (
        RunLibrary.open(path) as library,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
        ThreadPoolExecutor(1) as thread,
    ):
        other.execute("BEGIN IMMEDIATE")
        monkeypatch.setattr(opening, "BUSY_S", 0.2)
        assert "another program has held it" in refusal(library.add, [record("more")])
        assert library.count() == 1
        monkeypatch.setattr(opening, "BUSY_S", 60.0)
        patient = thread.submit(library.add, [record("more")])
        other.execute("ROLLBACK")
        assert len(patient.result(PATIENCE_S)) == 1


# from elsewhere


def contents(library: RunLibrary) -> dict[str, object]:
    return {one.record.key: (one.record, library.result(one.id)) for one in library.each()}


def test_an_exported_library_is_whole_or_holds_what_was_asked_for_and_what_belongs_to_it(
    tmp_path: Path,
) -> None:
    with RunLibrary.open(filled(tmp_path / "a.sqlite", 250)) as source:
        whole = contents(source)
        source.copy_to(tmp_path / "b.sqlite")
        assert "b.sqlite: is there already" in refusal(source.copy_to, tmp_path / "b.sqlite")
        slow = RunFilter(shortest_ms=0.5)
        source.copy_to(tmp_path / "part.sqlite", slow)
        source.copy_to(tmp_path / "none.sqlite", RunFilter(subject="nothing"))
        several = source.count(slow)
    with RunLibrary.open(tmp_path / "b.sqlite", read_only=True) as exported:
        assert contents(exported) == whole
        (study,) = exported.studies()
        assert study.record == {"axes": [1, 2]}
        assert study.kept == exported.count(RunFilter(study=study.id)) == 250
    with RunLibrary.open(tmp_path / "part.sqlite", read_only=True) as part:
        assert part.count() == several < 250 and contents(part).items() <= whole.items()
    with RunLibrary.open(tmp_path / "none.sqlite", read_only=True) as none:
        assert (none.count(), none.studies(), inputs_of(none)) == (0, [], [])
    # Nothing is left in it of what was taken out.
    assert b"race" not in (tmp_path / "none.sqlite").read_bytes()
    assert not list(tmp_path.glob(".topox-*"))


def read_all(path: Path) -> None:
    with RunLibrary.open(path, create=False, read_only=True) as library:
        for one in library.each():
            library.result(one.id)
        for study in library.studies():
            list(library.each(RunFilter(study=study.id)))
        for digest in inputs_of(library):
            library.input(digest)
        runs_csv(library)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return filled(tmp_path_factory.mktemp("whole") / "a.sqlite", 40).read_bytes()


def harmed(content: bytes, case: int) -> bytes:
    """Return a file with some bytes overwritten, taken out or put in."""
    drawn, data = random.Random(case), bytearray(content)
    for _ in range(drawn.choice((1, 1, 3, 30))):
        at = drawn.randrange(len(data) if drawn.random() < 0.8 else 100)
        length, kind = drawn.choice((1, 1, 4, 100)), drawn.random()
        out, put = length * (kind < 0.9), length * (kind < 0.8 or kind >= 0.9)
        data[at : at + out] = drawn.randbytes(put)
    return bytes(data)


def test_a_harmed_library_is_read_or_refused_in_one_line(tmp_path: Path, whole: bytes) -> None:
    said = set()
    for case in some(range(200), quick=20):
        path = tmp_path / f"{case}.sqlite"
        path.write_bytes(harmed(whole, case))
        try:
            said.add(read_all(path))
        except InputError as error:
            said.add(str(error))
            assert "\n" not in str(error) and len(str(error)) < 400
    assert None in said and len(said) > 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("UPDATE runs SET settings = '[1]' WHERE id = 5", "run 5, field settings: must be a JSON"),
        ("UPDATE runs SET measures = '{' WHERE id = 5", "run 5, field measures: must be a JSON"),
        (
            'UPDATE runs SET measures = \'{"gap": "x"}\' WHERE id = 5',
            "run 5, field measures: holds",
        ),
        ("UPDATE runs SET iteration_ms = 7 WHERE id = 5", "run 5, field iteration_ms: is not the"),
        ("UPDATE runs SET key = 'x' WHERE id = 5", "run 5, field key: must be a SHA-256"),
        ("UPDATE runs SET started = 'x' WHERE id = 5", "run 5, field started: must be a number"),
        ("UPDATE runs SET subject = x'00' WHERE id = 5", "run 5, field subject: must be text"),
        ("UPDATE runs SET seed = 'x' WHERE id = 5", "run 5, field seed: must be a whole number"),
        ("UPDATE results SET content = x'00' WHERE run = 5", "is damaged"),
        ("UPDATE results SET content = 'text' WHERE run = 5", "is damaged"),
        ("DELETE FROM results WHERE run = 5", "run 5: its result is damaged"),
        ("UPDATE inputs SET content = x'00'", ": is damaged"),
        ("UPDATE studies SET record = x'00'", "study 1: is damaged"),
        ("UPDATE studies SET points = 'many'", "study 1, field points: is damaged"),
    ],
)
def test_a_library_with_contents_that_none_of_ours_has_is_refused(
    tmp_path: Path, whole: bytes, change: str, words: str
) -> None:
    path = tmp_path / "a.sqlite"
    path.write_bytes(whole)
    with closing(sqlite3.connect(path)) as other, other:
        assert other.execute(change).rowcount == 1
    assert words in refusal(read_all, path)
