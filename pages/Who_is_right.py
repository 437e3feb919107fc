"""The address that Claims against each other had as a page of its own."""

from topox_ui.shell.page import lead_on

lead_on("Claims against each other")
