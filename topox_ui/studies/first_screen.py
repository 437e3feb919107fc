"""The first screen of Studies: which study, what it says so far, how it is run; and what to begin with."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import streamlit as st

from topox_core.errors import InputError
from topox_core.figures.palette import Theme
from topox_core.io.sample_folder import SAMPLE_FOLDER
from topox_core.runs.pace import slowness
from topox_core.studies.axes import KIND_WORDS, Axis
from topox_core.studies.keys import axis_words, value_label
from topox_core.studies.ready import READY, Ready
from topox_core.studies.study import study_record
from topox_core.studies.study_run import SERVED
from topox_core.text.numbers import (
    count,
    delay_label,
    plural,
    seconds,
    uncapitalised,
    when,
)
from topox_ui.answers.keeping import HOW_ON, existing_library, keeps_runs, named_subject
from topox_ui.answers.other_times import on_schedule
from topox_ui.shell.charts import (
    button,
    chart_title,
    escape,
    file_box,
    headline,
    quiet,
    show_error,
    write_html,
)
from topox_ui.shell.menu import page_link
from topox_ui.shell.panel import run_note, watched
from topox_ui.state.loading import loaded
from topox_ui.state.session import notify_errors
from topox_ui.studies.choosing import StudiesState, finding, view_of
from topox_ui.studies.pictures import tornado_section
from topox_ui.studies.planning import (
    POINTS,
    PROBE,
    Asked,
    about_loaded,
    asked,
    begun_by_itself,
    expected_s,
    loaded_subject,
    processes,
    start,
    take,
    text_of,
)

CARDS_A_ROW = 3
FIRST = READY["what-matters"]  # what the page shows of the loaded job before anything is chosen
# Of ready studies: the page that shows the same of the loaded job without a study, and what its link says.
SHOWN_ON = {
    "crossover-map": ("Where which wins", "This job on Compare"),
    "jobs-in-turns": ("Sharing", "This job on Sharing"),
    "rails-delay": ("Rails", "This job on Rails"),
    "cost-tornado": ("Network", "These prices on Cost"),
}
# What came of each ready study about its own subject, and how long it took; ``tools/make_answers.py`` writes it.
ANSWERS = SAMPLE_FOLDER / "ready-studies.json"


def nothing_chosen(theme: Theme) -> None:
    """Show what the loaded job depends on most, and offer the other ready studies, those of the library, a file."""
    kicker = "Studies · many what-ifs at once"
    opened, named = loaded(), named_subject()
    about = None if named is None else named.as_record()
    own = opened is None or named is not None
    now = asked(text_of(about_loaded(FIRST, about))) if own else None
    title = "this job" if opened is None else escape(opened.title)
    asks = f"What does an iteration of <b>{title}</b> depend on most: delay, port speed or ports?"
    if now is not None and now.missing and begun_by_itself(now):
        headline(f"{kicker} · {title}", f"{asks} It is being computed.")
        watched(
            POINTS,
            "Computing points",
            lambda run: tornado_section(view_of(run.result()), theme, live=True),
            now.digest,
        )
    elif now is None or now.missing:
        headline(kicker, asks)
        run_note(POINTS)
        points = "it" if now is None else plural(now.missing, "point")
        button(f"Compute {points}", "study_loaded", "play_arrow", _begin, FIRST, True, primary=True)
    else:
        words = finding(now.result, now.plan.held)
        if (known := on_schedule()) and "Iteration time now" in words and known not in words:
            words += f" Schedule now has a plan of {known}, from a longer search."
        headline(f"{kicker} · {escape(now.plan.resolved.title)}", words)
        quiet(_base(now))
        tornado_section(view_of(now.result), theme)
    button("Open this study", "begin_what-matters", "arrow_forward", _begin, FIRST)
    chart_title(
        "More studies",
        "each opens about the loaded job where it can and says how long that takes; results and times here are of the examples",
    )
    names = [name for name in READY if READY[name] is not FIRST]
    for begin in range(0, len(names), CARDS_A_ROW):
        for column, name in zip(
            st.columns(CARDS_A_ROW), names[begin : begin + CARDS_A_ROW], strict=False
        ):
            with column.container(border=True, key=f"ready_{name}", height="stretch"):
                one = READY[name]
                st.html(
                    f'<p class="card"><b>{one.title}</b><span>{one.question}</span>'
                    f"<span>{came_of(name)}</span></p>"
                )
                with st.container(horizontal=True, vertical_alignment="center"):
                    button("Open this study", f"begin_{name}", "arrow_forward", _begin, one)
                    if name in SHOWN_ON:
                        page_link(*SHOWN_ON[name])
    chart_title("A study of your own", "from a file, which the command topox study reads too")
    open_box()
    _kept()
    if not keeps_runs():
        quiet(f"Points stay in this session. {HOW_ON}")


@cache
def came_of(name: str, timed: bool = True) -> str:
    """Return what came of a ready study about its own subject, as HTML; ``timed`` adds about how long that takes here."""
    one = json.loads(ANSWERS.read_text(encoding="utf-8"))[name]
    words = f"<b>Only an example, {escape(one['subject'])}:</b> {one['finding']}"
    takes_s = 2.0 + one["work_s"] * slowness() / processes()  # processes begin within 2 s
    took = f" {plural(one['points'], 'point')}, {time_words(takes_s)} for this example."
    return words + took * timed


def axis_chip(axis: Axis) -> str:
    """Return an axis as a chip says it: delay 7 values, 0 ms to 100 ms."""
    words, values = uncapitalised(axis_words(axis.key)), axis.values
    if axis.form == "replicates":
        return f"{words} <b>{count(len(values))} drawn</b>"
    labels = [escape(value_label(axis.key, value)) for value in values]
    if len(values) <= 3:
        return f"{words} <b>{', '.join(labels)}</b>"
    if axis.key.numeric:
        numbers = [v for v in values if isinstance(v, int | float)]
        low, high = (value_label(axis.key, f(numbers)) for f in (min, max))
        return f"{words} <b>{count(len(values))} values, {escape(low)} to {escape(high)}</b>"
    return f"{words} <b>{count(len(values))} values</b>"


def time_words(left_s: float) -> str:
    """Return an expected time, which is no better known than to two digits."""
    if left_s < 1:
        return "less than a second"
    return (
        f"about {seconds(float(f'{left_s:.2g}'))}"
        if left_s < 7200
        else f"about {left_s / 3600:.1f} hours"
    )


def _base(now: Asked) -> str:
    """Return from what cluster the first study begins, in a sentence."""
    own = now.plan.resolved.cluster
    assert own is not None
    fixed = now.plan.study.fixed
    ports, gbps, delay_ms = (
        fixed.get(f"cluster.{name}", getattr(own, name))
        for name in ("ports_per_server", "port_gbps", "reconfiguration_ms")
    )
    ports_words = plural(int(ports), "port")
    return (
        f"The line is the job as loaded: planned circuits, a delay of {delay_label(float(delay_ms))}, "
        f"{ports_words} of {float(gbps):g} Gbit/s per server. Each end of a bar is a new plan with that one setting "
        "changed. Plans that Prove it found do not count."
    )


def open_box() -> None:
    """Draw the box for a study's file."""
    file_box(
        "Open a study: .study.json",
        "up_study",
        lambda data, file: take(study_record(data, file)),
    )


