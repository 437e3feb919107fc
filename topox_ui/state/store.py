"""The page states of a session: the one place that reads and replaces them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from topox_ui.state.session import Lasting, Passing

if TYPE_CHECKING:
    from topox_ui.state.page_state import PageState, S

_STATES = Lasting["dict[str, PageState]"]("page_states")
# A choice was made that the address does not say yet.
ADDRESS_DUE = Passing[bool]("address_due")
# The names of the models whose choices the address of the page in view carries.
CARRIED = Passing[Collection[str]]("carried")
# The page in view: the script of its entry, and the word of its view, which the first one has not.
PLACE = Passing[tuple[str, str]]("place")
VIEW_KEY = "view"


def states() -> dict[str, PageState]:
    """Return the states that this session has, by the name of their model."""
    return _STATES.get_or(dict)


def state_of(model: type[S]) -> S:
    """Return the session's state of a page: its defaults while nothing was chosen."""
    return reader_of(model)()


def reader_of(model: type[S]) -> Callable[[], S]:
    """Return what reads this session's state of a page outside its runs: a download is built where no session is."""
    known = states()

    def read() -> S:
        state = known.get(model.__name__)
        return state if isinstance(state, model) else model()

    return read


def put(*new: PageState) -> None:
    """Replace states; the address is written before the next drawing."""
    for state in new:
        if state != state_of(type(state)):
            states()[type(state).__name__] = state
            ADDRESS_DUE.set(True)


def link_query(
    carried: Collection[str] | None = None, of: Mapping[str, PageState] | None = None
) -> dict[str, str]:
    """Return the choices that a link carries, by default one to the page in view as it is now."""
    names = CARRIED.get_or(tuple) if carried is None else carried
    chosen = states() if of is None else of
    return {
        key: text
        for name, state in chosen.items()
        if name in names
        for key, text in state.to_query().items()
    }


def view_query() -> dict[str, str]:
    """Return what the address says of the view in view."""
    _, word = PLACE.get() or ("", "")
    return {VIEW_KEY: word} if word else {}
