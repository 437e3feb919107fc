"""Compare: the same task graph under every fabric, and on circuits that stay fixed."""

from topox_ui.shell.page import draw_entry

draw_entry("Compare")
