"""Cost: what networks cost and burn, part by part, and which optical switch is worth buying."""

from topox_ui.shell.page import draw_entry

draw_entry("Cost")
