"""What to buy: the command's numbers on a page, the switches edited, a link, what is empty and what is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.patience import wait_until
from tests.topox_ui.conftest import address, chart, control, words
from topox_core.cli.main import main
from topox_core.runs.executor import LocalExecutor
from topox_core.studies.offers import OFFERS
from topox_core.studies.offers_file import dump_offers, load_offers
from topox_core.studies.study_file import load_study
from topox_ui.buying.state import BuyingState

PAGE = "pages/15_Buying.py"
SMALL = {"sample": "blackboard", "buy.left_out": "plzt,sip,mems,lc,robotic"}


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One worker process for the tests of this file, which the server would share among all sessions."""
    executor = LocalExecutor(1)
    monkeypatch.setattr("topox_ui.buying.running.shared_workers", lambda: executor)
    yield
    executor.kill()


def worked_out(at: Any) -> Any:
    at.button(key="work_out").click().run()
    wait_until(
        lambda: bool(at.exception) or not any(b.key == "cancel_buy" for b in at.button), at.run
    )
    assert not at.exception and not at.error
    return at


def test_before_anything_is_computed_the_page_asks_the_question(visit: Any) -> None:
    at = visit(PAGE, **SMALL)
    assert not at.exception
    assert "Which optical switch is worth buying for this job" in words(at)
    assert at.button(key="work_out").label == "Work it out"


@pytest.mark.long
def test_the_page_and_the_command_give_one_answer(
    visit: Any, beside: None, downloads: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    at = worked_out(visit(PAGE, **SMALL, **{"buy.usd_per_gpu_hour": "8"}))
    asked = "study buy --sample blackboard --only rotornet,piezo --usd-per-gpu-hour 8"
    assert main([*asked.split(), "--no-library", "--workers", "1", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    shown = json.loads(downloads["Answer (JSON)"]())
    assert shown == printed
    said = words(at)
    assert printed["finding"].replace("\u00a0", " ") in said
    for question in ("How slow may a switch be", "With how few ports", "Up to which price"):
        assert question in said
    drawn = chart(at, "buying_networks")
    assert sum(len(t["customdata"]) for t in drawn["data"] if t.get("customdata")) == len(
        printed["networks"]
    )
    study = load_study(downloads["Study (JSON)"](), "x.study.json")
    assert len(study.points) == 3 + 3 * 2
    assert downloads["Networks (CSV)"]().decode().count("\n") == 1 + len(printed["networks"])


def test_a_link_restores_what_was_chosen(visit: Any) -> None:
    given = {
        "buy.by": "time",
        "buy.ports": "1,2",
        "buy.rivals": "fixed",
        "buy.edits": "piezo.port_usd:260:300:1040",
        "buy.left_out": "plzt",
        "buy.usd_per_gpu_hour": "3",
        "buy.gpus_per_server": "8",
    }
    at = visit(PAGE, sample="blackboard", **given)
    assert not at.exception
    now = address(at)
    assert {key: now[key] for key in given} == given
    assert control(at, "buy_usd_per_gpu_hour").value == 3.0
    at.button(key="offers_published").click().run()
    assert not {"buy.edits", "buy.left_out"} & set(address(at))


def test_a_link_with_edits_that_cannot_be_says_so_and_keeps_the_rest(visit: Any) -> None:
    at = visit(PAGE, sample="blackboard", **{"buy.edits": "pizo.ports:1:1:1", "buy.by": "time"})
    assert not at.exception
    assert address(at)["buy.by"] == "time"
    assert "buy.edits" not in address(at)


def test_an_edit_of_a_switch_is_taken_and_a_wrong_one_is_a_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import streamlit as st

    from topox_ui.buying import offers_table, state

    said: list[str] = []
    monkeypatch.setattr(state, "notify", lambda _kind, line: said.append(line))
    monkeypatch.setattr(offers_table, "notify", lambda _kind, line: said.append(line))
    kept = [BuyingState()]
    monkeypatch.setattr(state, "state_of", lambda _model: kept[0])
    monkeypatch.setattr(offers_table, "state_of", lambda _model: kept[0])

    def choose(_model: object, **changes: object) -> None:
        kept[0] = kept[0].changed(**changes)

    monkeypatch.setattr(state, "choose", choose)
    monkeypatch.setattr(offers_table, "choose", choose)

    def edited(row: int, column: str, value: object) -> None:
        monkeypatch.setattr(st, "session_state", {"table": {"edited_rows": {row: {column: value}}}})
        offers_table._edited("table")

    edited(4, "$", 300.0)
    assert kept[0].edits == "piezo.port_usd:260:300:1040"
    edited(4, "$, low", 400.0)
    assert said == [
        "offer piezo, field port_usd: must rise from low to usual to high (got 400, 300, 1040)"
    ]
    assert kept[0].edits == "piezo.port_usd:260:300:1040"
    edited(0, "Use", False)
    assert kept[0].left_out == ("plzt",)
    edited(0, "Use", True)
    assert kept[0].left_out == ()
    kept[0] = kept[0].changed(left_out=tuple(one.key for one in OFFERS[1:]))
    edited(0, "Use", False)
    assert said[-1] == "At least one switch has to be considered."


def test_circuits_drawn_in_each_slot_are_refused_in_a_line(visit: Any) -> None:
    at = visit(PAGE, sample="blackboard", circuits="per-slot")
    assert not at.exception
    assert "nothing can be compared" in words(at)
    assert "circuits drawn afresh in each slot pay no delay" in at.error[0].value


def test_the_switches_can_be_saved(visit: Any, downloads: Any) -> None:
    at = visit(PAGE, sample="blackboard", **{"buy.edits": "piezo.port_usd:260:300:1040"})
    assert not at.exception
    saved = load_offers(downloads["Switches (JSON)"](), "x.offers.json")
    assert saved[4].port_usd.usual == 300.0
    assert dump_offers(saved) == downloads["Switches (JSON)"]()


def test_stopped_it_keeps_what_is_there_and_goes_on_when_asked(visit: Any, beside: None) -> None:
    at = visit(PAGE, sample="moe")
    at.button(key="work_out").click().run()
    at.button(key="cancel_buy").click().run()
    assert not at.exception
    assert "kept" in at.warning[0].value
    assert at.button(key="work_out").label == "Go on"
