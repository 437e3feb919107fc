"""Labs: predict, lock, work by hand, and only then see what the workbench computes."""

from topox_core.figures.palette import Theme
from topox_ui.labs.first_screen import first_screen, practise
from topox_ui.labs.kept import answers_to, labs
from topox_ui.labs.lab_screen import lab_screen
from topox_ui.labs.state import LabsState
from topox_ui.shell.page import size_switch


def draw(theme: Theme) -> None:
    """Draw the view Labs."""
    size_switch()
    state = LabsState.now()
    lab = labs().get(state.id)
    if lab is None:
        first_screen()
    else:
        answers = answers_to(lab)
        if answers is None or (state.seed is not None and answers.seed != state.seed):
            # A link with a lab and a seed begins a practice where nobody has begun.
            practise(lab, 0 if state.seed is None else state.seed)
            answers = answers_to(lab)
        assert answers is not None  # just begun
        lab_screen(lab, answers, theme)
