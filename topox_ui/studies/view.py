"""Studies: many what-ifs at once, built, run, watched and drawn."""

import streamlit as st

from topox_core.errors import InputError
from topox_core.figures.palette import Theme
from topox_core.studies.study_run import StudyRun
from topox_ui.runs.owner import run_owner
from topox_ui.shell.charts import quiet, show_input_errors
from topox_ui.state.widgets import pick
from topox_ui.studies.builder import builder
from topox_ui.studies.choosing import View, alone, controls, view_of
from topox_ui.studies.every_point import files_section, parallel_section, table_section
from topox_ui.studies.first_screen import back_button, first_screen, nothing_chosen, wrong_study
from topox_ui.studies.pictures import (
    figures_of,
    front_section,
    lines_section,
    map_section,
    tornado_section,
)
from topox_ui.studies.planning import POINTS, Asked, asked
from topox_ui.studies.state import VIEWS, StudiesState

FOLLOW_S = 3.0  # how often pictures of a running study are drawn again


def pictures(now: Asked, theme: Theme) -> None:
    """Draw the main pictures; while points come in, again and again."""
    view = view_of(now.result)
    controls(view)
    if now.running:
        _following(theme)
    elif now.result.done:
        _main(view, theme, live=False)


@st.fragment(run_every=FOLLOW_S)
def _following(theme: Theme) -> None:
    run = run_owner().run(POINTS)
    if not isinstance(run, StudyRun):
        return  # it waits for its turn, or has ended: the panel draws the page anew
    result = run.result()
    if result.done:
        _main(view_of(result), theme, live=True)


def _main(view: View, theme: Theme, live: bool) -> None:
    if alone(view.result):
        tornado_section(view, theme, live)
        return
    left, right = st.columns(2, gap="medium")
    with left:
        if len(view.map_axes) > 1:
            map_section(view, theme, live)
        else:
            quiet(
                "A map needs two axes of 2 to 60 values each; lines and parallel coordinates need fewer."
            )
    with right:
        front_section(view, theme, live)


def sections(now: Asked, theme: Theme) -> None:
    """Draw what else can be looked at, one at a time, and what can be taken away."""
    view = view_of(now.result)
    # A study that has not begun is one that may still be changed.
    usual = StudiesState.now().see
    if usual == "lines" and not (now.result.done or now.running):
        usual = "build"
    elif usual == "lines" and alone(now.result):  # of lines each would have two points
        usual = "table"
    see = pick("Look at", StudiesState, "see", VIEWS, value=usual, label_visibility="collapsed")
    if see == "lines":
        lines_section(view, theme)
    elif see == "parallel":
        parallel_section(view, theme)
    elif see == "table":
        table_section(view)
    else:
        builder(now)
    files_section(now, view, figures_of(view))
    back_button()


def draw(theme: Theme) -> None:
    """Draw the view Ready and own studies."""
    if not StudiesState.now().of:
        with show_input_errors("Studies", "The run library <b>cannot be read</b>.", reset=None):
            nothing_chosen(theme)
        return
    try:
        now = asked()
    except InputError as error:
        wrong_study(error)
        return
    first_screen(now)
    pictures(now, theme)
    sections(now, theme)
