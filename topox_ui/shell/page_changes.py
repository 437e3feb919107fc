"""A page that was asked for comes: a timer of the page that is left does not call it off."""

from __future__ import annotations

from streamlit.runtime.scriptrunner_utils.script_requests import (
    RerunData,
    ScriptRequests,
    ScriptRequestType,
)


class _Requests(ScriptRequests):
    """Requests to run a page's script, of which those of a page that is left behind are dropped."""

    def _request_rerun_locked(self, new_data: RerunData) -> bool:
        """Record a request; a timer's, sent by a browser that does not know of the new page yet, is none."""
        asked_for = self._rerun_data.page_script_hash
        left = asked_for not in ("", new_data.page_script_hash)
        if new_data.is_auto_rerun and left and self._state != ScriptRequestType.STOP:
            return True
        return super()._request_rerun_locked(new_data)


def keep_page_changes() -> None:
    """Let no timer undo a change of page.

    A fragment with ``run_every`` asks for its page again from the browser. While a server is busy,
    such a request could come after a click on a link: Streamlit 1.67 puts the two together under
    the page of the later one, and the click is lost. A page that is run whole runs its fragments as
    well, so that nothing is missed where the timer's request is dropped.
    """
    from streamlit.runtime.scriptrunner import script_runner

    script_runner.ScriptRequests = _Requests  # type: ignore[misc]
