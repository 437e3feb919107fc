"""One line for the reader, kept from a callback until the page is drawn."""

from __future__ import annotations

from typing import Literal

import streamlit as st


def notify(kind: Literal["error", "warning", "info"], line: str) -> None:
    """Keep one line for the next drawing of the page."""
    st.session_state["notice"] = (kind, line)


def show_notice() -> None:
    """Draw the line that was kept, once."""
    if "notice" in st.session_state:
        kind, line = st.session_state.pop("notice")
        {"error": st.error, "warning": st.warning, "info": st.info}[kind](line.replace("$", "\\$"))
