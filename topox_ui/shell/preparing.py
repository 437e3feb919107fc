"""What a page says while kernels are compiled, and what waits for them."""

import streamlit as st

from topox_core.warm_up import Preparation

POLL_S = 1.0


@st.cache_resource(show_spinner=False)
def preparation() -> Preparation:
    """Return what this server compiles beside its first visitor."""
    return Preparation()


def prepared() -> bool:
    """Return whether nobody need wait for a compiler."""
    return preparation().ready


def progress() -> None:
    """Say how far the compiler is; the page is drawn anew once it is through. Nothing where it is."""
    if not prepared():
        _progress()


@st.fragment(run_every=POLL_S)
def _progress() -> None:
    if prepared():
        st.rerun()
    _quiet(f"Preparing fast kernels, once on this machine: {preparation().words}")


def _quiet(line: str) -> None:
    st.html(f'<p class="quiet" role="status">{line}</p>')


def wait_for_kernels() -> None:
    """Say what is waited for and end the script, where kernels are still being compiled."""
    if not prepared():
        _quiet(
            "Kernels are compiled once on each machine; then the page goes on by itself. Schedules of samples, and of "
            "graphs of up to 300 tasks, need no kernels."
        )
        _progress()
        st.stop()
