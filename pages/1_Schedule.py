"""Schedule: one iteration on optical circuits; the circuit of every port."""

from topox_ui.shell.page import draw_entry

draw_entry("Schedule")
