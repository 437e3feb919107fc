"""A click on a link, to a page or to a view, is never lost to the timer of what is left."""

from dataclasses import replace

import pytest
from streamlit.runtime.scriptrunner import script_runner
from streamlit.runtime.scriptrunner_utils.script_requests import (
    RerunData,
    ScriptRequests,
    ScriptRequestType,
)
from streamlit.util import calc_hash

from topox_ui.shell import page  # noqa: F401  every page is drawn with it
from topox_ui.shell.pages import page_of

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


@pytest.mark.parametrize(
    ("clicked", "timer"), [("view=circuits", ""), ("a=1", "a=1&view=circuits")]
)
def test_a_timer_does_not_undo_a_click_on_a_view_whose_page_has_the_same_script(
    clicked: str, timer: str
) -> None:
    script = calc_hash(page_of("Circuits").address)
    click = RerunData(page_script_hash=script, query_string=clicked)
    late = replace(TIMER, page_script_hash=script, query_string=timer)
    for asked in ((click, late), (late, click)):
        answer = requests(*asked).on_scriptrunner_ready()
        assert answer.rerun_data.query_string == clicked
        assert answer.rerun_data.fragment_id_queue == []
    waiting = requests(click)
    waiting.on_scriptrunner_ready()
    for query in (
        clicked,
        f"{clicked}&b=1",
    ):  # a choice that was made since is none of another view
        assert waiting.request_rerun(replace(late, query_string=query))
        assert waiting.on_scriptrunner_ready().rerun_data.fragment_id_queue == ["follow theme"]
        waiting = requests(click)
        waiting.on_scriptrunner_ready()


def test_a_timer_is_heard_where_the_address_named_no_view() -> None:
    script = calc_hash(page_of("Circuits").address)
    waiting = requests(RerunData(page_script_hash=script, query_string="view=fixed"))
    waiting.on_scriptrunner_ready()
    assert waiting.request_rerun(replace(TIMER, page_script_hash=script))
    assert waiting.on_scriptrunner_ready().rerun_data.fragment_id_queue == ["follow theme"]
