"""Who is the lecturer, who has typed the word, how many are let in at once, which pages are open to whom, whose files are taken."""

import hmac
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum

import streamlit as st
from starlette.exceptions import HTTPException
from streamlit.runtime import exists, get_instance
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from topox_core.io.limits import MAX_FILE_BYTES, MB
from topox_ui.classroom.profile import class_profile
from topox_ui.runs.limits import server_limits
from topox_ui.state.session import Lasting

MAX_SESSIONS = 60
IDLE_S = 20 * 60.0
AT_ONCE, LINE, PATIENCE_S = 2, 120, 5.0
# Wrong words of an address, and of one connection, within a minute.
WRONG_WORDS, WRONG_OF_ONE, WRONG_WITHIN_S = 30, 5, 60.0


class SessionLimit:
    """The sessions of a class; one that did nothing for ``idle_s`` loses its place when somebody else needs it.

    Parameters
    ----------
    clock
        Seconds, rising.
    """

    def __init__(
        self,
        most: int = MAX_SESSIONS,
        idle_s: float = IDLE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.most, self._idle_s, self._clock = most, idle_s, clock
        self._lock = threading.Lock()
        self._seen: dict[str, float] = {}

    def enter(self, session: str) -> bool:
        """Note that a session is here; return whether it has a place."""
        now = self._clock()
        with self._lock:
            if session not in self._seen and len(self._seen) >= self.most:
                self._seen = {k: at for k, at in self._seen.items() if now - at <= self._idle_s}
            if session in self._seen or len(self._seen) < self.most:
                self._seen[session] = now
                return True
            return False

    def leave(self, session: str) -> None:
        """Give the place of a session back."""
        with self._lock:
            self._seen.pop(session, None)

    def __len__(self) -> int:
        return len(self._seen)


class Semaphore:
    """At most ``at_once`` at a time, ``line`` in line, and nobody waits longer than ``patience_s``."""

    def __init__(
        self, at_once: int = AT_ONCE, line: int = LINE, patience_s: float = PATIENCE_S
    ) -> None:
        self._free = threading.BoundedSemaphore(at_once)
        self._line, self._patience_s = line, patience_s
        self._lock = threading.Lock()
        self._waiting = 0

    @contextmanager
    def turn(self) -> Iterator[bool]:
        """Wait for a turn; the value is False where the line is full or patience has ended."""
        with self._lock:
            full = self._waiting >= self._line
            self._waiting += not full
        mine = False
        if not full:
            mine = self._free.acquire(timeout=self._patience_s)
            with self._lock:
                self._waiting -= 1
        try:
            yield mine
        finally:
            if mine:
                self._free.release()


class WrongWords:
    """Wrong join words by address and connection: so few a minute that nobody can try them out.

    A connection that has typed none wrong is always asked: nobody locks others out. Six letters are 148
    million words; whoever opens a connection for each has years to go.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._wrong: list[tuple[float, str, str]] = []

    def too_many(self, address: str, connection: str) -> bool:
        """Return whether a connection's words are not looked at just now."""
        with self._lock:
            since = self._clock() - WRONG_WITHIN_S
            self._wrong = [one for one in self._wrong if one[0] > since]
            own = sum(one[2] == connection for one in self._wrong)
            of_address = sum(one[1] == address for one in self._wrong)
            return own >= WRONG_OF_ONE or (own > 0 and of_address >= WRONG_WORDS)

    def note(self, address: str, connection: str) -> None:
        """Count one more."""
        with self._lock:
            self._wrong.append((self._clock(), address, connection))


OPEN_TO_STUDENTS = ("Learn", "Labs", "Glossary")
# Where students land who open the address of the machine.
BEGINNING = "Home"
_JOINED = Lasting[bool]("class_joined")


class Entry(Enum):
    """What becomes of somebody who opens a page."""

    OPEN = "open"
    JOIN = "join"
    CLOSED = "closed"
    FULL = "full"


@st.cache_resource(show_spinner=False)
def places() -> SessionLimit:
    """Return the places of this server's class."""
    return SessionLimit()


@st.cache_resource(show_spinner=False)
def wrong_words() -> WrongWords:
    """Return the count of wrong words."""
    return WrongWords()


@st.cache_resource(show_spinner=False)
def admitted() -> set[str]:
    """Return the sessions of this server that are past the door: they may send files."""
    return set()


def _leave(session: str) -> None:
    places().leave(session)
    admitted().discard(session)


@st.cache_resource(scope="session", show_spinner=False, on_release=_leave)
def _session() -> str:
    """Return the name of this session; its place is given back when it ends."""
    context = get_script_run_ctx()
    assert context is not None
    return context.session_id


def is_student() -> bool:
    """Return whether this is a visitor of a class; whoever sits at the machine itself is the lecturer."""
    return class_profile() is not None and st.context.ip_address is not None


def entry(title: str) -> Entry:
    """Return what becomes of this visitor on a page; call it before anything of the link is read."""
    if not is_student():
        admitted().add(_session())
        return Entry.OPEN
    if not _JOINED.get():
        return Entry.JOIN
    if not places().enter(_session()):
        return Entry.FULL
    admitted().add(_session())
    return Entry.OPEN if title in OPEN_TO_STUDENTS else Entry.CLOSED


def join(word: str) -> str:
    """Take a join word; return empty if it is right, else which text says why not: ``wrong`` or ``slow``."""
    profile = class_profile()
    assert profile is not None  # nobody is asked for a word where there is no class
    refused = check_word(word, profile.word)
    if not refused:
        _JOINED.set(True)
    return refused


def check_word(typed: str, word: str) -> str:
    """Return empty if a word is the right one, else which text says why not: ``wrong``, or ``slow`` after too many."""
    whose = str(st.context.ip_address), _session()
    if wrong_words().too_many(*whose):
        return "slow"
    if not hmac.compare_digest(typed.strip().casefold().encode(), word.casefold().encode()):
        wrong_words().note(*whose)
        return "wrong"
    return ""


def shows(title: str) -> bool:
    """Return whether the menu lists a page for this visitor."""
    return not is_student() or title in OPEN_TO_STUDENTS


# Of all sessions; who comes later waits until others have left.
MAX_OF_ALL_BYTES = 2_000 * MB
FORBIDDEN, TOO_LARGE = 403, 413


@st.cache_resource(show_spinner=False)
def limit_uploads() -> None:
    """Have this server take files only of sessions past the door, and no more than a session and all may hold."""
    manager = get_instance().uploaded_file_mgr if exists() else None
    if isinstance(manager, MemoryUploadedFileManager):  # a test of a page has none
        limit(manager)


def limit(manager: MemoryUploadedFileManager) -> None:
    """Refuse what a manager would hold beyond the limits; its files go with their session as before."""
    add = manager.add_file

    def within_limits(session_id: str, file: UploadedFileRec) -> None:
        if session_id not in admitted():
            raise HTTPException(FORBIDDEN, "Not past the door")
        held = {
            session: sum(len(one.data) for one in list(files.values()))
            for session, files in list(manager.file_storage.items())
        }
        own = max(server_limits().session_mb * MB, MAX_FILE_BYTES)
        more = len(file.data)
        if held.get(session_id, 0) + more > own or sum(held.values()) + more > MAX_OF_ALL_BYTES:
            raise HTTPException(TOO_LARGE, "More than this server holds")
        add(session_id, file)

    manager.add_file = within_limits  # type: ignore[method-assign]
