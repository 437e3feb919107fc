"""Looking after a run in the background, so that its end is noticed whatever page the user is on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

ATTEND_S = 0.2


def attend(goes_on: Callable[[], bool], look: Callable[[], object]) -> None:
    """Call ``look`` now and then, in a thread, for as long as ``goes_on()``."""

    def work() -> None:
        while goes_on():
            look()
            time.sleep(ATTEND_S)

    threading.Thread(target=work, name="attend", daemon=True).start()
