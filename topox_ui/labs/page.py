"""Which screen of Labs is drawn: the cards, or a screen of the lab that the address names."""

from __future__ import annotations

from topox_core.figures.palette import Theme
from topox_ui.labs.first_screen import first_screen, practise
from topox_ui.labs.kept import answers_to, open_lab
from topox_ui.labs.lab_screen import lab_screen
from topox_ui.labs.state import LabsState


def labs_page(theme: Theme) -> None:
    """Draw the page: a link with a lab and a seed begins a practice where nobody has begun."""
    lab, state = open_lab(), LabsState.now()
    if lab is None:
        first_screen()
        return
    answers = answers_to(lab)
    if answers is None or (state.seed is not None and answers.seed != state.seed):
        practise(lab, 0 if state.seed is None else state.seed)
        answers = answers_to(lab)
    assert answers is not None  # just begun
    lab_screen(lab, answers, theme)
