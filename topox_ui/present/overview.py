"""The page Present before a lab is on the projector: the labs, statistics, leaderboards."""

from __future__ import annotations

import streamlit as st

from topox_core.figures.palette import Theme
from topox_core.labs.lab import Lab
from topox_core.text.sentences import and_more
from topox_ui.classroom.profile import class_profile, labs_offered
from topox_ui.present.door import only_lecturers
from topox_ui.present.leaderboards import leaderboards
from topox_ui.present.state import PresentState, begin, say, see_switch, title_of
from topox_ui.present.statistics_view import statistics_view
from topox_ui.shell.charts import show_input_errors
from topox_ui.shell.page import button, chart_title, escape, headline, quiet, size_switch

MAX_LISTED = 12  # ids of which something is kept apart; the folders have all


def overview(theme: Theme) -> None:
    """Draw the part that is in view."""
    size_switch()
    only_lecturers()
    see = PresentState.now().see
    if see == "statistics":
        statistics_view(theme)
    elif see == "leaderboards":
        leaderboards()
    else:
        _labs()


def _labs() -> None:
    with show_input_errors(say("present.kicker"), "", reset=None):
        labs = labs_offered()
    headline(say("present.kicker"), say("present.headline", count=len(labs)))
    see_switch()
    _class_line()
    chart_title(say("present.labs"), say("present.labs_note"))
    columns = st.columns(2, gap="small")
    for at, lab in enumerate(labs.values()):
        with columns[at % 2], st.container(border=True, key=f"lab_{lab.id}"):
            _card(lab)
    quiet(say("present.how"))


def _card(lab: Lab) -> None:
    title = escape(title_of(lab))
    about = say(
        "present.about",
        minutes=lab.minutes,
        points=f"{lab.points:g}",
        questions=len(lab.questions),
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.html(f'<p class="card"><b>{title}</b><span>{about}</span></p>')
        button(say("present.begin"), f"begin_{lab.id}", "slideshow", begin, lab.id)


def _class_line() -> None:
    profile = class_profile()
    if profile is None:
        return
    line = say(
        "classroom.lecturer", course=escape(profile.course), word=f"<b>{escape(profile.word)}</b>"
    )
    st.html(f'<p class="note">{line}</p>')
    apart = sorted({one.student for one in profile.folder.apart()})
    if apart:
        listed = ", ".join(map(escape, apart[:MAX_LISTED])) + and_more(len(apart), MAX_LISTED)
        st.html(f'<p class="note">{say("classroom.apart_line", students=listed)}</p>')
        with st.container(horizontal=True):
            for at, student in enumerate(apart[:MAX_LISTED]):
                label = say("classroom.release", student=student)
                button(label, f"release_{at}", "lock_open", profile.folder.release, student)
