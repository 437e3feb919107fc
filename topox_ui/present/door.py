"""The door of the page Present where others reach the server: it shows the keys of the class instance."""

import streamlit as st

from topox_ui.classroom.access import check_word
from topox_ui.classroom.profile import class_profile
from topox_ui.present.state import say
from topox_ui.runs.limits import server_limits
from topox_ui.shell.charts import headline, quiet
from topox_ui.state.session import Lasting, Passing

_PAST = Lasting[bool]("present_past_the_door")
_REFUSED = Passing[str]("present_word_refused")


def only_lecturers() -> None:
    """Ask for the lecturer's word, and stop, unless it was typed or nobody but the lecturer can be here.

    A class of ``make class`` has a door of its own: its students do not come to this page.
    """
    limits = server_limits()
    if not limits.shared or class_profile() is not None or _PAST.get():
        return
    headline(say("present.kicker"), say("present.door.headline"))
    if limits.lecturer_word:
        with st.form("lecturer", width=420):
            st.text_input(
                say("present.door.word"), key="lecturer_word", type="password", max_chars=60
            )
            st.form_submit_button(say("present.door.go"), on_click=_typed, type="primary")
        if refused := _REFUSED.pop():
            st.error(say(f"present.door.{refused}"), icon="⚠️")
    else:
        quiet(say("present.door.none"))
    st.stop()


def _typed() -> None:
    refused = check_word(str(st.session_state["lecturer_word"]), server_limits().lecturer_word)
    if refused:
        _REFUSED.set(refused)
    else:
        _PAST.set(True)
