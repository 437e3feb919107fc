"""Whoever goes on to another screen begins at its top, as after a change of page."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

_arrive = st.components.v2.component(
    "topox_lab_arriving", js=Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
)


def begin_at_top(screen: str) -> None:
    """Scroll to the headline, and give it the focus, if the screen in view is another than before."""
    _arrive(key="lab_arriving", data={"screen": screen})
