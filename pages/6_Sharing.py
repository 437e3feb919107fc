"""Sharing: several jobs on one optical fabric, by time division."""

from topox_ui.shell.page import draw_entry

draw_entry("Sharing")
