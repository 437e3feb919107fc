"""Which switch: the command's numbers on a page, the switches edited, a link, what is empty and what is wrong."""

import json
import re
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.conftest import some
from tests.patience import wait_until
from tests.topox_ui.conftest import address, buttons, forget_answers, press, the_error, words
from tools.make_answers import first_visit
from topox_core.fabrics.planning.passed_plans import KnownPlans, PassedPlan
from topox_core.fabrics.planning.scheduled import schedule
from topox_core.fabrics.run import JobRequest
from topox_core.runs.executor import LocalExecutor
from topox_core.schedule.results.result import Result
from topox_core.studies.buying.answer import verdict
from topox_core.studies.buying.offers import OFFERS, load_offers
from topox_core.studies.buying.question import Question, Row, with_known_plans
from topox_core.studies.buying.run import Answer
from topox_core.studies.study import load_study
from topox_core.studies.subject import Subject, resolve
from topox_core.workloads.samples import SAMPLES, load_sample
from topox_ui.answers.solving import known_plans, plans_shown
from topox_ui.cost import switches
from topox_ui.cost.question import hand_on, key_of
from topox_ui.cost.switches import BuyingState
from topox_ui.state import session
from topox_ui.state.scenario import Scenario

PAGE = "Which switch"
SMALL = {"sample": "blackboard", "buy.left_out": "plzt,sip,mems,lc,robotic"}


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One worker process for the tests of this file, which the server would share among all sessions."""
    executor = LocalExecutor(1)
    monkeypatch.setattr("topox_ui.cost.question.shared_workers", lambda: executor)
    yield
    executor.kill()


@pytest.mark.long
def test_the_page_and_the_command_give_one_answer(
    visit: Any, beside: None, downloads: Any, ask: Any
) -> None:
    at = press(visit(PAGE, **SMALL, **{"buy.usd_per_gpu_hour": "8", "cost.pue": "2"}), "work_out")
    wait_until(lambda: bool(at.exception) or "cancel_buy" not in buttons(at), at.run)
    assert not at.exception and not at.error
    asked = "study buy --sample blackboard --only rotornet,piezo --usd-per-gpu-hour 8 --pue 2"
    printed = ask(*asked.split(), "--no-library", "--workers", "1")
    assert printed.pop("manifest")["command"] == "study buy"
    saved = json.loads(downloads["Answer (JSON)"]())
    assert saved.pop("manifest")["command"] == "page Which switch" and saved == printed
    assert printed["finding"].replace("\u00a0", " ") in words(at)
    study = load_study(downloads["Study (JSON)"](), "x.study.json")
    assert len(study.points) == 3 + 3 * 2
    assert downloads["Networks (CSV)"]().decode().count("\n") == 1 + len(printed["networks"])


def test_a_link_restores_what_was_chosen_and_what_cannot_be_is_a_line(
    visit: Any, downloads: Any
) -> None:
    given = {
        "buy.by": "time",
        "buy.ports": "1,2",
        "buy.rivals": "fixed",
        "buy.edits": "piezo.port_usd:260:300:1040",
        "buy.left_out": "plzt",
        "buy.usd_per_gpu_hour": "3",
        "buy.gpus_per_server": "8",
        "cost.years": "5",
    }
    at = visit(PAGE, sample="blackboard", **given)
    assert address(at) == {"sample": "blackboard"} | given
    assert load_offers(downloads["Switches (JSON)"](), "x.offers.json")[4].port_usd.usual == 300.0
    assert not {"buy.edits", "buy.left_out"} & set(address(press(at, "offers_published")))
    at = visit(PAGE, sample="blackboard", **given | {"buy.edits": "pizo.ports:1:1:1"})
    assert address(at)["buy.by"] == "time" and "buy.edits" not in address(at)
    at = visit(PAGE, sample="blackboard", circuits="per-slot")
    assert "circuits that may change between slots pay no delay" in the_error(at)


def test_an_edit_of_a_switch_is_taken_and_a_wrong_one_is_a_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    kept = [BuyingState()]
    for module in (session, switches):
        monkeypatch.setattr(module, "notify", lambda _kind, line: said.append(line))
    monkeypatch.setattr(BuyingState, "now", lambda: kept[0])
    monkeypatch.setattr(BuyingState, "choose", lambda **one: kept.insert(0, kept[0].changed(**one)))

    def edited(row: int, column: str, value: object) -> BuyingState:
        switches._edited(row, {column: value})
        return kept[0]

    taken = "piezo.port_usd:260:300:1040"
    assert edited(4, "$", 300.0).edits == edited(4, "$, low", 400.0).edits == taken
    assert said == [
        "offer piezo, field port_usd: must rise from low to usual to high (got 400, 300, 1040)"
    ]
    assert edited(0, "Use", False).left_out == ("plzt",)
    assert edited(0, "Use", True).left_out == ()
    kept.insert(0, kept[0].changed(left_out=tuple(one.key for one in OFFERS[1:])))
    assert len(edited(0, "Use", False).left_out) == len(OFFERS) - 1
    assert said[-1] == "At least one switch must be compared."


def test_stopped_it_keeps_what_is_there_and_goes_on_when_asked(visit: Any, beside: None) -> None:
    at = press(press(visit(PAGE, sample="moe", port_gbps="200"), "work_out"), "cancel_buy")
    assert "kept" in at.warning[0].value
    assert at.button(key="work_out").label == "Go on"


@pytest.mark.parametrize("sample", some(tuple(SAMPLES), quick=1))
def test_a_sample_is_answered_from_the_release_as_a_run_would_answer_it(
    sample: str,
    visit: Any,
    downloads: Any,
    monkeypatch: pytest.MonkeyPatch,
    ask: Any,
) -> None:
    idle = LocalExecutor(1)
    monkeypatch.setattr(idle, "submit", lambda *_: pytest.fail("a point was computed"))
    monkeypatch.setattr("topox_ui.cost.question.shared_workers", lambda: idle)
    at = press(visit(PAGE, sample=sample), "work_out")
    wait_until(lambda: bool(at.exception) or "cancel_buy" not in buttons(at), at.run)
    assert not at.exception and "Within the ranges" in words(at)
    told = ask(*f"study buy --sample {sample} --no-library --workers 2".split())
    shown = json.loads(downloads["Answer (JSON)"]())
    by_command, by_page = told.pop("manifest"), shown.pop("manifest")
    assert shown == told and by_page["figures"] == by_command["figures"]
    assert (by_command["command"], by_page["command"]) == ("study buy", "page Which switch")


def test_plans_go_from_schedule_to_the_switches_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that one job at one delay has one time on both pages."""
    graph, cluster = load_sample("blackboard")
    settings = Scenario(source="sample", name="blackboard").settings()
    job = JobRequest(graph, cluster, settings).by_rules
    asked = Question(resolve(Subject("sample", {"name": "blackboard"})))
    degree = cluster.ports_per_server
    rows = (
        Row(asked.rival("fixed", degree), 100.0, 1e5, 1.0),
        Row(asked.at(OFFERS[0], degree), 50.0, 1.0, 1.0),
        Row(asked.at(OFFERS[1], degree), 50.0, 1.0, 1.0),
    )
    answer = Answer(asked, rows, verdict=verdict(asked, rows), complete=True)
    known = KnownPlans()
    before = key_of(asked, known.of(job.key_of_plans))
    delays = []

    def prefetched(one: JobRequest) -> Future[Result]:
        delays.append(one.cluster.reconfiguration_ms)
        made: Future[Result] = Future()
        made.set_result(schedule(one.task_graph, one.cluster, one.settings))
        return made

    monkeypatch.setattr("topox_ui.cost.question.known_plans", lambda: known)
    monkeypatch.setattr("topox_ui.cost.question.known_first_answer", lambda _job: None)
    monkeypatch.setattr("topox_ui.cost.question.prepared", lambda: True)
    monkeypatch.setattr("topox_ui.cost.question.prefetch", prefetched)
    hand_on(job, answer)
    (plan,) = known.of(job.key_of_plans)
    assert delays == [OFFERS[1].delay_ms.usual] == [plan.cluster.reconfiguration_ms]
    # The question with this plan is another one, whose switches use it; then there is nothing to hand on.
    assert key_of(asked, known.of(job.key_of_plans)) != before
    used = with_known_plans(asked, [replace(one, iteration_ms=1e6) for one in rows], [plan])
    hand_on(job, replace(answer, rows=used, verdict=verdict(asked, used)))
    assert len(delays) == 1


