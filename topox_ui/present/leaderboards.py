"""Two leaderboards of class instances: every entry is tested anew, equal times share a rank."""

from __future__ import annotations

import json

import streamlit as st

from topox_core.labs.folder import load_each
from topox_core.labs.leaderboard import (
    BOARDS,
    MAX_ALIAS,
    Board,
    Entry,
    Ranked,
    board_table,
    hand_instance,
    load_entry,
    ranked,
    shared_jobs,
)
from topox_core.text.numbers import short
from topox_ui.present.answers import MAX_FILES, Given
from topox_ui.present.state import PresentState, say, see_switch
from topox_ui.present.tally import upload_box
from topox_ui.shell.charts import frame
from topox_ui.shell.downloads import download_menu
from topox_ui.shell.page import chart_title, escape, headline, quiet
from topox_ui.state.session import Lasting
from topox_ui.state.widgets import pick

_ENTRIES = Lasting[tuple[Entry, ...]]("present_entries")
_REFUSED = Lasting[tuple[str, ...]]("present_entries_refused")


def leaderboards() -> None:
    """Draw the leaderboard that is chosen."""
    board = BOARDS[PresentState.now().board]
    entries = [one for one in _ENTRIES.get_or(tuple) if one.board == board.lab]
    lines = ranked(board, entries) if entries else ()
    finding = say("board.headline", count=len(lines)) if lines else say("board.headline_none")
    headline(say("present.kicker"), finding)
    see_switch()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        pick(
            say("board.board"),
            PresentState,
            "board",
            {name: say(f"board.{name}") for name in BOARDS},
        )
        files = [(say("board.example"), ".empty.entry.json", lambda: _empty(board))]
        if lines:
            files.append(
                (say("board.csv"), ".leaderboard.csv", lambda: board_table(lines, board.unit))
            )
        download_menu(board.lab, files)
    quiet(say(f"board.{board.lab}_note"))
    upload_box(say("board.files", most=MAX_FILES), "up_entries", _take)
    for line in _REFUSED.get_or(tuple)[:5]:
        quiet(escape(line))
    if lines:
        _ranks(board, [one for one in lines if one.rank])
        _infeasible([one for one in lines if not one.rank])


def _take(files: Given) -> None:
    found, refused = load_each(files[:MAX_FILES], load_entry)
    _ENTRIES.set(tuple(entry for _, entry in found))
    _REFUSED.set(tuple(str(error) for _, error in refused))


def _ranks(board: Board, lines: list[Ranked]) -> None:
    best = f"{short(board.best_known())} {board.unit}"
    chart_title(say("board.ranks"), say("board.ranks_note", best=best))
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
    frame([dict(zip(names, row, strict=True)) for row in rows])


def _infeasible(lines: list[Ranked]) -> None:
    if not lines:
        return
    chart_title(say("board.refused"), say("board.refused_note"))
    frame(
        [
            {say("board.column.alias"): one.alias, say("board.column.checked"): one.problem}
            for one in lines
        ]
    )


def _empty(board: Board) -> bytes:
    """Return an entry to fill in: every task at 0, or every job in group A."""
    if board.lab == "six-tasks":
        value: dict[str, object] = {task.id: 0 for task in hand_instance()[0].tasks}
    else:
        value = {job.id: "A" for job in shared_jobs().jobs}
    record = {
        "format": "topox-entry",
        "version": 1,
        "board": board.lab,
        "alias": "",
        board.field: value,
    }
    return (json.dumps(record, indent=1) + "\n").encode()
