"""What the script of an entry does: it begins a page, with style and navigation, and draws the view that the address names."""

import gc
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import streamlit as st
from streamlit.runtime.scriptrunner import script_runner
from streamlit.runtime.scriptrunner_utils.script_requests import (
    RerunData,
    ScriptRequests,
    ScriptRequestType,
)
from streamlit.util import calc_hash

from topox_core.figures.palette import Theme, theme_of
from topox_core.labs.lab import texts_in
from topox_core.warm_up import Preparation, warm_up, warm_up_fabrics, warm_up_jobs
from topox_ui.classroom.held import (
    BEGINNING,
    OPEN_TO_STUDENTS,
    entry,
    join,
    limit_uploads,
    places,
)
from topox_ui.shell.charts import headline
from topox_ui.shell.downloads import CITED, cite_menu, graph_kept_here, link_menu
from topox_ui.shell.menu import go_to, leave_where_asked, menu, page_link
from topox_ui.shell.pages import PAGES, Page, imported, models, page_of
from topox_ui.shell.panel import run_panel
from topox_ui.shell.preparing import preparation, prepared, progress, wait_for_kernels
from topox_ui.shell.style import css
from topox_ui.shell.terms import PLAN, explanations
from topox_ui.state.address import keep_tab, restore
from topox_ui.state.loading import AWAITED, GENERATE, loaded, open_first
from topox_ui.state.session import ADDRESS_DUE, VIEW_KEY, PageState, Passing
from topox_ui.state.widgets import SIDE, switch


def from_elsewhere(origin: str | None, host: str | None) -> bool:
    """Whether the page that asks was served by another program on this machine; Streamlit refuses those of other machines."""
    asking, asked = urlsplit(origin or ""), urlsplit(f"//{host or ''}")
    names = {"localhost", "127.0.0.1", "::1"}
    with suppress(ValueError):  # a port that is none
        here = asking.hostname in names and asked.hostname in names
        # A proxy that leaves the port out says nothing of it.
        return here and asked.port is not None and asking.port != asked.port
    return True


# Why the word that was typed last opens nothing.
_REFUSED = Passing[str]("word_refused")


def admit(title: str) -> None:
    """Let the visitor go on to a page, or draw why not and stop."""
    outcome = entry(title)
    if outcome == "open":
        return
    with st.sidebar:
        keep_tab()
    st.html("<style>section[data-testid='stSidebar'] { display: none; }</style>")
    if outcome == "join":
        _ask_for_the_word()
    elif outcome == "full":
        _say("full", most=places().most)
    elif title == BEGINNING:
        go_to("Labs")
    else:
        _say("closed")
        for open_one in map(page_of, OPEN_TO_STUDENTS):
            st.page_link(open_one.path, label=open_one.title, query_params=open_one.query)
    st.stop()


def _say(name: str, **facts: object) -> None:
    words = texts_in("en")
    st.html(f'<h1 class="headline">{words.say(f"classroom.{name}.headline", **facts)}</h1>')
    st.html(f"<p>{words.say(f'classroom.{name}.line', **facts)}</p>")


def _ask_for_the_word() -> None:
    def say(key: str) -> str:
        return texts_in("en").say(f"classroom.join.{key}")

    st.html(f'<p class="kicker">{say("kicker")}</p><h1 class="headline">{say("headline")}</h1>')
    ask_for_a_word("class_word", say, join, max_chars=40)
    st.html(f'<p class="note">{say("privacy")}</p>')


def ask_for_a_word(
    key: str, say: Callable[[str], str], take: Callable[[str], str], **options: Any
) -> None:
    """Draw the form for a word, and why the last one was refused.

    Parameters
    ----------
    say
        Says ``word``, ``go``, and each reason.
    take
        Is given the word that was typed; returns empty, or the reason why it is refused.
    """

    def typed() -> None:
        if refused := take(str(st.session_state[key])):
            _REFUSED.set(refused)

    with st.form(f"form_{key}", width=420):
        st.text_input(say("word"), key=key, **options)
        st.form_submit_button(say("go"), on_click=typed, type="primary")
    if refused := _REFUSED.pop():
        st.error(say(refused), icon="⚠️")


class _Requests(ScriptRequests):
    """Requests to run a page's script, of which those of a page that is left behind are dropped."""

    def _request_rerun_locked(self, new_data: RerunData) -> bool:
        """Record a request; a timer's, sent by a browser that does not know of the new page yet, is none."""
        asked_for, here = self._rerun_data, new_data.page_script_hash
        left = asked_for.page_script_hash not in ("", here) or (
            asked_for.page_script_hash == here and _view(asked_for) != _view(new_data)
        )
        if new_data.is_auto_rerun and left and self._state != ScriptRequestType.STOP:
            return True
        return super()._request_rerun_locked(new_data)


def _view(data: RerunData) -> str:
    """Return the word of the view that a request asks for: all views of an entry have its script."""
    word = parse_qs(data.query_string).get(VIEW_KEY, [""])[-1]
    scripts = {calc_hash(page.address) for page in PAGES if page.view == word}
    return word if data.page_script_hash in scripts else ""


