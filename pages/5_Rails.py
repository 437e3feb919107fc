"""Rails: what a job sends on a rail, the windows between, and what switching in them costs."""

from topox_ui.shell.page import draw_entry

draw_entry("Rails")
