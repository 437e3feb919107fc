"""Half, the same, twice and four times a network speed, each at a click."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from topox_ui.shell.charts import button

TIMES = {"half": 0.5, "the same": 1.0, "twice": 2.0, "four times": 4.0}


def speed_clicks(
    page: str, words: str, own_gbps: float, now_gbps: float, take: Callable[[float], object]
) -> None:
    """Draw the row of clicks, that of the speed in view marked.

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
    with st.container(horizontal=True, vertical_alignment="center", key=f"{page}_speeds"):
        st.html(f'<p class="quiet">{words}</p>', width="content")
        for name, factor in TIMES.items():
            gbps = own_gbps * factor
            button(
                f"{name}: {gbps:,g}G",
                f"{page}_{factor:g}_times",
                "speed",
                partial(take, gbps),
                primary=gbps == now_gbps,
            )
