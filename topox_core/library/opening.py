"""Opening the file of a library: where it lies, whose it is, whether it is whole, and what becomes of a damaged one.

A file that is not ours is refused and stays as it is. A damaged one is renamed and otherwise left
alone; an empty library takes its place.
"""

import os
import sqlite3
import stat
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from topox_core.errors import InputError, one_line, refuse_if
from topox_core.io.content import why

FILE_NAME = "runs.sqlite"
VARIABLE = "TOPOX_LIBRARY"
# Of Linux: file systems that another machine may write to at the same time.
_NETWORK = (
    *("9p", "afs", "beegfs", "ceph", "cifs", "fuse.glusterfs", "fuse.rclone", "fuse.sshfs", "gfs2"),
    *(
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "ocfs2",
        "smb2",
        "smb3",
        "smbfs",
        "virtiofs",
    ),
)


def default_path() -> Path:
    """Return the file of the library: ``TOPOX_LIBRARY`` if set, else one in the user's data folder.

    That folder is ``$XDG_DATA_HOME`` or ``~/.local/share``, on macOS ``~/Library/Application
    Support``, on Windows ``%LOCALAPPDATA%``.
    """
    if given := os.environ.get(VARIABLE):
        return Path(given).expanduser()
    return own_folder() / FILE_NAME


def own_folder() -> Path:
    """Return the workbench's folder among the user's data."""
    return data_folder(sys.platform, os.environ, Path.home()) / "topox-workbench"


def data_folder(platform: str, variables: Mapping[str, str], home: Path) -> Path:
    """Return the folder for a user's data, by ``sys.platform`` and environment."""
    if platform == "darwin":
        return home / "Library" / "Application Support"
    windows = platform == "win32"
    given = variables.get("LOCALAPPDATA" if windows else "XDG_DATA_HOME", "")
    if given and (windows or given.startswith("/")):
        return Path(given)  # the XDG rules ignore a relative one
    return home / "AppData" / "Local" if windows else home / ".local" / "share"


def on_network(path: Path, mounts: Path = Path("/proc/self/mounts")) -> bool:
    """Return whether a file lies on a network file system, as far as Linux tells; False where it does not."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
        folder = path.parent.resolve()
    except OSError:
        return False
    kinds: dict[Path, str] = {}
    for line in lines:
        fields = line.split()
        if len(fields) > 2:  # a later mount hides an earlier one at the same place
            kinds[Path(fields[1].replace("\\040", " "))] = fields[2]
    nearest = next((one for one in (folder, *folder.parents) if one in kinds), None)
    return nearest is not None and kinds[nearest] in _NETWORK


# "TOPX": a file says by it that it is a library of ours.
APPLICATION_ID = 0x544F5058

# Of the tables below; a file of another version is refused and stays as it is.
VERSION = 1
# ``measures`` holds every measure; the columns before it repeat those that runs are filtered by.
# ``result_bytes`` is null where no result was kept: a result that is missing is known to be lost.
# Ids are never used again, so that a link to a deleted run leads to no other run.
_TABLES = (
    """CREATE TABLE studies (
        id INTEGER PRIMARY KEY AUTOINCREMENT, digest TEXT NOT NULL, name TEXT NOT NULL, record BLOB NOT NULL,
        points INTEGER NOT NULL, created REAL NOT NULL, version TEXT NOT NULL, state TEXT NOT NULL,
        UNIQUE (digest, version))""",
    """CREATE TABLE inputs (
        digest TEXT PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, bytes INTEGER NOT NULL, content BLOB NOT NULL)""",
    """CREATE TABLE runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, version TEXT NOT NULL, kind TEXT NOT NULL,
        subject TEXT NOT NULL, name TEXT NOT NULL, graph TEXT NOT NULL, cluster TEXT NOT NULL, seed INTEGER,
        host TEXT NOT NULL, started REAL NOT NULL, wall_s REAL NOT NULL, status TEXT NOT NULL, stopped_by TEXT NOT NULL,
        iteration_ms REAL, bound_ms REAL, gap REAL, dark_share REAL, changes REAL, dollars REAL, watts REAL,
        settings TEXT NOT NULL, measures TEXT NOT NULL, message TEXT NOT NULL, link TEXT NOT NULL, result_bytes INTEGER,
        UNIQUE (key, version))""",
    # Apart from the runs, so that filters do not read them.
    """CREATE TABLE results (
        run INTEGER PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE, content BLOB NOT NULL)""",
    # A run may be a point of several studies, and several points of a study may be one run.
    """CREATE TABLE study_points (
        study INTEGER NOT NULL REFERENCES studies (id) ON DELETE CASCADE, point INTEGER NOT NULL,
        run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE, PRIMARY KEY (study, point)) WITHOUT ROWID""",
    "CREATE INDEX runs_started ON runs (started)",
    "CREATE INDEX runs_subject ON runs (subject, graph, started)",
    "CREATE INDEX runs_graph ON runs (graph, started)",
    "CREATE INDEX runs_iteration ON runs (iteration_ms)",
    "CREATE INDEX points_run ON study_points (run)",
)


def make_tables(connection: sqlite3.Connection) -> None:
    """Make the tables of an empty library, in one transaction with their version."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have done it while this one waited.
        if user_version(connection) == 0:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            for statement in _TABLES:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def user_version(connection: sqlite3.Connection) -> int:
    """Return the version of the tables in a file; 0 for an empty one."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def has_the_tables(connection: sqlite3.Connection) -> bool:
    """Return whether a file holds exactly our tables: no view or trigger runs when it is read."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as expected:
        make_tables(expected)
        return _objects(expected) == _objects(connection)


