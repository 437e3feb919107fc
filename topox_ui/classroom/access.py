"""Who is the lecturer, who has typed the word, and which pages are open to whom."""

from __future__ import annotations

import hmac
from enum import Enum

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from topox_ui.classroom.profile import class_profile
from topox_ui.classroom.session_limit import SessionLimit, WrongWords
from topox_ui.state.session import Lasting

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
