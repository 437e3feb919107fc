"""The door of a class: the page that asks for the word, and the lines for those who cannot come in."""

from __future__ import annotations

import streamlit as st

from topox_core.labs.texts_in import texts_in
from topox_ui.classroom.door import BEGINNING, Entry, entry, join, places
from topox_ui.shell.links import go_to
from topox_ui.shell.pages import PAGES
from topox_ui.state.rejoin import keep_tab
from topox_ui.state.session import Passing

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
    elif title == BEGINNING and any(page.title == "Labs" for page in PAGES):
        go_to("Labs")
    else:
        _say("closed")
        for page in PAGES:
            if page.title in ("Learn", "Labs", "Glossary"):
                st.page_link(page.path, label=page.title)
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
