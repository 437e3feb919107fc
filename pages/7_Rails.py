"""Photonic rails: what a job sends on a rail, the windows between, and what switching in them costs."""

import streamlit as st

from topox_ui.rails.controls import controls
from topox_ui.rails.first_screen import (
    KICKER,
    NOT_TOGETHER,
    first_screen,
    nothing_yet,
    pattern_of,
    simulating,
)
from topox_ui.rails.reference import take_away
from topox_ui.rails.sections import closer, figures_of
from topox_ui.rails.state import reset
from topox_ui.rails.subject import Simulated, subject
from topox_ui.shell.charts import show_input_errors
from topox_ui.shell.page import frame, size_switch

theme = frame("Rails")
controls()
size_switch()
with show_input_errors(KICKER, NOT_TOGETHER, reset):
    found = subject()
    if found is None:
        nothing_yet()
        st.stop()
    ready = not isinstance(found, Simulated) or simulating(found)
if not ready:
    st.stop()

pattern, run = pattern_of(found)
first_screen(found, pattern, run, theme)
take_away(found, pattern, figures_of(found, pattern, theme), theme)
closer(found, pattern, theme)