# A fragment with ``run_every`` asks for its page again from the browser. While a server is busy, such a
# request could come after a click on a link: Streamlit 1.67 puts the two together under the page of the
# later one, and the click is lost. A page that is run whole runs its fragments as well, so that nothing is
# missed where the timer's request is dropped.
script_runner.ScriptRequests = _Requests  # type: ignore[misc]
# Every tab asks so often; forty tabs that ask every other second keep a fifth of a core busy.
REDRAWN_S = 10


class Display(PageState):
    """How all pages are drawn."""

    large: bool = False


def frame(page: Page) -> Theme:
    """Begin a page and return how its figures are drawn.

    A page that is about a task graph opens a sample where none is loaded.
    """
    st.set_page_config(
        page_title=f"{page.title} · TOPO-X Workbench",
        page_icon="🔀",
        layout="wide",
        initial_sidebar_state="auto",
    )
    if from_elsewhere(st.context.headers.get("Origin"), st.context.headers.get("Host")):
        st.html(
            "<p>A page of another program requested this one. Open the workbench by its own address.</p>"
        )
        st.stop()
    limit_uploads()
    admit(page.title)
    restore((page.path, page.view), page.carried, models)
    leave_where_asked()
    if page.needs_graph and loaded() is None and not AWAITED.there:
        open_first()
    large = Display.now().large
    theme = replace(theme_of(st.context.theme.type or "light"), scale=1.2 if large else 1.0)
    st.html(css(theme, large))
    st.html(explanations(), unsafe_allow_javascript=True)
    with st.sidebar:
        keep_tab()
        menu(page)
        # Drawn again when the viewer switches the theme, which alone does not rerun.
        _theme_watch(key="theme_watch", data={"drawn": theme.name}, on_changed_change=lambda: None)
        _draw_what_was_taken()
        progress()
        SIDE.set(st.container())
        switch(Display, "large", label="Larger text", help="For a projector: 18 px type.")
    if AWAITED.there:
        _generating()
    if page.needs_graph and loaded() is None:  # the server takes not even the sample
        headline(page.title, "<b>No job is loaded.</b> Choose one on the page Home.")
        page_link("Home", "Choose a job")
        st.stop()
    if page.compiled and not prepared():
        headline(page.title, "This page <b>waits</b>: its kernels are being compiled.")
        wait_for_kernels()
    return theme


def _generating() -> None:
    """Show the generation of a large task graph beside the page, and stop: the page comes with the graph."""
    headline("Generating", "The task graph is <b>large</b>: it is generated beside this page.")
    run_panel(GENERATE, "Generating the task graph")
    st.stop()


@st.cache_resource
def warmed() -> threading.Thread:
    """Load the compiled kernels beside the first visitor, once there are any, so that no click waits for them."""
    thread = threading.Thread(target=_load, args=(preparation(),), name="warm up", daemon=True)
    thread.start()
    return thread


def _load(coming: Preparation) -> None:
    coming.wait()
    warm_up()
    warm_up_fabrics()
    warm_up_jobs()
    # Streamlit collects garbage after every run of a page, twice a second while a solve is watched.
    # Modules and compiled code are none and by far the most of what it would look through: 0.13 s
    # in which nothing else is answered.
    gc.collect()
    gc.freeze()


# Whether the theme is still the one that was drawn is looked at in the browser: a timer of every tab
# would ask the server.
_THEME_SCRIPT = """
export default function ({ data, parentElement, setTriggerValue }) {
  const here = parentElement.host ?? parentElement;
  const ground = () => getComputedStyle(here).getPropertyValue("--st-background-color");
  let seen = ground();
  const timer = setInterval(() => {
    if (ground() !== seen) {
      seen = ground();
      setTriggerValue("changed", data.drawn);
    }
  }, 300);
  return () => clearInterval(timer);
}
"""
_theme_watch = st.components.v2.component("topox_theme", js=_THEME_SCRIPT)


@st.fragment(run_every=REDRAWN_S)
def _draw_what_was_taken() -> None:
    """Redraw where a choice was taken and not drawn."""
    if ADDRESS_DUE.there:
        st.rerun()


_lead = st.components.v2.component(
    "topox_lead_on", js=Path(__file__).with_name("lead_on.js").read_text(encoding="utf-8")
)


def draw_entry(title: str) -> None:
    """Draw the view of an entry that the address names, the first where it names none."""
    page = page_of(title).at(st.query_params.get(VIEW_KEY, ""))
    theme = frame(page)
    CITED.pop()
    PLAN.pop()
    imported(page.draw)(theme, *([loaded()] if page.needs_graph else []))
    if page.linked:
        link_menu(graph_kept_here() if page.needs_graph else "")
    elif not CITED.there:
        cite_menu(graph_kept_here() if loaded() is not None else "")
    if page.then:
        page_link(page.then, page_of(page.then).question, icon=":material/arrow_forward:")
    # Not before: what loads kernels beside the first page makes its visitor wait for them.
    warmed()


def lead_on(title: str) -> None:
    """Lead from an old address to a page, with all that the address says; Back does not come here again."""
    page = page_of(title)
    # In the browser: a change of page by the server would leave the old address in the history, and
    # whoever went back to it would be led on again.
    _lead(key="lead_on", data={"path": page.address, "query": page.query})
