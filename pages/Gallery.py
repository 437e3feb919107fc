"""The address that Papers had as a page of its own."""

from topox_ui.shell.page import lead_on

lead_on("Papers")
