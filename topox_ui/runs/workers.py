"""Worker processes that all sessions share."""

from __future__ import annotations

import streamlit as st

from topox_core.runs.executor import LocalExecutor
from topox_ui.runs.limits import CORES, server_limits


@st.cache_resource(show_spinner=False)
def shared_workers() -> LocalExecutor:
    """Return the worker processes of all sessions' answers; they end when there is nothing to do."""
    return LocalExecutor(min(CORES, server_limits().solver_places))
