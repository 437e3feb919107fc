"""A click on a link is never lost to the timer of the page that is left."""

import pytest
from streamlit.runtime.scriptrunner import script_runner
from streamlit.runtime.scriptrunner_utils.script_requests import (
    RerunData,
    ScriptRequests,
    ScriptRequestType,
)

from topox_ui.shell import page  # noqa: F401  every page is drawn with it

TIMER = RerunData(page_script_hash="left", fragment_id="follow theme", is_auto_rerun=True)


def requests(*asked: RerunData) -> ScriptRequests:
    """The requests of a busy server, none of them answered yet."""
    waiting = script_runner.ScriptRequests()
    for one in asked:
        assert waiting.request_rerun(one)
    return waiting


def test_a_timer_of_the_page_that_is_left_does_not_call_the_new_one_off() -> None:
    clicked = RerunData(page_script_hash="new")
    for asked in ((clicked, TIMER), (TIMER, clicked)):
        answer = requests(*asked).on_scriptrunner_ready()
        assert answer.rerun_data.page_script_hash == "new"
        assert answer.rerun_data.fragment_id_queue == []


@pytest.mark.parametrize(
    "known", ["new", "left", ""]
)  # a page opened by its address is named only by it
def test_a_timer_is_heard_only_on_the_page_it_belongs_to(known: str) -> None:
    waiting = requests(RerunData(page_script_hash=known))
    waiting.on_scriptrunner_ready()
    assert waiting.request_rerun(TIMER)
    answer = waiting.on_scriptrunner_ready()
    if known == "new":
        assert answer.type == ScriptRequestType.STOP
        assert not waiting.request_rerun(TIMER)  # it has ended: the session asks its next one
    else:
        assert answer.rerun_data.fragment_id_queue == ["follow theme"]
