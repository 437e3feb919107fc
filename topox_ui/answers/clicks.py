"""What-ifs at a click, in a row under the figures that they change: other network speeds, and the delay of a real switch."""

from collections.abc import Callable, Iterable
from functools import partial

import streamlit as st

from topox_core.fabrics.run import JobRequest
from topox_core.rails.technologies import technology
from topox_core.text.numbers import delay_label
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


def delays_here(job: JobRequest) -> None:
    """Draw the delays of real switches for a job, whose delay is a what-if; nothing where changes between slots cost no delay."""
    if job.settings.circuits != "per-slot":
        delay_clicks(
            job.cluster.reconfiguration_ms, lambda ms: choose_what_if(reconfiguration_ms=ms)
        )


def delay_clicks(delay_ms: float, take: Take) -> None:
    """Draw the delays of real switches, that in view marked, and the way back to none; without one, say that changes are free.

    Parameters
    ----------
    take
        Is given the delay that was clicked, in ms.
    """
    words = "With a switch that takes"
    delays = [(f"{delay_label(one.reconfiguration_ms)} ({one.name})", one) for one in REAL]
    clicks = [
        (label, f"real_{one.key}", one.reconfiguration_ms, one.reconfiguration_ms == delay_ms)
        for label, one in delays
    ]
    if delay_ms:
        clicks.insert(0, ("0 ms", "real_none", 0.0, False))
    else:
        words = "At a delay of 0 ms circuits change for free. A real switch takes"
    _row("real_delays", words, "timer", clicks, take)
