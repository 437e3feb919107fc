"""The menu's entries and their views: the address names one, old ones lead to theirs, and no timer takes a click back."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.runtime.scriptrunner import script_runner
from streamlit.runtime.scriptrunner_utils.script_requests import (
    RerunData,
    ScriptRequests,
    ScriptRequestType,
)
from streamlit.util import calc_hash

import topox_ui.shell.page  # noqa: F401  every page is drawn with it
from tests.real_inputs import ROOT
from tests.topox_ui.conftest import SCHEDULE, address, follow, turn_to, unbroken
from topox_ui.shell.page import imported
from topox_ui.shell.pages import PAGES, page_of

ENTRIES = (
    *("Home", "Schedule", "Compare", "Cost", "Your trace", "Rails", "Sharing", "Plans"),
    *("Papers", "Studies", "Learn"),
)
# What was a page of its own, by the address that it had, and where that leads.
MOVED = {
    "Buying": "Which switch",
    "Circuits": "Circuits",
    "Gallery": "Papers",
    "Glossary": "Glossary",
    "Jobs": "Sharing",
    "Labs": "Labs",
    "Present": "Present",
    "Recorded": "Your trace",
    "Runs": "Kept runs",
    "Strategy": "Plans",
    "Topology": "Fixed circuits",
    "Who_is_right": "Claims against each other",
}


def test_the_menu_lists_eleven_entries_and_every_script_is_one_of_them_or_an_old_address(visit):
    menu = [one.proto.label.strip("*") for one in visit().sidebar.get("page_link")]
    assert tuple(one for one in menu if one != "Choose a job") == ENTRIES
    scripts = {page.path for page in PAGES} | {f"pages/{name}.py" for name in MOVED}
    files = {str(path.relative_to(ROOT)) for path in (ROOT / "pages").glob("*.py")}
    assert files | {"app.py"} == scripts


@pytest.mark.parametrize(("old", "title"), MOVED.items())
def test_an_old_address_leads_to_its_view(visit, old, title):
    at = visit()
    unbroken(at.switch_page(f"pages/{old}.py").run())
    (said,) = [json.loads(one.proto.json) for one in at.get("bidi_component")]
    page = page_of(title)
    assert said == {"path": page.address, "query": page.query}
    assert Path(page.path).stem.endswith(f"_{page.address}")


def test_the_row_has_the_view_in_view_as_a_word_and_the_others_as_links(visit):
    at = visit(SCHEDULE, sample="blackboard")
    for here, other in (("Timeline", "Circuits"), ("Circuits", "Timeline")):
        said = " ".join(one.proto.body for one in at.get("html"))
        assert re.findall(r'aria-current="page">([^<]+)<', said) == [here]
        assert other in [one.proto.label for one in at.main.get("page_link")]
        assert [one.proto.label for one in at.sidebar.get("page_link")].count("**Schedule**") == 1
        turn_to(at, "Circuits")


def test_a_view_is_no_choice_and_going_back_from_it_costs_none(visit):
    at = visit(SCHEDULE, sample="blackboard", port_gbps="40", from_ms="1")
    follow(at, "Circuits", sample="blackboard", port_gbps="40", slot="2")
    assert not at.warning and at.query_params["view"] == "circuits"
    follow(at, SCHEDULE, sample="blackboard", port_gbps="40", from_ms="1")
    known = at.session_state["page_states"]
    assert not at.warning and "view" not in at.query_params
    assert (known["CircuitsState"].slot, known["ScheduleState"].from_ms) == (2, 1)
    assert address(turn_to(at, "Circuits"))["port_gbps"] == "40"


def test_a_word_that_is_no_view_of_the_entry_is_one_line_and_leaves_the_address(visit):
    at = visit(SCHEDULE, sample="blackboard", port_gbps="40")
    for word in ("nonsense", "fixed"):
        at.query_params["view"] = word
        assert [one.value for one in unbroken(at.run()).warning] == [
            f"Ignored in the link: view={word}"
        ]
        assert at.metric
        assert dict(at.query_params) == {"sample": "blackboard", "port_gbps": "40"}


def test_only_the_view_in_view_is_drawn(visit, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        "topox_ui.shell.page.imported", lambda name: drawn.append(name) or imported(name)
    )
    at = visit("Glossary")
    turn_to(at, "Learn")
    assert drawn == ["learn.view.draw_glossary", "learn.view.draw_tour"]


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
