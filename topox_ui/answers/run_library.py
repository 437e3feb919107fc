"""The run library of this server, opened once for all sessions."""

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from topox_core.errors import InputError
from topox_core.library.opening import default_path
from topox_core.library.run_library import RunLibrary
from topox_ui.runs.limits import server_limits

OFF = "This server keeps no runs."
HOW_ON = (
    "It is off where several people share one server, because all of them would see the same runs. The owner of the "
    "server can switch it on: TOPOX_RUN_LIBRARY=yes."
)


def keeps_runs() -> bool:
    """Return whether there is a run library on this server."""
    return server_limits().keeps_runs


@st.cache_resource(show_spinner=False)
def _opened(path: str) -> RunLibrary:
    return RunLibrary.open(Path(path))


def open_library() -> RunLibrary:
    """Return the run library; the first use of it begins its file.

    Raises
    ------
    InputError
        If its file cannot be used.
    """
    return _opened(str(default_path()))


def existing_library() -> RunLibrary | None:
    """Return the run library if this server keeps runs and its file is there: who only looks begins none.

    Raises
    ------
    InputError
        If its file cannot be used.
    """
    return open_library() if keeps_runs() and default_path().exists() else None


def kept_input(library: RunLibrary) -> Callable[[str], bytes | None]:
    """Return what finds the content of an input file by its digest."""

    def content(digest: str) -> bytes | None:
        found = library.input(digest)
        return None if found is None else found.content

    return content


def writable_library() -> RunLibrary | None:
    """Return the run library where this server keeps runs and it can be written."""
    if not keeps_runs():
        return None
    try:
        library = open_library()
    except InputError:
        return None
    return None if library.read_only else library
