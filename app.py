"""Home: what an optical circuit switch is, and a job to open: a sample, own files or a generated workload."""

from topox_ui.shell.page import draw_entry

draw_entry("Home")