def _objects(connection: sqlite3.Connection) -> set[tuple[str, str, str | None]]:
    found = connection.execute("SELECT type, name, sql FROM sqlite_master")
    # sqlite_stat tables are what ANALYZE leaves behind.
    return {row for row in found if not row[1].startswith("sqlite_stat")}


BUSY_S = 10.0
# One thread at a time checks a library and sets it aside.
_CHECKING = threading.Lock()
# Every page is checked at opening, 1.5 s for each GB; larger files are opened unchecked.
MAX_CHECKED_BYTES = 1 << 30
# No cell of ours is larger; SQLite's own limit is 1 GB.
MAX_CELL_BYTES = 200 << 20
SIDE_FILES = ("-wal", "-shm", "-journal")
MAGIC = b"SQLite format 3\0"
_HEADER = 100
# One of them is in the first MB of every library of ours, whatever became of its head.
_OUR_WORDS, _OUR_HEAD = (b"runs_started", b'"iteration_ms":'), 1 << 20
DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


@dataclass(frozen=True)
class OpenedFile:
    """How a library's file is opened, the same for every connection to it.

    Attributes
    ----------
    read_only
        Why it can only be read; empty if it can be written to.
    immutable
        Whether nobody can change it, so that SQLite needs no file beside it.
    wal
        Whether changes go to a log beside it (WAL), which does not work on network folders.
    notices
        What the user must be told, a line each.
    """

    path: Path
    read_only: str = ""
    immutable: bool = False
    wal: bool = True
    notices: tuple[str, ...] = ()

    def connect(self) -> sqlite3.Connection:
        """Return a new connection, which any one thread at a time may use.

        Raises
        ------
        InputError
            If the file cannot be opened.
        """
        with errors_of(self.path):
            connection = _connect(self.path, "ro" if self.read_only else "rw", self.immutable)
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(f"PRAGMA synchronous = {'NORMAL' if self.wal else 'FULL'}")
        connection.row_factory = sqlite3.Row
        return connection


