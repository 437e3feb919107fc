"""Where circuits change for free: said beside the figures, with the delay of a real switch at a click."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from topox_core.rails.technologies import technology
from topox_core.text.numbers import delay_label
from topox_ui.answers.case import Case
from topox_ui.shell.charts import button
from topox_ui.state.loading import choose_what_if

# A fast and a common kind of switch.
REAL = tuple(map(technology, ("rotornet", "mems")))


def free_here(case: Case) -> None:
    """Say it of a case, whose delay is a what-if; nothing where changes between slots cost no delay anyway."""
    if case.settings.circuits != "per-slot":
        free_changes(
            case.cluster.reconfiguration_ms, lambda ms: choose_what_if(reconfiguration_ms=ms)
        )


def free_changes(delay_ms: float, take: Callable[[float], object]) -> None:
    """Say that changes cost nothing without a delay, and offer those of real switches; nothing where there is a delay.

    Parameters
    ----------
    take
        Is given the delay that was clicked, in ms.
    """
    if delay_ms:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="free_changes"):
        st.html(
            '<p class="quiet">At a delay of 0 ms circuits change for free. A real switch takes</p>',
            width="content",
        )
        for one in REAL:
            ms = one.reconfiguration_ms
            button(f"{delay_label(ms)} ({one.name})", f"real_{one.key}", "timer", partial(take, ms))
