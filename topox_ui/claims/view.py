"""Claims against each other: what published networks claim against each other, tried on six jobs."""

import streamlit as st

from topox_core.figures.palette import Theme
from topox_ui.claims.sections import results, show
from topox_ui.claims.state import NETWORKS, ArgumentState
from topox_ui.shell.page import size_switch
from topox_ui.state.widgets import menu


def draw(theme: Theme) -> None:
    """Draw the view Claims against each other."""
    menu("Network", ArgumentState, "network", NETWORKS, at=st.sidebar)
    size_switch()
    results(lambda known: show(known, theme))
