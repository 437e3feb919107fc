"""Bars of a schedule by hand can be dragged: what that does, the fields do as well."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

LATEST_MS = 1_000
_drag = st.components.v2.component(
    "topox_lab_drag", js=Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
)


def let_bars_be_dragged(key: str, tasks: Sequence[str], take: Callable[[str, int], None]) -> None:
    """Let bars of the hand Gantt chart on this page be dragged.

    Parameters
    ----------
    tasks
        Whose bars may be.
    take
        Is given a task and its new start, in whole ms.
    """

    def moved() -> None:
        state: Any = st.session_state.get(key) or {}
        given = state.get("moved")
        if not isinstance(given, dict):
            return
        task, start = given.get("task"), given.get("start")
        whole = isinstance(start, int) and not isinstance(start, bool)
        if task in tasks and whole and 0 <= start <= LATEST_MS:
            take(task, start)

    _drag(key=key, data={"tasks": list(tasks)}, on_moved_change=moved)
