"""One line for the reader, kept from a callback until the page is drawn."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from topox_core.text.foreign import as_text


def notify(kind: Literal["error", "warning", "info"], line: str) -> None:
    """Keep one line for the next drawing of the page."""
    st.session_state["notice"] = (kind, line)


def has_error() -> bool:
    """Return whether the line that is kept tells of an error."""
    return bool(st.session_state.get("notice", ("", ""))[0] == "error")


def show_notice() -> None:
    """Draw the line that was kept, once."""
    if "notice" in st.session_state:
        kind, line = st.session_state.pop("notice")
        {"error": st.error, "warning": st.warning, "info": st.info}[kind](as_text(line, "markdown"))
