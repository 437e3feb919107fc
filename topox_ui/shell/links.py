"""Links to pages: each carries the job, its what-ifs and what counts on its page."""

from __future__ import annotations

import streamlit as st

from topox_ui.shell.pages import page_of
from topox_ui.state.address import follow_address
from topox_ui.state.loading import scenario
from topox_ui.state.scenario import Scenario
from topox_ui.state.session import Passing
from topox_ui.state.store import link_query, states

# Where a click leads, by path and query: only the script may leave its page, a callback may not.
_LEAVING = Passing[tuple[str, dict[str, str]]]("leaving")


def page_link(title: str, label: str, icon: str | None = None, **query: str) -> None:
    """Draw a link to a page that carries what was chosen for it, and what is given."""
    page = page_of(title)
    carried = page.query | link_query(page.carried)
    st.page_link(page.path, label=label, icon=icon, query_params=carried | query)


def go_to(title: str, **query: str) -> None:
    """Leave for a page, with what was chosen for it and what is given; not within a callback."""
    page = page_of(title)
    st.switch_page(page.path, query_params=page.query | link_query(page.carried) | query)


def leave_for(title: str, *, carries: bool = True, **query: str) -> None:
    """Leave for a page when this one is drawn next, with what is given, and what was chosen for it if that is carried."""
    page = page_of(title)
    carried = link_query(page.carried) if carries else {}
    _LEAVING.set((page.path, page.query | carried | query))


def leave_where_asked() -> None:
    """Leave for the page that a callback asked for; every page begins with it."""
    asked = _LEAVING.pop()
    if asked is not None:
        follow_address()  # a click is an answer: it is not asked again
        st.switch_page(asked[0], query_params=asked[1])


def to_samples() -> None:
    """Draw the way out of a page, or a part of one, that has nothing to show without a job."""
    page_link("Home", "Go to the samples", icon=":material/arrow_forward:", way="samples")


def sample_link(name: str, label: str) -> None:
    """Draw a link to the schedule of a sample: it takes nothing along that belongs to the graph in view."""
    page = page_of("Schedule")
    kept = {
        key: one for key, one in states().items() if not (one.of_graph or isinstance(one, Scenario))
    }
    query = link_query(page.carried, kept) | {"sample": name}
    if scenario().source != "upload":
        st.page_link(page.path, label=label, query_params=query)
    elif st.button(label, key=f"open_{name}", type="tertiary"):
        follow_address()  # a click is an answer: it is not asked again
        st.switch_page(page.path, query_params=query)
