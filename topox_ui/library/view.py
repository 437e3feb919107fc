"""Kept runs: what is kept of runs, found again, opened, and set side by side."""

import streamlit as st

from topox_core.economics.price_sets import PRICE_SETS, SET_BY_SPEED
from topox_core.fabrics.options import FabricOptions
from topox_core.figures.palette import Theme
from topox_core.library.opening import default_path
from topox_core.library.rows import RunRecord
from topox_core.library.run_library import RunLibrary
from topox_core.library.tables import RunComparison, compare_runs
from topox_core.studies.kept_run import Kept, record_of_solve
from topox_core.studies.keys import measure_words
from topox_core.studies.subject import Subject, resolved_of
from topox_core.text.foreign import escape_untrusted
from topox_core.text.numbers import count, plural, size
from topox_core.workloads.samples import load_sample
from topox_ui.answers.case import Case
from topox_ui.answers.first import shipped_answer
from topox_ui.answers.run_library import HOW_ON, OFF, existing_library, keeps_runs
from topox_ui.library.actions import actions, undo_button
from topox_ui.library.listing import (
    Listed,
    controls,
    every_run,
    keep_switch,
    listed,
    row_of_example,
    study_menu,
    table,
)
from topox_ui.library.side_by_side import finding, side_by_side
from topox_ui.library.state import RunsState
from topox_ui.runs.limits import server_limits
from topox_ui.shell.charts import (
    chart_title,
    escape,
    frame,
    headline,
    quiet,
    show_input_errors,
    write_html,
)
from topox_ui.shell.menu import page_link
from topox_ui.state.scenario import Scenario
from topox_ui.state.widgets import sidebar

EXAMPLE = "race"  # the sample whose schedule shows what a kept run is


def headline_of(library: RunLibrary, now: Listed, compared: RunComparison | None) -> None:
    """Write how many runs there are and what the chosen ones say."""
    of_study = RunsState.now().study is not None
    kicker = f"Kept runs · {count(now.total)} kept on this {'server' if server_limits().shared else 'computer'}"
    if of_study:
        kicker = f"Kept runs · {plural(now.matching, 'point')} of a study"
    elif now.matching != now.total:
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
        headline(kicker, "<b>No run matches.</b> Remove a filter on the left.")


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
    headline("Kept runs", "<b>No run is kept yet.</b> Keep one on Schedule or Compare.")
    chart_title(
        "An example: one kept run",
        "as this page lists it; choose a run to open it again",
    )
    frame([row_of_example(example())])
    write_html(
        '<ul class="claim"><li>On Schedule and Compare, under the figures, "Keep this run" puts what you see into the library.'
        "</li><li>This page lists kept runs, opens them in the state that was kept, and compares them.</li>"
        "<li>The points of a study stay with their study.</li></ul>"
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        page_link("Schedule", "Open the example", icon=":material/open_in_new:", sample=EXAMPLE)
        page_link("Schedule", "Go to Schedule", icon=":material/arrow_forward:")
        page_link("Compare", "Go to Compare", icon=":material/arrow_forward:")
        page_link("Studies", "Go to Studies", icon=":material/arrow_forward:")
    undo_button()
    with sidebar():
        st.divider()
        keep_switch()
    where_it_lies()


@st.cache_resource(show_spinner=False)
def example() -> RunRecord:
    """Return the shipped schedule of a sample as the run that "Keep this run" would make of it."""
    graph, cluster = load_sample(EXAMPLE)
    now = Scenario(source="sample", name=EXAMPLE)
    case = Case(graph, now.cluster(cluster), now.settings())
    result = shipped_answer(case)
    assert result is not None, "tools/make_answers.py ships one of every sample"
    subject = resolved_of(Subject("sample", {"name": EXAMPLE}), graph, cluster)
    prices = PRICE_SETS[SET_BY_SPEED]
    options = FabricOptions()
    kept = Kept(subject, case.cluster, case.settings, options, prices, SET_BY_SPEED)
    return record_of_solve(result, kept)


def switched_off() -> None:
    """Say that this server keeps no runs, and who can change that."""
    headline("Kept runs", f"<b>{OFF[:-1]}</b>, so there is nothing to list.")
    quiet(HOW_ON)
    quiet("A link or a download keeps what a page shows: both are under its figures.")


def where_it_lies(library: RunLibrary | None = None) -> None:
    """Say where the library is, if that is on the reader's own computer, and what may not be done to it now."""
    path = default_path()
    if not server_limits().shared:
        large = f", {size(path.stat().st_size)}" if path.exists() else ""
        quiet(
            f"Runs are kept on this computer in {escape(str(path.parent))}, in the file {escape(path.name)}{large}."
        )
    if library is not None and library.read_only:
        quiet(f"The library can only be read: {escape(library.read_only)}.")


def draw(theme: Theme) -> None:
    """Draw the view Kept runs."""
    if not keeps_runs():
        switched_off()
        return
    with show_input_errors("Kept runs", "The run library <b>cannot be read</b>.", reset=None):
        library = existing_library()
        if library is None or not library.count(every_run()):
            nothing_yet()
            return
        controls(library)
        now = listed(library)
        compared = compare_runs(now.chosen) if len(now.chosen) > 1 else None
        headline_of(library, now, compared)
        study_menu(library)
        table(now)
        actions(now)
        if compared is not None:
            side_by_side(library, compared, theme)
    where_it_lies(library)
