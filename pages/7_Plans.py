"""Plans: how to split a model over servers."""

from topox_ui.shell.page import draw_entry

draw_entry("Plans")
