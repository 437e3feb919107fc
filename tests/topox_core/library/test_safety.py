"""Nothing that was kept is lost: not by writers at once, by one that is killed, by damage, or by another version."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.patience import wait_until
from tests.topox_core.library.records import key, packed, record
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


def filled(path: Path, count: int = 300) -> Path:
    with RunLibrary.open(path) as library:
        library.add([record(number, result=packed("y" * 300)) for number in range(count)])
    return path


def test_processes_that_begin_and_write_one_library_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "new" / "runs.sqlite"
    writers = [writer(path, name, 300) for name in "abc"]
    assert [one.communicate()[1] for one in writers] == ["", "", ""]
    with RunLibrary.open(path) as library:
        assert library.count() == 900
        assert library.notices == ()
    assert sorted(one.name for one in path.parent.iterdir()) == ["runs.sqlite"]


def test_a_writer_that_is_killed_loses_nothing_that_it_had_kept(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    process = writer(path, "a", 100_000)
    assert process.stdout is not None
    told = 0
    while told < 200:
        told = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    told = max([told, *(int(line) for line in process.stdout if line.endswith("\n"))])
    process.wait()
    with RunLibrary.open(path) as library:
        assert library.notices == ()
        assert library.count() in (told + 1, told + 2)
        assert library.known([key(("a", told))])


def test_a_reader_sees_what_another_process_keeps(tmp_path: Path) -> None:
    path = filled(tmp_path / "runs.sqlite", 1)
    with RunLibrary.open(path) as library:
        writer(path, "a", 5).communicate()
        assert library.count() == 6


# damage


def cut_in_half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def overwrite_the_middle(path: Path) -> None:
    with path.open("r+b") as stream:
        stream.seek(path.stat().st_size // 2)
        stream.write(random.Random(0).randbytes(8192))


def zero_the_head(path: Path) -> None:
    with path.open("r+b") as stream:
        stream.write(bytes(100))


def zero_the_first_page(path: Path) -> None:
    with path.open("r+b") as stream:
        stream.write(bytes(4096))


def cut_to_a_few_bytes(path: Path) -> None:
    os.truncate(path, 50)


def cut_to_the_first_page(path: Path) -> None:
    os.truncate(path, 4096)


DAMAGE = [
    cut_in_half,
    overwrite_the_middle,
    zero_the_head,
    zero_the_first_page,
    cut_to_a_few_bytes,
    cut_to_the_first_page,
]


def set_aside(folder: Path) -> list[Path]:
    logs = ("-wal", "-shm")
    return [one for one in folder.glob("*.damaged-*") if not one.name.endswith(logs)]


@pytest.mark.parametrize("harm", DAMAGE)
def test_a_damaged_library_is_set_aside_whole_and_said_so(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    path = filled(tmp_path / "runs.sqlite")
    harm(path)
    damaged = path.read_bytes()
    with pytest.raises(InputError, match=r"is damaged \(.*\); `runs rescue` reads what is left"):
        RunLibrary.open(path, read_only=True)
    assert path.read_bytes() == damaged
    with RunLibrary.open(path) as library:
        (said,) = library.notices
        (aside,) = set_aside(tmp_path)
        assert said.count("\n") == 0 and aside.name in said
        assert aside.read_bytes() == damaged
        assert library.count() == 0
        library.add([record()])
    with RunLibrary.open(path) as library:
        assert (library.count(), library.notices) == (1, ())
    assert not list(tmp_path.glob("*.lock"))


def test_the_log_of_a_damaged_library_goes_with_it(tmp_path: Path) -> None:
    path = filled(tmp_path / "runs.sqlite")
    zero_the_head(path)
    Path(f"{path}-wal").write_bytes(b"the log")
    RunLibrary.open(path).close()
    (aside,) = tmp_path.glob("runs.sqlite.damaged-*-wal")
    assert aside.read_bytes() == b"the log"


def test_processes_that_find_damage_at_once_set_it_aside_once(tmp_path: Path) -> None:
    path = filled(tmp_path / "runs.sqlite")
    overwrite_the_middle(path)
    libraries: list[RunLibrary] = []

    def work(number: int) -> None:
        library = RunLibrary.open(path)
        library.add([record(("after", number))])
        libraries.append(library)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(libraries) == 6
    assert libraries[0].count() == 6
    assert len(set_aside(tmp_path)) == 1


def test_a_program_that_had_a_damaged_library_open_goes_on_with_the_new_one(
    tmp_path: Path,
) -> None:
    path = filled(tmp_path / "runs.sqlite", 3000)
    with RunLibrary.open(path) as library:
        assert library.count() == 3000
        overwrite_the_middle(path)
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
        assert library.known([key(("b", number)) for number in range(5)]).keys() == {
            key(("b", number)) for number in range(5)
        }


def test_damage_that_comes_while_a_library_is_open_is_one_line(tmp_path: Path) -> None:
    path = filled(tmp_path / "runs.sqlite", 3000)
    with RunLibrary.open(path) as library:
        overwrite_the_middle(path)
        cut_in_half(path)
        with pytest.raises(InputError, match=r"runs\.sqlite: is damaged"):
            for _ in library.each():
                pass


@pytest.mark.parametrize(
    "content", [b"fabric,iteration\n", b"{}", bytes(5000), b"SQLite format 4" + bytes(5000)]
)
def test_a_file_that_is_not_ours_stays_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"table\.csv: is no run library"):
        RunLibrary.open(path)
    assert path.read_bytes() == content
    assert [one.name for one in tmp_path.iterdir()] == ["table.csv"]


def test_another_program_s_database_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "browser.sqlite"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE runs (id)")
    content = path.read_bytes()
    with pytest.raises(InputError, match="is no run library, but another SQLite file"):
        RunLibrary.open(path)
    assert path.read_bytes() == content


def test_a_library_with_a_trigger_or_view_is_refused(tmp_path: Path) -> None:
    path = filled(tmp_path / "runs.sqlite", 1)
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TRIGGER more AFTER INSERT ON runs BEGIN DELETE FROM runs; END")
    with pytest.raises(
        InputError, match="is no run library: its tables are not those of version 1"
    ):
        RunLibrary.open(path)


def test_an_empty_file_becomes_a_library_unless_it_is_only_to_be_read(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    with pytest.raises(InputError, match="there is no such file"):
        RunLibrary.open(path, create=False)
    path.touch()
    with pytest.raises(InputError, match=r"runs\.sqlite: is empty"):
        RunLibrary.open(path, read_only=True)
    with RunLibrary.open(path) as library:
        assert library.count() == 0
    with pytest.raises(InputError, match="it is no file"):
        RunLibrary.open(tmp_path)


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be used: "):
        RunLibrary.open(tmp_path / "file" / "runs.sqlite")


# versions


def add_a_column(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE runs ADD COLUMN note TEXT")


def fail_halfway(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE runs ADD COLUMN note TEXT")
    connection.execute("SELECT * FROM nowhere")


def test_an_older_library_gets_the_tables_of_today_and_a_copy_is_kept(tmp_path: Path) -> None:
    path = filled(tmp_path / "runs.sqlite", 10)
    opened = open_file(path, migrations=(*MIGRATIONS, add_a_column))
    with Connections(opened).reading() as connection:
        assert connection.execute("SELECT count(note), count(*) FROM runs").fetchone()[:] == (0, 10)
    with RunLibrary.open(tmp_path / "runs.sqlite.version-1") as copy:
        assert copy.count() == 10


def test_a_step_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = filled(tmp_path / "runs.sqlite", 10)
    with pytest.raises(InputError, match="no such table: nowhere"):
        open_file(path, migrations=(*MIGRATIONS, fail_halfway))
    with RunLibrary.open(path) as library:
        assert library.count() == 10
        library.add([record("more")])


def test_a_library_of_a_newer_version_is_read_and_not_written(tmp_path: Path) -> None:
    path = filled(tmp_path / "runs.sqlite", 3)
    open_file(path, migrations=(*MIGRATIONS, add_a_column))
    content = path.read_bytes()
    with RunLibrary.open(path) as library:
        assert library.count() == 3 and len(library.runs()) == 3
        (said,) = library.notices
        assert "made by a newer version (2, this one knows 1)" in said
        with pytest.raises(InputError, match="can only be read: made by a newer version"):
            library.add([record("more")])
    assert path.read_bytes() == content


def test_a_newer_version_that_lacks_what_this_one_reads_is_refused(tmp_path: Path) -> None:
    path = filled(tmp_path / "runs.sqlite", 3)

    def drop(connection: sqlite3.Connection) -> None:
        connection.execute("ALTER TABLE runs RENAME COLUMN link TO page")

    open_file(path, migrations=(*MIGRATIONS, drop))
    with pytest.raises(InputError, match=r"was made by a newer version .* and cannot be read"):
        RunLibrary.open(path)


# places


def test_a_library_that_is_only_to_be_read_is_not_written(tmp_path: Path) -> None:
    path = filled(tmp_path / "runs.sqlite", 3)
    with RunLibrary.open(path, read_only=True) as library:
        assert library.count() == 3
        with pytest.raises(InputError, match="can only be read: opened for reading"):
            library.delete([1])


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may write anywhere")
def test_a_library_in_a_folder_of_somebody_else_s_can_be_read(tmp_path: Path) -> None:
    path = filled(tmp_path / "runs.sqlite", 3)
    tmp_path.chmod(0o500)
    try:
        with RunLibrary.open(path) as library:
            assert library.count() == 3
            with pytest.raises(InputError, match="its file or folder cannot be written to"):
                library.add([record("more")])
    finally:
        tmp_path.chmod(0o700)


def test_on_a_network_folder_no_log_is_kept_beside_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "on_network", lambda _: True)
    path = filled(tmp_path / "runs.sqlite", 3)
    with RunLibrary.open(path) as library:
        library.add([record("more")])
        assert [one.name for one in tmp_path.iterdir()] == ["runs.sqlite"]
        with closing(sqlite3.connect(path)) as other:
            assert other.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert library.count() == 4


def test_a_network_folder_is_told_by_the_mount_nearest_to_it(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    folder = (tmp_path / "home").resolve()
    (folder / "local").mkdir(parents=True)
    mounts.write_text(
        f"disk / ext4 rw 0 0\nserver:/x {folder} nfs4 rw 0 0\ntmp {folder}/local tmpfs rw 0 0\n"
    )
    assert location.on_network(folder / "runs.sqlite", mounts)
    assert not location.on_network(folder / "local" / "runs.sqlite", mounts)
    assert not location.on_network(tmp_path / "runs.sqlite", mounts)
    assert not location.on_network(folder / "runs.sqlite", tmp_path / "none")


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {}, "/home/a/.local/share"),
        ("linux", {"XDG_DATA_HOME": "/data"}, "/data"),
        ("linux", {"XDG_DATA_HOME": "relative"}, "/home/a/.local/share"),
        ("darwin", {}, "/home/a/Library/Application Support"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local"),
        ("win32", {}, "/home/a/AppData/Local"),
    ],
)
def test_the_library_lies_in_the_data_folder_of_the_user(
    platform: str, variables: dict[str, str], expected: str
) -> None:
    assert location.data_folder(platform, variables, Path("/home/a")) == Path(expected)


def test_a_variable_names_another_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TOPOX_LIBRARY", str(tmp_path / "mine.sqlite"))
    with RunLibrary.open() as library:
        assert library.path == tmp_path / "mine.sqlite"


def test_a_writer_waits_for_another_and_says_so_where_it_waits_in_vain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "BUSY_S", 0.2)
    path = filled(tmp_path / "runs.sqlite", 1)
    with RunLibrary.open(path) as library, closing(sqlite3.connect(path)) as other:
        other.isolation_level = None
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(InputError, match="another program has held it"):
            library.add([record("more")])
        assert library.count() == 1
        added: list[int] = []
        monkeypatch.setattr(opening, "BUSY_S", 60.0)
        patient = threading.Thread(target=lambda: added.extend(library.add([record("more")])))
        patient.start()
        other.execute("ROLLBACK")
        wait_until(lambda: not patient.is_alive())
        assert len(added) == 1
