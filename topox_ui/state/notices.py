"""One line for the reader, kept from a callback until the page is drawn."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from topox_core.text.foreign import escape_untrusted
from topox_ui.state.session import Passing

Kind = Literal["error", "warning", "info"]
NOTICE = Passing[tuple[Kind, str]]("notice")


def notify(kind: Kind, line: str) -> None:
    """Keep one line for the next drawing of the page."""
    NOTICE.set((kind, line))


def has_error() -> bool:
    """Return whether the line that is kept tells of an error."""
    notice = NOTICE.get()
    return notice is not None and notice[0] == "error"


def show_notice() -> None:
    """Draw the line that was kept, once."""
    notice = NOTICE.pop()
    if notice is not None:
        kind, line = notice
        {"error": st.error, "warning": st.warning, "info": st.info}[kind](
            escape_untrusted(line, "markdown")
        )
