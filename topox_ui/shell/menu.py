"""The menu: what is loaded, then the pages by group, the group of the page in view open."""

from __future__ import annotations

import streamlit as st

from topox_core.text.foreign import escape_untrusted
from topox_core.text.numbers import plural
from topox_core.workloads.catalogue import WORKLOADS
from topox_core.workloads.samples import SAMPLES
from topox_ui.classroom.access import is_student, shows
from topox_ui.shell.links import page_link
from topox_ui.shell.pages import Page, groups
from topox_ui.state.loading import Loaded, loaded, opened_by_itself, scenario
from topox_ui.state.scenario import Scenario


def menu(page: Page) -> None:
    """Draw the menu of a page into the sidebar."""
    st.html('<p class="brand">TOPO-X <b>Workbench</b></p>')
    student = is_student()
    if not student:
        job_box()
    with st.container(key="menu"):
        for heading, pages in groups().items():
            pages = [one for one in pages if shows(one.title)]
            if student or len(pages) == 1 or not heading:
                _links(pages, page)
            else:
                with st.expander(heading, expanded=page.group in ("", heading)):
                    _links(pages, page)


def _links(pages: list[Page], here: Page) -> None:
    for page in pages:
        page_link(page.title, f"**{page.title}**" if page is here else page.title)


def job_box() -> None:
    """Say which job and cluster are loaded, with a link to where they are changed."""
    opened = loaded()
    with st.container(key="job_box"):
        if opened is None:
            st.html('<p class="job"><b>No job loaded</b></p>')
            page_link("Home", "Choose a job")
            return
        cluster = opened.cluster
        switches = plural(cluster.switches, "switch", "switches")
        sizes = f"{plural(len(opened.graph.tasks), 'task')} · {plural(cluster.servers, 'server')} · {switches}"
        st.html(
            f'<p class="job"><b>{job_name(opened)}</b><span>{sizes}{_remark(opened)}</span></p>'
        )
        page_link("Home", "Change job")


def _remark(opened: Loaded) -> str:
    if opened_by_itself():
        return "<br>a sample, to begin with"
    if opened.assumed:
        return "<br>cluster assumed"
    return "<br>with your what-ifs" if scenario().has_what_ifs else ""


def job_name(opened: Loaded) -> str:
    """Return what a job is called, as HTML: a sample by its title, up to the colon."""
    now = scenario()
    named = now.source == "sample" and opened.title in SAMPLES
    return (
        source_name(now) if named else escape_untrusted(opened.graph.name or opened.title, "html")
    )


def source_name(source: Scenario) -> str:
    """Return what a sample or a generated workload is called, up to the colon."""
    known = SAMPLES if source.source == "sample" else WORKLOADS
    return known[source.name].title.partition(":")[0]
