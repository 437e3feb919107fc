"""A reader's own windows, brought as a file or found in a recorded run: the Rails page shows them."""

from __future__ import annotations

from topox_core.rails.window_file import WindowList
from topox_ui.state.session import Lasting

OWN_WINDOWS = Lasting[WindowList]("rails_windows")
