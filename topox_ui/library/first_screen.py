"""The runs that are kept, and two of them side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from topox_core.errors import InputError
from topox_core.figures.lanes import RunPicture, on_one_clock
from topox_core.figures.palette import CATEGORY_COLOURS, Theme, category_words
from topox_core.figures.rails_windows import windows_side_by_side
from topox_core.library.comparison import ComparedValue, RunComparison
from topox_core.library.rows import StoredRun
from topox_core.library.run_library import RunLibrary
from topox_core.studies.keys import measure_words, value_words
from topox_core.text.foreign import escape_untrusted
from topox_core.text.numbers import count, percent, plural, size, time
from topox_ui.answers.run_library import HOW_ON, OFF, library_path
from topox_ui.library.actions import undo_button
from topox_ui.library.executions import RunDrawn, drawn_run
from topox_ui.library.finding import differing, equal_words, finding, name_words, setting_rows
from topox_ui.library.listing import LETTERS, Listed, keep_switch
from topox_ui.library.state import RunsState
from topox_ui.shell.charts import chart, frame, legend_line
from topox_ui.shell.links import page_link
from topox_ui.shell.page import chart_title, escape, headline, quiet, write_html
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
        quiet("No run can be drawn. What differs in numbers stands beside.")
        return
    longest = max(one.makespan_ms for one in drawn.values())
    shortest = min(one.makespan_ms for one in drawn.values())
    for letter, one in drawn.items():
        picture = RunPicture(letter, one.makespan_ms, one.image, one.lanes)
        chart(
            on_one_clock(picture, longest, shortest, theme),
            f"clock_{letter}",
            f"Run {letter} over {time(one.makespan_ms)}, on a clock of {time(longest)}: "
            f"{plural(one.lanes.servers, 'server')}, devices compute {percent(one.device_busy)} of the time.",
        )
        if one.note:
            quiet(f"{letter}: {escape(one.note)}.")
    colours = sorted({int(v) for one in drawn.values() for v in np.unique(one.image)})
    words = category_words(sorted({use for one in drawn.values() for use in one.traffic}))
    legend_line([(CATEGORY_COLOURS[k], words[k]) for k in colours if k in words], theme)


def _windows(drawn: Drawn, theme: Theme) -> None:
    chart_title(
        "Windows between transfers",
        "share no longer than x, logarithmic; in a long window a circuit changes for free",
        beside=True,
    )
    there = [(letter, one.windows_ms) for letter, one in drawn.items() if len(one.windows_ms)]
    without = [letter for letter, one in drawn.items() if not len(one.windows_ms)]
    if without:
        quiet(f"No window in {', '.join(without)}: one kind of traffic has the network to itself.")
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
        lambda: pd.DataFrame(
            [(letter, length) for letter, ms in there for length in sorted(ms.tolist())],
            columns=["Run", "Length (ms)"],
        ),
        "Every window",
    )


def _what_differs(compared: RunComparison) -> None:
    chart_title("What differs", "only what is not the same")
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


def headline_of(library: RunLibrary, now: Listed, compared: RunComparison | None) -> None:
    """Write how many runs there are and what the chosen ones say."""
    kicker = f"Runs · {count(now.total)} kept on this machine"
    if now.matching != now.total:
        kicker += f" · {count(now.matching)} match"
    if now.chosen:
        kicker += f" · {count(len(now.chosen))} chosen"
    for line in library.notices:
        st.warning(escape_untrusted(line, "markdown"))
    if compared is not None:
        headline(kicker, finding(compared))
    elif now.chosen:
        headline(kicker, f"{_one(now)} Choose another run to see what differs.")
    elif now.matching:
        headline(
            kicker,
            f"<b>{plural(now.matching, 'run')}</b> to open again. Choose two of them to see what differs.",
        )
    else:
        headline(kicker, "<b>No run matches.</b> Take a filter away on the left.")


def _one(now: Listed) -> str:
    record = now.chosen[0].record
    name = escape(record.name or record.subject)
    for measure in ("iteration_ms", "round_s", "dollars"):
        value = record.measures.get(measure)
        if value is not None:
            what = {"iteration_ms": "an iteration takes", "round_s": "a round takes"}.get(
                measure, "the network costs"
            )
            return f"{name}: {what} <b>{measure_words(measure, value)}</b>."
    return f"{name}: {escape((record.message or record.status).rstrip('.'))}."


def nothing_yet() -> None:
    """Say what a kept run is good for and where the first one comes from."""
    headline("Runs", "<b>No run is kept yet.</b> Keep one on Schedule or Compare, or run a study.")
    write_html(
        '<ul class="claim"><li>On Schedule and Compare, under the figures, "Keep this run" puts what you see into the library.'
        "</li><li>A study keeps each of its points the moment it is done.</li>"
        "<li>Here kept runs are found again, opened in the very state they were kept in, and set side by side.</li></ul>"
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        page_link("Schedule", "Go to Schedule", icon=":material/arrow_forward:")
        page_link("Compare", "Go to Compare", icon=":material/arrow_forward:")
    undo_button()
    with st.sidebar:
        st.divider()
        keep_switch()
    where_it_lies()


def switched_off() -> None:
    """Say that this server keeps no runs, and who can change that."""
    headline("Runs", f"<b>{OFF[:-1]}</b>, so there is nothing to list.")
    quiet(HOW_ON)
    quiet("A link or a download keeps what a page shows: both are under its figures.")


def where_it_lies(library: RunLibrary | None = None) -> None:
    """Say which file the library is, and what may not be done to it now."""
    path = library_path()
    words = f"The library is one file on the machine that serves this page: {escape(str(path))}"
    if library is None or not path.exists():
        quiet(f"{words}. It is made when the first run is kept.")
        return
    quiet(f"{words}, {size(path.stat().st_size)}.")
    if library.read_only:
        quiet(f"It can only be read: {escape(library.read_only)}.")
