"""The tour's frame: one screen at a time, its slider with the line that follows it, Back and Next."""

from __future__ import annotations

import streamlit as st

from topox_core.figures.palette import Theme
from topox_core.labs.tour import IN_TURNS, SCREENS, TOGETHER, Screen, live_line, notice, screen
from topox_core.text.numbers import time
from topox_ui.learn.figures import draw
from topox_ui.learn.state import LearnState
from topox_ui.shell.links import sample_link
from topox_ui.shell.page import button, chart_title, headline, page_link, quiet, write_html
from topox_ui.shell.pages import PAGES
from topox_ui.shell.preparing import prepared, wait_for_kernels
from topox_ui.state.store import choose, state_of
from topox_ui.state.widgets import slide

SAMPLE = "moe"
WORDS = {TOGETHER: "Together", IN_TURNS: "In turns"}


def tour(theme: Theme) -> None:
    """Draw the screen that the address names."""
    state = state_of(LearnState)
    one = screen(SCREENS[state.step - 1])
    headline(f"Learn · screen {state.step} of {len(SCREENS)}", f"<b>{one.title}</b>")
    words, picture = st.columns([1, 1.75], gap="large")
    with words:
        if not state.short:
            lines = "".join(f"<p>{sentence}</p>" for sentence in one.sentences)
            write_html(f'<div class="lesson">{lines}</div>')
        if prepared():
            value = _slider(one)
            write_html(f'<p class="live" role="status">{live_line(one.id, value)}</p>')
            quiet(notice(one.id))
    with picture:
        if prepared():
            chart_title(one.figure, one.figure_note)
            draw(one.id, value, theme)
    _steps(state)
    _contents(state)
    with picture:  # last: it ends the page
        wait_for_kernels()


def _slider(one: Screen) -> float:
    chosen = getattr(state_of(LearnState), one.id)
    wanted = one.start if chosen is None else chosen
    value = min(one.values, key=lambda step: abs(step - wanted))
    return float(
        slide(
            one.slider, LearnState, one.id, one.values, value=value, words=lambda v: _word(one, v)
        )
    )


def _word(one: Screen, value: float) -> str:
    if one.id == "sharing":
        return WORDS[value]
    return time(value) if one.unit else f"{value:g}"


def _steps(state: LearnState) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="tour_steps"):
        if state.step > 1:
            button("Back", "tour_back", "arrow_back", _go, state.step - 1)
        st.html(f'<p class="step">{state.step} of {len(SCREENS)}</p>', width="content")
        if state.step < len(SCREENS):
            button("Next", "tour_next", "arrow_forward", _go, state.step + 1, primary=True)
        else:
            _ways_on()
        st.space("stretch")
        label = "With all sentences" if state.short else "60-second version"
        st.button(label, key="tour_short", type="tertiary", on_click=_shorten, args=(state,))


def _contents(state: LearnState) -> None:
    """List the screens, so that a reader knows what comes and how long it is."""
    chart_title(
        "Six screens", "each with one slider; the 60-second version leaves the sentences out"
    )
    with st.container(horizontal=True, key="tour_contents"):
        for step, name in enumerate(SCREENS, start=1):
            label = f"{step}. {screen(name).title}"
            mark = {"disabled": True} if step == state.step else {"on_click": _go, "args": (step,)}
            st.button(label, key=f"tour_to_{step}", type="tertiary", **mark)  # type: ignore[arg-type]


def _go(step: int) -> None:
    choose(LearnState, step=step)


def _shorten(state: LearnState) -> None:
    choose(LearnState, short=not state.short)


def _ways_on() -> None:
    """Lead from the last screen to the first lab, to a sample, to the reader's own job."""
    if any(page.title == "Labs" for page in PAGES):
        page_link("Labs", "Try the first lab", **{"lab.id": "six-tasks", "lab.seed": "1"})
    with st.container(key="see", width="content"):
        sample_link(SAMPLE, "**Open a sample**")
    page_link("Home", "Bring your own job", way="files")
