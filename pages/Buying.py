"""The address that Which switch had as a page of its own."""

from topox_ui.shell.page import lead_on

lead_on("Which switch")
