"""What every page begins with: page settings, style, navigation, the session's scenario, the theme."""

import gc
import re
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner_utils.script_requests import (
    RerunData,
    ScriptRequests,
    ScriptRequestType,
)
from streamlit.util import calc_hash

from topox_core.figures.palette import Theme, theme_of
from topox_core.labs.lab import texts_in
from topox_core.text.foreign import escape_untrusted
from topox_core.warm_up import Preparation, warm_up, warm_up_fabrics, warm_up_jobs
from topox_ui.classroom.access import (
    BEGINNING,
    OPEN_TO_STUDENTS,
    Entry,
    entry,
    join,
    limit_uploads,
    places,
)
from topox_ui.shell.menu import (
    go_to,
    job_name,
    leave_where_asked,
    menu,
    page_link,
    row_of_views,
    source_name,
)
from topox_ui.shell.pages import PAGES, Page, models, page_of
from topox_ui.shell.preparing import preparation, prepared, progress, wait_for_kernels
from topox_ui.shell.style import css
from topox_ui.shell.terms import ASK, explain_terms, with_terms
from topox_ui.state.address import ASKED, follow_address, keep_address, restore
from topox_ui.state.loading import AWAITED, GENERATE, loaded, open_first, opened_by_itself
from topox_ui.state.notices import notify_errors, show_notice
from topox_ui.state.page_state import ADDRESS_DUE, VIEW_KEY, PageState
from topox_ui.state.rejoin import keep_tab
from topox_ui.state.session import Passing
from topox_ui.state.widgets import SIDE, control, switch

STEPS = 200


def stretch_in_view(
    model: type[PageState], whole_ms: float, share: float, form: str
) -> tuple[float, float]:
    """Draw the slider of a page whose state has ``from_ms`` and ``to_ms``; return begin and end in ms.

    Parameters
    ----------
    share
        Of the whole, what is in view at first.
    form
        How the ends are written, such as ``%.1f ms``.
    """
    now = model.now().model_dump()
    low, high = now["from_ms"] or 0.0, now["to_ms"] or whole_ms * share
    step = whole_ms / STEPS
    view = (min(low, whole_ms - step), min(max(high, low + step), whole_ms))
    control(
        "slider",
        "Time window",
        model,
        "from_ms",
        value=view,
        min_value=0.0,
        max_value=whole_ms,
        step=step,
        take=lambda ends: model.choose(from_ms=ends[0], to_ms=ends[1]),
        format=form,
        label_visibility="collapsed",
    )
    keep_address()
    return view


def from_elsewhere(origin: str | None, host: str | None) -> bool:
    """Whether the page that asks was served by another program on this machine; Streamlit refuses those of other machines."""
    asking, asked = urlsplit(origin or ""), urlsplit(f"//{host or ''}")
    names = {"localhost", "127.0.0.1", "::1"}
    with suppress(ValueError):  # a port that is none
        here = asking.hostname in names and asked.hostname in names
        # A proxy that leaves the port out says nothing of it.
        return here and asked.port is not None and asking.port != asked.port
    return True


_REFUSED = Passing[str]("class_word_refused")


def admit(title: str) -> None:
    """Let the visitor go on to a page, or draw why not and stop."""
    outcome = entry(title)
    if outcome is Entry.OPEN:
        return
    with st.sidebar:
        keep_tab()
    st.html("<style>section[data-testid='stSidebar'] { display: none; }</style>")
    if outcome is Entry.JOIN:
        _ask_for_the_word()
    elif outcome is Entry.FULL:
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
    words = texts_in("en")

    def say(key: str) -> str:
        return words.say(f"classroom.join.{key}")

    st.html(f'<p class="kicker">{say("kicker")}</p><h1 class="headline">{say("headline")}</h1>')
    with st.form("class_join", width=420):
        st.text_input(say("word"), key="class_word", max_chars=40)
        st.form_submit_button(say("go"), on_click=_joined, type="primary")
    refused = _REFUSED.pop()
    if refused:
        st.error(say(refused), icon="⚠️")
    st.html(f'<p class="note">{say("privacy")}</p>')


def _joined() -> None:
    refused = join(str(st.session_state["class_word"]))
    if refused:
        _REFUSED.set(refused)


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


def keep_page_changes() -> None:
    """Let no timer undo a change of page, or of view.

    A fragment with ``run_every`` asks for its page again from the browser. While a server is busy,
    such a request could come after a click on a link: Streamlit 1.67 puts the two together under
    the page of the later one, and the click is lost. A page that is run whole runs its fragments as
    well, so that nothing is missed where the timer's request is dropped.
    """
    from streamlit.runtime.scriptrunner import script_runner

    script_runner.ScriptRequests = _Requests  # type: ignore[misc]


# Every tab asks so often; forty tabs that ask every other second keep a fifth of a core busy.
REDRAWN_S = 10

