"""The first words of a page; and those of the field: each leads to what the glossary says of it, by pointer, keyboard and touch."""

import re
from collections.abc import Callable
from functools import lru_cache
from html import escape
from pathlib import Path

import streamlit as st

from topox_core.text.glossary import glossary, occurrences
from topox_ui.state.session import Passing

_TAG = re.compile(r"(<[^>]*>)")
_STOP = re.compile(r"[.,;:!?)]+(?![\w/])")
# What is written inside these is not searched: a link, a button or code has a use of its own.
_NOT_WITHIN = re.compile(r"<(/?)(a|button|code|style)\b", re.IGNORECASE)
_SCRIPTS = [Path(__file__).with_name(f"{name}.js") for name in ("terms", "pictures", "menu")]
# Where the glossary lies, beside what a page is called.
ASK = '<a class="ask" href="Learn?view=glossary" aria-label="Glossary">?</a>'

# The kicker and the finding of the page in view, as they were written last.
FIRST_WORDS = Passing[tuple[str, str]]("first_words")
# On which plan the loaded job's numbers of the page in view rest, in words.
PLAN = Passing[str]("plan_in_view")
FOLLOW_S = 3.0  # how often what a page says and draws of a run that goes on is made anew
Follow = Callable[[], tuple[str, str]]


def say_first(kicker: str, finding: str, follow: Follow | None = None) -> None:
    """Write the kicker and the finding of a page; ``follow`` returns both anew, again and again while something runs."""
    if follow is not None:
        st.fragment(lambda: say_first(*follow()), run_every=FOLLOW_S)()
        return
    FIRST_WORDS.set((kicker, finding))
    st.html(
        f'<p class="kicker">{with_terms(kicker)} {ASK}</p><h1 class="headline">{with_terms(finding)}</h1>'
    )


@lru_cache(maxsize=4096)
def with_terms(html: str, besides: str = "") -> str:
    """Return HTML of our own in which the first use of each term is a button that its glossary entry describes.

    Parameters
    ----------
    besides
        The id of an entry whose words are left alone: that of the entry itself.
    """
    seen, pieces, closed = {besides}, [], 0
    for piece in _TAG.split(html):
        if piece.startswith("<"):
            within = _NOT_WITHIN.match(piece)
            closed += 0 if within is None else (-1 if within[1] else 1)
            pieces.append(piece)
        else:
            pieces.append(piece if closed else _marked(piece, seen))
    return "".join(pieces)


def _marked(text: str, seen: set[str]) -> str:
    pieces, at = [], 0
    for one in occurrences(text):
        if one.entry.id in seen:
            continue
        seen.add(one.entry.id)
        words = text[one.start : one.end]
        button = f'<button type="button" class="term" aria-describedby="term-{one.entry.id}">{words}</button>'
        # A browser may break the line beside a button; no line begins with the stop behind it.
        stop = _STOP.match(text, one.end)
        if stop is not None:
            button = f'<span class="stopped">{button}{stop[0]}</span>'
        pieces += [text[at : one.start], button]
        at = one.end if stop is None else stop.end()
    return "".join([*pieces, text[at:]])


@lru_cache(maxsize=1)
def explanations() -> str:
    """Return the texts of all entries, unseen, each under the id that its terms name, and the scripts of the whole page."""
    texts = "".join(f'<span id="term-{one.id}">{escape(one.text)}</span>' for one in glossary())
    scripts = "".join(f"<script>{one.read_text(encoding='utf-8')}</script>" for one in _SCRIPTS)
    return f'<div class="terms" hidden>{texts}</div>{scripts}'