def open_file(
    path: Path | None = None,
    create: bool = True,
    read_only: bool = False,
) -> OpenedFile:
    """Make a library ready: begin it if there is none, check it, set it aside if it is damaged.

    Parameters
    ----------
    path
        None stands for :func:`default_path`.
    create
        Whether a library is begun where there is none.
    read_only
        Whether it is only to be read: then a damaged one is an error and stays where it is.

    Raises
    ------
    InputError
        If there is no file and none is to be begun, the file is no library, or the folder cannot
        be used.
    """
    path = default_path() if path is None else path
    with errors_of(path):
        if create and not read_only:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if read_only or not os.access(path.parent, os.W_OK):
            _must_be_there(path, create=False)
            if damage := damage_of(path):
                raise _damaged(path, damage)
            return _ready(path, read_only)
        with _CHECKING:
            notices: tuple[str, ...] = ()
            # What another program does meanwhile may look like damage: twice it does not.
            if _must_be_there(path, create) and damage_of(path) and (damage := damage_of(path)):
                notices = (_set_aside(path, damage),)
            if not _must_be_there(path, create=True):
                with closing(_connect(path, "rwc")) as connection:
                    make_tables(connection)
            return _ready(path, read_only, notices)


def _must_be_there(path: Path, create: bool) -> bool:
    """Return whether a file holds anything; refuse one that does not, unless it may be begun."""
    try:
        status = path.stat()
    except FileNotFoundError:
        if create:
            return False
        raise InputError("there is no such file", file=str(path)) from None
    refuse_if(
        (not stat.S_ISREG(status.st_mode), "is no run library: it is no file"), file=str(path)
    )
    refuse_if((status.st_size == 0 and not create, "is empty"), file=str(path))
    return status.st_size > 0


def _ready(path: Path, read_only: bool, notices: tuple[str, ...] = ()) -> OpenedFile:
    """Refuse a whole file that has other tables than ours, and choose how its changes are written."""
    reason = "" if _may_write(path) else "its file or folder cannot be written to"
    reason = "opened for reading" if read_only else reason
    connection, immutable = _for_reading(path) if reason else (_connect(path, "rw"), False)
    with closing(connection):
        version = user_version(connection)
        if version > VERSION:
            newer = f"was made by a newer version ({version}, this one knows {VERSION})"
            raise InputError(f"{newer} and cannot be read", file=str(path))
        refuse_if(
            (
                version != VERSION or not has_the_tables(connection),
                f"is no run library: its tables are not those of version {VERSION}",
            ),
            file=str(path),
        )
        wal = True if reason else _choose_log(connection, path)
    return OpenedFile(path, reason, immutable, wal, notices)