keep_page_changes()


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
    explain_terms()
    with st.sidebar:
        keep_tab()
        menu(page)
        # Drawn again when the viewer switches the theme, which alone does not rerun.
        _theme_watch(key="theme_watch", data={"drawn": theme.name}, on_changed_change=lambda: None)
        _draw_what_was_taken()
        progress()
        SIDE.set(st.container())
        switch("Larger text", Display, "large", help="For a projector: 18 px type.")
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
    from topox_ui.runs.panel import run_panel  # it draws with the functions of this file

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


def headline(kicker: str, finding: str) -> None:
    """Write the kicker and the finding; ``finding`` is HTML made of our own words and escaped names."""
    st.html(
        f'<p class="kicker">{with_terms(kicker)} {ASK}</p><h1 class="headline">{with_terms(finding)}</h1>'
    )
    row_of_views()
    show_notice()
    _ask_first()
    if opened_by_itself():
        with st.container(horizontal=True, vertical_alignment="center"):
            st.html(
                '<p class="by-itself">This is a sample: no job was chosen.</p>', width="content"
            )
            page_link("Home", "Choose another job")


def _ask_first() -> None:
    """Ask whether an address may open what it names in place of the reader's own job."""
    other, own = ASKED.get(), loaded()
    if other is None or own is None:
        return
    name, kind = source_name(other), "sample" if other.source == "sample" else "generated"
    with st.container(horizontal=True, vertical_alignment="center", key="asked"):
        st.html(
            f'<p class="by-itself" role="status">This link opens <b>{name}</b> ({kind}). '
            f"You have <b>{job_name(own)}</b> open.</p>",
            width="content",
        )
        button("Keep mine", "keep_own", "check", ADDRESS_DUE.set, True, primary=True)
        button(f"Open {name}", "open_other", "open_in_new", follow_address)


def emphasised(words: str) -> str:
    """Return a sentence as HTML, its numbers with units in bold."""
    text = escape(words)
    return re.sub(r"(?<![\w.,(])(\d[\d.,]*)\s(µs|ms|s|%)(?!\w)", r"<b>\1&nbsp;\2</b>", text)


def chart_title(title: str, note: str = "", beside: bool = False) -> None:
    """Write a chart's title and its grey line, under the title or beside it."""
    gap, place = ("&ensp;", "") if beside else ("", " class=under")
    write_html(f'<p class="chart">{title}{gap}<span{place}>{note}</span></p>')


def title_row(
    widths: Sequence[float], title: str, note: str = "", beside: bool = False
) -> list[DeltaGenerator]:
    """Write a chart's title as the first column of a row; return the others, where its controls go."""
    first, *others = st.columns(widths, vertical_alignment="bottom")
    with first:
        chart_title(title, note, beside)
    return others


def when_opened(
    label: str, key: str, draw: Callable[[], object], compact: bool = False, icon: str | None = None
) -> bool:
    """Draw a box that opens, and what is in it only where it is open; return whether it is."""
    box = st.expander(
        label,
        key=key,
        on_change="rerun",
        icon=icon and f":material/{icon}:",
        type="compact" if compact else "default",
    )
    if box.open:
        with box:
            draw()
    return bool(box.open)


def quiet(line: str) -> None:
    """Write a small grey line; it is HTML made of our own words and escaped names."""
    write_html(f'<p class="quiet">{line}</p>')


def write_html(html: str) -> None:
    """Write a text block, HTML made of our own words and escaped names, with its terms explained."""
    st.html(with_terms(html))


def button(
    label: str,
    key: str,
    icon: str,
    on_click: Callable[..., object],
    *args: object,
    primary: bool = False,
    disabled: bool = False,
    help: str | None = None,
) -> None:
    """Draw a button with a Material icon that calls ``on_click`` with ``args``."""
    st.button(
        label,
        key=key,
        icon=f":material/{icon}:",
        on_click=on_click,
        args=args,
        type="primary" if primary else "secondary",
        disabled=disabled,
        help=help,
    )


def file_box(
    label: str,
    key: str,
    take: Callable[[bytes, str], object],
    gone: Callable[[], object] = lambda: None,
    **options: Any,
) -> None:
    """Draw a box for a file; what is wrong with the one that is put into it is one line, and what was there stays.

    Parameters
    ----------
    take
        Is given the content of a file and its name.
    gone
        Is called where the file is taken out of the box.
    """
    st.file_uploader(label, key=key, on_change=_brought, args=(key, take, gone), **options)


@notify_errors()
def _brought(key: str, take: Callable[[bytes, str], object], gone: Callable[[], object]) -> None:
    file = st.session_state.get(key)
    if file is None:
        gone()
    else:
        take(file.getvalue(), file.name)


def escape(text: str) -> str:
    """Return text from a file or the address, safe within our HTML."""
    return escape_untrusted(text, "html")
