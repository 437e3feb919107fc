"""What the script of an entry does: it draws the view that the address names; old addresses lead on to theirs."""

from pathlib import Path

import streamlit as st

from topox_ui.shell.menu import page_link
from topox_ui.shell.page import frame, warmed
from topox_ui.shell.pages import imported, page_of
from topox_ui.state.loading import loaded
from topox_ui.state.page_state import VIEW_KEY

_lead = st.components.v2.component(
    "topox_lead_on", js=Path(__file__).with_name("lead_on.js").read_text(encoding="utf-8")
)


def draw_entry(title: str) -> None:
    """Draw the view of an entry that the address names, the first where it names none."""
    page = page_of(title).at(st.query_params.get(VIEW_KEY, ""))
    theme = frame(page)
    imported(page.draw)(theme, *([loaded()] if page.needs_graph else []))
    if page.then:
        page_link(page.then, page_of(page.then).question, icon=":material/arrow_forward:")
    # Not before: what loads kernels beside the first page makes its visitor wait for them.
    warmed()


def lead_on(title: str) -> None:
    """Lead from an old address to a page, with all that the address says; Back does not come here again."""
    page = page_of(title)
    # In the browser: a change of page by the server would leave the old address in the history, and
    # whoever went back to it would be led on again.
    _lead(key="lead_on", data={"path": page.address, "query": page.query})
