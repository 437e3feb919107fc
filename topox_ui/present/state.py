"""What can be chosen on the page Present."""

from typing import Annotated

from pydantic import Field

from topox_core.errors import InputError
from topox_core.labs.lab import Lab, texts_in
from topox_core.labs.lab_file import ORDER
from topox_core.labs.leaderboard import BOARDS
from topox_core.labs.statistics import START, Slide, slide_of, slides
from topox_ui.classroom.held import class_profile, labs_offered
from topox_ui.state.session import PageState, notify, one_of
from topox_ui.state.widgets import pick

SEES = ("labs", "statistics", "leaderboards")
SOURCES = ("folder", "files", "hands")


class PresentState(PageState):
    """The lab on the projector and its slide; without a lab, which part of the page is in view.

    Attributes
    ----------
    q, show
        The question or screen, and what of it is shown.
    source
        Where answers are counted from; empty: from the class folder, from files, else from hands.
    about, board
        The lab of the statistics, and the leaderboard.
    """

    prefix = "present."

    lab: Annotated[str, Field(max_length=40)] = ""
    q: Annotated[str, Field(max_length=30)] = START
    show: Annotated[str, one_of(["ask", "tally", "reveal"])] = "ask"
    source: Annotated[str, one_of([*SOURCES, ""])] = ""
    see: Annotated[str, one_of(SEES)] = "labs"
    about: Annotated[str, Field(max_length=40)] = ORDER[0]
    board: Annotated[str, one_of(BOARDS)] = next(iter(BOARDS))


def say(key: str, **facts: object) -> str:
    """Return a sentence of the page."""
    return texts_in("en").say(key, **facts)


def title_of(lab: Lab) -> str:
    """Return a lab's title in its own language."""
    return texts_in(lab.language).resolved(lab.title)


def chosen_lab() -> Lab | None:
    """Return the lab on the projector, None before one is chosen; an unknown one is named in a line."""
    name = PresentState.now().lab
    if not name:
        return None
    try:
        labs = labs_offered()
    except InputError as error:
        notify("error", str(error))
        return None
    if name not in labs:
        notify("warning", say("present.unknown", lab=name[:40]))
        return None
    return labs[name]


def chosen_slide(lab: Lab) -> tuple[tuple[Slide, ...], int]:
    """Return the slides of a lab and the number of the one in view; the first where the address names none."""
    every, state = slides(lab), PresentState.now()
    try:
        return every, slide_of(every, state.q, state.show)
    except InputError:
        return every, 0


def go(slide: Slide) -> None:
    """Show a slide."""
    PresentState.choose(q=slide.place, show=slide.show)


def begin(lab: str) -> None:
    """Put a lab on the projector, its first slide."""
    PresentState.choose(lab=lab, q=START, show="ask")


def leave() -> None:
    """Go back to all labs."""
    PresentState.choose(lab=None, q=None, show=None)


def source() -> str:
    """Return where answers are counted from when nothing was chosen."""
    chosen = PresentState.now().source
    return chosen or ("folder" if class_profile() is not None else "files")


def see_switch() -> None:
    """Offer the parts of the page."""
    labels = {name: say(f"present.see.{name}") for name in SEES}
    pick(say("present.see.label"), PresentState, "see", labels, label_visibility="collapsed")
