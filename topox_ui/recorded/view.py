"""A recorded run: what a step of a profiled job takes, what of it is the network's, and what a faster one would save."""

import streamlit as st

from topox_core.errors import InputError
from topox_core.figures.palette import Theme
from topox_ui.recorded.files import KICKER, files_of_run, nothing_yet
from topox_ui.recorded.first_screen import controls, first_screen, speed_section, steps_section
from topox_ui.recorded.found import found_of
from topox_ui.recorded.reading import READING, open_example, opened, take_what_was_read
from topox_ui.recorded.sections import (
    groups_section,
    timeline,
    trust_section,
    ways_on,
    windows_section,
)
from topox_ui.recorded.state import RecordedState
from topox_ui.runs.panel import watched
from topox_ui.shell.charts import show_error
from topox_ui.shell.page import headline, size_switch


def draw(theme: Theme) -> None:
    """Draw the page."""
    take_what_was_read()
    if RecordedState.now().example and not opened().recordings:
        open_example()
    now = opened()
    if not now.recordings:
        size_switch()
        nothing_yet()
        return
    controls(now)
    size_switch()
    try:
        found = found_of(now)
    except InputError as error:
        headline(KICKER, "These files <b>are not of one run</b>. Add the ranks of one recording.")
        show_error(error)
        watched(READING, "Reading")
        files_of_run(now)
        return

    first_screen(found, now)
    watched(READING, "Reading")
    files_of_run(now)
    ways_on(found)
    main, beside = st.columns([1.9, 1], gap="medium")
    with main:
        steps_section(found, theme)
        timeline(found, theme)
        windows_section(found, theme)
    with beside:
        speed_section(found, theme)
        groups_section(found)
        trust_section(found)
