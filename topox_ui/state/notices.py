"""One line for the reader, kept from a callback until the page is drawn."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import streamlit as st

from topox_core.errors import InputError
from topox_core.text.foreign import escape_untrusted
from topox_ui.state.session import Passing

Kind = Literal["error", "warning", "info", "success"]
Line = tuple[Kind, str]
NOTICE = Passing[Line]("notice")


def notify(kind: Kind, line: str) -> None:
    """Keep one line for the next drawing of the page."""
    NOTICE.set((kind, line))


@contextmanager
def notify_errors() -> Iterator[None]:
    """Keep the line of bad input for the next drawing of the page; also as a decorator of a callback."""
    try:
        yield
    except InputError as error:
        notify("error", str(error))


def has_error() -> bool:
    """Return whether the line that is kept tells of an error."""
    notice = NOTICE.get()
    return notice is not None and notice[0] == "error"


def show_notice() -> None:
    """Draw the line that was kept, once."""
    show_line(NOTICE.pop())


def show_line(line: Line | None) -> None:
    """Draw a line, if there is one, in the box of its kind."""
    if line is not None:
        boxes = {"error": st.error, "warning": st.warning, "info": st.info, "success": st.success}
        boxes[line[0]](escape_untrusted(line[1], "markdown"))
