"""Present: labs for a class in a row of slides, statistics of its answers, leaderboards of what the checker finds."""

from functools import partial
from pathlib import Path

import streamlit as st

from topox_core.errors import InputError
from topox_core.figures.palette import Theme
from topox_core.labs.classroom.folder import Unreadable, answers_in
from topox_core.labs.classroom.leaderboard import (
    BOARDS,
    MAX_ALIAS,
    Board,
    Ranked,
    board_table,
    empty_entry,
    ranked,
)
from topox_core.labs.classroom.statistics import (
    QuestionStatistics,
    lab_statistics,
    statistics_csv,
    statistics_html,
    statistics_rows,
)
from topox_core.labs.lab import Lab
from topox_core.text.numbers import and_more, short
from topox_ui.classroom.held import check_word, class_profile, labs_offered
from topox_ui.present.projector import projector
from topox_ui.present.tally import (
    MAX_FILES,
    PresentState,
    answers_to,
    chosen_lab,
    draw_spread,
    handed,
    say,
    see_switch,
    source,
    title_of,
    upload_box,
)
from topox_ui.runs.limits import server_limits
from topox_ui.shell.charts import (
    button,
    chart_title,
    escape,
    frame,
    headline,
    quiet,
    show_input_errors,
)
from topox_ui.shell.downloads import download_menu, stem
from topox_ui.shell.page import ask_for_a_word
from topox_ui.state.session import Lasting
from topox_ui.state.widgets import menu, pick

_PAST = Lasting[bool]("present_past_the_door")


def only_lecturers() -> None:
    """Ask for the lecturer's word, and stop, unless it was typed or nobody but the lecturer can be here.

    A class of ``make class`` has a door of its own: its students do not come to this page.
    """
    limits = server_limits()
    if not limits.shared or class_profile() is not None or _PAST.get():
        return
    headline(say("present.kicker"), say("present.door.headline"))
    if limits.lecturer_word:
        ask_for_a_word(
            "lecturer_word",
            lambda key: say(f"present.door.{key}"),
            _past,
            type="password",
            max_chars=60,
        )
    else:
        quiet(say("present.door.none"))
    st.stop()


def _past(typed: str) -> str:
    """Let past the door who typed the lecturer's word; else return why it is refused."""
    refused = check_word(typed, server_limits().lecturer_word)
    _PAST.set(not refused)
    return refused


MAX_NAMED = 5


def statistics_view(theme: Theme) -> None:
    """Draw the statistics of one lab."""
    kicker = say("present.kicker")
    with show_input_errors(kicker, "", reset=None):
        labs = labs_offered()
    lab = labs.get(PresentState.now().about) or next(iter(labs.values()))
    answers = answers_to(lab)
    every, count = lab_statistics(lab, answers), len(answers)
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
        menu(PresentState, "about", titles, label=say("present_statistics.lab"), width=320)
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
        return handed("answers").refused
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
    columns = ("question", "answers", "right", "again", "mistake", "times")
    names = [say(f"present_statistics.column.{name}") for name in columns]
    rows = [
        (
            *(question, count),
            *("" if share is None else f"{100 * share:.0f} %" for share in (right, again)),
            *(mistake, times),
        )
        for question, count, right, again, mistake, times in statistics_rows(lab, every)
    ]
    frame(
        [dict(zip(names, row, strict=True)) for row in rows],
        title=(say("present_statistics.table"), say("present_statistics.table_note")),
    )


def _one(lab: Lab, every: tuple[QuestionStatistics, ...], theme: Theme) -> None:
    """Draw the spread of one question with its truth."""
    drawn = {one.question: one for one in every if one.count and (one.options or one.values)}
    if not drawn:
        return
    chart_title(say("present_statistics.spread"), say("present_statistics.spread_note"))
    name = st.selectbox(
        say("present_statistics.question"), list(drawn), key="statistics_question", width=200
    )
    draw_spread(lab, lab.question(name), drawn[name], theme, revealed=True, name="class_spread")


def leaderboards() -> None:
    """Draw the leaderboard that is chosen."""
    board = BOARDS[PresentState.now().board]
    given = handed("entries")
    entries = [one for one in given.found if one.board == board.lab]
    lines = ranked(board, entries) if entries else ()
    finding = say("board.headline", count=len(lines)) if lines else say("board.headline_none")
    headline(say("present.kicker"), finding)
    see_switch()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        pick(
            PresentState,
            "board",
            {name: say(f"board.{name}") for name in BOARDS},
            label=say("board.board"),
        )
        files = [(say("board.example"), ".empty.entry.json", lambda: empty_entry(board))]
        if lines:
            files.append(
                (say("board.csv"), ".leaderboard.csv", lambda: board_table(lines, board.unit))
            )
        download_menu(board.lab, files)
    quiet(say(f"board.{board.lab}_note"))
    upload_box(say("board.files", most=MAX_FILES), "up_entries", "entries")
    _not_read(given.refused)
    if lines:
        _ranks(board, [one for one in lines if one.rank])
        if refused := [one for one in lines if not one.rank]:
            frame(
                {
                    say("board.column.alias"): [one.alias for one in refused],
                    say("board.column.checked"): [one.problem for one in refused],
                },
                title=(say("board.refused"), say("board.refused_note")),
            )


def _ranks(board: Board, lines: list[Ranked]) -> None:
    best = f"{short(board.best_known())} {board.unit}"
    names = [
        say(f"board.column.{one}", unit=board.unit)
        for one in ("rank", "alias", "time", "gap", "checked")
    ]
    rows = [
        (
            one.rank,
            one.alias[: MAX_ALIAS + 4],
            short(one.time),
            f"{100 * one.gap:.1f} %",
            say("board.yes"),
        )
        for one in lines
    ]
    frame(
        [dict(zip(names, row, strict=True)) for row in rows],
        title=(say("board.ranks"), say("board.ranks_note", best=best)),
    )


MAX_LISTED = 12  # ids of which something is kept apart; the folders have all


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
        first = partial(PresentState.choose, lab=lab.id, q=None, show=None)
        button(say("present.begin"), f"begin_{lab.id}", "slideshow", first)


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


def draw(theme: Theme) -> None:
    """Draw the view Present."""
    lab = chosen_lab()
    only_lecturers()
    views = {
        "labs": _labs,
        "statistics": partial(statistics_view, theme),
        "leaderboards": leaderboards,
    }
    if lab is None:
        views[PresentState.now().see]()
    else:
        projector(lab, theme)
