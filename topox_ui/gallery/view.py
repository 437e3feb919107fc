"""Papers: published tables and figures, run here, with a verdict on every number."""

import streamlit as st

from topox_core.figures.palette import Theme
from topox_ui.gallery.card import (
    answer_of,
    chosen_card,
    draw_answer,
    finding,
    kicker,
    run_controls,
    switches,
)
from topox_ui.gallery.claims_table import claims_table
from topox_ui.gallery.measured import measured_card
from topox_ui.gallery.state import MEASURED
from topox_ui.gallery.wall import opened, wall
from topox_ui.shell.page import headline, quiet, size_switch


def draw(theme: Theme) -> None:
    """Draw the view Tables and figures."""
    card = chosen_card()
    if isinstance(card, str):
        size_switch()
        if card == MEASURED:
            measured_card(theme)
        else:
            wall(theme)
            with st.expander("Claims of the papers, one per line"):
                claims_table()
        return
    settings = switches(card)
    size_switch()

    answer = answer_of(card, settings)
    headline(kicker(card), finding(card, answer))
    with st.container(horizontal=True, vertical_alignment="center"):
        run_controls(card, settings, answer)
        st.button(
            "All cards", key="all_cards", icon=":material/grid_view:", on_click=opened, args=("",)
        )
    if answer is not None:
        quiet(f"{card.shows}")
        draw_answer(card, answer, theme)
    else:
        quiet(
            "Every number of this card is computed on this machine when you run it, and is the same on every run "
            "with the same settings."
        )
