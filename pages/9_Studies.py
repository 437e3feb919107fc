"""Studies: many what-ifs at once; what is kept of runs."""

from topox_ui.shell.entry import draw_entry

draw_entry("Studies")
