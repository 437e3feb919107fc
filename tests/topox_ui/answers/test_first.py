"""The first answer to a setting is one for all sessions, wherever it was made."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest

from tests.patience import wait_until
from topox_core.runs.stopping import never
from topox_core.schedule.settings import Settings
from topox_core.workloads.samples import load_sample
from topox_ui.answers import first
from topox_ui.answers.case import Case
from topox_ui.answers.first import (
    FirstAnswers,
    first_answer,
    first_answer_ahead,
    known_first_answer,
)


def test_processes_are_started_only_when_two_ask_at_once(monkeypatch) -> None:
    answers = FirstAnswers(0)
    answers._workers = processes = Mock(ready=False)
    monkeypatch.setattr(first, "keep_to_one_core", lambda: None)
    case = Case(*load_sample("fsdp"), Settings.of())
    inside, go_on = threading.Event(), threading.Event()

    def waits(*_given: object) -> str:
        inside.set()
        go_on.wait(10)
        return "an answer"

    monkeypatch.setattr(first, "_schedule_here", waits)
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(answers.schedule, case, never)
        inside.wait(10)
        assert not processes.start.called
        two = pool.submit(answers.schedule, case, never)
        wait_until(lambda: processes.start.called or two.done())
        go_on.set()
        assert one.result(10) == two.result(10) == "an answer"
    assert processes.start.called


@pytest.mark.long
def test_what_was_scheduled_ahead_is_the_answer_when_somebody_asks(monkeypatch) -> None:
    case = Case(*load_sample("race"), Settings.of())
    assert known_first_answer(case) is None
    ahead = first_answer_ahead(case).result(120)
    monkeypatch.setattr(first, "_schedule_here", lambda *_given: 1 / 0)
    assert first_answer(case, never) is ahead is known_first_answer(case)
