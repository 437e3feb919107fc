"""Studies: many what-ifs at once, built, run, watched and drawn."""

from topox_core.errors import InputError
from topox_core.figures.palette import Theme
from topox_ui.shell.charts import show_input_errors
from topox_ui.shell.page import size_switch
from topox_ui.studies.first_screen import first_screen, nothing_chosen, wrong_study
from topox_ui.studies.planning import asked
from topox_ui.studies.sections import pictures, sections
from topox_ui.studies.state import StudiesState


def draw(theme: Theme) -> None:
    """Draw the view Ready and own studies."""
    if not StudiesState.now().of:
        with show_input_errors("Studies", "The run library <b>cannot be read</b>.", reset=None):
            nothing_chosen(theme)
        size_switch()
        return
    try:
        now = asked()
    except InputError as error:
        wrong_study(error)
        size_switch()
        return
    first_screen(now)
    pictures(now, theme)
    sections(now, theme)
    size_switch()
