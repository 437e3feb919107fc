"""Your trace: what a step of a profiled job takes, and what of it is the network's."""

from topox_ui.shell.page import draw_entry

draw_entry("Your trace")
