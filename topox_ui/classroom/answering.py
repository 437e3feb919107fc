"""What the page of labs asks of a class: keep these answers, may this be checked now, let me have a turn.

Where no class is held, nothing is kept and everything is allowed.
"""

import secrets
import time
from collections.abc import Callable
from typing import TypeVar

import streamlit as st

from topox_core.errors import InputError
from topox_core.labs.answers import Answers, AnswersFile, is_signed
from topox_core.labs.lab import Lab, texts_in
from topox_ui.classroom.access import Semaphore, is_student
from topox_ui.classroom.profile import class_profile
from topox_ui.state.session import Lasting

CHECK_EVERY_S, MAX_CHECKS = 1.0, 200
# Of each lab: how many checks, and when the last was.
_CHECKS = Lasting[dict[str, tuple[int, float]]]("class_checks")

# What tells this device from others, and the labs whose answers were, in part, not given here.
_DEVICE = Lasting[str]("class_device")
_BROUGHT = Lasting[set[str]]("class_brought")

T = TypeVar("T")


@st.cache_resource(show_spinner=False)
def turns() -> Semaphore:
    """Return the turns of this server's class."""
    return Semaphore()


def keep_answers(lab: Lab, answers: Answers) -> str:
    """Keep the answers of a student in the class folder; return what to say about it, empty where no class is held."""
    profile = class_profile()
    if profile is None:
        return ""
    words = texts_in(lab.language)
    try:
        device = _DEVICE.get_or(secrets.token_urlsafe) if is_student() else ""
        brought = lab.id in _BROUGHT.get_or(set)
        kept = profile.folder.keep(lab, answers, device, brought=brought)
    except InputError:
        return words.say("classroom.folder_full")
    return words.say(f"classroom.{_WORDS.get(kept.reason, kept.reason)}")


_WORDS = {"": "kept", "full": "folder_full", **dict.fromkeys(("held", "ids", "roster"), "apart")}


def brought_along(lab: Lab, file: AnswersFile) -> None:
    """Note that answers to a lab come from a file: unless this class signed it, they are kept apart."""
    profile = class_profile()
    if profile is not None and not is_signed(file, profile.folder.secret):
        _BROUGHT.get_or(set).add(lab.id)


def begun_here(lab: Lab) -> None:
    """Note that answers to a lab begin anew in this tab."""
    _BROUGHT.get_or(set).discard(lab.id)


def in_turn(call: Callable[[], T]) -> T:
    """Return what a call returns that computes keys or checks: in a class two run at once.

    Raises
    ------
    InputError
        If too many wait, or what the call raises.
    """
    if class_profile() is None:
        return call()
    with turns().turn() as mine:
        if not mine:
            raise InputError(texts_in("en").say("classroom.busy"))
        return call()


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
    if count >= MAX_CHECKS:
        raise InputError(words.say("classroom.most", most=MAX_CHECKS))
    if now - last < CHECK_EVERY_S:
        raise InputError(words.say("classroom.often"))
    checks[lab] = (count + 1, now)
