"""The state of Labs: what a link carries (no answer and no name), what is being answered, and what the page says.

Answers have one place for all tabs of this machine, so that a lock in one holds in the others. Where
other machines reach the server, a tab has answers of its own: whoever types in somebody's name must
not see what that one answered.
"""

import threading
from collections.abc import Callable
from datetime import datetime
from html import escape as html_escape
from typing import Annotated, Any

import streamlit as st

from topox_core.labs.classroom.answers import UTC, Answers, clock
from topox_core.labs.classroom.folder import folded
from topox_core.labs.generators.generator import SEEDS
from topox_core.labs.lab import BASE, Lab, Texts, languages, texts_in
from topox_core.schema.fields import setting
from topox_ui.classroom.held import class_profile, device, keep_answers, labs_offered
from topox_ui.runs.limits import only_this_machine, server_limits
from topox_ui.runs.owner import Kept
from topox_ui.state.session import Count, Lasting, NotNegative, PageState, Passing


class LabsState(PageState):
    """The lab that is open (empty: the cards), the screen from 1, the seed, where the slider stands, the language."""

    prefix = "lab."
    resets = {"id": ("q", "at", "seed"), "q": ("at",)}  # noqa: RUF012

    id: Annotated[str, setting(pattern=r"^([a-z][a-z0-9-]{1,39})?$")] = ""
    seed: Annotated[int, setting(ge=0, le=SEEDS - 1)] | None = None
    q: Count = 1
    at: NotNegative | None = None
    lang: Annotated[str, setting(pattern=r"^[a-z]{2}(-[A-Z]{2})?$")] = BASE


def texts() -> Texts:
    """Return the texts of the chosen language; English where there is no such file."""
    chosen = LabsState.now().lang
    return texts_in(chosen if chosen in languages() else BASE)


def say(key: str, /, **facts: object) -> str:
    """Return a sentence of the page."""
    return texts().say(f"page.{key}", **facts)


def say_html(key: str, /, **facts: object) -> str:
    """Return a sentence of the page as HTML: what is filled in is text, the sentence is our own."""
    return say(key, **{name: html_escape(str(fact)) for name, fact in facts.items()})


def plural_of(key: str, number: float, name: str = "count", **facts: object) -> str:
    """Return the form of a sentence that suits a number: ``key.one`` or ``key.many``."""
    return say(f"{key}.{'one' if number == 1 else 'many'}", **{name: f"{number:g}"}, **facts)


def points(number: float) -> str:
    """Return points in words."""
    return plural_of("points", number, "points")


def title_of(lab: Lab) -> str:
    """Return a lab's title, in the page's language if it names a text."""
    return texts().resolved(lab.title)


MAX_KEPT = 2_000


# A lab in one version, course, student and seed; the tab, where each has answers of its own.
Whose = tuple[str, str, str, str, int, str]


def whose(answers: Answers) -> Whose:
    """Return whose answers these are; spelling in capitals or with spaces around makes no difference."""
    course, student = folded(answers.course), folded(answers.student)
    tab = "" if only_this_machine(server_limits().address) else device()
    return answers.lab, answers.digest, course, student, answers.seed, tab


OWN_LAB = Lasting[Lab]("labs_own")
# Course, student and seed as they were typed, by these names.
WHO = Lasting[dict[str, str]]("labs_who")
_MINE = Lasting[dict[str, Answers]]("labs_mine")
# What stands in a field, by lab, seed and name, and is not handed in yet.
DRAFTS = Lasting[dict[tuple[str, int, str], Any]]("labs_drafts")
# What became of the answers in the folder of a class; empty where none is held.
KEPT_LINE = Lasting[str]("labs_kept_line")
# Lines under questions and boxes, until the next button: (kind, text).
LINES = Passing[dict[str, tuple[str, str]]]("labs_lines")
# Answers are read and changed in one step, whichever tab asks.
_LOCK = threading.Lock()


@st.cache_resource
def _kept() -> Kept[Answers]:
    """Return the answers of all tabs of this server by whose they are."""
    return Kept(MAX_KEPT)


def labs() -> dict[str, Lab]:
    """Return the labs of this server, and the one that was loaded; in a class none is loaded."""
    own = OWN_LAB.get() if class_profile() is None else None
    return {**labs_offered(), **({own.id: own} if own is not None else {})}


def now() -> str:
    """Return the time as answers keep it."""
    return clock(datetime.now(UTC))


def answers_to(lab: Lab) -> Answers | None:
    """Return the answers that are being given to a lab, as they stand in any tab."""
    mine = _MINE.get_or(dict).get(lab.id)
    if mine is None or mine.digest != lab.digest:
        return None
    with _LOCK:
        return _kept().get(whose(mine), mine)


def begin_with(answers: Answers) -> None:
    """Go on with answers in this tab; those of the same student that another tab gave stay."""
    _MINE.get_or(dict)[answers.lab] = answers
    with _LOCK:
        _kept().setdefault(whose(answers), answers)


def change(lab: Lab, by: Callable[[Answers], Answers]) -> Answers:
    """Change the answers to a lab as they stand now, in one step.

    Raises
    ------
    InputError
        If ``by`` does; then nothing is changed.
    """
    mine = _MINE.get_or(dict)[lab.id]
    with _LOCK:
        before = _kept().get(whose(mine), mine)
        after = by(before)
        _kept()[whose(after)] = after
    _MINE.get_or(dict)[lab.id] = after
    if after != before:
        KEPT_LINE.set(keep_answers(lab, after))
    return after


def forget(lab: Lab) -> None:
    """Forget the answers to a lab, in all tabs."""
    mine = _MINE.get_or(dict).pop(lab.id, None)
    if mine is None:
        return
    with _LOCK:
        _kept().pop(whose(mine), None)
    kept = {place: one for place, one in DRAFTS.get_or(dict).items() if place[0] != lab.id}
    DRAFTS.set(kept)


def line(place: str, kind: str, text: str) -> None:
    """Keep a line for the next drawing of a question or a box."""
    LINES.get_or(dict)[place] = (kind, text)
