"""Home: what an optical circuit switch is, and a job to open: a sample, own files or a generated workload."""

import streamlit as st

from topox_core.figures.palette import Theme
from topox_ui.home.first_minute import introduction, questions
from topox_ui.home.generators import workloads
from topox_ui.home.job_facts import job_section
from topox_ui.home.own_files import own_files
from topox_ui.home.samples import cards
from topox_ui.home.state import HomeState
from topox_ui.shell.page import chart_title, headline, size_switch
from topox_ui.state.widgets import pick

WAYS = {"samples": "Samples", "files": "Your own files", "generate": "Generate"}


def draw(theme: Theme) -> None:
    """Draw the page."""
    size_switch()
    headline(
        "TOPO-X Workbench · what would optical circuit switches do for your training job?",
        "An optical circuit switch is cheap and fast, but slow to change. "
        "Here you see whether <b>your job</b> gains from it, and how sure that is.",
    )
    introduction(theme)

    with st.container(horizontal=True, vertical_alignment="center", key="open_job"):
        chart_title(
            "Open a job",
            "a job is a task graph; one click shows its schedule, tested by a separate checker",
            beside=True,
        )
        pick("Open a job", HomeState, "way", WAYS, label_visibility="collapsed", width="content")
    way = HomeState.now().way
    if way == "samples":
        cards(theme)
    elif way == "files":
        own_files()
    else:
        workloads()
    questions()
    job_section(theme)