@notify_errors()
def _begin(one: Ready, at_once: bool = False) -> None:
    """Begin with a ready study, about the loaded job where that is of its kind; compute it where that is asked."""
    named, subject = named_subject(), None
    if named is not None:
        subject = named.as_record() if named.kind in one.kinds else None
    elif loaded() is not None and "files" in one.kinds and keeps_runs():
        subject = loaded_subject()
    take(about_loaded(one, subject))
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
                f'<p class="question"><b>{escape(one.name)}</b>, {_about(one.record)}, '
                f"{count(one.kept)} of {plural(one.points, 'point')}, begun {when(one.created)}</p>",
                width="content",
            )


def _about(record: Mapping[str, Any]) -> str:
    """Return what a kept study is about, in a word or two."""
    subject = record.get("subject", {})
    named = (subject.get(key) for key in ("name", "generator", "preset", "graph", "file", "kind"))
    return escape(str(next((one for one in named if one), "")))


def _first_words(now: Asked) -> tuple[str, str]:
    """Return what stands first on a study's page: the kicker, and what its points say or, before there are any, its question."""
    study, result, title = now.plan.study, now.result, escape(now.plan.resolved.title)
    state = " · running" if now.running else "" if now.missing else " · complete"
    words = finding(result, now.plan.held, title)
    if not result.done:
        begun = f"<b>{plural(len(result.rows), 'point')}</b> of {title} are being computed; pictures show those that are there."
        asks = [
            f"{READY[k].question} {came_of(k, False)}"
            for k in READY
            if READY[k].title == study.name
        ]
        words = begun if now.running else (*asks, words)[0]
    return f"Studies · {escape(study.name)} · {title}{state}", words


def first_screen(now: Asked) -> None:
    """Draw the finding with the axes beside the run of the study."""
    head, side = st.columns([2.2, 1], gap="medium")
    study, result = now.plan.study, now.result
    with head:
        headline(*_first_words(now), (lambda: _first_words(asked())) if now.running else None)
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
    _of_other_versions(now)
    done = now.different - now.missing
    if not now.missing:
        every = f"All {plural(now.different, 'point')} are" if now.different > 1 else "The point is"
        write_html(f'<p class="seal good">✓ {every} computed</p>')
        if now.result.failed:
            failed = now.result.failed
            quiet(f"{plural(failed, 'point')} of them cannot run; the table says why.")
        _served(now)
        quiet(_where())
        return
    points = f"<b>{count(done)} of {plural(now.different, 'point')}</b> are computed"
    if not done:
        points = f"<b>{plural(now.different, 'point')}</b> to compute"
    write_html(f'<p class="claim">{points} for <b>{escape(now.plan.resolved.title)}</b></p>')
    left = expected_s(now)
    takes = f", {time_words(left)}" if left is not None else ""
    button(
        f"{'Go on' if done else 'Compute'}{takes}",
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


def _of_other_versions(now: Asked) -> None:
    """Say how many points another version of the program computed, and offer to show them, or to compute them anew."""
    if not now.others:
        return
    shown = StudiesState.now().others
    points = plural(now.others, "point")
    state = "may differ" if shown else "not shown"
    quiet(f"<b>{points}</b> from another version of this program: {state}.")
    if shown:
        button("Compute them anew", "anew", "replay", _anew, help=RESTARTED)
    else:
        button("Show them", "others", "visibility", lambda: StudiesState.choose(others=True))


def _served(now: Asked) -> None:
    """Say how many points have another point's plan, so that their times are not those of pages or other studies."""
    if served := sum(row.message == SERVED for row in now.result.rows):
        counts = "counts" if served == 1 else "count"
        quiet(
            f"<b>{plural(served, 'point')}</b> {counts} with a plan made for a longer delay, or for slower or fewer ports: it is "
            "shorter than the own plan that Schedule, or a study without those settings, begins with."
        )


RESTARTED = "Where they do not stay, this server runs an older version than its files: restart it."


@notify_errors()
def _anew() -> None:
    StudiesState.choose(others=None)
    start(asked())


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
