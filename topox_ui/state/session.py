"""What a session remembers by name, and for how long, the one line for its reader among it.

Whoever adds a name says whether a reload of the page keeps it. ``tests/test_architecture.py`` sees to it that nobody else
writes into Streamlit's session state.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, Literal, TypeVar

import streamlit as st

from topox_core.errors import InputError
from topox_core.text.foreign import escape_untrusted

T = TypeVar("T")
# What a reload keeps: every name that was made with ``Lasting``.
LASTING: set[str] = set()


class Remembered(Generic[T]):
    """One name in the session's state; its two kinds say how long it is remembered."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def there(self) -> bool:
        """Whether something is remembered."""
        return self.name in st.session_state

    def get(self) -> T | None:
        """Return what is remembered, None where nothing is."""
        return st.session_state.get(self.name)

    def get_or(self, make: Callable[[], T]) -> T:
        """Return what is remembered; where nothing is, what ``make`` returns, and remember that."""
        if not self.there:
            self.set(make())
        return st.session_state[self.name]

    def set(self, value: T) -> None:
        """Remember a value."""
        st.session_state[self.name] = value

    def pop(self) -> T | None:
        """Forget, and return, what was remembered."""
        return st.session_state.pop(self.name, None)


class Lasting(Remembered[T]):
    """What a reader would miss after a reload of the page: files, what is loaded, choices."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        LASTING.add(name)


class Passing(Remembered[T]):
    """What belongs to one connection or to the next drawing, and means nothing after a reload."""


def lasting() -> dict[str, Any]:
    """Return what this session remembers and a reload keeps."""
    state = st.session_state
    return {name: state[name] for name in LASTING if name in state}


def put_back(held: dict[str, Any]) -> None:
    """Replace what this session remembers, as far as a reload keeps it, by what another one did."""
    state = st.session_state
    for name in LASTING:
        state.pop(name, None)
    state.update(held)


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
