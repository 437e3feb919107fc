"""Photonic rails: what a job sends on a rail, the windows between, and what switching in them costs."""

from topox_core.figures.palette import Theme
from topox_ui.rails.controls import controls
from topox_ui.rails.first_screen import (
    KICKER,
    NOT_TOGETHER,
    first_screen,
    nothing_yet,
    pattern_of,
    simulating,
)
from topox_ui.rails.reference import files_of_rail
from topox_ui.rails.sections import figures_of, section
from topox_ui.rails.state import reset
from topox_ui.rails.subject import Simulated, subject
from topox_ui.shell.charts import show_input_errors
from topox_ui.shell.page import size_switch


def draw(theme: Theme) -> None:
    """Draw the page."""
    controls()
    size_switch()
    with show_input_errors(KICKER, NOT_TOGETHER, reset):
        source = subject()
        if source is None:
            nothing_yet()
            return
        ready = not isinstance(source, Simulated) or simulating(source)
    if not ready:
        return

    pattern, run = pattern_of(source)
    curves = first_screen(source, pattern, run, theme)
    files_of_rail(source, pattern, figures_of(pattern, curves))
    section(source, pattern, theme)
