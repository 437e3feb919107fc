"""Learn: six screens for somebody who knows no optics, each with one slider and a live line; and the glossary."""

from topox_core.figures.palette import Theme
from topox_ui.learn.entries import entries
from topox_ui.learn.tour import tour
from topox_ui.shell.page import size_switch


def draw_tour(theme: Theme) -> None:
    """Draw the view Tour."""
    size_switch()
    tour(theme)


def draw_glossary(_theme: Theme) -> None:
    """Draw the view Glossary."""
    size_switch()
    entries()
