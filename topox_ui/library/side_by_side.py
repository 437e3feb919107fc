"""Two or more runs side by side: what differs, both overviews on one clock, both distributions of windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from topox_core.errors import InputError
from topox_core.figures.lanes import on_one_clock
from topox_core.figures.palette import CATEGORY_COLOURS, Theme, category_words
from topox_core.figures.rails_windows import windows_side_by_side
from topox_core.library.comparison import ComparedValue, RunComparison
from topox_core.library.rows import StoredRun
from topox_core.library.run_library import RunLibrary
from topox_core.studies.keys import value_words
from topox_core.text.numbers import percent, plural, time
from topox_ui.library.executions import RunDrawn, drawn_run
from topox_ui.library.finding import differing, equal_words, name_words, setting_rows
from topox_ui.library.listing import LETTERS
from topox_ui.library.state import RunsState
from topox_ui.shell.charts import Table, chart, frame, legend_line
from topox_ui.shell.page import chart_title, escape, quiet, write_html
from topox_ui.state.widgets import switch

Drawn = dict[str, RunDrawn]


def side_by_side(library: RunLibrary, compared: RunComparison, theme: Theme) -> None:
    """Draw everything that the chosen runs say beside one another."""
    drawn, refused = _drawn(library, compared.runs)
    main, rail = st.columns([2.1, 1], gap="medium")
    with main:
        _clocks(drawn, refused, theme)
        _windows(drawn, theme)
    with rail:
        _what_differs(compared)


def _drawn(library: RunLibrary, runs: Sequence[StoredRun]) -> tuple[Drawn, list[str]]:
    """Return what is drawn of each run by its letter, and why some cannot be."""
    drawn: Drawn = {}
    refused = []
    for letter, one in zip(LETTERS, runs, strict=False):
        try:
            drawn[letter] = drawn_run(library, one)
        except InputError as error:
            refused.append(f"{letter}: {error}")
    return drawn, refused


def _clocks(drawn: Drawn, refused: Sequence[str], theme: Theme) -> None:
    chart_title(
        "Runs on one clock" if len(drawn) > 2 else "Both runs on one clock",
        "devices and ports of every server; dotted: where the shortest run ends",
        beside=True,
    )
    for line in refused:
        quiet(escape(line))
    if not drawn:
        quiet("No run can be drawn. The numbers that differ are beside.")
        return
    longest = max(one.makespan_ms for one in drawn.values())
    shortest = min(one.makespan_ms for one in drawn.values())
    for letter, one in drawn.items():
        chart(
            on_one_clock(letter, one.makespan_ms, one.image, one.lanes, longest, shortest, theme),
            f"clock_{letter}",
            f"Run {letter} over {time(one.makespan_ms)}, on a clock of {time(longest)}: "
            f"{plural(one.lanes.servers, 'server')}, devices compute {percent(one.device_busy)} of the time.",
            _whole(letter, one),
        )
        if one.note:
            quiet(f"{letter}: {escape(one.note)}.")
    colours = sorted({int(v) for one in drawn.values() for v in np.unique(one.image)})
    words = category_words(sorted({use for one in drawn.values() for use in one.traffic}))
    legend_line([(CATEGORY_COLOURS[k], words[k]) for k in colours if k in words], theme)


def _whole(letter: str, one: RunDrawn) -> Table:
    return lambda: [
        {"Run": letter, "Iteration (ms)": one.makespan_ms, "Devices compute": one.device_busy}
    ]


def _windows(drawn: Drawn, theme: Theme) -> None:
    chart_title(
        "Windows between transfers",
        "share of windows up to a length, logarithmic; a long window hides a circuit change",
        beside=True,
    )
    there = [(letter, one.windows_ms) for letter, one in drawn.items() if len(one.windows_ms)]
    without = [letter for letter, one in drawn.items() if not len(one.windows_ms)]
    if without:
        quiet(f"No window in {', '.join(without)}: the network carries only one kind of traffic.")
    if not there:
        return
    chart(
        windows_side_by_side(there, theme),
        "windows_compared",
        "Lengths of windows: "
        + "; ".join(
            f"{letter}: {plural(len(ms), 'window')}, the middle one {time(float(np.median(ms))).replace('-', '−')}"
            for letter, ms in there
        ),
        lambda: [
            {"Run": letter, "Length (ms)": length}
            for letter, ms in there
            for length in sorted(ms.tolist())
        ],
        "Every window",
    )


def _what_differs(compared: RunComparison) -> None:
    chart_title("What differs", "settings and measures that are not equal")
    blocks = differing(compared)
    if blocks:
        write_html(_table(compared, blocks))
    else:
        quiet("Nothing: these runs are alike in every setting and every measure.")
    quiet(escape(equal_words(compared.equal_settings)))
    if switch("Every setting", RunsState, "settings"):
        frame(setting_rows(compared))


def _table(compared: RunComparison, blocks: Sequence[tuple[str, list[ComparedValue]]]) -> str:
    """Return what differs as a table of HTML, which is narrow where the page is."""
    letters = LETTERS[: len(compared.runs)]
    head = "".join(f'<th scope="col">{letter}</th>' for letter in letters)
    rows = ""
    for title, several in blocks:
        rows += f'<tr><th scope="colgroup" colspan="{1 + len(letters)}">{title}</th></tr>'
        for one in several:
            cells = "".join(f"<td>{escape(value_words(one.name, v))}</td>" for v in one.values)
            rows += f'<tr><th scope="row">{escape(name_words(one.name))}</th>{cells}</tr>'
    return f'<table class="differs"><thead><tr><td></td>{head}</tr></thead><tbody>{rows}</tbody></table>'
