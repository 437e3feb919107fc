"""Links from page to page; the menu: what is loaded, then the entries by group; and the row of an entry's views."""

import streamlit as st

from topox_core.studies.keys import KEYS, value_label
from topox_core.text.foreign import escape_untrusted
from topox_core.text.numbers import enumeration, plural, uncapitalised
from topox_core.workloads.samples import SAMPLES
from topox_ui.classroom.held import is_student, shows
from topox_ui.shell.pages import PAGES, Page, groups, page_of
from topox_ui.state.address import follow_address
from topox_ui.state.loading import DIFFERS, Loaded, loaded, opened_by_itself, scenario
from topox_ui.state.scenario import CLUSTER, SOURCE, SOURCES, Scenario
from topox_ui.state.session import PLACE, Passing, link_query, states

# Where a click leads, by path and query: only the script may leave its page, a callback may not.
_LEAVING = Passing[tuple[str, dict[str, str]]]("leaving")


def page_link(title: str, label: str, icon: str | None = None, **query: str) -> None:
    """Draw a link to a page that carries what was chosen for it, and what is given."""
    page = page_of(title)
    carried = page.query | link_query(page.carried)
    st.page_link(page.path, label=label, icon=icon, query_params=carried | query)


def go_to(title: str, **query: str) -> None:
    """Leave for a page, with what was chosen for it and what is given; not within a callback."""
    page = page_of(title)
    st.switch_page(page.path, query_params=page.query | link_query(page.carried) | query)


def leave_for(title: str, *, carries: bool = True, **query: str) -> None:
    """Leave for a page when this one is drawn next, with what is given, and what was chosen for it if that is carried."""
    page = page_of(title)
    _LEAVING.set((page.path, page.query | (link_query(page.carried) if carries else {}) | query))


def leave_where_asked() -> None:
    """Leave for the page that a callback asked for; every page begins with it."""
    asked = _LEAVING.pop()
    if asked is not None:
        follow_address()  # a click is an answer: it is not asked again
        st.switch_page(asked[0], query_params=asked[1])


def sample_link(name: str, label: str) -> None:
    """Draw a link to the schedule of a sample: it takes nothing along that belongs to the graph in view."""
    page = page_of("Schedule")
    kept = {
        key: one for key, one in states().items() if not (one.of_graph or isinstance(one, Scenario))
    }
    query = link_query(page.carried, kept) | {"sample": name}
    if scenario().source != "upload":
        st.page_link(page.path, label=label, query_params=query)
    elif st.button(label, key=f"open_{name}", type="tertiary"):
        follow_address()  # a click is an answer: it is not asked again
        st.switch_page(page.path, query_params=query)


def menu(page: Page) -> None:
    """Draw the menu of a page into the sidebar."""
    here = page.views[0]
    st.html('<p class="brand">TOPO-X <b>Workbench</b></p>')
    student = is_student()
    if not student:
        job_box()
    with st.container(key="menu"):
        for heading, entries in groups().items():
            entries = [one for one in entries if shows(one.title)]
            if student or len(entries) == 1 or not heading:
                _links(entries, here)
            else:
                with st.expander(heading, expanded=True):
                    _links(entries, here)


def _links(entries: list[Page], here: Page) -> None:
    for one in entries:
        page_link(one.title, f"**{one.title}**" if one is here else one.title)


def row_of_views() -> None:
    """Draw the views of the entry in view side by side: the one in view as a word, the others as links."""
    script, word = PLACE.get() or ("", "")
    views = [one for one in PAGES if one.path == script and one.listed and shows(one.title)]
    if len(views) > 1:
        with st.container(horizontal=True, vertical_alignment="center", key="views"):
            for one in views:
                label = one.label or one.title
                if one.view == word:
                    st.html(f'<p class="here" aria-current="page">{label}</p>', width="content")
                else:
                    page_link(one.title, label)


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
        name, joint, changes = job_name(opened).partition(DIFFERS)
        changed = f"{joint}{changes}<br>" if joint else ""
        sizes = f"{plural(len(opened.graph.tasks), 'task')} · {plural(cluster.servers, 'server')} · {switches}"
        st.html(f'<p class="job"><b>{name}</b><span>{changed}{sizes}{_remark(opened)}</span></p>')
        page_link("Home", "Change job")


def _remark(opened: Loaded) -> str:
    remark = "<br>cluster assumed" if opened.assumed else ""
    if opened_by_itself():
        remark = "<br>a sample, to begin with"
    told = what_if_words(opened)
    return f"{remark}<br>what if: {enumeration(told)}" if told else remark


def what_if_words(opened: Loaded) -> list[str]:
    """Return which choices differ from the files: of the cluster with both values, the rest by their number."""
    changed = {k: value for k, value in scenario().choices().items() if k not in SOURCE}
    told = [
        f"{uncapitalised(key.words)} {value_label(key, changed[name])} instead of {value_label(key, getattr(opened.cluster, name))}"
        for name in CLUSTER
        if name in changed
        for key in (KEYS[f"cluster.{name}"],)
    ]
    rest = len(changed) - len(told)
    return [*told, plural(rest, "other setting")] if rest else told


def job_name(opened: Loaded) -> str:
    """Return what a job is called, as HTML: a sample by its title, up to the colon, what was generated as pages call it."""
    now = scenario()
    if now.source == "sample" and opened.title in SAMPLES:
        return source_name(now)
    made = now.source == "workload"
    return escape_untrusted(opened.title if made else opened.graph.name or opened.title, "html")


def source_name(source: Scenario) -> str:
    """Return what a sample or a generated workload is called, up to the colon."""
    return SOURCES[source.source][source.name].title.partition(":")[0]
