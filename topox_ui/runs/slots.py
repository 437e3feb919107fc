"""Solver slots: how many solves run on this machine at once, over all sessions."""

from __future__ import annotations

import os
import threading

import streamlit as st

CORES = os.cpu_count() or 1
BUSY = "All solver places of this machine are in use. Wait for another solve to end, or cancel one, and try again."


@st.cache_resource(show_spinner=False)
def solver_slots() -> threading.BoundedSemaphore:
    """Return the semaphore of the machine's solver slots, one a core."""
    return threading.BoundedSemaphore(CORES)


def take_slots(slots: threading.BoundedSemaphore, most: int, wait_s: float = 0.0) -> int:
    """Take up to ``most`` free slots, waiting for the first one if told to; return how many."""
    if not slots.acquire(timeout=wait_s):
        return 0
    taken = 1
    while taken < most and slots.acquire(blocking=False):
        taken += 1
    return taken
