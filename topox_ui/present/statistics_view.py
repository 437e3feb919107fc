"""Statistics of a class: every question's share that is right, one question's spread, as files without names."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from topox_core.errors import InputError
from topox_core.figures.palette import Theme
from topox_core.labs.folder import Unreadable, answers_in
from topox_core.labs.keys import key_of
from topox_core.labs.lab import CLASS_SEED, Lab, texts_in
from topox_core.labs.presentation import key_words
from topox_core.labs.statistics import (
    QuestionStatistics,
    lab_statistics,
    statistics_csv,
    statistics_html,
    statistics_rows,
)
from topox_ui.classroom.profile import class_profile, labs_offered
from topox_ui.present.answers import MAX_FILES, answers_to, handed
from topox_ui.present.state import PresentState, say, see_switch, source, title_of
from topox_ui.present.tally import draw_spread, upload_box
from topox_ui.shell.charts import frame, show_input_errors
from topox_ui.shell.downloads import download_menu, stem
from topox_ui.shell.page import chart_title, escape, headline, quiet
from topox_ui.state.widgets import menu

MAX_NAMED = 5


def statistics_view(theme: Theme) -> None:
    """Draw the statistics of one lab."""
    kicker = say("present.kicker")
    with show_input_errors(kicker, "", reset=None):
        labs = labs_offered()
    lab = labs.get(PresentState.now().about) or next(iter(labs.values()))
    every = lab_statistics(lab, answers_to(lab))
    count = len(answers_to(lab))
    title = escape(title_of(lab))
    finding = (
        say("present_statistics.headline", count=count, lab=title)
        if count
        else say("present_statistics.headline_none")
    )
    headline(kicker, finding)
    see_switch()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        titles = {name: title_of(one) for name, one in labs.items()}
        menu(say("present_statistics.lab"), PresentState, "about", titles, width=320)
        if count:
            download_menu(
                stem(lab.id),
                [
                    (
                        say("present_statistics.csv"),
                        ".statistics.csv",
                        lambda: statistics_csv(lab, every),
                    ),
                    (
                        say("present_statistics.html"),
                        ".statistics.html",
                        lambda: statistics_html(lab, every).encode(),
                    ),
                ],
            )
    if source() != "folder":
        upload_box(say("present_statistics.folder", most=MAX_FILES), "up_statistics")
    _not_read(_refused(lab))
    quiet(say("present_statistics.no_names"))
    if count:
        _table(lab, every)
        _one(lab, every, theme)


def _refused(lab: Lab) -> list[Unreadable]:
    """Return the files that are not counted."""
    profile = class_profile()
    if profile is None or source() != "folder":
        return handed().refused
    try:
        return answers_in(Path(profile.folder.path / lab.id))[1]
    except InputError:
        return []


def _not_read(refused: list[Unreadable]) -> None:
    for one in refused[:MAX_NAMED]:
        quiet(
            say("present_statistics.not_read", file=escape(one.file), problem=escape(one.problem))
        )
    if len(refused) > MAX_NAMED:
        quiet(f"+ {len(refused) - MAX_NAMED}")


def _table(lab: Lab, every: tuple[QuestionStatistics, ...]) -> None:
    chart_title(say("present_statistics.table"), say("present_statistics.table_note"))
    names = ("question", "answers", "right", "again", "mistake", "times")
    rows = statistics_rows(lab, every)
    frame(
        [
            dict(
                zip(
                    [say(f"present_statistics.column.{name}") for name in names],
                    _cells(row),
                    strict=True,
                )
            )
            for row in rows
        ]
    )


def _cells(row: tuple[str, int, float | None, float | None, str, int | None]) -> list[object]:
    question, count, right, again, mistake, times = row
    shares = ["" if share is None else f"{100 * share:.0f} %" for share in (right, again)]
    return [question, count, *shares, mistake, times]


def _one(lab: Lab, every: tuple[QuestionStatistics, ...], theme: Theme) -> None:
    """Draw the spread of one question with its truth."""
    drawn = {one.question: one for one in every if one.count and (one.options or one.values)}
    if not drawn:
        return
    chart_title(say("present_statistics.spread"), say("present_statistics.spread_note"))
    name = st.selectbox(
        say("present_statistics.question"), list(drawn), key="statistics_question", width=200
    )
    question, one = lab.question(name), drawn[name]
    key = key_of(lab, question, CLASS_SEED)
    text = key_words(lab, question, key, CLASS_SEED, texts_in(lab.language))
    draw_spread(lab, question, one, theme, key, text, "class_spread")
