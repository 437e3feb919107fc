"""Labs: predict, lock, work by hand, and only then see what the workbench computes."""

from topox_ui.labs.page import labs_page
from topox_ui.shell.page import frame, size_switch

theme = frame("Labs")
size_switch()
labs_page(theme)