def test_a_sample_has_one_answer_at_whichever_delay_it_is_loaded(visit: Any) -> None:
    """The plan of moe for 14 µs, which the release has, serves fast switches beside a loaded delay of 15 ms too."""
    told = set()
    for query in ({}, {"reconfiguration_ms": "15"}):
        at = press(visit(PAGE, sample="moe", **query), "work_out")
        wait_until(lambda at=at: bool(at.exception) or "cancel_buy" not in buttons(at), at.run)
        assert not at.exception
        told.add(re.search("an iteration costs .*? less", words(at))[0])
        # As on Per iteration, and as the command computes it.
        assert "send in an order would take at most 104 ms" in words(at)
        forget_answers()
    assert len(told) == 1


def test_the_answer_does_not_hang_on_plans_for_other_delays_that_happen_to_be_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = first_visit("race")
    job = job.by_rules
    one = schedule(job.task_graph, job.cluster, job.settings)
    monkeypatch.setattr("topox_ui.answers.solving.known", lambda _job: one)
    (before,) = plans_shown(job)
    slow = schedule(job.task_graph, job.at_delay(20.0).cluster, job.settings)
    known_plans().add(job.key_of_plans, PassedPlan.of(slow))
    assert len(known_plans().of(job.key_of_plans)) > 1
    (after,) = plans_shown(job)
    assert np.array_equal(after.end_ms, before.end_ms)
    forget_answers()
