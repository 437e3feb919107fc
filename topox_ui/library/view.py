"""Kept runs: what is kept of runs, found again, opened, and set side by side."""

from topox_core.figures.palette import Theme
from topox_core.library.comparison import compare_runs
from topox_ui.answers.run_library import existing_library, keeps_runs
from topox_ui.library.actions import actions
from topox_ui.library.first_screen import headline_of, nothing_yet, switched_off, where_it_lies
from topox_ui.library.listing import controls, every_run, listed, table
from topox_ui.library.side_by_side import side_by_side
from topox_ui.shell.charts import show_input_errors
from topox_ui.shell.page import size_switch


def draw(theme: Theme) -> None:
    """Draw the view Kept runs."""
    if not keeps_runs():
        switched_off()
        size_switch()
        return
    with show_input_errors("Kept runs", "The run library <b>cannot be read</b>.", reset=None):
        library = existing_library()
        if library is None or not library.count(every_run()):
            nothing_yet()
            size_switch()
            return
        controls(library)
        size_switch()
        now = listed(library)
        compared = compare_runs(now.chosen) if len(now.chosen) > 1 else None
        headline_of(library, now, compared)
        table(now)
        actions(now)
        if compared is not None:
            side_by_side(library, compared, theme)
    where_it_lies(library)
