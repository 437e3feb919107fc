"""Answers that all sessions share are worked out once, whoever asks, and nobody waits for one who has gone."""

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from unittest.mock import Mock

import pytest
from streamlit.runtime.scriptrunner import StopException

from topox_core.errors import InputError
from topox_core.runs.stopping import never
from topox_ui.runs.memory import ResultMemory
from topox_ui.runs.shared import Shared, wait_for


def test_ten_who_ask_at_once_have_one_answer_that_was_made_once() -> None:
    answers, asked = Shared[int](ResultMemory(1e6)), threading.Barrier(10)
    make = Mock(return_value=7)

    def ask() -> int:
        asked.wait()
        return answers.get("a", make, never)

    with ThreadPoolExecutor(10) as pool:
        futures = [pool.submit(ask) for _ in range(10)]
        assert {one.result() for one in futures} == {7}
    assert make.call_count == 1 and answers.known("a") == 7


def test_what_one_could_not_make_another_tries_for_himself() -> None:
    answers = Shared[int](ResultMemory(1e6))
    begun, go_on = threading.Event(), threading.Event()

    def refused() -> int:
        begun.set()
        go_on.wait(10)
        raise InputError("must be less")

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(answers.get, "a", refused, never)
        begun.wait(10)
        second = pool.submit(answers.get, "a", lambda: 3, never)
        go_on.set()
        assert second.result(10) == 3
        with pytest.raises(InputError):
            first.result(10)


def test_who_has_gone_does_not_wait() -> None:
    never_comes: Future[int] = Future()
    with pytest.raises(StopException):
        wait_for(never_comes, lambda: True)
    assert never_comes.cancelled()
