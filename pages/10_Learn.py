"""Learn: a tour, labs, a glossary."""

from topox_ui.shell.page import draw_entry

draw_entry("Learn")
