"""Studies: many what-ifs at once; what is kept of runs."""

from topox_ui.shell.page import draw_entry

draw_entry("Studies")
