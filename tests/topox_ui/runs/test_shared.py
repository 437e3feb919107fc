"""Answers that all sessions share are made once and nobody waits in vain; what a session keeps stays within its memory."""

import subprocess
import sys
import threading
import tracemalloc
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import make_dataclass
from unittest.mock import Mock

import numpy as np
import pytest
from streamlit.runtime.scriptrunner import StopException

from tests.real_inputs import ROOT
from topox_core.errors import InputError
from topox_core.runs.run import never
from topox_ui.runs.results import Kept, ResultMemory, Shared, approximate_bytes, wait_for


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


Interval = make_dataclass("Interval", ["task", "start_ms", "end_ms"], frozen=True)


def weighed_and_traced() -> None:
    """Print what a long schedule weighs by our count and by Python's own."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    schedule = [Interval(f"task {i}", i + 0.5, i + 1.5) for i in range(20_000)]
    taken = tracemalloc.get_traced_memory()[0] - before
    print(approximate_bytes(schedule), taken)


@pytest.mark.long
def test_a_long_schedule_is_weighed_about_right() -> None:
    # In a process of its own: tracing must not end where kernels allocate without the interpreter
    # lock in another thread (CPython issue 128679, a segmentation fault).
    child = subprocess.run(
        [sys.executable, "-c", f"from {__name__} import weighed_and_traced as w; w()"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    weighed, taken = map(int, child.stdout.split())
    assert 0.4 * taken < weighed < 2.5 * taken


def test_what_is_held_twice_is_counted_once() -> None:
    array = np.zeros(1_000_000)
    assert approximate_bytes([array, array]) < 1.1 * array.nbytes
    assert approximate_bytes(array) >= array.nbytes
    loop: list[object] = []
    loop.append(loop)
    assert approximate_bytes(loop) < 10 * sys.getsizeof(loop)


MEGABYTE = np.zeros(125_000)


def test_what_was_used_last_is_the_last_to_be_dropped() -> None:
    memory = ResultMemory(2_500_000)
    kept = Kept[np.ndarray](24, memory)
    kept["a"], kept["b"] = MEGABYTE.copy(), MEGABYTE.copy()
    memory.used(kept, "a")
    kept["c"] = MEGABYTE.copy()
    assert set(kept) == {"a", "c"}
    few = Kept[str](2)
    for key in "abac":
        few[key] = key
    assert list(few) == ["a", "c"]


def test_the_oldest_results_are_dropped_first_whatever_made_them() -> None:
    memory = ResultMemory(2_500_000)
    proofs, maps = Kept[np.ndarray](24, memory), Kept[np.ndarray](24, memory)
    # What comes anew is the newest, and counted once.
    for kept, key in ((proofs, "a"), (maps, "b"), (proofs, "c"), (maps, "b")):
        kept[key] = MEGABYTE.copy()
    assert (list(proofs), list(maps)) == (["c"], ["b"])
    maps["large"] = np.zeros(1_000_000)
    assert (list(proofs), list(maps)) == ([], ["large"])
