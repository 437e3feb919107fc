"""A class that is held on this machine: who may come in, what is open to them, whose files are taken, where answers are kept.

``make class`` says of it to the server. Where no class is held everybody is the lecturer, nothing is
kept and everything is allowed.
"""

import hmac
import os
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, TypeVar

import streamlit as st
from starlette.exceptions import HTTPException
from streamlit.runtime import exists, get_instance
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from topox_core.errors import InputError, refuse_if
from topox_core.io.limits import MAX_FILE_BYTES, MB
from topox_core.labs.classroom.answers import Answers, AnswersFile, is_signed
from topox_core.labs.classroom.class_folder import ClassFolder
from topox_core.labs.classroom.student import check_name
from topox_core.labs.lab import Lab, texts_in
from topox_core.labs.lab_file import labs_in, ready_labs
from topox_ui.runs.limits import server_limits
from topox_ui.state.session import Lasting

COURSE, FOLDER, WORD, SHOWN_AT = (
    f"TOPOX_CLASS_{name}" for name in ("COURSE", "FOLDER", "WORD", "SHOWN_AT")
)


@dataclass(frozen=True)
class ClassProfile:
    """One class.

    Attributes
    ----------
    word
        What students type to come in.
    shown_at
        The address that they open.
    """

    course: str
    word: str
    folder: ClassFolder
    shown_at: str = ""


def profile_of(environment: Mapping[str, str]) -> ClassProfile | None:
    """Return the class that an environment describes, None where it describes none; raises InputError."""
    if not environment.get(FOLDER):
        return None
    texts = {name: environment.get(name, "").strip() for name in (COURSE, WORD)}
    refuse_if(*((not text, "is missing", name) for name, text in texts.items()), file="environment")
    check_name(environment[COURSE], COURSE)
    folder = ClassFolder.opened(Path(environment[FOLDER]))
    word = environment[WORD].strip().casefold()
    return ClassProfile(environment[COURSE].strip(), word, folder, environment.get(SHOWN_AT, ""))


@cache
def class_profile() -> ClassProfile | None:
    """Return the class of this server, read once; None where it serves none."""
    return profile_of(os.environ)


def labs_offered() -> dict[str, Lab]:
    """Return the labs of this server by id: those that ship, and in a class those of the lecturer's folder."""
    profile = class_profile()
    return ready_labs() if profile is None else labs_in(profile.folder.path)


MAX_SESSIONS = 60
IDLE_S = 20 * 60.0
# Checks and keys that are computed at once; nobody waits longer for a turn.
AT_ONCE, PATIENCE_S = 2, 5.0
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


# What becomes of somebody who opens a page.
Entry = Literal["open", "join", "closed", "full"]


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
    return get_script_run_ctx().session_id


def is_student() -> bool:
    """Return whether this is a visitor of a class; whoever sits at the machine itself is the lecturer."""
    return class_profile() is not None and st.context.ip_address is not None


def entry(title: str) -> Entry:
    """Return what becomes of this visitor on a page; call it before anything of the link is read."""
    if not is_student():
        admitted().add(_session())
        return "open"
    if not _JOINED.get():
        return "join"
    if not places().enter(_session()):
        return "full"
    admitted().add(_session())
    return "open" if title in OPEN_TO_STUDENTS else "closed"


def join(word: str) -> str:
    """Take a join word; return empty if it is right, else which text says why not: ``wrong`` or ``slow``."""
    refused = check_word(word, class_profile().word)
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


T = TypeVar("T")
CHECK_EVERY_S, MAX_CHECKS = 1.0, 200
# Of each lab: how many checks, and when the last was.
_CHECKS = Lasting[dict[str, tuple[int, float]]]("class_checks")

# What tells this device from others, and by lab and seed which answers were, in part, not given here.
_DEVICE = Lasting[str]("class_device")
_BROUGHT = Lasting[set[tuple[str, int]]]("class_brought")


@st.cache_resource(show_spinner=False)
def turns() -> threading.BoundedSemaphore:
    """Return the turns of this server's class."""
    return threading.BoundedSemaphore(AT_ONCE)


def device() -> str:
    """Return what tells this tab's device from others, over a reload too."""
    return _DEVICE.get_or(secrets.token_urlsafe)


def keep_answers(lab: Lab, answers: Answers) -> str:
    """Keep the answers of a student in the class folder; return what to say about it, empty where no class is held."""
    profile = class_profile()
    if profile is None:
        return ""
    words = texts_in(lab.language)
    try:
        of_device = device() if is_student() else ""
        brought = (lab.id, answers.seed) in _BROUGHT.get_or(set)
        kept = profile.folder.keep(lab, answers, of_device, brought=brought)
    except InputError:
        return words.say("classroom.folder_full")
    return words.say(f"classroom.{_WORDS.get(kept.reason, kept.reason)}")


_WORDS = {"": "kept", "full": "folder_full", **dict.fromkeys(("held", "ids", "roster"), "apart")}


def brought_along(lab: Lab, file: AnswersFile) -> None:
    """Note that answers to a lab come from a file: unless this class signed it, they are kept apart."""
    profile = class_profile()
    if profile is not None and not is_signed(file, profile.folder.secret):
        _BROUGHT.get_or(set).add((lab.id, file.answers.seed))


def in_turn(call: Callable[[], T]) -> T:
    """Return what a call returns that computes keys or checks: in a class two run at once.

    Raises
    ------
    InputError
        If too many wait, or what the call raises.
    """
    if class_profile() is None:
        return call()
    has_turn = turns().acquire(timeout=PATIENCE_S)
    refuse_if((not has_turn, texts_in("en").say("classroom.busy")))
    try:
        return call()
    finally:
        turns().release()


def note_check(lab: str) -> None:
    """Count one press of Check.

    Raises
    ------
    InputError
        If the last was less than a second ago, or the lab was checked too often in this session.
    """
    if class_profile() is None:
        return
    checks, now = _CHECKS.get_or(dict), time.monotonic()
    count, last = checks.get(lab, (0, -CHECK_EVERY_S))
    words = texts_in("en")
    refuse_if(
        (count >= MAX_CHECKS, words.say("classroom.most", most=MAX_CHECKS)),
        (now - last < CHECK_EVERY_S, words.say("classroom.often")),
    )
    checks[lab] = (count + 1, now)
