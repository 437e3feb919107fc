"""The first screen of Studies: which study, what it says so far, how it is run; and what to begin with."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from topox_core.errors import InputError
from topox_core.figures.palette import Theme
from topox_core.studies.axes import KIND_WORDS
from topox_core.studies.point import run_cell
from topox_core.studies.ready import READY, Ready
from topox_core.studies.study import study_record
from topox_core.studies.study_run import StudyResult, plan_of, row_of
from topox_core.text.numbers import count, plural, when
from topox_ui.answers.keeping import named_subject
from topox_ui.answers.run_library import HOW_ON, existing_library, keeps_runs
from topox_ui.runs.panel import watched
from topox_ui.shell.charts import show_error
from topox_ui.shell.page import (
    button,
    chart_title,
    escape,
    file_box,
    headline,
    quiet,
    write_html,
)
from topox_ui.state.loading import loaded, opened_by_itself
from topox_ui.state.notices import notify_errors
from topox_ui.studies.choosing import axis_chip, finding, time_words, view_of
from topox_ui.studies.pictures import tornado_section
from topox_ui.studies.planning import (
    POINTS,
    PROBE,
    Asked,
    asked,
    expected_s,
    processes,
    start,
    take,
)
from topox_ui.studies.state import StudiesState

CARDS_A_ROW = 3
EXAMPLE = "cost-tornado"
OWN = "ports-and-speed"  # what is asked of the loaded job with one click
OWN_FILES = "Your own files are studied once “the loaded job” is chosen as the subject of a study, under “Build”."


def nothing_chosen(theme: Theme) -> None:
    """Offer a study of the loaded job, show a ready one with its picture, and offer the others, those of the library, a file."""
    shown, result = READY[EXAMPLE], example()
    opened = None if opened_by_itself() else loaded()
    kicker = "Studies · many what-ifs at once, computed beside the page"
    if opened is not None and _about_loaded(READY[OWN]) is not None:
        headline(
            kicker,
            f"What would more or faster ports save <b>{escape(opened.title)}</b>, and what do they cost? One click computes it.",
        )
        words = f"Study {opened.title}"
        button(words, "study_loaded", "play_arrow", _begin, READY[OWN], True, primary=True)
        quiet(f"<b>An example, already computed:</b> {finding(result)}")
    else:
        headline(f"{kicker} · an example, already computed: {escape(shown.title)}", finding(result))
        quiet(f"Choose a study below and change what varies. {OWN_FILES if opened else ''}")
    tornado_section(view_of(result), theme)
    names = list(READY)
    for begin in range(0, len(names), CARDS_A_ROW):
        for column, name in zip(
            st.columns(CARDS_A_ROW), names[begin : begin + CARDS_A_ROW], strict=False
        ):
            with column.container(border=True, key=f"ready_{name}", height="stretch"):
                one = READY[name]
                st.html(f'<p class="card"><b>{one.title}</b><span>{one.question}</span></p>')
                button("Start with this study", f"begin_{name}", "arrow_forward", _begin, one)
    chart_title("A study of your own", "from a file, which the command topox study reads too")
    open_box()
    _kept()
    if not keeps_runs():
        quiet(f"Points stay in this session. {HOW_ON}")


@st.cache_resource(show_spinner="Computing a ready study")
def example() -> StudyResult:
    """Return the ready study that the page begins with: its points are bills, a few milliseconds each."""
    plan = plan_of(READY[EXAMPLE].study())
    rows = {key: row_of(run_cell(plan.job, cell)) for cell, key in plan.keys.items()}
    return StudyResult(plan.study, plan.rows(rows))


def open_box() -> None:
    """Draw the box for a study's file."""
    file_box(
        "Open a study: .study.json",
        "up_study",
        lambda data, file: take(study_record(data, file)),
    )


