"""Links to pages: they carry every choice of the session."""

from __future__ import annotations

import streamlit as st

from topox_ui.shell.pages import page_of
from topox_ui.state.scenario import Scenario
from topox_ui.state.store import link_query, states


def page_link(title: str, label: str, icon: str | None = None, **query: str) -> None:
    """Draw a link to a page that carries every choice, and those given."""
    st.page_link(page_of(title).path, label=label, icon=icon, query_params=link_query() | query)


def go_to(title: str, **query: str) -> None:
    """Leave for a page, with every choice of the session and those given; not within a callback."""
    st.switch_page(page_of(title).path, query_params=link_query() | query)


def to_samples() -> None:
    """Draw the way out of a page, or a part of one, that has nothing to show without a job."""
    page_link("Home", "Go to the samples", icon=":material/arrow_forward:", way="samples")


def sample_link(name: str, label: str) -> None:
    """Draw a link to the schedule of a sample: it takes nothing along that belongs to the graph in view."""
    choices = [
        state.to_query()
        for state in states().values()
        if not (state.of_graph or isinstance(state, Scenario))
    ]
    query = {key: text for one in choices for key, text in one.items()}
    st.page_link(page_of("Schedule").path, label=label, query_params=query | {"sample": name})
