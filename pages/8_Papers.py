"""Papers: published tables and figures, run here; published networks against each other."""

from topox_ui.shell.entry import draw_entry

draw_entry("Papers")