def _about_loaded(one: Ready) -> Mapping[str, Any] | None:
    """Return the loaded job as a ready study names it; None where it is not of its kind."""
    named = named_subject() if loaded() is not None else None
    return named.as_record() if named is not None and named.kind in one.kinds else None


@notify_errors()
def _begin(one: Ready, at_once: bool = False) -> None:
    """Begin with a ready study, about the loaded job where that is of its kind; compute it where that is asked."""
    take(one.record(_about_loaded(one)))
    if at_once:
        start(asked())


def _kept() -> None:
    """List the studies of the library, newest first."""
    library = existing_library()
    studies = library.studies()[:20] if library is not None else []
    if not studies:
        return
    chart_title("Kept studies", "newest first; each continues where it stopped")
    for one in studies:
        with st.container(horizontal=True, vertical_alignment="center", key=f"kept_study_{one.id}"):
            button("Open", f"open_study_{one.id}", "folder_open", notify_errors()(take), one.record)
            st.html(
                f'<p class="question"><b>{escape(one.name)}</b>, {count(one.kept)} of {plural(one.points, "point")}, '
                f"begun {when(one.created)}</p>",
                width="content",
            )


def first_screen(now: Asked) -> None:
    """Draw the finding with the axes beside the run of the study."""
    head, side = st.columns([2.2, 1], gap="medium")
    study, result = now.plan.study, now.result
    with head:
        state = " · running" if now.running else "" if now.missing else " · complete"
        kicker = f"Studies · {escape(study.name)} · {escape(now.plan.resolved.title)}{state}"
        begun = f"<b>{plural(len(result.rows), 'point')}</b> are being computed; pictures show those that are there."
        headline(kicker, begun if now.running and not result.done else finding(result))
        chips = [axis_chip(axis) for axis in study.axes]
        points = f"= <b>{plural(len(result.rows), 'point')}</b>"
        if study.design.kind != "grid":
            points += f", {KIND_WORDS[study.design.kind]}"
        write_html(
            '<p class="chips">'
            + " ".join(f"<span>{one}</span>" for one in (*chips, points))
            + "</p>"
        )
    with side, st.container(border=True, key="study_panel"):
        _panel(now)


def _panel(now: Asked) -> None:
    if watched(POINTS, "Computing points", key=now.digest):
        quiet(_where())
        return
    done = now.different - now.missing
    if not now.missing:
        every = f"All {plural(now.different, 'point')} are" if now.different > 1 else "The point is"
        write_html(f'<p class="seal good">✓ {every} computed</p>')
        if now.result.failed:
            failed = now.result.failed
            quiet(f"{plural(failed, 'point')} of them cannot run; the table says why.")
        quiet(_where())
        return
    words = (
        f"<b>{count(done)} of {plural(now.different, 'point')}</b> are computed"
        if done
        else (f"<b>{plural(now.different, 'point')}</b> to compute")
    )
    left = expected_s(now)
    when = f", {time_words(left)}" if left is not None else ""
    write_html(f'<p class="claim">{words}{when}</p>')
    button(
        "Go on" if done else "Compute",
        "start_study",
        "play_arrow",
        start,
        now,
        primary=True,
        help="Runs beside the page: you can leave it and come back.",
    )
    if left is None:
        watched(PROBE, "Measuring three points", key=now.digest)
    quiet(_where())


def _where() -> str:
    """Say where points are computed and kept."""
    kept = (
        "Each point is kept once it is computed: you can stop and go on later."
        if keeps_runs()
        else "Points stay in this session: this server keeps no runs."
    )
    return f"{plural(processes(), 'process', 'processes')} on this machine. {kept}"


def wrong_study(error: InputError) -> None:
    """Say what is wrong with a link's study, and offer the way back."""
    headline("Studies", "This study <b>cannot be read</b>. Begin with another one.")
    show_error(error)
    back_button()


def back_button() -> None:
    """Offer the list of studies."""
    button("All studies", "all_studies", "list", lambda: StudiesState.choose(of=None))
