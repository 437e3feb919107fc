"""Compare: the same task graph under every fabric, who wins, and where the answer turns."""

import streamlit as st

from topox_core.figures.palette import Theme
from topox_ui.answers.case import case_of
from topox_ui.answers.contest import contest_of
from topox_ui.answers.keeping import keep_contest_button
from topox_ui.answers.running import run_all
from topox_ui.answers.verdicts import verdict_line
from topox_ui.compare.controls import controls
from topox_ui.compare.failures import failures
from topox_ui.compare.first_screen import compare_headline, main_figures
from topox_ui.compare.gating import changing_gating
from topox_ui.compare.lanes import lanes
from topox_ui.compare.map import KICKER, where_which_wins
from topox_ui.shell.charts import show_error, show_input_errors
from topox_ui.shell.downloads import graph_kept_here, link_menu
from topox_ui.shell.page import size_switch
from topox_ui.state.loading import Loaded, scenario


def draw(theme: Theme, opened: Loaded) -> None:
    """Draw the view All fabrics."""
    controls(opened)
    size_switch()
    with show_input_errors(f"Compare · {opened.title}"):
        case = case_of(opened, scenario())
        contest = contest_of(case)
        runs, failed = run_all(case, contest)

    compare_headline(opened, case, contest, runs)
    verdict_line(case)
    for line in failed:  # why some fabrics cannot run here; the others are compared
        show_error(line)
    main_figures(contest, runs, theme)
    lanes(contest, runs, theme)
    changing_gating(case, theme)
    failures(case, contest, runs, theme)
    with st.container(horizontal=True, key="take_away"):
        link_menu(graph_kept_here())
        keep_contest_button(opened, case, contest, runs)


def draw_map(theme: Theme, opened: Loaded) -> None:
    """Draw the view Where which wins."""
    controls(opened)
    size_switch()
    with show_input_errors(f"{KICKER} · {opened.title}"):
        case = case_of(opened, scenario())
        contest = contest_of(case)
    where_which_wins(opened, case, contest, theme)
    link_menu(graph_kept_here())
