"""Learn: six screens for somebody who knows no optics, each with one slider and a live line."""

from topox_ui.learn.tour import tour
from topox_ui.shell.page import frame, size_switch

theme = frame("Learn")
size_switch()
tour(theme)
