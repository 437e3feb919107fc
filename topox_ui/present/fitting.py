"""A slide whose words are longer than English ones has its type made smaller until it needs no scroll bar."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

LEAST_PX = 13
_fit = st.components.v2.component(
    "topox_slide_fitting", js=Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
)


def fit_slide(slide: str) -> None:
    """Make the type of the slide in view smaller, step by step, as long as it is higher than the window."""
    _fit(key="present_fitting", data={"slide": slide, "least": LEAST_PX})
