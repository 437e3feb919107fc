"""What-ifs at a click, in a row under the figures that they change: other network speeds, and the delay of a real switch."""

from collections.abc import Callable, Iterable
from functools import partial

import streamlit as st

from topox_core.rails.technologies import technology
from topox_core.text.numbers import delay_label
from topox_ui.answers.solving import Case
from topox_ui.shell.charts import button
from topox_ui.state.loading import choose_what_if

TIMES = {"half": 0.5, "the same": 1.0, "twice": 2.0, "four times": 4.0}
# A fast and a common kind of switch.
REAL = tuple(map(technology, ("rotornet", "mems")))
Take = Callable[[float], object]
# Of a button: its label, its key, the value that is clicked, and whether it is in view.
Click = tuple[str, str, float, bool]


def _row(key: str, words: str, icon: str, clicks: Iterable[Click], take: Take) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key=key):
        st.html(f'<p class="quiet">{words}</p>', width="content")
        for label, name, value, here in clicks:
            button(label, name, icon, partial(take, value), primary=here)


def speed_clicks(page: str, words: str, own_gbps: float, now_gbps: float, take: Take) -> None:
    """Draw half, the same, twice and four times a network speed, that of the speed in view marked.

    Parameters
    ----------
    page
        What the keys of the buttons begin with.
    words
        What stands before them, HTML made of our own words and escaped names.
    own_gbps
        The speed that is multiplied, in Gbit/s.
    take
        Is given the speed that was clicked, in Gbit/s.
    """
    speeds = [(name, by, own_gbps * by) for name, by in TIMES.items()]
    clicks = [
        (f"{name}: {gbps:,g}G", f"{page}_{by:g}_times", gbps, gbps == now_gbps)
        for name, by, gbps in speeds
    ]
    _row(f"{page}_speeds", words, "speed", clicks, take)


def free_here(case: Case) -> None:
    """Say it of a case, whose delay is a what-if; nothing where changes between slots cost no delay anyway."""
    if case.settings.circuits != "per-slot":
        free_changes(
            case.cluster.reconfiguration_ms, lambda ms: choose_what_if(reconfiguration_ms=ms)
        )


def free_changes(delay_ms: float, take: Take) -> None:
    """Say that changes cost nothing without a delay, and offer those of real switches; nothing where there is a delay.

    Parameters
    ----------
    take
        Is given the delay that was clicked, in ms.
    """
    if not delay_ms:
        words = "At a delay of 0 ms circuits change for free. A real switch takes"
        delays = [(one.name, one.key, one.reconfiguration_ms) for one in REAL]
        clicks = [
            (f"{delay_label(ms)} ({name})", f"real_{key}", ms, False) for name, key, ms in delays
        ]
        _row("free_changes", words, "timer", clicks, take)
