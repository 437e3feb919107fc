"""Present: a lab on the projector, its class counted; statistics and leaderboards for the lecturer."""

from topox_core.figures.palette import Theme
from topox_ui.present.overview import overview
from topox_ui.present.projector import projector
from topox_ui.present.state import chosen_lab


def draw(theme: Theme) -> None:
    """Draw the view Present."""
    lab = chosen_lab()
    if lab is None:
        overview(theme)
    else:
        projector(lab, theme)
