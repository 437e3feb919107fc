"""Sharing: several jobs on one optical fabric, sharing its circuits by time division."""

import streamlit as st

from topox_core.figures.palette import Theme
from topox_ui.jobs.controls import pick_source, reset, what_ifs
from topox_ui.jobs.first_screen import certificate, clock, first_lines, no_round_yet, searching
from topox_ui.jobs.loading import changed, loaded_jobs
from topox_ui.jobs.search import Case
from topox_ui.jobs.sections import section
from topox_ui.jobs.solving import rounds_of
from topox_ui.jobs.state import JobsState
from topox_ui.jobs.views import files, waits
from topox_ui.shell.charts import show_input_errors
from topox_ui.shell.links import page_link
from topox_ui.shell.page import headline, size_switch

CANNOT_SHARE = "These jobs <b>cannot share</b> this network. Change a what-if on the left, or choose other jobs."


def draw(theme: Theme) -> None:
    """Draw the page."""
    pick_source()
    now = JobsState.now()
    with show_input_errors("Sharing", CANNOT_SHARE, None):
        opened = loaded_jobs(now)
    if opened is None:
        size_switch()
        headline(
            "Sharing · several jobs on one optical fabric",
            "No jobs yet: load <b>a jobs file</b> on the left, or choose a sample or the paper’s set-up.",
        )
        page_link(
            "Sharing",
            "Open a sample",
            icon=":material/arrow_forward:",
            **{"jobs.source": "sample"},
        )
        return
    jobs, title = opened
    what_ifs(jobs)
    size_switch()
    with show_input_errors(f"Sharing · {title}", CANNOT_SHARE, None):
        case = Case(changed(jobs, now), now.reading)
        rounds = rounds_of(case, now.algorithm)

    if not rounds.known:
        no_round_yet(rounds, title, theme)
        reset()
        return
    first_lines(rounds, title)
    searching(rounds, theme)
    main, rail = st.columns([2.55, 1], gap="medium")
    with main:
        clock(rounds, now, theme)
        waits(rounds, now)
    with rail:
        certificate(rounds)
        files(rounds, now, title)
    section(rounds, now, theme)
