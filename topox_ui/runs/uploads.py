"""Files that browsers send: from whom they are taken, and how much of them is held for a session and for all."""

from __future__ import annotations

import streamlit as st
from starlette.exceptions import HTTPException
from streamlit.runtime import exists, get_instance
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from topox_core.io.limits import MAX_FILE_BYTES, MB
from topox_ui.classroom.access import admitted
from topox_ui.runs.limits import server_limits

# Of all sessions; who comes later waits until others have left.
MAX_OF_ALL_BYTES = 2_000 * MB
FORBIDDEN, TOO_LARGE = 403, 413


@st.cache_resource(show_spinner=False)
def limit_uploads() -> None:
    """Have this server take files only of sessions past the door, and no more than a session and all may hold."""
    manager = get_instance().uploaded_file_mgr if exists() else None
    if isinstance(manager, MemoryUploadedFileManager):  # a test of a page has none
        limit(manager)


def limit(manager: MemoryUploadedFileManager) -> None:
    """Refuse what a manager would hold beyond the limits; its files go with their session as before."""
    add = manager.add_file

    def within_limits(session_id: str, file: UploadedFileRec) -> None:
        if session_id not in admitted():
            raise HTTPException(FORBIDDEN, "Not past the door")
        held = {
            session: sum(len(one.data) for one in list(files.values()))
            for session, files in list(manager.file_storage.items())
        }
        own = max(server_limits().session_mb * MB, MAX_FILE_BYTES)
        more = len(file.data)
        if held.get(session_id, 0) + more > own or sum(held.values()) + more > MAX_OF_ALL_BYTES:
            raise HTTPException(TOO_LARGE, "More than this server holds")
        add(session_id, file)

    manager.add_file = within_limits  # type: ignore[method-assign]
