"""A session's desk: places are given back whoever looks, and the best of two results is kept."""

import threading
import time
from dataclasses import replace

import pytest

from topox_core.samples import load_sample
from topox_core.schedule.settings import Settings
from topox_core.schedule.solve import quick
from topox_ui.solving import BUSY, Case, Desk


def case(**settings) -> Case:
    graph, cluster = load_sample("moe")
    return Case(graph, cluster, Settings.of(**settings))


def free(places: threading.BoundedSemaphore) -> bool:
    if places.acquire(blocking=False):
        places.release()
        return True
    return False


def wait_until(condition, seconds: float = 30.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "waited too long"
        time.sleep(0.05)


@pytest.fixture
def one_place() -> threading.BoundedSemaphore:
    return threading.BoundedSemaphore(1)


def test_a_proof_that_nobody_watches_still_ends_keeps_its_result_and_gives_its_place_back(one_place):
    desk, asked = Desk(one_place), case(time_limit_s=0.5)
    desk.start(asked)
    assert not free(one_place)
    wait_until(lambda: free(one_place))
    assert desk.ended()
    assert not desk.ended()
    assert desk.proof is None
    assert desk.results[asked.key].wall_s < 20


def test_a_second_session_is_told_when_all_places_are_taken(one_place):
    first, second = Desk(one_place), Desk(one_place)
    first.start(case(time_limit_s=60.0))
    second.start(case(time_limit_s=60.0))
    assert (second.note, second.proof) == (BUSY, None)
    first.close()
    wait_until(lambda: free(one_place))
    second.start(case(time_limit_s=60.0))
    assert second.proof is not None
    second.close()


def test_cancel_keeps_the_schedule_and_another_start_takes_the_same_place(one_place):
    desk, asked = Desk(one_place), case(time_limit_s=600.0)
    desk.start(asked)
    desk.cancel()
    wait_until(lambda: desk.proof is None)
    assert desk.results[asked.key].stopped_by == "cancelled"
    desk.start(asked)
    assert desk.proof is not None
    desk.close()
    wait_until(lambda: free(one_place))


def test_the_better_schedule_and_the_better_bound_are_both_kept():
    desk, asked = Desk(threading.BoundedSemaphore(1)), case()
    listed = quick(asked.graph, asked.cluster, asked.settings)
    better_bound = replace(listed, makespan_ms=listed.makespan_ms + 1, bound_ms=listed.bound_ms + 5, bound_by="search")
    for results in ((listed, better_bound), (better_bound, listed)):
        desk.results.clear()
        for result in results:
            desk._keep("key", result)
        kept = desk.results["key"]
        assert (kept.makespan_ms, kept.bound_ms, kept.bound_by) == (listed.makespan_ms, listed.bound_ms + 5, "search")
