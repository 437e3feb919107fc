"""Papers: published tables and figures, run here; published networks against each other."""

from topox_ui.shell.page import draw_entry

draw_entry("Papers")
