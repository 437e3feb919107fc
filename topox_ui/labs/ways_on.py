"""From a lab's reveal to the other pages: its instance as the job that is loaded."""

from __future__ import annotations

from typing import Any

import streamlit as st

from topox_core.labs.lab import Lab
from topox_ui.labs.words import say, title_of
from topox_ui.shell.links import go_to
from topox_ui.state.loading import Loaded, adopt
from topox_ui.state.notices import notify


def see_instance(lab: Lab, instance: Any, seed: int) -> None:
    """Offer to load an instance that is a task graph, and to see its schedule."""
    if not (hasattr(instance, "graph") and hasattr(instance, "cluster")):
        return
    if st.button(
        say("see_schedule"), key="lab_see", icon=":material/open_in_new:", type="tertiary"
    ):
        adopt(Loaded(instance.graph(), instance.cluster(), f"{lab.id}-{seed}"))
        notify("info", say("loaded_instance", lab=title_of(lab)))
        go_to("Schedule")
