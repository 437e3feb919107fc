"""Learn: a tour, labs, a glossary."""

from topox_ui.shell.entry import draw_entry

draw_entry("Learn")