def _may_write(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def _for_reading(path: Path) -> tuple[sqlite3.Connection, bool]:
    """Return a connection that only reads, and whether the file had to be taken for unchangeable."""
    connection = _connect(path, "ro")
    try:
        connection.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.OperationalError:  # a log beside it is needed and cannot be made
        connection.close()
        return _connect(path, "ro", immutable=True), True
    return connection, False


def _choose_log(connection: sqlite3.Connection, path: Path) -> bool:
    """Write changes to a log beside the file (WAL), so that readers and a writer do not wait; return whether it does."""
    wanted = "delete" if on_network(path) else "wal"
    end = time.monotonic() + BUSY_S
    while True:
        try:
            mode = connection.execute(f"PRAGMA journal_mode = {wanted}").fetchone()[0]
            return bool(mode == "wal")
        except sqlite3.OperationalError as error:
            # SQLite does not wait for others here, as it does elsewhere.
            busy = code_of(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            if not busy or time.monotonic() > end:
                return bool(connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal")
            time.sleep(0.02)


def damage_of(path: Path) -> str:
    """Return what is wrong with a library's file; empty if it is whole.

    SQLite reads it, not we: a process that opens and closes a file of its own accord loses the locks
    that SQLite holds on it.

    Raises
    ------
    InputError
        If the file is not ours.
    """
    try:
        with closing(_for_checking(path)) as connection:
            if path.stat().st_size < _HEADER:  # SQLite takes it for empty
                return _damage_of_ours(path, "it is cut short")
            refuse_if(
                (
                    connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID,
                    "is no run library, but another SQLite file",
                ),
                file=str(path),
            )
            if path.stat().st_size > MAX_CHECKED_BYTES:
                return ""
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            return "" if found == "ok" else one_line(str(found), 120)
    except sqlite3.DatabaseError as error:
        if code_of(error) not in DAMAGE:
            raise
        return _damage_of_ours(path, str(error))


def _for_checking(path: Path) -> sqlite3.Connection:
    """Return a connection that changes nothing and leaves nothing behind.

    One that may write would carry the log of a damaged file into it and delete the log; where there
    is none, only such a one clears away its own.
    """
    if not _may_write(path):
        return _for_reading(path)[0]
    if path.with_name(f"{path.name}-wal").exists():
        connection = _connect(path, "ro")
        try:
            connection.execute("SELECT count(*) FROM sqlite_master")
            return connection
        except sqlite3.OperationalError:  # its last user has just gone, and the log with it
            connection.close()
        except sqlite3.DatabaseError:
            connection.close()
            raise
    return _connect(path, "rw")


def _damage_of_ours(path: Path, error: str) -> str:
    """Return what is wrong with a file that SQLite cannot read, if there are traces of a library of ours in it."""
    with path.open("rb") as stream:
        head = stream.read(_OUR_HEAD)
    if head.startswith(MAGIC):
        ours = len(head) < _HEADER or int.from_bytes(head[68:72], "big") == APPLICATION_ID
    else:
        ours = any(word in head for word in _OUR_WORDS)
    refuse_if((not ours, "is no run library"), file=str(path))
    return error


def _set_aside(path: Path, damage: str) -> str:
    """Rename a damaged file with those beside it, and return what is to be said of it."""
    target = _free(path, time.strftime("damaged-%Y-%m-%d-%H%M%S"))
    # The file itself goes last: were it gone first, SQLite could read the old log into the new file.
    # A program that has it open still writes to it under its new name, or is told that it moved.
    for side in (*SIDE_FILES, ""):
        with suppress(FileNotFoundError):
            path.with_name(path.name + side).rename(target.with_name(target.name + side))
    return f"{path} is damaged ({damage}); it was set aside as {target.name} and an empty library begun"


def _free(path: Path, suffix: str) -> Path:
    """Return a name beside a file that nothing has yet."""
    names = (f"{path.name}.{suffix}{f'-{number}' * (number > 1)}" for number in range(1, 1000))
    return next(one for name in names if not (one := path.with_name(name)).exists())


def _connect(path: Path, mode: str, immutable: bool = False) -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?mode={mode}{'&immutable=1' * immutable}"
    connection = sqlite3.connect(
        address, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False
    )
    # A file from a stranger runs nothing of its own and fills no memory.
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_CELL_BYTES)
    return connection


@contextmanager
def errors_of(path: Path) -> Iterator[None]:
    """Tell in one line what SQLite or the system says of a library's file.

    Raises
    ------
    InputError
        In place of their errors.
    """
    try:
        yield
    except sqlite3.Error as error:
        raise _in_words(error, path) from None
    except OverflowError:
        raise InputError("has no number of more than 63 bits", file=str(path)) from None
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"cannot be used: {why(error)}", file=str(path)) from None


def _in_words(error: sqlite3.Error, path: Path) -> InputError:
    code = code_of(error)
    if code in DAMAGE:
        return _damaged(path, str(error))
    words = {
        sqlite3.SQLITE_BUSY: f"another program has held it for more than {BUSY_S:g} s; try again",
        sqlite3.SQLITE_READONLY: "it can only be read",
        sqlite3.SQLITE_FULL: "the disk is full",
        sqlite3.SQLITE_CANTOPEN: "its file or folder cannot be opened",
    }
    return InputError(f"cannot be used: {words.get(code, str(error))}", file=str(path))


def _damaged(path: Path, damage: str) -> InputError:
    return InputError(f"is damaged ({damage})", file=str(path))


def code_of(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code; 0 for an error of Python's."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
