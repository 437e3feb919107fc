"""The glossary as a page: all entries, or those that a filter or a link asks for."""

from __future__ import annotations

from collections.abc import Set

import streamlit as st

from topox_core.text.glossary import Entry, entry_of, glossary
from topox_ui.learn.state import GlossaryState
from topox_ui.shell.page import escape, headline, quiet
from topox_ui.shell.terms import with_terms
from topox_ui.state.widgets import control

STEM = 5  # letters by which forms of one word are known


def entries() -> None:
    """Draw the filter and the entries."""
    state = GlossaryState.now()
    every = sorted(glossary(), key=lambda one: one.term.casefold())
    headline(
        "Glossary",
        f"<b>{len(every)}</b> words of the field, from A to Z, each in a sentence or two.",
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        find = control(
            "text_input",
            "Find a word",
            GlossaryState,
            "find",
            placeholder="Type part of a word",
            max_chars=60,
            width=320,
        )
        if state.find or state.term:
            st.button(
                "All words",
                key="all_words",
                on_click=GlossaryState.choose,
                kwargs={"find": None, "term": None},
            )
    if state.term:
        st.html(
            f'<dl class="glossary asked">{_entry(entry_of(state.term), {one.id for one in every})}</dl>'
        )
    shown = [one for one in every if one.id != state.term and _has(one, find)]
    if shown:
        here = {one.id for one in shown}
        st.html(f'<dl class="glossary">{"".join(_entry(one, here) for one in shown)}</dl>')
    elif not state.term:
        quiet(f"No entry has “{escape(find)}”. Try a shorter word, or only its beginning.")


def _has(entry: Entry, find: str) -> bool:
    text = " ".join((entry.term, entry.text, *entry.also, *entry.labels)).casefold()
    return all(word in text for word in find.casefold().split())


def _entry(entry: Entry, here: Set[str]) -> str:
    """Return an entry as HTML, the terms of others in it explained; it leads to related ones that are on the page."""
    others = [word for word in entry.also if not _varies(word, entry.term)]
    also = f'<span class="also">Also: {", ".join(others)}</span>' if others else ""
    related = ", ".join(
        f'<a href="#entry-{name}">{entry_of(name).term}</a>'
        if name in here
        else entry_of(name).term
        for name in entry.see
    )
    see = f'<span class="also">See: {related}</span>' if related else ""
    body = with_terms(entry.text, entry.id)
    return f'<div id="entry-{entry.id}"><dt>{entry.term}</dt><dd>{body}{see}{also}</dd></div>'


def _varies(word: str, term: str) -> bool:
    """Whether a word is only another form of a term: in it, or made of the same stems."""
    word, term = word.casefold(), term.casefold()
    stems = [part[:STEM] for part in term.split() if not part.startswith("(")]
    return word in term or all(stem in word for stem in stems)
