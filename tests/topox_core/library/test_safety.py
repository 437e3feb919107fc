"""Nothing that was kept is lost: not by writers at once, by one that is killed, by damage, or by another version."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from tests.real_inputs import ROOT
from tests.topox_core.library.records import filled, key, record
from topox_core.errors import InputError
from topox_core.library import location, opening
from topox_core.library.connections import Connections
from topox_core.library.opening import open_file
from topox_core.library.run_library import RunLibrary
from topox_core.library.schema import MIGRATIONS

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
        assert process.stdout is not None
        told = 0
        while told < 100:
            told = int(process.stdout.readline())
        assert reader.count() > told
        process.send_signal(signal.SIGKILL)
        told = max([told, *(int(line) for line in process.stdout if line.endswith("\n"))])
        process.wait()
    with RunLibrary.open(path) as library:
        assert library.notices == ()
        assert library.count() in (told + 1, told + 2)
        assert library.known([key(("a", told))])


# damage


def cut_in_half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def cut_to_the_first_page(path: Path) -> None:
    os.truncate(path, 4096)


def set_aside(folder: Path) -> list[Path]:
    return [one for one in folder.glob("*.damaged-*") if not one.name.endswith(("-wal", "-shm"))]


def overwrite_the_middle(path: Path) -> None:
    with path.open("r+b") as stream:
        stream.seek(path.stat().st_size // 2)
        stream.write(random.Random(0).randbytes(8192))


def zero_the_head(path: Path) -> None:
    with path.open("r+b") as stream:
        stream.write(bytes(100))


@pytest.mark.parametrize(
    "harm", [cut_in_half, overwrite_the_middle, zero_the_head, cut_to_the_first_page]
)
def test_a_damaged_library_is_set_aside_whole_and_said_so(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    path = filled(tmp_path / "runs.sqlite", 200)
    harm(path)
    damaged = path.read_bytes()
    with pytest.raises(InputError, match=r"is damaged \(.*\); `runs rescue` reads what is left"):
        RunLibrary.open(path, read_only=True)
    assert path.read_bytes() == damaged
    Path(f"{path}-wal").write_bytes(b"the log")
    with RunLibrary.open(path) as library:
        (said,) = library.notices
        (aside,) = set_aside(tmp_path)
        assert said.count("\n") == 0 and aside.name in said
        assert aside.read_bytes() == damaged
        assert Path(f"{aside}-wal").read_bytes() == b"the log"
        assert library.count() == 0
        library.add([record()])
    with RunLibrary.open(path) as library:
        assert (library.count(), library.notices) == (1, ())
    assert not list(tmp_path.glob("*.lock"))


def test_threads_that_find_damage_at_once_set_it_aside_once_and_lose_nothing(
    tmp_path: Path,
) -> None:
    path = filled(tmp_path / "runs.sqlite", 200)
    overwrite_the_middle(path)

    def work(number: int) -> None:
        library = RunLibrary.open(path)
        for step in range(10):
            library.add([record((number, step))])
            assert library.count() > 0

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(work, range(6)))
    with RunLibrary.open(path) as library:
        assert library.count() == 60
    assert len(set_aside(tmp_path)) == 1


def test_a_program_that_had_a_damaged_library_open_goes_on_with_the_new_one(
    tmp_path: Path,
) -> None:
    path = filled(tmp_path / "runs.sqlite", 1500)
    with RunLibrary.open(path) as library:
        overwrite_the_middle(path)
        cut_in_half(path)
        with pytest.raises(InputError, match=r"runs\.sqlite: is damaged"):
            list(library.each())
        writer(path, "b", 5).communicate()  # another program opens it, sets it aside, writes
        assert len(set_aside(tmp_path)) == 1
        for word in range(3):
            try:
                library.add([record(("late", word))])
            except InputError as error:
                assert "moved" in str(error) or "damaged" in str(error), error
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
    with pytest.raises(InputError, match="there is no such file"):
        RunLibrary.open(path, create=False)
    path.touch()
    with pytest.raises(InputError, match=r"runs\.sqlite: is empty"):
        RunLibrary.open(path, read_only=True)
    with RunLibrary.open(path) as library:
        library.add([record()])
    with RunLibrary.open(path, read_only=True) as library:
        assert library.count() == 1
        with pytest.raises(InputError, match="can only be read: opened for reading"):
            library.delete([1])
    with pytest.raises(InputError, match="it is no file"):
        RunLibrary.open(tmp_path)
    with pytest.raises(InputError, match="cannot be used: "):
        RunLibrary.open(path / "runs.sqlite")


# versions


ONE_MORE = "ALTER TABLE runs ADD COLUMN note TEXT"


def add_a_column(connection: sqlite3.Connection) -> None:
    connection.execute(ONE_MORE)


def fail_halfway(connection: sqlite3.Connection) -> None:
    connection.execute(ONE_MORE)
    connection.execute("SELECT * FROM nowhere")


def test_an_older_library_gets_the_tables_of_today_and_a_copy_is_kept(tmp_path: Path) -> None:
    path = filled(tmp_path / "runs.sqlite", 10)
    with pytest.raises(InputError, match="no such table: nowhere"):
        open_file(path, migrations=(*MIGRATIONS, fail_halfway))
    with RunLibrary.open(path) as library:  # a step that fails changes nothing
        library.add([record("more")])
        assert library.count() == 11
    path = filled(tmp_path / "older.sqlite", 10)
    opened = open_file(path, migrations=(*MIGRATIONS, add_a_column))
    with Connections(opened).reading() as connection:
        assert connection.execute("SELECT count(note), count(*) FROM runs").fetchone()[:] == (0, 10)
    with RunLibrary.open(tmp_path / "older.sqlite.version-1") as copy:
        assert copy.count() == 10


def test_a_library_of_a_newer_version_is_read_where_it_can_be_and_not_written(
    tmp_path: Path,
) -> None:
    path = filled(tmp_path / "runs.sqlite", 3)
    open_file(path, migrations=(*MIGRATIONS, add_a_column))
    content = path.read_bytes()
    with RunLibrary.open(path) as library:
        assert len(library.runs()) == 3
        (said,) = library.notices
        assert "made by a newer version (2, this one knows 1)" in said
        with pytest.raises(InputError, match="can only be read: made by a newer version"):
            library.add([record("more")])
    assert path.read_bytes() == content
    database(path, "ALTER TABLE runs RENAME COLUMN link TO page")
    with pytest.raises(InputError, match=r"was made by a newer version .* and cannot be read"):
        RunLibrary.open(path)


# places


def test_on_a_network_folder_no_log_is_kept_beside_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = (tmp_path / "home").resolve()
    folder.mkdir()
    mounts = tmp_path / "mounts"
    mounts.write_text(f"disk / ext4 rw 0 0\nserver:/x {folder} nfs4 rw 0 0\n")
    assert not location.on_network(tmp_path / "runs.sqlite", mounts)
    monkeypatch.setattr(opening, "on_network", lambda path: location.on_network(path, mounts))
    path = filled(folder / "runs.sqlite", 3)
    with RunLibrary.open(path) as library:
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
        with pytest.raises(InputError, match="another program has held it"):
            library.add([record("more")])
        assert library.count() == 1
        monkeypatch.setattr(opening, "BUSY_S", 60.0)
        patient = thread.submit(library.add, [record("more")])
        other.execute("ROLLBACK")
        assert len(patient.result(PATIENCE_S)) == 1
