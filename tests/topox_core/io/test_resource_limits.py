"""Reading a foreign file costs no more memory and time than its size earns; beyond it one line, and the process goes on."""

import resource
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from topox_core.errors import InputError
from topox_core.io import resource_limits
from topox_core.io.limits import MB
from topox_core.io.resource_limits import limited_reading


def limits() -> tuple[object, object]:
    return resource.getrlimit(resource.RLIMIT_DATA), signal.getsignal(signal.SIGPROF)


def test_more_memory_than_reading_may_take_is_one_line_and_the_limit_ends_with_the_reading(
    monkeypatch,
):
    monkeypatch.setattr(resource_limits, "MAX_READING_BYTES", 50 * MB)
    before = limits()
    with (
        pytest.raises(
            InputError, match=r"^a\.json: needs more than the 50\.0 MB that reading it may take$"
        ),
        limited_reading("a.json", 10),
    ):
        bytes(200 * MB)
    assert limits() == before
    assert len(bytes(200 * MB)) == 200 * MB


def test_more_time_than_reading_may_take_is_one_line_through_readers_that_go_on_after_an_error(
    monkeypatch,
):
    monkeypatch.setattr(resource_limits, "READING_S", 0.05)
    before = limits()
    with (
        pytest.raises(
            InputError, match=r"^a\.json: takes more than 0 s of computing to be read: given up$"
        ),
        limited_reading("a.json", 10),
    ):
        while True:
            try:
                sum(range(10_000))
            except Exception:
                continue
    assert limits() == before
    began = time.process_time()
    while time.process_time() - began < 0.2:  # the timer is off
        pass


def test_what_is_read_within_its_limits_is_read_and_other_errors_pass():
    with limited_reading("a.json", 10):
        held = bytes(MB)
    assert len(held) == MB
    with pytest.raises(KeyError), limited_reading("a.json", 10):
        raise KeyError


def test_outside_the_main_thread_only_memory_is_limited(monkeypatch):
    monkeypatch.setattr(resource_limits, "READING_S", 0.0)

    def read() -> int:
        with limited_reading("a.json", 0):
            return sum(range(100_000))

    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(read).result() == sum(range(100_000))
